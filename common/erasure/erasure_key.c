// SPDX-License-Identifier: Apache-2.0
#include "common/erasure/erasure_key.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"

struct ErasureKey {
    EVP_PKEY *pkey;
    uint8_t public_half[ERASURE_PUBLIC_LEN];
};

DEFINE_CLEANUP(free_pkey, EVP_PKEY *, EVP_PKEY_free)
DEFINE_CLEANUP(free_bio, BIO *, BIO_free_all)
DEFINE_CLEANUP(free_digest, EVP_MD_CTX *, EVP_MD_CTX_free)

bool erasure_key_make(Arena *arena, Str *ret_pem, Error *err)
{
    CLEANUP(free_pkey) EVP_PKEY *pkey = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    CLEANUP(free_bio) BIO *out = BIO_new(BIO_s_secmem());
    char *text = NULL;
    if (pkey == NULL || out == NULL ||
        PEM_write_bio_PKCS8PrivateKey(out, pkey, NULL, NULL, 0, NULL, NULL) != 1) {
        return error_set(err, ERROR_TRANSIENT, "openssl made no ed25519 key");
    }
    long len = BIO_get_mem_data(out, &text);
    *ret_pem = arena_str(arena, str_of(text, (size_t)len));
    return true;
}

// A file is never asked for a password.
static int no_password(char *out, int size, int writing, void *ctx)
{
    (void)out;
    (void)size;
    (void)writing;
    (void)ctx;
    return 0;
}

ErasureKey *erasure_key_parse(Str pem, Error *err)
{
    size_t len = ERASURE_PUBLIC_LEN;
    ErasureKey *key = xcalloc(1, sizeof *key);
    CLEANUP(free_bio) BIO *in = BIO_new_mem_buf(pem.ptr, (int)pem.len);
    key->pkey = in == NULL ? NULL : PEM_read_bio_PrivateKey(in, NULL, no_password, NULL);
    if (key->pkey == NULL || EVP_PKEY_get_id(key->pkey) != EVP_PKEY_ED25519 ||
        EVP_PKEY_get_raw_public_key(key->pkey, key->public_half, &len) != 1) {
        erasure_key_free(key);
        (void)error_set(
            err, ERROR_CONFIG, "it is no ed25519 private key in PEM (HINT: stentor erase key)");
        return NULL;
    }
    return key;
}

void erasure_key_free(ErasureKey *key)
{
    if (key != NULL) {
        EVP_PKEY_free(key->pkey);
        free(key);
    }
}

void erasure_key_public(const ErasureKey *key, uint8_t out[ERASURE_PUBLIC_LEN])
{
    memcpy(out, key->public_half, ERASURE_PUBLIC_LEN);
}

bool erasure_sign(const ErasureKey *key, Str text, uint8_t out[ERASURE_SIGNATURE_LEN], Error *err)
{
    size_t len = ERASURE_SIGNATURE_LEN;
    CLEANUP(free_digest) EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = ctx != NULL && EVP_DigestSignInit(ctx, NULL, NULL, NULL, key->pkey) == 1 &&
              EVP_DigestSign(ctx, out, &len, (const uint8_t *)text.ptr, text.len) == 1;
    return ok || error_set(err, ERROR_TRANSIENT, "openssl signed nothing");
}

bool erasure_signed(
    const uint8_t public_key[ERASURE_PUBLIC_LEN], Str text,
    const uint8_t signature[ERASURE_SIGNATURE_LEN])
{
    CLEANUP(free_pkey)
    EVP_PKEY *pkey =
        EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public_key, ERASURE_PUBLIC_LEN);
    CLEANUP(free_digest) EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    return pkey != NULL && ctx != NULL && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, pkey) == 1 &&
           EVP_DigestVerify(
               ctx, signature, ERASURE_SIGNATURE_LEN, (const uint8_t *)text.ptr, text.len) == 1;
}
