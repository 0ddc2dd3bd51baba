// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/sendgrid_verify.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/id.h"

enum { KEY_DER_MAX = 256, SIGNATURE_DER_MAX = 128, TIMESTAMP_DIGITS = 10, CURVE_NAME_SIZE = 32 };

// An EVP_PKEY by another name; the cast is confined to these two functions.
static EVP_PKEY *open_key(const SendgridKey *key)
{
    return (EVP_PKEY *)(uintptr_t)key;
}

static bool is_p256(const EVP_PKEY *key)
{
    char curve[CURVE_NAME_SIZE] = "";
    return EVP_PKEY_get_base_id(key) == EVP_PKEY_EC &&
           EVP_PKEY_get_utf8_string_param(
               key, OSSL_PKEY_PARAM_GROUP_NAME, curve, sizeof curve, NULL) == 1 &&
           strcmp(curve, "prime256v1") == 0;
}

SendgridKey *sendgrid_key_new(Str text, Error *err)
{
    uint8_t der[KEY_DER_MAX];
    size_t len = 0;
    if (!base64_decode(text, der, sizeof der, &len)) {
        (void)error_set(err, ERROR_PERMANENT, "the public key is not base64");
        return NULL;
    }
    const unsigned char *at = der;
    EVP_PKEY *key = d2i_PUBKEY(NULL, &at, (long)len);
    if (key == NULL || at != der + len || !is_p256(key)) {
        EVP_PKEY_free(key);
        (void)error_set(
            err, ERROR_PERMANENT, "the public key is not an SPKI of an EC key on P-256");
        return NULL;
    }
    return (SendgridKey *)key;
}

SendgridKey *sendgrid_key_random(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    if (key == NULL) {
        abort(); // no memory or no random bytes, as elsewhere
    }
    return (SendgridKey *)key;
}

void sendgrid_key_free(SendgridKey *key)
{
    EVP_PKEY_free(open_key(key));
}

bool sendgrid_verify(const SendgridKey *key, Str timestamp, Str signature, Str body)
{
    uint8_t der[SIGNATURE_DER_MAX];
    size_t len = 0;
    if (!sendgrid_is_timestamp(timestamp) || !base64_decode(signature, der, sizeof der, &len)) {
        return false;
    }
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool good = ctx != NULL &&
                EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, open_key(key)) == 1 &&
                EVP_DigestVerifyUpdate(ctx, timestamp.ptr, timestamp.len) == 1 &&
                EVP_DigestVerifyUpdate(ctx, body.ptr, body.len) == 1 &&
                EVP_DigestVerifyFinal(ctx, der, len) == 1;
    EVP_MD_CTX_free(ctx);
    return good;
}

bool sendgrid_is_timestamp(Str timestamp)
{
    for (size_t i = 0; i < timestamp.len; i++) {
        if (timestamp.ptr[i] < '0' || timestamp.ptr[i] > '9') {
            return false;
        }
    }
    return timestamp.len == TIMESTAMP_DIGITS;
}

bool sendgrid_is_fresh(Str timestamp, int64_t now_us, int64_t max_age_s)
{
    if (max_age_s == 0) {
        return true;
    }
    int64_t at_s = 0;
    if (!str_to_i64(timestamp, &at_s)) {
        return false;
    }
    int64_t now_s = now_us / 1000000;
    return at_s >= now_s - max_age_s && at_s <= now_s + max_age_s;
}
