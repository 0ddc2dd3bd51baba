// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "services/gateway/access/oidc/id_token.h"
#include "services/gateway/access/oidc/oidc_answers.h"

#define URLS                                                                                       \
    "\"authorization_endpoint\":\"https://id.test/auth\",\"token_endpoint\":\"https://"            \
    "id.test/token\",\"jwks_uri\":\"https://id.test/keys\""

static Arena *arena;
static const HttpGuard guard = {.allow_private = true, .allow_loopback = true};

static ErrorKind read_document(const char *text, OidcDocument *ret)
{
    Error err = {0};
    bool good =
        oidc_document_read(str_from(text), STR("https://id.test"), &guard, arena, ret, &err);
    assert_int_equal(good, err.kind == ERROR_NONE);
    return err.kind;
}

static void a_document_is_taken_with_its_addresses(void **state)
{
    (void)state;
    OidcDocument found;
    assert_int_equal(
        read_document("{\"issuer\":\"https://id.test\"," URLS "}", &found), ERROR_NONE);
    assert_true(str_eq(found.authorize, STR("https://id.test/auth")));
    assert_true(str_eq(found.token, STR("https://id.test/token")));
    assert_true(str_eq(found.keys, STR("https://id.test/keys")));
    assert_true(found.basic);
    assert_false(found.names_issuer);
    assert_int_equal(
        read_document(
            "{\"issuer\":\"https://id.test\"," URLS
            ",\"token_endpoint_auth_methods_supported\":[\"client_secret_post\",7],"
            "\"authorization_response_iss_parameter_supported\":true}",
            &found),
        ERROR_NONE);
    assert_false(found.basic);
    assert_true(found.names_issuer);
}

static void a_document_of_another_issuer_or_of_no_address_is_refused(void **state)
{
    (void)state;
    OidcDocument found;
    assert_int_equal(
        read_document("{\"issuer\":\"https://id.test/\"," URLS "}", &found), ERROR_CONFIG);
    assert_int_equal(read_document("{" URLS "}", &found), ERROR_CONFIG);
    static const char *const addresses[] = {
        "",           "javascript:alert(1)", "http://id.test/auth",      "https://u:p@id.test/auth",
        "/auth",      "https://id.test/#x",  "https://169.254.169.254/", "file:///etc/passwd",
        "https:// a/"};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        const char *text = arena_printf(
            arena,
            "{\"issuer\":\"https://id.test\",\"authorization_endpoint\":\"%s\",\"token_endpoint\":"
            "\"https://id.test/token\",\"jwks_uri\":\"https://id.test/keys\"}",
            addresses[i]);
        assert_int_equal(read_document(text, &found), ERROR_CONFIG);
    }
    static const char *const none[] = {"", "[]", "<html>", "{\"a\":1,\"a\":2}", "{", "\xff"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(read_document(none[i], &found), ERROR_TRANSIENT);
    }
}

static ErrorKind read_answer(int status, const char *text)
{
    Str token;
    Error err = {0};
    bool good = oidc_answer_read(status, str_from(text), arena, &token, &err);
    assert_int_equal(good, err.kind == ERROR_NONE);
    return err.kind;
}

static void an_answer_has_a_token_or_says_who_is_to_blame(void **state)
{
    (void)state;
    assert_int_equal(
        read_answer(200, "{\"id_token\":\"a.b.c\",\"access_token\":\"x\"}"), ERROR_NONE);
    assert_int_equal(read_answer(200, "{\"access_token\":\"x\"}"), ERROR_TRANSIENT);
    assert_int_equal(read_answer(200, "{\"id_token\":[]}"), ERROR_TRANSIENT);
    assert_int_equal(read_answer(200, "<html>"), ERROR_TRANSIENT);
    assert_int_equal(read_answer(400, "{\"error\":\"invalid_grant\"}"), ERROR_PERMANENT);
    assert_int_equal(read_answer(401, "{\"error\":\"invalid_client\"}"), ERROR_CONFIG);
    assert_int_equal(read_answer(400, ""), ERROR_CONFIG);
    assert_int_equal(read_answer(429, "{}"), ERROR_TRANSIENT);
    assert_int_equal(read_answer(503, "{}"), ERROR_TRANSIENT);
    char *long_token = arena_alloc(arena, ID_TOKEN_MAX + 64);
    int len = snprintf(long_token, 16, "{\"id_token\":\"");
    memset(long_token + len, 'a', ID_TOKEN_MAX + 1);
    memcpy(long_token + len + ID_TOKEN_MAX + 1, "\"}", 3);
    assert_int_equal(read_answer(200, long_token), ERROR_TRANSIENT);
}

static void a_set_of_keys_is_an_object_with_a_list(void **state)
{
    (void)state;
    assert_true(oidc_keys_check(STR("{\"keys\":[]}"), NULL));
    assert_false(oidc_keys_check(STR("{\"keys\":{}}"), NULL));
    assert_false(oidc_keys_check(STR("[]"), NULL));
    assert_false(oidc_keys_check(STR_EMPTY, NULL));
}

static void only_a_word_of_the_provider_s_is_shown(void **state)
{
    (void)state;
    assert_string_equal(oidc_error_word(STR("access_denied"), arena), "access_denied");
    static const char *const others[] = {
        "", "<b>", "Access", "call us", "a\n", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_string_equal(oidc_error_word(str_from(others[i]), arena), "unknown");
    }
}

static int set_up(void **state)
{
    (void)state;
    arena = arena_new(0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_is_taken_with_its_addresses),
        cmocka_unit_test(a_document_of_another_issuer_or_of_no_address_is_refused),
        cmocka_unit_test(an_answer_has_a_token_or_says_who_is_to_blame),
        cmocka_unit_test(a_set_of_keys_is_an_object_with_a_list),
        cmocka_unit_test(only_a_word_of_the_provider_s_is_shown),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
