// SPDX-License-Identifier: Apache-2.0
// An OpenID provider over HTTP: its discovery document and its keys, kept for an hour and asked for
// by one call at a time, however many logins wait; and a code for an ID token, which is checked
// (id_token.h). Keys are fetched again for a token that names another one, at most every ten
// seconds. Every call ends within five seconds, every answer has a maximum. Law: a code goes out
// once; callbacks come exactly once.
#pragma once

#include <uv.h>

#include "services/gateway/access/oidc/id_token.h"
#include "services/gateway/access/oidc/oidc_answers.h"
#include "services/gateway/access/oidc/oidc_options.h"

typedef struct OidcProvider OidcProvider;

// Options are borrowed. ERROR_CONFIG: the issuer is no address.
OidcProvider *oidc_provider_new(uv_loop_t *loop, const OidcOptions *options, Error *err);
// Calls on the way end with ERROR_CANCELLED; then on_freed, from the loop.
void oidc_provider_free(OidcProvider *provider, void (*on_freed)(void *ctx), void *ctx);

// found NULL: err says why (kinds as of oidc_answers.h). Valid until the loop goes on.
typedef void (*OidcFound)(void *ctx, const OidcDocument *found, const Error *err);
// `arena` lives until on_found, which may come from within the call.
void oidc_discover(OidcProvider *provider, Arena *arena, OidcFound on_found, void *ctx);
// Whether its callbacks have `iss`, as far as that is known.
bool oidc_names_issuer(const OidcProvider *provider);

typedef struct OidcCode {
    Str code, verifier, redirect; // what the provider compares
    Str nonce;                    // what its token must have
} OidcCode;

// claims borrowed; NULL: err says why. ERROR_PERMANENT: this login cannot succeed.
typedef void (*OidcRedeemed)(void *ctx, const json_t *claims, const Error *err);
// All of `code` lives in the arena, until on_redeemed.
void oidc_redeem(
    OidcProvider *provider, const OidcCode *code, Arena *arena, OidcRedeemed on_redeemed,
    void *ctx);
