// SPDX-License-Identifier: Apache-2.0
// An API key as an entry of CONFIG: made, judged, shown. Law: its text is "stn_<key id>.<secret>",
// is shown once and kept nowhere; CONFIG has its SHA-256. A key manages another only when it may
// all that the other may.
#pragma once

#include <jansson.h>

#include "common/api/api_json.h"
#include "common/api/auth.h"
#include "common/base/arena.h"

enum {
    API_KEY_NAME_MAX = 128, // bytes
    API_KEY_SCOPES_MAX = 32,
    API_KEY_CIDRS_MAX = 16,
};

// A new id and secret: fills in key_id and secret_hash, both in the arena, and returns the whole
// text.
char *api_key_make(Stentor__V1__ApiKey *key, Arena *arena);
// The id and hash of a key whose text exists already; false: it is no key's.
bool api_key_take(Stentor__V1__ApiKey *key, Str whole, Arena *arena);
// Whose it is and what it may: every tenant's, an operator's.
void api_key_make_operator(Stentor__V1__ApiKey *key, int64_t now_us);
// "stn_..." may stand before an id.
Str api_key_bare_id(Str id);
const char *api_key_state(const Stentor__V1__ApiKey *key, int64_t now_us); // active, ending, ...
bool api_key_is_over(const Stentor__V1__ApiKey *key, int64_t now_us);      // revoked or expired
bool api_key_is_revoked(const Stentor__V1__ApiKey *key, int64_t now_us);
// What a list and an answer say of it, never its hash. New reference.
json_t *api_key_json(const Stentor__V1__ApiKey *key, int64_t now_us);
// From at_us on it is valid no more. When that is not ahead, whoever reads the entry refuses the
// key at once: a replica whose clock is behind does not wait. false: it ends as early already.
bool api_key_end(Stentor__V1__ApiKey *key, int64_t at_us, int64_t now_us);
// The key in the place of `old`: the same name and scopes, for as long as the old one was made for.
void api_key_succeed(const Stentor__V1__ApiKey *old, int64_t now_us, Stentor__V1__ApiKey *ret);
// `name`, `scopes`, `allowed_cidrs` and `expires_at` of a body into the key; what it does not name
// stays. A key without any scopes is a fault. false: the expiry is wrong; other faults are the
// body's.
bool api_key_take_body(ApiBody *body, Stentor__V1__ApiKey *key);
