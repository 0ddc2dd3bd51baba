// SPDX-License-Identifier: Apache-2.0
// One login at a provider, from its begin to its callback. A cookie holds the time and random
// bytes; what the provider gets to see (state, nonce, PKCE's verifier) are HMACs of them under keys
// that are derived from the master key. So the state is the cookie's MAC, every replica can check
// it, nothing is stored, and who reads the cookie knows neither nonce nor verifier. Pure.
#pragma once

#include "common/api/callers/session.h"
#include "common/codec/master_key.h"

enum {
    OIDC_LOGIN_S = 600,
    OIDC_TEXT_SIZE = 44, // 32 bytes as base64url, with NUL
};

// One for each of the installation's master keys: a login outlives a rotation.
typedef struct OidcLoginKeys {
    uint8_t bytes[MASTER_KEYS_MAX][MASTER_KEY_LEN];
    size_t count;
} OidcLoginKeys;

typedef struct OidcLogin {
    char cookie[SESSION_SECRET_SIZE]; // hex
    char state[OIDC_TEXT_SIZE], nonce[OIDC_TEXT_SIZE], verifier[OIDC_TEXT_SIZE];
} OidcLogin;

void oidc_login_keys(const MasterKey *master, OidcLoginKeys *ret);
void oidc_login_new(const OidcLoginKeys *keys, int64_t now_us, OidcLogin *ret);
// false: the state is not this cookie's, or it is older than OIDC_LOGIN_S.
bool oidc_login_open(
    const OidcLoginKeys *keys, Str cookie, Str state, int64_t now_us, OidcLogin *ret);
// PKCE's S256 (RFC 7636, 4.2).
void oidc_login_challenge(const OidcLogin *login, char ret[OIDC_TEXT_SIZE]);
