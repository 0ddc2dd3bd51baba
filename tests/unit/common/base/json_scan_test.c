// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/base/buf.h"
#include "common/base/json_scan.h"

static Str repeat(Buf *buf, const char *begin, const char *item, size_t times)
{
    buf_clear(buf);
    buf_cstr(buf, begin);
    for (size_t i = 0; i < times; i++) {
        buf_cstr(buf, item);
    }
    return buf_view(buf);
}

static void finding_07_values_are_counted_before_they_are_parsed(void **state)
{
    (void)state;
    static const struct {
        const char *begin, *item;
        size_t times;
        bool modest;
    } rows[] = {
        {"[", "1,", JSON_VALUES_MAX - 2, true},
        {"[", "1,", JSON_VALUES_MAX - 1, false},
        {"[", "{},", JSON_VALUES_MAX, false},
        {"[", "[],", JSON_VALUES_MAX / 2, false},
        {"{", "\"a\":1,", JSON_VALUES_MAX - 2, true},
        {"{", "\"a\":1,", JSON_VALUES_MAX, false},
        {"", "[", JSON_DEPTH_MAX, true},
        {"", "[", JSON_DEPTH_MAX + 1, false},
        {"", "{\"a\":[", JSON_DEPTH_MAX / 2 + 1, false},
        {"[\"", "{[,", JSON_VALUES_MAX, true},            // inside a string
        {"[\"\\\"", "\\\\\\\"[,", JSON_VALUES_MAX, true}, // behind escapes
        {"[\"\\\\\"", ",1", JSON_VALUES_MAX, false}, // behind a string that ends in a backslash
        {"", "]}", JSON_VALUES_MAX, true},           // not JSON: the parser says so
        {"\"", "\\", 3, true},
        {"", "", 0, true},
    };
    Buf buf;
    buf_init(&buf, 8 * 1024 * 1024);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        JsonExcess excess = {.what = NULL};
        Str text = repeat(&buf, rows[i].begin, rows[i].item, rows[i].times);
        if (json_is_modest(text, &excess) != rows[i].modest) {
            fail_msg("row %zu", i);
        }
        assert_true(rows[i].modest == (excess.what == NULL));
    }
    buf_done(&buf);
}

static void the_place_is_named(void **state)
{
    (void)state;
    Buf buf;
    buf_init(&buf, 1024);
    JsonExcess excess;
    assert_false(json_is_modest(repeat(&buf, "[\n\n ", "[", JSON_DEPTH_MAX), &excess));
    assert_int_equal(excess.line, 3);
    assert_int_equal(excess.column, 1 + JSON_DEPTH_MAX);
    assert_string_equal(excess.what, "more than 128 levels");
    buf_done(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finding_07_values_are_counted_before_they_are_parsed),
        cmocka_unit_test(the_place_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
