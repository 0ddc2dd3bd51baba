// SPDX-License-Identifier: Apache-2.0
// One member of a batch, as a line of NDJSON or an object of an array:
// {"to" | "recipient_id", "name", "variables", "locale", "consent"}. Pure. What a member may be is
// what a request may be (request.h); only the names of its fields are here.
#pragma once

#include <jansson.h>

#include "common/base/id.h"
#include "common/request/request.h"

typedef struct Member {
    Str to; // normalised; empty: the recipient's own
    Str name;
    Str recipient_id;
    Str locale;         // empty: the batch's
    Str variables;      // a packed JSON object, or empty
    Str consent_source; // empty: the batch's
    int64_t consent_at_us;
} Member;

// What all members have in common.
typedef struct MemberRules {
    Request model;          // channel, template and the rest: a member completes it
    size_t variables_max;   // bytes of packed JSON that the batch's own leave to a member
    const char *required;   // by the template (request/required.h); NULL: nothing
    const json_t *defaults; // the batch's own variables; NULL: none
    int64_t now_us;
} MemberRules;

// Everything in *ret lives in `arena`; nothing points into `line`. *err names the field; it is ""
// when the line is not a JSON object.
bool batch_member_parse(
    Str line, const MemberRules *rules, Arena *arena, Member *ret, FieldError *err);
bool batch_member_read(
    const json_t *value, const MemberRules *rules, Arena *arena, Member *ret, FieldError *err);

// The id of the member with this index: the same whenever and wherever it is made. begun_at_us is
// its chunk's.
void batch_notification_id(Str batch_id, int64_t index, int64_t begun_at_us, char out[ID_SIZE]);
