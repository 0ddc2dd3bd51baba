// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/api/callers/session.h"

#define HEX16 "0123456789abcdef"
#define SECRET HEX16 HEX16 HEX16 HEX16

static size_t found(const char *header)
{
    return session_secret_of(str_from(header), "stentor").len;
}

static void a_cookie_is_found_among_others_by_its_whole_name_and_form(void **state)
{
    (void)state;
    assert_int_equal(found("stentor=" SECRET), 64);
    assert_int_equal(found("a=b; stentor=" SECRET "; c=d"), 64);
    assert_int_equal(found("stentor=short; stentor=" SECRET), 64);
    static const char *const none[] = {
        "",
        ";",
        "=",
        "stentor",
        "stentor=",
        "xstentor=" SECRET,
        "stentor=" SECRET "0",
        "stentor=" HEX16,
        "__Host-stentor=" SECRET,
        "stentor= " SECRET,
        "stentor=" HEX16 HEX16 HEX16 "0123456789abcdeg",
        "Stentor=" SECRET};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(found(none[i]), 0);
    }
}

static void an_origin_is_scheme_and_host_alone(void **state)
{
    (void)state;
    Str origin;
    Error err;
    static const char *const good[] = {
        "", "https://stentor.example", "http://10.0.0.1:8080", "http://[::1]:8081"};
    static const char *const wrong[] = {
        "stentor.example",
        "https://",
        "ftp://stentor.example",
        "https://stentor.example/",
        "https://stentor.example/console",
        "https://a@b",
        "https://a b"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(sessions_origin(good[i], &origin, &err));
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(sessions_origin(wrong[i], &origin, &err));
        assert_int_equal(err.kind, ERROR_CONFIG);
    }
    assert_true(sessions_origin("https://x", &origin, &err));
    Sessions sessions = {.origin = origin};
    assert_string_equal(sessions_cookie(&sessions), "__Host-stentor");
    sessions.origin = STR("http://x");
    assert_string_equal(sessions_cookie(&sessions), "stentor");
}

static void plain_http_is_for_the_loopback_unless_an_operator_said_otherwise(void **state)
{
    (void)state;
    HttpRequest request = {0};
    HttpProxies from;
    Error err;
    Sessions sessions = {0};
    assert_true(http_proxies_parse(STR("127.0.0.1,::1,192.0.2.9"), &from, &err));
    for (size_t i = 0; i < 3; i++) {
        request.client = from.ranges[i].address;
        sessions.origin = STR_EMPTY;
        assert_int_equal(sessions_allowed(&sessions, &request), i < 2);
        sessions.origin = STR("http://stentor.internal");
        assert_true(sessions_allowed(&sessions, &request));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cookie_is_found_among_others_by_its_whole_name_and_form),
        cmocka_unit_test(an_origin_is_scheme_and_host_alone),
        cmocka_unit_test(plain_http_is_for_the_loopback_unless_an_operator_said_otherwise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
