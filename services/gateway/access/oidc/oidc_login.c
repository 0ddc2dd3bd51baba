// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/access/oidc/oidc_login.h"

#include <openssl/crypto.h>
#include <string.h>

#include "common/base/id.h"
#include "common/codec/hash.h"

enum { TIME_LEN = 8, MESSAGE_MAX = 16 + SESSION_SECRET_LEN };

void oidc_login_keys(const MasterKey *master, OidcLoginKeys *ret)
{
    ret->count = master_key_count(master, KEY_MASTER);
    for (size_t i = 0; i < ret->count; i++) {
        master_key_derive(master, i, "stentor console login", ret->bytes[i]);
    }
}

static void derive(
    Str key, const char *purpose, const uint8_t bytes[SESSION_SECRET_LEN], char out[OIDC_TEXT_SIZE])
{
    uint8_t mac[SHA256_LEN], message[MESSAGE_MAX];
    size_t len = strlen(purpose);
    memcpy(message, purpose, len);
    memcpy(message + len, bytes, SESSION_SECRET_LEN);
    hmac_sha256(key, str_of(message, len + SESSION_SECRET_LEN), mac);
    base64url_encode(mac, sizeof mac, out);
}

static void fill(
    const OidcLoginKeys *keys, size_t index, const uint8_t bytes[SESSION_SECRET_LEN],
    OidcLogin *ret)
{
    Str key = str_of(keys->bytes[index], MASTER_KEY_LEN);
    hex_encode(bytes, SESSION_SECRET_LEN, ret->cookie);
    derive(key, "state|", bytes, ret->state);
    derive(key, "nonce|", bytes, ret->nonce);
    derive(key, "verifier|", bytes, ret->verifier);
}

void oidc_login_new(const OidcLoginKeys *keys, int64_t now_us, OidcLogin *ret)
{
    uint8_t bytes[SESSION_SECRET_LEN];
    uint64_t now_s = (uint64_t)(now_us / 1000000);
    random_bytes(bytes, sizeof bytes);
    for (int i = 0; i < TIME_LEN; i++) {
        bytes[i] = (uint8_t)(now_s >> (8 * (TIME_LEN - 1 - i)));
    }
    fill(keys, 0, bytes, ret);
}

static bool is_fresh(const uint8_t bytes[SESSION_SECRET_LEN], int64_t now_us)
{
    uint64_t at_s = 0, now_s = (uint64_t)(now_us / 1000000);
    for (int i = 0; i < TIME_LEN; i++) {
        at_s = at_s << 8 | bytes[i];
    }
    // Another replica's clock may be a little ahead.
    return at_s <= now_s + OIDC_LOGIN_S && now_s < at_s + OIDC_LOGIN_S;
}

bool oidc_login_open(
    const OidcLoginKeys *keys, Str cookie, Str state, int64_t now_us, OidcLogin *ret)
{
    uint8_t bytes[SESSION_SECRET_LEN];
    size_t len = 0;
    if (state.len != OIDC_TEXT_SIZE - 1 || !hex_decode(cookie, bytes, sizeof bytes, &len) ||
        len != sizeof bytes) {
        return false;
    }
    for (size_t i = 0; i < keys->count; i++) {
        fill(keys, i, bytes, ret);
        if (CRYPTO_memcmp(ret->state, state.ptr, state.len) == 0) {
            return is_fresh(bytes, now_us);
        }
    }
    return false;
}

void oidc_login_challenge(const OidcLogin *login, char ret[OIDC_TEXT_SIZE])
{
    uint8_t digest[SHA256_LEN];
    sha256(str_from(login->verifier), digest);
    base64url_encode(digest, sizeof digest, ret);
}
