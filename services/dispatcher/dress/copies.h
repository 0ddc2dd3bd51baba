// SPDX-License-Identifier: Apache-2.0
// Who gets a copy of a mail: those of its cc and bcc who may be written to. Law: each is judged
// by itself, when the mail is sent; a suppressed one is left out of headers and envelope, and the
// mail goes to the others.
#pragma once

#include "common/base/arena.h"
#include "common/codec/suppressed.h"
#include "common/mime/mime.h"
#include "common/model/suppressions.h"
#include "services/dispatcher/vendor/vendor.h"
#include "stentor/v1/rendered.pb-c.h"

typedef struct CopiesWant {
    const Suppressions *known;
    const HashKeys *hash_keys;
    const Stentor__V1__Rendered *rendered;
    const Stentor__V1__EmailContent *content;
    int64_t now_us;
    Arena *arena;
} CopiesWant;

typedef struct Copies {
    MimeMailbox cc[MAIL_COPIES_MAX]; // of the header
    size_t cc_count;
    Str envelope[MAIL_COPIES_MAX]; // all of them
    size_t count;
    bool utf8; // an address is not ASCII
} Copies;

// In `arena`.
const Copies *copies_choose(const CopiesWant *want);
