// SPDX-License-Identifier: Apache-2.0
#include "common/base/error.h"
#include "tests/unit/common/vendor/jwt_case.h"

// RFC 7520, 4.1.
#define RS256_TOKEN                                                                                \
    "eyJhbGciOiJSUzI1NiIsImtpZCI6ImJpbGJvLmJhZ2dpbnNAaG9iYml0b24uZXhhbXBsZSJ9"                     \
    ".SXTigJlzIGEgZGFuZ2Vyb3VzIGJ1c2luZXNzLCBGcm9kbywgZ29pbmcgb3V0IHlvdXIgZG9vci4gWW91IHN0ZXAgb2"  \
    "50byB0aGUgcm9hZCwgYW5kIGlmIHlvdSBkb24ndCBrZWVwIHlvdXIgZmVldCwgdGhlcmXigJlzIG5vIGtub3dpbmcgd"  \
    "2hlcmUgeW91IG1pZ2h0IGJlIHN3ZXB0IG9mZiB0by4"                                                   \
    ".MRjdkly7_-oTPTS3AXP41iQIGKa80A0ZmTuV5MEaHoxnW2e5CZ5NlKtainoFmKZopdHM1O2U4mwzJdQx996ivp83xu"  \
    "glII7PNDi84wnB-BDkoBwA78185hX-Es4JIwmDLJK3lfWRa-XtL0RnltuYv746iYTh_qHRD68BNt1uSNCrUCTJDt5aA"  \
    "E6x8wW1Kt9eRo4QPocSadnHXFxnt8Is9UzpERV0ePPQdLuW3IS_de3xyIrDaLGdjluPxUAhb6L2aXic1U12podGU0KL"  \
    "UQSE_oI-ZnmKJ3F4uOZDnd6QZWJushZ41Axf_fcIe8u9ipH84ogoree7vjbU5y18kDquDg"

static void rs256_is_rfc_7520s_to_the_byte(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Error err = {0};
    Str token, parts[3];
    EVP_PKEY *key = jwt_key(JWT_RS256, case_file("rfc7520_rs256.pem", arena), &err);
    assert_non_null(key);
    case_split(STR(RS256_TOKEN), arena, parts);
    assert_true(str_starts(parts[1], STR("It\xe2\x80\x99s a dangerous business, Frodo")));
    assert_true(jwt_sign(JWT_RS256, key, parts[0], parts[1], arena, &token, &err));
    assert_string_equal(arena_cstr(arena, token), RS256_TOKEN);
    EVP_PKEY_free(key);
    arena_free(arena);
}

// RFC 7515, A.3: the key's halves belong together, its signature holds, and so does ours.
static void es256_is_checked_with_rfc_7515s_key(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Error err = {0};
    Str token;
    Str scalar = case_decode(STR("jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"), arena);
    Str x = case_decode(STR("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"), arena);
    Str y = case_decode(STR("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"), arena);
    EVP_PKEY *key = p256_private((const uint8_t *)scalar.ptr);
    uint8_t point[P256_POINT_LEN];
    assert_non_null(key);
    assert_true(p256_point(key, point));
    assert_int_equal(point[0], 4);
    assert_memory_equal(point + 1, x.ptr, 32);
    assert_memory_equal(point + 33, y.ptr, 32);
    assert_true(case_is_signed_es256(
        STR("eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFt"
            "cGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5dj"
            "xLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"),
        key, arena));
    for (int i = 0; i < 50; i++) { // numbers that are shorter than 32 bytes too
        assert_true(
            jwt_sign(JWT_ES256, key, STR("{\"alg\":\"ES256\"}"), STR("{}"), arena, &token, &err));
        assert_true(case_is_signed_es256(token, key, arena));
    }
    EVP_PKEY *pem = jwt_key(JWT_ES256, case_file("rfc7515_es256.pem", arena), &err);
    assert_int_equal(EVP_PKEY_eq(pem, key), 1);
    EVP_PKEY_free(pem);
    EVP_PKEY_free(key);
    arena_free(arena);
}

static void what_is_no_key_for_it_is_refused_without_being_shown(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Str rsa = case_file("rfc7520_rs256.pem", arena), ec = case_file("rfc7515_es256.pem", arena);
    const struct {
        JwtAlgorithm algorithm;
        Str pem;
    } rows[] = {
        {JWT_ES256, rsa},
        {JWT_RS256, ec},
        {JWT_RS256, STR("secret-text")},
        {JWT_ES256, STR_EMPTY},
        {JWT_RS256, str_slice(rsa, 0, rsa.len / 2)}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Error err = {0};
        assert_null(jwt_key(rows[i].algorithm, rows[i].pem, &err));
        assert_int_equal(err.kind, ERROR_CONFIG);
        assert_null(strstr(err.text, "secret-text"));
    }
    arena_free(arena);
}

static void numbers_and_points_off_the_curve_are_no_keys(void **state)
{
    (void)state;
    uint8_t scalar[P256_SCALAR_LEN] = {0}, point[P256_POINT_LEN] = {4, 1};
    assert_null(p256_private(scalar));
    memset(scalar, 0xff, sizeof scalar); // not below the order
    assert_null(p256_private(scalar));
    assert_null(p256_public(point));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rs256_is_rfc_7520s_to_the_byte),
        cmocka_unit_test(es256_is_checked_with_rfc_7515s_key),
        cmocka_unit_test(what_is_no_key_for_it_is_refused_without_being_shown),
        cmocka_unit_test(numbers_and_points_off_the_curve_are_no_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
