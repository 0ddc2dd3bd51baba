// SPDX-License-Identifier: Apache-2.0
// Auth: who may call. API keys are "stn_<key id>.<secret>"; CONFIG holds only the SHA-256 of the
// whole text. Law: a wrong secret, an unknown key id and no key at all get the same answer after
// the same time; only a caller with the secret learns that a key is revoked or has expired. Only a
// key of tenant `platform` is an operator's, whatever the scopes of another say.
#pragma once

#include "common/base/error.h"
#include "common/base/str.h"
#include "common/http/client_address.h"
#include "common/model/scope.h"
#include "stentor/v1/config.pb-c.h"

#define AUTH_PLATFORM STR("platform")

enum { AUTH_KEY_MAX = 256, TENANT_SIZE = 33 };

typedef struct Auth Auth;

Auth *auth_new(void);
void auth_free(Auth *auth);
// cfg.apikey.<tenant>.<key id>; an empty payload removes the key. ERROR_PERMANENT when it cannot be
// read.
bool auth_changed(Auth *auth, Str tenant, Str key_id, Str payload, Error *err);

typedef enum AuthVerdict { AUTH_OK, AUTH_UNKNOWN, AUTH_REVOKED, AUTH_EXPIRED } AuthVerdict;

typedef struct AuthCaller {
    char tenant[TENANT_SIZE]; // the key's
    Str key_id;               // a part of the header's value
    ScopeSet scopes;
    int64_t expires_at_us;   // 0: never
    const HttpProxies *from; // the ranges that it may be used from; NULL: anywhere
} AuthCaller;

// What a stored key may.
ScopeSet auth_scopes(const Stentor__V1__ApiKey *key);
// The value of the Authorization header. *ret is written for AUTH_OK only.
AuthVerdict auth_check(const Auth *auth, Str authorization, int64_t now_us, AuthCaller *ret);
// Whether a key that was shown before still stands and has the scope: for what goes on for long.
bool auth_holds(const Auth *auth, Str key_id, Scope scope, int64_t now_us);

// Whether a key was revoked or is gone: then what it has made is over too. An expired one is neither.
bool auth_is_withdrawn(const Auth *auth, Str key_id, int64_t now_us);

// Keys in force that expire, are not revoked for a time to come (as a rotated one is), and were
// made for longer than `within_us`, so that who made them has forgotten it.
typedef struct AuthEnding {
    size_t soon;      // within that time
    int64_t first_us; // when the first of all expires; INT64_MAX: none does
} AuthEnding;
AuthEnding auth_ending(const Auth *auth, int64_t now_us, int64_t within_us);
