// SPDX-License-Identifier: Apache-2.0
// RFC 8291, section 3, over RFC 8188: names are theirs.
#include <openssl/err.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/codec/hash.h"
#include "common/vendor/webpush/webpush.h"

enum {
    KEY_LEN = 16,
    NONCE_LEN = 12,
    TAG_LEN = 16,
    RECORD_SIZE = 4096,
    HEAD_LEN = WEBPUSH_SALT_LEN + 4 + 1 + P256_POINT_LEN,
    PLAIN_MAX = RECORD_SIZE - TAG_LEN - 1,
};

static void free_context(EVP_PKEY_CTX **context)
{
    EVP_PKEY_CTX_free(*context);
}

static void free_cipher(EVP_CIPHER_CTX **cipher)
{
    EVP_CIPHER_CTX_free(*cipher);
}

static void free_key(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}

static bool agree(EVP_PKEY *own, EVP_PKEY *theirs, uint8_t ret[P256_SCALAR_LEN])
{
    size_t len = P256_SCALAR_LEN;
    CLEANUP(free_context) EVP_PKEY_CTX *context = EVP_PKEY_CTX_new(own, NULL);
    return context != NULL && EVP_PKEY_derive_init(context) == 1 &&
           EVP_PKEY_derive_set_peer(context, theirs) == 1 &&
           EVP_PKEY_derive(context, ret, &len) == 1 && len == P256_SCALAR_LEN;
}

// HKDF (RFC 5869) for at most one block: `info` has the counter 1 at its end.
static void hkdf(Str salt, Str ikm, Str info, uint8_t ret[SHA256_LEN])
{
    uint8_t prk[SHA256_LEN];
    hmac_sha256(salt, ikm, prk);
    hmac_sha256(str_of(prk, sizeof prk), info, ret);
}

typedef struct ContentKeys {
    uint8_t cek[SHA256_LEN], nonce[SHA256_LEN]; // the first KEY_LEN and NONCE_LEN bytes
} ContentKeys;

static void derive(
    const WebPushTarget *target, const uint8_t own[P256_POINT_LEN],
    const uint8_t ecdh[P256_SCALAR_LEN], const uint8_t salt[WEBPUSH_SALT_LEN], ContentKeys *ret)
{
    static const char label[] = "WebPush: info"; // its NUL belongs to it, as below
    uint8_t info[sizeof label + 2 * P256_POINT_LEN + 1], ikm[SHA256_LEN];
    memcpy(info, label, sizeof label);
    memcpy(info + sizeof label, target->point, P256_POINT_LEN);
    memcpy(info + sizeof label + P256_POINT_LEN, own, P256_POINT_LEN);
    info[sizeof info - 1] = 1;
    hkdf(
        str_of(target->secret, WEBPUSH_SECRET_LEN), str_of(ecdh, P256_SCALAR_LEN),
        str_of(info, sizeof info), ikm);
    Str by = str_of(salt, WEBPUSH_SALT_LEN), from = str_of(ikm, sizeof ikm);
    hkdf(by, from, STR("Content-Encoding: aes128gcm\0\x01"), ret->cek);
    hkdf(by, from, STR("Content-Encoding: nonce\0\x01"), ret->nonce);
}

// The record is the last one: its delimiter is 2, and there is no padding.
static bool seal(const ContentKeys *keys, Str plain, uint8_t *ret)
{
    static const uint8_t delimiter = 2;
    int len = 0, more = 0, rest = 0;
    CLEANUP(free_cipher) EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    return cipher != NULL &&
           EVP_EncryptInit_ex(cipher, EVP_aes_128_gcm(), NULL, keys->cek, keys->nonce) == 1 &&
           EVP_EncryptUpdate(cipher, ret, &len, (const uint8_t *)plain.ptr, (int)plain.len) == 1 &&
           EVP_EncryptUpdate(cipher, ret + len, &more, &delimiter, 1) == 1 &&
           EVP_EncryptFinal_ex(cipher, ret + len + more, &rest) == 1 &&
           EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, TAG_LEN, ret + len + more + rest) ==
               1;
}

static void write_head(uint8_t *to, const uint8_t *salt, const uint8_t own[P256_POINT_LEN])
{
    static const uint8_t size[] = {0, 0, RECORD_SIZE >> 8, RECORD_SIZE & 0xff, P256_POINT_LEN};
    memcpy(to, salt, WEBPUSH_SALT_LEN);
    memcpy(to + WEBPUSH_SALT_LEN, size, sizeof size);
    memcpy(to + WEBPUSH_SALT_LEN + sizeof size, own, P256_POINT_LEN);
}

bool webpush_encrypt(
    const WebPushTarget *target, EVP_PKEY *own, const uint8_t salt[WEBPUSH_SALT_LEN], Str plain,
    Arena *arena, Str *ret, Error *err)
{
    uint8_t point[P256_POINT_LEN], ecdh[P256_SCALAR_LEN];
    ContentKeys keys;
    if (plain.len > PLAIN_MAX) {
        return error_set(err, ERROR_PERMANENT, "the push has more than %d bytes", (int)PLAIN_MAX);
    }
    CLEANUP(free_key) EVP_PKEY *theirs = p256_public(target->point);
    size_t len = HEAD_LEN + plain.len + 1 + TAG_LEN;
    uint8_t *body = arena_alloc(arena, len);
    bool fine = theirs != NULL && p256_point(own, point) && agree(own, theirs, ecdh);
    if (fine) {
        write_head(body, salt, point);
        derive(target, point, ecdh, salt, &keys);
        fine = seal(&keys, plain, body + HEAD_LEN);
    }
    ERR_clear_error();
    *ret = str_of(body, len);
    return fine || error_set(err, ERROR_TRANSIENT, "openssl encrypted nothing");
}
