// SPDX-License-Identifier: Apache-2.0
// Auth: who may call. API keys are "stn_<key id>.<secret>"; CONFIG holds only the SHA-256 of the
// whole text. Law: a wrong secret, an unknown key id, a revoked key and no key at all are told
// apart by nobody, by time either.
#pragma once

#include "common/base/error.h"
#include "common/base/str.h"

enum { AUTH_KEY_MAX = 256, TENANT_SIZE = 33 };

typedef struct Auth Auth;

Auth *auth_new(void);
void auth_free(Auth *auth);
// cfg.apikey.<tenant>.<key id>; an empty payload removes the key. ERROR_PERMANENT when it cannot be
// read.
bool auth_changed(Auth *auth, Str tenant, Str key_id, Str payload, Error *err);
// The value of the Authorization header. true: ret_tenant holds the key's tenant, ret_key_id the
// key's id (a part of `authorization`).
bool auth_check(
    const Auth *auth, Str authorization, int64_t now_us, char ret_tenant[TENANT_SIZE],
    Str *ret_key_id);
