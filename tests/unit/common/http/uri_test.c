// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/http/uri.h"

static void expect_unescaped(const char *from, const char *to)
{
    char text[128];
    snprintf(text, sizeof text, "%s", from);
    size_t len = uri_unescape(text);
    assert_string_equal(text, to);
    assert_int_equal(len, strlen(to));
}

static void escapes_are_decoded(void **state)
{
    (void)state;
    expect_unescaped("/v1/a%20b%2Fc", "/v1/a b/c");
    expect_unescaped("%c3%A4%FF", "\xc3\xa4\xff");
    expect_unescaped("plain", "plain");
    expect_unescaped("", "");
}

static void an_escape_is_decoded_once_only(void **state)
{
    (void)state;
    expect_unescaped("%2541", "%41");
}

static void what_is_no_escape_stays(void **state)
{
    (void)state;
    expect_unescaped("100%", "100%");
    expect_unescaped("%4", "%4");
    expect_unescaped("%zz%4g%%41", "%zz%4g%A");
}

static void a_nul_is_never_made(void **state)
{
    (void)state;
    expect_unescaped("/v1/notifications%00.png", "/v1/notifications%00.png");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes_are_decoded),
        cmocka_unit_test(an_escape_is_decoded_once_only),
        cmocka_unit_test(what_is_no_escape_stays),
        cmocka_unit_test(a_nul_is_never_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
