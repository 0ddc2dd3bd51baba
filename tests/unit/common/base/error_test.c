// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/base/error.h"

static void set_fills_kind_and_text_and_returns_false(void **state)
{
    (void)state;
    Error err = {0};
    assert_false(error_set(&err, ERROR_PERMANENT, "template '%s' has no body", "welcome"));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_string_equal(err.text, "template 'welcome' has no body");
}

static void an_error_need_not_be_wanted(void **state)
{
    (void)state;
    assert_false(error_set(NULL, ERROR_CONFIG, "not wanted"));
    assert_false(error_wrap(NULL, "not wanted"));
    error_clear(NULL);
}

static void wrap_puts_its_text_before_and_keeps_the_kind(void **state)
{
    (void)state;
    Error err = {0};
    error_set(&err, ERROR_TRANSIENT, "connection refused");
    assert_false(error_wrap(&err, "smtp '%s'", "mx1"));
    assert_int_equal(err.kind, ERROR_TRANSIENT);
    assert_string_equal(err.text, "smtp 'mx1': connection refused");
}

static void a_debug_build_knows_where_an_error_was_set(void **state)
{
    (void)state;
    char expected[64] = "", at[64];
    Error err = {0};
    error_at(&err, at, sizeof at);
    assert_string_equal(at, "");
    int line = __LINE__ + 1;
    error_set(&err, ERROR_TRANSIENT, "connection refused");
#ifdef STENTOR_ERROR_PLACES
    (void)snprintf(expected, sizeof expected, "error_test.c:%d", line);
#else
    (void)line;
#endif
    error_wrap(&err, "smtp");
    Error copy = err;
    error_at(&copy, at, sizeof at);
    assert_string_equal(at, expected);
    assert_string_equal(copy.text, "smtp: connection refused");
    error_clear(&copy);
    error_at(&copy, at, sizeof at);
    assert_string_equal(at, "");
}

static void long_text_ends_in_three_dots(void **state)
{
    (void)state;
    char text[300];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    Error err = {0};
    error_set(&err, ERROR_PERMANENT, "%s", text);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_string_equal(err.text + sizeof err.text - 4, "...");
    error_set(&err, ERROR_PERMANENT, "%.200s", text);
    error_wrap(&err, "%.100s", text);
    assert_string_equal(err.text + sizeof err.text - 4, "...");
}

static void a_cut_leaves_no_half_character(void **state)
{
    (void)state;
    for (int pad = 0; pad < 4; pad++) {
        char text[300] = "";
        memset(text, 'x', (size_t)pad);
        for (size_t at = (size_t)pad; at + 3 < sizeof text; at += 3) {
            memcpy(text + at, "\xe2\x82\xac", 4);
        }
        Error err = {0};
        error_set(&err, ERROR_PERMANENT, "%s", text);
        size_t length = strlen(err.text);
        assert_string_equal(err.text + length - 3, "...");
        assert_int_equal((length - 3 - (size_t)pad) % 3, 0);
    }
}

static void clear_forgets(void **state)
{
    (void)state;
    Error err = {0};
    error_set(&err, ERROR_CONFLICT, "done before");
    error_clear(&err);
    assert_int_equal(err.kind, ERROR_NONE);
    assert_string_equal(err.text, "");
}

static void every_kind_has_a_name(void **state)
{
    (void)state;
    const char *names[] = {"none",   "transient", "permanent", "conflict",
                           "config", "usage",     "cancelled"};
    for (int kind = ERROR_NONE; kind <= ERROR_CANCELLED; kind++) {
        assert_string_equal(error_kind_name((ErrorKind)kind), names[kind]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_fills_kind_and_text_and_returns_false),
        cmocka_unit_test(an_error_need_not_be_wanted),
        cmocka_unit_test(wrap_puts_its_text_before_and_keeps_the_kind),
        cmocka_unit_test(a_debug_build_knows_where_an_error_was_set),
        cmocka_unit_test(long_text_ends_in_three_dots),
        cmocka_unit_test(a_cut_leaves_no_half_character),
        cmocka_unit_test(clear_forgets),
        cmocka_unit_test(every_kind_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
