// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <stdio.h>
#include <string.h>

#include "common/base/id.h"
#include "common/vendor/jwt.h"
#include "services/gateway/access/oidc/id_token.h"

#define NOW_S "1790000000"
#define CLAIMS                                                                                     \
    "\"iss\":\"https://"                                                                           \
    "id.test\",\"aud\":\"console\",\"sub\":\"u1\",\"nonce\":\"n1\",\"iat\":" NOW_S                 \
    ",\"exp\":1790000300"

static EVP_PKEY *rsa, *other_rsa, *ec;
static Arena *arena;

static IdTokenWanted wanted(void)
{
    return (IdTokenWanted){
        .issuer = STR("https://id.test"),
        .audience = STR("console"),
        .nonce = STR("n1"),
        .now_us = INT64_C(1790000000) * 1000000,
    };
}

static const char *encoded(const void *bytes, size_t len)
{
    char *out = arena_alloc(arena, 4 * ((len + 2) / 3) + 1);
    base64url_encode(bytes, len, out);
    return out;
}

static const char *number_of(const EVP_PKEY *key, const char *name)
{
    unsigned char bytes[1024];
    BIGNUM *number = NULL;
    assert_int_equal(EVP_PKEY_get_bn_param(key, name, &number), 1);
    int len = BN_bn2bin(number, bytes);
    BN_free(number);
    return encoded(bytes, (size_t)len);
}

static const char *rsa_jwk(const EVP_PKEY *key, const char *more)
{
    return arena_printf(
        arena, "{\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"%s\"%s}",
        number_of(key, OSSL_PKEY_PARAM_RSA_N), number_of(key, OSSL_PKEY_PARAM_RSA_E), more);
}

static const char *ec_jwk(const char *more)
{
    uint8_t point[P256_POINT_LEN];
    assert_true(p256_point(ec, point));
    return arena_printf(
        arena, "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"%s\",\"y\":\"%s\"%s}",
        encoded(point + 1, 32), encoded(point + 33, 32), more);
}

static const char *keys(void)
{
    return arena_printf(
        arena, "{\"keys\":[%s,%s]}", rsa_jwk(rsa, ",\"kid\":\"r\",\"use\":\"sig\""),
        ec_jwk(",\"kid\":\"e\",\"alg\":\"ES256\""));
}

static const char *signed_token(EVP_PKEY *key, const char *header, const char *claims)
{
    Str token;
    Error err;
    bool by_ec = EVP_PKEY_is_a(key, "EC") == 1;
    assert_true(jwt_sign(
        by_ec ? JWT_ES256 : JWT_RS256, key, str_from(header), str_from(claims), arena, &token,
        &err));
    return arena_cstr(arena, token);
}

static const char *token_of(const char *claims)
{
    return signed_token(rsa, "{\"alg\":\"RS256\",\"kid\":\"r\"}", claims);
}

// NULL: it is taken.
static const char *verdict(const char *token, const char *set)
{
    static Error err;
    const IdTokenWanted want = wanted();
    json_t *claims = id_token_check(str_from(token), str_from(set), &want, arena, &err);
    bool good = claims != NULL;
    json_decref(claims);
    return good ? NULL : err.text;
}

static void expect_refused(const char *token, const char *set, const char *part)
{
    const char *text = verdict(token, set);
    if (text == NULL || strstr(text, part) == NULL) {
        fail_msg("wanted '%s', got '%s'", part, text != NULL ? text : "good");
    }
}

static void a_token_by_the_providers_keys_is_taken_with_its_claims(void **state)
{
    (void)state;
    Error err;
    assert_null(verdict(token_of("{" CLAIMS "}"), keys()));
    const char *by_ec = signed_token(ec, "{\"alg\":\"ES256\",\"kid\":\"e\"}", "{" CLAIMS "}");
    assert_null(verdict(by_ec, keys()));
    // Without an id the only key that fits.
    assert_null(verdict(signed_token(ec, "{\"alg\":\"ES256\"}", "{" CLAIMS "}"), keys()));
    const IdTokenWanted want = wanted();
    const char *grouped = token_of("{" CLAIMS ",\"groups\":[\"ops\"]}");
    json_t *claims = id_token_check(str_from(grouped), str_from(keys()), &want, arena, &err);
    assert_string_equal(
        json_string_value(json_array_get(json_object_get(claims, "groups"), 0)), "ops");
    json_decref(claims);
}

static void none_a_secret_s_algorithm_and_another_s_key_are_refused(void **state)
{
    (void)state;
    const char *body = encoded("{" CLAIMS "}", strlen("{" CLAIMS "}"));
    const char *none = encoded("{\"alg\":\"none\"}", 14);
    expect_refused(arena_printf(arena, "%s.%s.", none, body), keys(), "cannot be read");
    expect_refused(arena_printf(arena, "%s.%s.AAAA", none, body), keys(), "neither RS256");
    const char *hmac = encoded("{\"alg\":\"HS256\",\"kid\":\"r\"}", 25);
    expect_refused(arena_printf(arena, "%s.%s.AAAA", hmac, body), keys(), "neither RS256");
    const char *foreign =
        signed_token(other_rsa, "{\"alg\":\"RS256\",\"kid\":\"r\"}", "{" CLAIMS "}");
    expect_refused(foreign, keys(), "signature is wrong");
    // The key in the token's own header counts for nothing.
    const char *own =
        arena_printf(arena, "{\"alg\":\"RS256\",\"kid\":\"r\",\"jwk\":%s}", rsa_jwk(other_rsa, ""));
    expect_refused(signed_token(other_rsa, own, "{" CLAIMS "}"), keys(), "signature is wrong");
    // An RSA key under the EC algorithm, an unknown id, a key for encryption, two that fit.
    expect_refused(
        signed_token(ec, "{\"alg\":\"ES256\",\"kid\":\"r\"}", "{" CLAIMS "}"), keys(), "no key");
    expect_refused(
        signed_token(rsa, "{\"alg\":\"RS256\",\"kid\":\"x\"}", "{" CLAIMS "}"), keys(), "no key");
    const char *enc = arena_printf(arena, "{\"keys\":[%s]}", rsa_jwk(rsa, ",\"use\":\"enc\""));
    expect_refused(signed_token(rsa, "{\"alg\":\"RS256\"}", "{" CLAIMS "}"), enc, "no key");
    const char *two =
        arena_printf(arena, "{\"keys\":[%s,%s]}", rsa_jwk(rsa, ""), rsa_jwk(other_rsa, ""));
    expect_refused(signed_token(rsa, "{\"alg\":\"RS256\"}", "{" CLAIMS "}"), two, "no key");
    expect_refused(
        signed_token(rsa, "{\"alg\":\"RS256\",\"kid\":\"r\",\"crit\":[\"x\"]}", "{" CLAIMS "}"),
        keys(), "an extension");
}

static void a_key_that_is_not_there_yet_is_another_refusal_than_a_wrong_token(void **state)
{
    (void)state;
    Error err = {0};
    const IdTokenWanted want = wanted();
    const char *newer = signed_token(rsa, "{\"alg\":\"RS256\",\"kid\":\"x\"}", "{" CLAIMS "}");
    assert_null(id_token_check(str_from(newer), str_from(keys()), &want, arena, &err));
    assert_int_equal(err.kind, ERROR_TRANSIENT);
    const char *foreign =
        signed_token(other_rsa, "{\"alg\":\"RS256\",\"kid\":\"r\"}", "{" CLAIMS "}");
    assert_null(id_token_check(str_from(foreign), str_from(keys()), &want, arena, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
}

static void what_was_altered_is_refused(void **state)
{
    (void)state;
    const char *good = token_of("{" CLAIMS "}");
    size_t len = strlen(good);
    for (size_t i = 0; i < len; i += 7) {
        char *altered = arena_cstr(arena, str_from(good));
        altered[i] = altered[i] == 'A' ? 'B' : 'A';
        if (altered[i] != good[i] && i + 1 < len) { // the last character has unused bits
            assert_non_null(verdict(altered, keys()));
        }
    }
    assert_non_null(verdict(arena_printf(arena, "%s.x", good), keys()));
    assert_non_null(verdict("", keys()));
    assert_non_null(verdict("..", keys()));
    assert_non_null(verdict(good, ""));
    assert_non_null(verdict(good, "[]"));
    assert_non_null(verdict(good, "{\"keys\":{}}"));
}

static void a_claim_that_is_another_s_or_out_of_its_time_is_refused(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"\"iss\":\"https://evil.test\",\"aud\":\"console\",\"sub\":\"u\",\"nonce\":\"n1\","
         "\"iat\":" NOW_S ",\"exp\":1790000300",
         "another issuer"},
        {"\"iss\":\"https://id.test\",\"aud\":\"shop\",\"sub\":\"u\",\"nonce\":\"n1\","
         "\"iat\":" NOW_S ",\"exp\":1790000300",
         "another client"},
        {"\"iss\":\"https://id.test\",\"aud\":[\"console\",\"shop\"],\"sub\":\"u\","
         "\"nonce\":\"n1\",\"iat\":" NOW_S ",\"exp\":1790000300",
         "another client"},
        {"\"iss\":\"https://id.test\",\"aud\":\"console\",\"azp\":\"shop\",\"sub\":\"u\","
         "\"nonce\":\"n1\",\"iat\":" NOW_S ",\"exp\":1790000300",
         "another client"},
        {"\"iss\":\"https://id.test\",\"aud\":\"console\",\"sub\":\"u\",\"nonce\":\"n1\","
         "\"iat\":1789990000,\"exp\":1789999940",
         "has expired"},
        {"\"iss\":\"https://id.test\",\"aud\":\"console\",\"sub\":\"u\",\"nonce\":\"n1\","
         "\"iat\":" NOW_S,
         "has expired"},
        {"\"iss\":\"https://id.test\",\"aud\":\"console\",\"sub\":\"u\",\"nonce\":\"n1\","
         "\"iat\":1790000100,\"exp\":1790000300",
         "not yet"},
        {CLAIMS ",\"nbf\":1790000100", "not yet"},
        {CLAIMS ",\"nbf\":\"soon\"", "not yet"},
        {"\"iss\":\"https://id.test\",\"aud\":\"console\",\"sub\":\"u\",\"nonce\":\"n2\","
         "\"iat\":" NOW_S ",\"exp\":1790000300",
         "another login"},
        {"\"iss\":\"https://id.test\",\"aud\":\"console\",\"nonce\":\"n1\",\"iat\":" NOW_S
         ",\"exp\":1790000300",
         "names no one"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        expect_refused(token_of(arena_printf(arena, "{%s}", rows[i][0])), keys(), rows[i][1]);
    }
    const char *both =
        "{\"iss\":\"https://id.test\",\"aud\":[\"console\",\"shop\"],"
        "\"azp\":\"console\",\"sub\":\"u\",\"nonce\":\"n1\",\"iat\":" NOW_S ",\"exp\":1790000300}";
    assert_null(verdict(token_of(both), keys()));
}

static void what_is_too_large_is_refused_before_it_is_parsed(void **state)
{
    (void)state;
    size_t size = 10U * 1024 * 1024;
    char *set = arena_alloc(arena, size + 1);
    memset(set, ' ', size);
    set[size] = '\0';
    expect_refused(token_of("{" CLAIMS "}"), set, "cannot be read");
    char *token = arena_alloc(arena, ID_TOKEN_MAX + 2);
    memset(token, 'A', ID_TOKEN_MAX + 1);
    token[ID_TOKEN_MAX + 1] = '\0';
    expect_refused(token, keys(), "cannot be read");
}

static int set_up(void **state)
{
    (void)state;
    arena = arena_new(0);
    rsa = EVP_RSA_gen(2048);
    other_rsa = EVP_RSA_gen(2048);
    ec = EVP_EC_gen("P-256");
    return rsa != NULL && other_rsa != NULL && ec != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    EVP_PKEY_free(rsa);
    EVP_PKEY_free(other_rsa);
    EVP_PKEY_free(ec);
    arena_free(arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_by_the_providers_keys_is_taken_with_its_claims),
        cmocka_unit_test(none_a_secret_s_algorithm_and_another_s_key_are_refused),
        cmocka_unit_test(a_key_that_is_not_there_yet_is_another_refusal_than_a_wrong_token),
        cmocka_unit_test(what_was_altered_is_refused),
        cmocka_unit_test(a_claim_that_is_another_s_or_out_of_its_time_is_refused),
        cmocka_unit_test(what_is_too_large_is_refused_before_it_is_parsed),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
