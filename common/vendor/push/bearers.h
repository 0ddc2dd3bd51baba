// SPDX-License-Identifier: Apache-2.0
// What authorizes requests for a while (VendorBearer), kept until shortly before it expires: an
// access token that was asked for, or a token that was signed here. No I/O and no clock. Law: a
// bearer of another secret is never handed out, so that a rotated credential is used at once; of
// those that ask while there is none, or an old one, one makes the next.
#pragma once

#include "common/vendor/vendor_api.h"

enum { BEARERS_MAX = 1024, BEARER_TEXT_MAX = 4096, BEARER_AGAIN_S = 10 };

typedef struct Bearers Bearers;

Bearers *bearers_new(void);
void bearers_free(Bearers *bearers);

// key: the credential's name, and the audience where there is one. Empty: there is none that is of
// use yet. *ret_due: the caller is to make another one, and says how it went by put or failed; for
// 10 s no other caller is asked to. Valid until the next call.
Str bearers_get(Bearers *bearers, Str key, Str secret, int64_t now_us, bool *ret_due);
// false: it is longer than BEARER_TEXT_MAX.
bool bearers_put(Bearers *bearers, Str key, Str secret, const VendorBearer *bearer, int64_t now_us);
// None could be had of this secret: asked again after 10 s; an old one stays in use until it
// expires.
void bearers_failed(Bearers *bearers, Str key, Str secret, int64_t now_us);
// The vendor refused this one: dropped unless there is another one by now.
void bearers_drop(Bearers *bearers, Str key, Str text);
