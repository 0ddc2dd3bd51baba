// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "services/gateway/inbox/inbox_origins.h"

static InboxOrigins parse(const char *text)
{
    Error err = {0};
    InboxOrigins origins;
    assert_true(inbox_origins_parse(str_from(text), &origins, &err));
    return origins;
}

static void only_the_named_origins_are_allowed(void **state)
{
    (void)state;
    InboxOrigins origins = parse("https://app.example, http://localhost:3000,http://[::1]:8080");
    assert_true(inbox_origins_has(&origins, STR("https://app.example")));
    assert_true(inbox_origins_has(&origins, STR("http://localhost:3000")));
    assert_true(inbox_origins_has(&origins, STR("http://[::1]:8080")));
    static const char *const hostile[] = {
        "",
        "null",
        "*",
        "http://app.example",
        "https://app.example:8443",
        "https://app.example.evil.test",
        "https://evil.test/https://app.example",
        "https://evil-app.example",
        "https://app.example/",
        "https://APP.example",
        "https://app.example, http://localhost:3000",
    };
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        assert_false(inbox_origins_has(&origins, str_from(hostile[i])));
    }
}

static void without_a_list_there_is_none(void **state)
{
    (void)state;
    InboxOrigins origins = parse(" ");
    assert_false(inbox_origins_has(&origins, STR("https://app.example")));
    assert_false(inbox_origins_has(&origins, STR_EMPTY));
}

static void a_star_allows_every_origin(void **state)
{
    (void)state;
    InboxOrigins origins = parse("*");
    assert_true(inbox_origins_has(&origins, STR("https://app.example")));
    assert_false(inbox_origins_has(&origins, STR_EMPTY));
}

static void what_no_browser_sends_is_refused_by_name(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "app.example",
        "ftp://app.example",
        "https://",
        "https://app.example/",
        "https://App.example",
        "https://*.example",
        "https://app.example:443",
        "http://app.example:80",
        "https://app.example:0",
        "https://app.example:99999",
        "https://user@app.example",
        "https://[::1",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        Error err = {0};
        InboxOrigins origins;
        assert_false(inbox_origins_parse(str_from(wrong[i]), &origins, &err));
        assert_int_equal(err.kind, ERROR_CONFIG);
        assert_non_null(strstr(err.text, wrong[i]));
    }
}

static void a_list_has_an_end(void **state)
{
    (void)state;
    Buf text;
    Error err = {0};
    InboxOrigins origins;
    buf_init(&text, 8192);
    for (int i = 0; i < INBOX_ORIGINS_MAX + 1; i++) {
        buf_printf(&text, "https://a%d.example,", i);
    }
    assert_false(inbox_origins_parse(buf_view(&text), &origins, &err));
    assert_non_null(strstr(err.text, "at most 64"));
    buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_named_origins_are_allowed),
        cmocka_unit_test(without_a_list_there_is_none),
        cmocka_unit_test(a_star_allows_every_origin),
        cmocka_unit_test(what_no_browser_sends_is_refused_by_name),
        cmocka_unit_test(a_list_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
