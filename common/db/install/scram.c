// SPDX-License-Identifier: Apache-2.0
#include "common/db/install/scram.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "common/base/id.h"
#include "common/codec/hash.h"

enum { SALT_MAX = 64, ITERATIONS_MAX = 1000 * 1000 };

// StoredKey := SHA-256(HMAC(PBKDF2(password, salt, iterations), "Client Key"))
static bool stored_key_of(Str password, Str salt, int iterations, uint8_t out[SHA256_LEN])
{
    uint8_t salted[SHA256_LEN], client[SHA256_LEN];
    int password_len = (int)password.len, salt_len = (int)salt.len;
    bool ok = PKCS5_PBKDF2_HMAC(
                  password.ptr, password_len, (const unsigned char *)salt.ptr, salt_len, iterations,
                  EVP_sha256(), SHA256_LEN, salted) == 1;
    if (ok) {
        hmac_sha256(str_of(salted, sizeof salted), STR("Client Key"), client);
        sha256(str_of(client, sizeof client), out);
    }
    OPENSSL_cleanse(salted, sizeof salted);
    OPENSSL_cleanse(client, sizeof client);
    return ok;
}

bool scram_matches(Str verifier, Str password)
{
    Str rest = verifier, mechanism, count, salt_text, stored_text;
    uint8_t salt[SALT_MAX], stored[SHA256_LEN], own[SHA256_LEN];
    size_t salt_len = 0, stored_len = 0;
    int64_t iterations = 0;
    bool shaped =
        str_split(&rest, '$', &mechanism) && str_eq(mechanism, STR("SCRAM-SHA-256")) &&
        str_split(&rest, ':', &count) && str_to_i64(count, &iterations) && iterations > 0 &&
        iterations <= ITERATIONS_MAX && str_split(&rest, '$', &salt_text) &&
        base64_decode(salt_text, salt, sizeof salt, &salt_len) &&
        str_split(&rest, ':', &stored_text) &&
        base64_decode(stored_text, stored, sizeof stored, &stored_len) && stored_len == SHA256_LEN;
    return shaped && stored_key_of(password, str_of(salt, salt_len), (int)iterations, own) &&
           CRYPTO_memcmp(own, stored, SHA256_LEN) == 0;
}
