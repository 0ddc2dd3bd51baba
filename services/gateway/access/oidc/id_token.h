// SPDX-License-Identifier: Apache-2.0
// An ID token of an OpenID provider (OpenID Connect Core 3.1.3.7) against the provider's keys
// (JWKS, RFC 7517): foreign bytes until the signature is good. Pure. Law: RS256 and ES256 only, by
// a key of that kind in the provider's set; the token's own header names no key but by its id.
#pragma once

#include <jansson.h>

#include "common/base/arena.h"
#include "common/base/error.h"

enum {
    ID_TOKEN_MAX = 16 * 1024, // bytes
    ID_KEYS_MAX = 256 * 1024,
    ID_KEYS_COUNT_MAX = 64,
    ID_TOKEN_SKEW_S = 60, // of the provider's clock
};

typedef struct IdTokenWanted {
    Str issuer;   // exactly
    Str audience; // our client id
    Str nonce;    // of this login
    int64_t now_us;
} IdTokenWanted;

// The claims, a new reference. NULL: ERROR_TRANSIENT says that the keys have none for it (newer
// ones may), ERROR_PERMANENT what is wrong; neither quotes anything of it.
json_t *id_token_check(Str token, Str keys, const IdTokenWanted *wanted, Arena *arena, Error *err);
