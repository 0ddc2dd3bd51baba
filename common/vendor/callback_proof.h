// SPDX-License-Identifier: Apache-2.0
// What the vendors' `verify` have in common. Secrets are compared in constant time, and every key
// is tried whichever fits, so that the time says nothing about them.
#pragma once

#include "common/vendor/vendor_callback.h"

enum { CALLBACK_SECRET_MAX = 512 };

// Empty when not there; names are compared without case.
Str callback_header(const CallbackRequest *request, const char *name);
bool callback_equal(Str a, Str b); // in constant time for texts of one length
// Unix seconds of `digits` (1 to 12 digits) against the request's time.
CallbackVerdict callback_age(const CallbackRequest *request, Str digits, int64_t repeats_s);

// A key of the vendor's that is a text: of `min` to CALLBACK_SECRET_MAX printable bytes. `what`
// begins "a key is ", for ERROR_PERMANENT.
bool callback_text_key_check(Str secret, size_t min, const char *what, Error *err);
Str callback_hex_none(size_t bytes, Arena *arena); // for `key_none`: so many random ones

// "user:password", or a token without ':'.
bool callback_basic_key_check(Str secret, Error *err);
// Authorization: "Basic base64(user:password)", or "Bearer token" for a key without ':'.
bool callback_basic_verify(
    const CallbackRequest *request, const CallbackKey *keys, size_t key_count, CallbackVerdict *ret,
    size_t *ret_key);
Str callback_basic_none(Arena *arena);
extern const char *const callback_basic_reads[];
