// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/jwt.h"

#include <limits.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/id.h"

enum { SIGNATURE_MAX = 1024, GROUP_NAME_MAX = 32 };

static void free_bio(BIO **bio)
{
    BIO_free(*bio);
}

static void free_digest(EVP_MD_CTX **digest)
{
    EVP_MD_CTX_free(*digest);
}

static void free_context(EVP_PKEY_CTX **context)
{
    EVP_PKEY_CTX_free(*context);
}

static void free_builder(OSSL_PARAM_BLD **builder)
{
    OSSL_PARAM_BLD_free(*builder);
}

static void free_params(OSSL_PARAM **params)
{
    OSSL_PARAM_free(*params);
}

static void free_number(BIGNUM **number)
{
    BN_clear_free(*number);
}

static void free_group(EC_GROUP **group)
{
    EC_GROUP_free(*group);
}

static void free_point(EC_POINT **point)
{
    EC_POINT_free(*point);
}

static void free_signature(ECDSA_SIG **signature)
{
    ECDSA_SIG_free(*signature);
}

// ---- keys ----

static int no_password(char *out, int size, int writing, void *ctx)
{
    (void)out, (void)size, (void)writing, (void)ctx;
    return -1;
}

static bool fits(JwtAlgorithm algorithm, const EVP_PKEY *key)
{
    char group[GROUP_NAME_MAX] = "";
    if (algorithm == JWT_RS256) {
        return EVP_PKEY_is_a(key, "RSA") == 1 && EVP_PKEY_get_bits(key) >= RSA_BITS_MIN;
    }
    return EVP_PKEY_is_a(key, "EC") == 1 &&
           EVP_PKEY_get_group_name(key, group, sizeof group, NULL) == 1 &&
           strcmp(group, SN_X9_62_prime256v1) == 0;
}

EVP_PKEY *jwt_key(JwtAlgorithm algorithm, Str pem, Error *err)
{
    CLEANUP(free_bio)
    BIO *in = pem.len <= INT_MAX ? BIO_new_mem_buf(pem.ptr, (int)pem.len) : NULL;
    EVP_PKEY *key = in == NULL ? NULL : PEM_read_bio_PrivateKey(in, NULL, no_password, NULL);
    ERR_clear_error();
    if (key == NULL || !fits(algorithm, key)) {
        EVP_PKEY_free(key);
        error_set(
            err, ERROR_CONFIG, "the secret has no private key (PEM, %s, without a password)",
            algorithm == JWT_RS256 ? "RSA of at least 2,048 bits" : "P-256");
        return NULL;
    }
    return key;
}

static EVP_PKEY *from_data(OSSL_PARAM_BLD *builder, int selection)
{
    EVP_PKEY *key = NULL;
    CLEANUP(free_params) OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(builder);
    CLEANUP(free_context) EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    if (params == NULL || context == NULL || EVP_PKEY_fromdata_init(context) != 1 ||
        EVP_PKEY_fromdata(context, &key, selection, params) != 1) {
        EVP_PKEY_free(key);
        key = NULL;
    }
    ERR_clear_error();
    return key;
}

static bool name_group(OSSL_PARAM_BLD *builder)
{
    return builder != NULL && OSSL_PARAM_BLD_push_utf8_string(
                                  builder, OSSL_PKEY_PARAM_GROUP_NAME, SN_X9_62_prime256v1, 0) == 1;
}

EVP_PKEY *p256_public(const uint8_t point[P256_POINT_LEN])
{
    CLEANUP(free_builder) OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    bool fine =
        name_group(builder) && OSSL_PARAM_BLD_push_octet_string(
                                   builder, OSSL_PKEY_PARAM_PUB_KEY, point, P256_POINT_LEN) == 1;
    return fine ? from_data(builder, EVP_PKEY_PUBLIC_KEY) : NULL;
}

// The public half of a private number: OpenSSL 3.0 does not work it out by itself.
static bool multiply(const BIGNUM *number, uint8_t ret[P256_POINT_LEN])
{
    CLEANUP(free_group) EC_GROUP *group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
    CLEANUP(free_point) EC_POINT *point = group == NULL ? NULL : EC_POINT_new(group);
    bool fine = point != NULL && !BN_is_zero(number) &&
                BN_cmp(number, EC_GROUP_get0_order(group)) < 0 &&
                EC_POINT_mul(group, point, number, NULL, NULL, NULL) == 1;
    return fine && EC_POINT_point2oct(
                       group, point, POINT_CONVERSION_UNCOMPRESSED, ret, P256_POINT_LEN, NULL) ==
                       P256_POINT_LEN;
}

EVP_PKEY *p256_private(const uint8_t scalar[P256_SCALAR_LEN])
{
    uint8_t point[P256_POINT_LEN];
    CLEANUP(free_number) BIGNUM *number = BN_bin2bn(scalar, P256_SCALAR_LEN, NULL);
    CLEANUP(free_builder) OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    bool fine = number != NULL && multiply(number, point) && name_group(builder) &&
                OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_PRIV_KEY, number) == 1 &&
                OSSL_PARAM_BLD_push_octet_string(
                    builder, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point) == 1;
    return fine ? from_data(builder, EVP_PKEY_KEYPAIR) : NULL;
}

bool p256_point(const EVP_PKEY *key, uint8_t ret[P256_POINT_LEN])
{
    size_t len = 0;
    int got =
        EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, ret, P256_POINT_LEN, &len);
    ERR_clear_error();
    return got == 1 && len == P256_POINT_LEN;
}

// ---- signatures ----

// OpenSSL signs as DER; JOSE wants both numbers, 32 bytes each (RFC 7518, 3.4).
static bool to_jose(const uint8_t *der, size_t len, uint8_t ret[P256_SIGNATURE_LEN])
{
    CLEANUP(free_signature) ECDSA_SIG *signature = d2i_ECDSA_SIG(NULL, &der, (long)len);
    int half = P256_SIGNATURE_LEN / 2;
    return signature != NULL && BN_bn2binpad(ECDSA_SIG_get0_r(signature), ret, half) == half &&
           BN_bn2binpad(ECDSA_SIG_get0_s(signature), ret + half, half) == half;
}

static Str encode(Str bytes, Arena *arena)
{
    size_t size = 4 * ((bytes.len + 2) / 3) + 1;
    char *text = arena_alloc(arena, size);
    base64url_encode(bytes.ptr, bytes.len, text);
    return str_from(text);
}

bool jwt_sign(
    JwtAlgorithm algorithm, EVP_PKEY *key, Str header, Str claims, Arena *arena, Str *ret,
    Error *err)
{
    uint8_t signature[SIGNATURE_MAX], both[P256_SIGNATURE_LEN];
    size_t len = sizeof signature;
    Str head = encode(header, arena), body = encode(claims, arena);
    Str text = str_from(arena_printf(arena, STR_FMT "." STR_FMT, STR_ARG(head), STR_ARG(body)));
    CLEANUP(free_digest) EVP_MD_CTX *digest = EVP_MD_CTX_new();
    bool fine = digest != NULL && EVP_DigestSignInit(digest, NULL, EVP_sha256(), NULL, key) == 1 &&
                EVP_DigestSign(digest, signature, &len, (const uint8_t *)text.ptr, text.len) == 1;
    Str bytes = str_of(signature, len);
    if (fine && algorithm == JWT_ES256) {
        fine = to_jose(signature, len, both);
        bytes = str_of(both, sizeof both);
    }
    if (!fine) {
        ERR_clear_error();
        return error_set(err, ERROR_TRANSIENT, "openssl signed nothing");
    }
    Str last = encode(bytes, arena);
    *ret = str_from(arena_printf(arena, STR_FMT "." STR_FMT, STR_ARG(text), STR_ARG(last)));
    return true;
}
