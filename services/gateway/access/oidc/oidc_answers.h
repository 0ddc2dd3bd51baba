// SPDX-License-Identifier: Apache-2.0
// What an OpenID provider answers: its discovery document (OpenID Connect Discovery, 4.2), its keys
// and a token response (RFC 6749, 5). Foreign bytes. Pure. Law: nothing of them is in an error but
// a short word of the specification's.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/http/client/guard.h"

enum { OIDC_DOCUMENT_MAX = 64 * 1024, OIDC_ANSWER_MAX = 64 * 1024 }; // bytes

typedef struct OidcDocument {
    Str authorize, token, keys; // URLs that the guard allows
    bool basic;                 // the client's secret goes by HTTP's Basic; else in the form
    bool names_issuer;          // a callback has `iss` (RFC 9207)
} OidcDocument;

// Lives in the arena. ERROR_TRANSIENT: it is no document; ERROR_CONFIG: of another issuer, or with
// an address that is none.
bool oidc_document_read(
    Str text, Str issuer, const HttpGuard *guard, Arena *arena, OidcDocument *ret, Error *err);
// Whether it is a set of keys (RFC 7517, 5), which id_token.h reads. ERROR_TRANSIENT.
bool oidc_keys_check(Str text, Error *err);
// The ID token, in the arena. ERROR_PERMANENT: the code is not good (any more); ERROR_CONFIG: the
// client is not; ERROR_TRANSIENT: all else.
bool oidc_answer_read(int status, Str text, Arena *arena, Str *ret_id_token, Error *err);
// An error code of OAuth as it may be shown: lower case and '_', at most 40; else "unknown".
const char *oidc_error_word(Str code, Arena *arena);
