// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/access/oidc/id_token.h"

#include <limits.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <string.h>

#include "common/base/id.h"
#include "common/vendor/jwt.h"
#include "services/gateway/access/oidc/oidc_json.h"

enum { MODULUS_MAX = 1024, EXPONENT_MAX = 8, DER_MAX = 80 }; // bytes: RSA of at most 8,192 bits

typedef struct Parts {
    Str signed_part;               // header and claims as they were sent
    Str header, claims, signature; // decoded, in the arena
} Parts;

// ---- the three parts ----

static bool decode(Str text, Arena *arena, Str *ret)
{
    uint8_t *out = arena_alloc(arena, text.len + 1);
    size_t len = 0;
    bool good = text.len > 0 && base64url_decode(text, out, text.len, &len) && len > 0;
    *ret = str_of(out, len);
    return good;
}

static bool take_parts(Str token, Arena *arena, Parts *ret)
{
    Str rest = token, header = STR_EMPTY, claims = STR_EMPTY;
    if (token.len > ID_TOKEN_MAX || !str_split(&rest, '.', &header) ||
        !str_split(&rest, '.', &claims) || str_find(rest, '.') >= 0) {
        return false;
    }
    ret->signed_part = str_slice(token, 0, header.len + 1 + claims.len);
    return decode(header, arena, &ret->header) && decode(claims, arena, &ret->claims) &&
           decode(rest, arena, &ret->signature);
}

// ---- the provider's keys ----

static EVP_PKEY *rsa_key(const json_t *jwk, Arena *arena)
{
    Str n, e;
    EVP_PKEY *key = NULL;
    if (!decode(oidc_member(jwk, "n"), arena, &n) || !decode(oidc_member(jwk, "e"), arena, &e) ||
        n.len > MODULUS_MAX || e.len > EXPONENT_MAX) {
        return NULL;
    }
    BIGNUM *modulus = BN_bin2bn((const unsigned char *)n.ptr, (int)n.len, NULL);
    BIGNUM *exponent = BN_bin2bn((const unsigned char *)e.ptr, (int)e.len, NULL);
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    OSSL_PARAM *params = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
    if (builder != NULL && context != NULL &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, modulus) == 1 &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, exponent) == 1 &&
        (params = OSSL_PARAM_BLD_to_param(builder)) != NULL &&
        EVP_PKEY_fromdata_init(context) == 1) {
        (void)EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, params);
    }
    if (key != NULL && EVP_PKEY_get_bits(key) < RSA_BITS_MIN) {
        EVP_PKEY_free(key);
        key = NULL;
    }
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(builder);
    BN_free(modulus);
    BN_free(exponent);
    return key;
}

static EVP_PKEY *ec_key(const json_t *jwk, Arena *arena)
{
    Str x, y;
    uint8_t point[P256_POINT_LEN] = {4};
    if (!str_eq(oidc_member(jwk, "crv"), STR("P-256")) ||
        !decode(oidc_member(jwk, "x"), arena, &x) || !decode(oidc_member(jwk, "y"), arena, &y) ||
        x.len != P256_SCALAR_LEN || y.len != P256_SCALAR_LEN) {
        return NULL;
    }
    memcpy(point + 1, x.ptr, x.len);
    memcpy(point + 1 + x.len, y.ptr, y.len);
    return p256_public(point);
}

static bool is_or_absent(const json_t *jwk, const char *name, Str wanted)
{
    return json_object_get(jwk, name) == NULL || str_eq(oidc_member(jwk, name), wanted);
}

// The key that the header's id names; without an id the only one that fits. NULL: there is none.
static const json_t *choose_key(const json_t *set, const json_t *header, Str alg)
{
    const json_t *list = json_object_get(set, "keys"), *found = NULL;
    Str kind = str_eq(alg, STR("RS256")) ? STR("RSA") : STR("EC");
    Str id = oidc_member(header, "kid");
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(list) && i < ID_KEYS_COUNT_MAX; i++) {
        const json_t *jwk = json_array_get(list, i);
        bool fits = str_eq(oidc_member(jwk, "kty"), kind) && is_or_absent(jwk, "use", STR("sig")) &&
                    is_or_absent(jwk, "alg", alg) &&
                    (id.len == 0 || str_eq(oidc_member(jwk, "kid"), id));
        found = fits ? jwk : found;
        count += fits;
    }
    return count == 1 ? found : NULL;
}

// ---- the signature ----

// r and s as DER, which OpenSSL reads; 0: they are no signature.
static size_t der_of(Str signature, unsigned char out[DER_MAX])
{
    if (signature.len != P256_SIGNATURE_LEN) {
        return 0;
    }
    const unsigned char *bytes = (const unsigned char *)signature.ptr;
    ECDSA_SIG *pair = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(bytes, P256_SCALAR_LEN, NULL);
    BIGNUM *s = BN_bin2bn(bytes + P256_SCALAR_LEN, P256_SCALAR_LEN, NULL);
    (void)ECDSA_SIG_set0(pair, r, s); // takes them
    unsigned char *end = out;
    int len = i2d_ECDSA_SIG(pair, &end);
    ECDSA_SIG_free(pair);
    return len > 0 && len <= DER_MAX ? (size_t)len : 0;
}

static bool signed_by(EVP_PKEY *key, bool rsa, const Parts *parts)
{
    unsigned char der[DER_MAX];
    Str signature = parts->signature;
    if (!rsa) {
        signature = str_of(der, der_of(parts->signature, der));
    }
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = context != NULL && signature.len > 0 &&
                EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
                EVP_DigestVerify(
                    context, (const unsigned char *)signature.ptr, signature.len,
                    (const unsigned char *)parts->signed_part.ptr, parts->signed_part.len) == 1;
    EVP_MD_CTX_free(context);
    ERR_clear_error();
    return good;
}

static bool check_signature(
    const Parts *parts, const json_t *header, const json_t *set, Arena *arena, Error *err)
{
    Str alg = oidc_member(header, "alg");
    bool rsa = str_eq(alg, STR("RS256"));
    if (!rsa && !str_eq(alg, STR("ES256"))) {
        return error_set(
            err, ERROR_PERMANENT, "the ID token is signed with neither RS256 nor ES256");
    }
    if (json_object_get(header, "crit") != NULL) {
        return error_set(err, ERROR_PERMANENT, "the ID token asks for an extension");
    }
    const json_t *jwk = choose_key(set, header, alg);
    EVP_PKEY *key = jwk == NULL ? NULL : rsa ? rsa_key(jwk, arena) : ec_key(jwk, arena);
    ERR_clear_error();
    if (key == NULL) {
        return error_set(err, ERROR_TRANSIENT, "the provider has no key for the ID token");
    }
    bool good = signed_by(key, rsa, parts);
    EVP_PKEY_free(key);
    return good || error_set(err, ERROR_PERMANENT, "the ID token's signature is wrong");
}

// ---- the claims ----

static bool is_for(const json_t *claims, Str audience)
{
    const json_t *aud = json_object_get(claims, "aud");
    size_t count = json_array_size(aud);
    bool found = str_eq(oidc_member(claims, "aud"), audience);
    for (size_t i = 0; i < count && i < ID_KEYS_COUNT_MAX; i++) {
        found |= str_eq(str_from(json_string_value(json_array_get(aud, i))), audience);
    }
    const json_t *azp = json_object_get(claims, "azp");
    bool party = azp == NULL ? count <= 1 : str_eq(oidc_member(claims, "azp"), audience);
    return found && party;
}

// false: it is not there, or no number of seconds.
static bool time_of(const json_t *claims, const char *name, int64_t *ret_s)
{
    const json_t *value = json_object_get(claims, name);
    double number = json_number_value(value);
    *ret_s = number > 0 && number < 1e11 ? (int64_t)number : 0;
    return json_is_number(value) && *ret_s > 0;
}

static bool check_claims(const json_t *claims, const IdTokenWanted *wanted, Error *err)
{
    int64_t now_s = wanted->now_us / 1000000, until_s = 0, made_s = 0, from_s = 0;
    bool later = json_object_get(claims, "nbf") != NULL &&
                 (!time_of(claims, "nbf", &from_s) || from_s > now_s + ID_TOKEN_SKEW_S);
    const char *wrong =
        !str_eq(oidc_member(claims, "iss"), wanted->issuer) ? "it is of another issuer"
        : !is_for(claims, wanted->audience)                 ? "it is for another client"
        : !time_of(claims, "exp", &until_s) || until_s + ID_TOKEN_SKEW_S <= now_s ? "it has expired"
        : !time_of(claims, "iat", &made_s) || made_s > now_s + ID_TOKEN_SKEW_S || later
            ? "its time is not yet"
        : wanted->nonce.len == 0 || !str_eq(oidc_member(claims, "nonce"), wanted->nonce)
            ? "it is of another login"
        : oidc_member(claims, "sub").len == 0 ? "it names no one"
                                              : NULL;
    return wrong == NULL || error_set(err, ERROR_PERMANENT, "the ID token is not good: %s", wrong);
}

json_t *id_token_check(Str token, Str keys, const IdTokenWanted *wanted, Arena *arena, Error *err)
{
    Parts parts = {0};
    if (keys.len > ID_KEYS_MAX || !take_parts(token, arena, &parts)) {
        (void)error_set(err, ERROR_PERMANENT, "the ID token or the provider's keys cannot be read");
        return NULL;
    }
    json_t *header = oidc_object(parts.header), *claims = oidc_object(parts.claims);
    json_t *set = oidc_object(keys);
    bool readable = header != NULL && claims != NULL && set != NULL;
    bool good =
        readable
            ? check_signature(&parts, header, set, arena, err) && check_claims(claims, wanted, err)
            : error_set(
                  err, ERROR_PERMANENT, "the ID token or the provider's keys are no JSON objects");
    json_decref(header);
    json_decref(set);
    if (!good) {
        json_decref(claims);
        claims = NULL;
    }
    return claims;
}
