// SPDX-License-Identifier: Apache-2.0
// Entity tags and what a caller makes its write depend on (RFC 9110, 13.1). A tag is strong, and is
// the sequence of the last message that made what is shown: "4711". If-Match names what is to be
// replaced, "*" anything that is there; If-None-Match: * says that there must be nothing. Law: who
// reads a precondition compares it with the same sequence under which it then publishes.
#pragma once

#include "common/api/api.h"

enum { PRECONDITION_TAGS_MAX = 8 };

typedef struct Precondition {
    bool must_exist; // If-Match: *
    bool must_be_new;
    bool must_match; // one of the tags
    uint64_t tags[PRECONDITION_TAGS_MAX];
    size_t tag_count;
} Precondition;

// false: answered, 400 with the header's name.
bool precondition_read(ApiCall *call, Precondition *ret);
bool precondition_is_given(const Precondition *what);
// there: the sequence of what stands there; 0: nothing.
bool precondition_holds(const Precondition *what, uint64_t there);
// 412 `precondition-failed`; its ETag is what stands there. Also for who gave no precondition and
// lost to another at the same moment.
void precondition_answer_failed(ApiCall *call, uint64_t there);
void precondition_tag(ApiCall *call, uint64_t sequence); // the answer's ETag

// Pure. Empty: not there. false: *ret_wrong is the name of the header.
bool precondition_parse(Str if_match, Str if_none_match, Precondition *ret, const char **ret_wrong);
