// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/base/buf.h"

static void appends_follow_each_other(void **state)
{
    (void)state;
    Buf buf;
    buf_init(&buf, 1000);
    assert_string_equal(buf_c(&buf), "");
    assert_true(buf_cstr(&buf, "one") && buf_char(&buf, ' ') && buf_str(&buf, STR("two")));
    assert_true(buf_printf(&buf, " %d", 3));
    assert_string_equal(buf_c(&buf), "one two 3");
    assert_true(str_eq(buf_view(&buf), STR("one two 3")));
    buf_done(&buf);
}

static void exactly_the_maximum_fits(void **state)
{
    (void)state;
    Buf buf;
    buf_init(&buf, 4);
    assert_true(buf_cstr(&buf, "abcd"));
    assert_false(buf.full);
    assert_string_equal(buf_c(&buf), "abcd");
    assert_false(buf_char(&buf, 'e'));
    buf_done(&buf);
}

static void past_the_maximum_nothing_changes_any_more(void **state)
{
    (void)state;
    Buf buf;
    buf_init(&buf, 8);
    assert_true(buf_cstr(&buf, "12345"));
    assert_false(buf_cstr(&buf, "6789"));
    assert_true(buf.full);
    assert_false(buf_char(&buf, 'x'));
    assert_false(buf_printf(&buf, "%d", 1));
    assert_string_equal(buf_c(&buf), "12345");
    buf_clear(&buf);
    assert_false(buf.full);
    assert_true(buf_cstr(&buf, "12345678"));
    buf_done(&buf);
}

static void printf_grows_and_is_bounded(void **state)
{
    (void)state;
    Buf buf;
    buf_init(&buf, 2000);
    assert_true(buf_printf(&buf, "%0900d", 7));
    assert_int_equal(buf.len, 900);
    assert_true(buf_printf(&buf, "%0900d", 7));
    assert_int_equal(buf.len, 1800);
    assert_false(buf_printf(&buf, "%0900d", 7));
    assert_int_equal(buf.len, 1800);
    assert_int_equal(buf_c(&buf)[1799], '7');
    buf_done(&buf);
}

static void json_escapes_what_must_be(void **state)
{
    (void)state;
    Buf buf;
    buf_init(&buf, 1000);
    const char text[] = "\"q\" \\ \b\f\n\r\t \x01 \x7f / \xe2\x82\xac";
    assert_true(buf_json(&buf, str_from(text)));
    assert_string_equal(
        buf_c(&buf), "\"\\\"q\\\" \\\\ \\b\\f\\n\\r\\t \\u0001 \\u007f / \xe2\x82\xac\"");
    buf_clear(&buf);
    assert_true(buf_json(&buf, str_of("a\0b", 3)));
    assert_string_equal(buf_c(&buf), "\"a\\u0000b\"");
    buf_done(&buf);
}

static void json_replaces_bad_utf8(void **state)
{
    (void)state;
    Buf buf;
    buf_init(&buf, 1000);
    assert_true(buf_json(
        &buf, STR("a\xff"
                  "b\xe2\x82")));
    assert_string_equal(
        buf_c(&buf), "\"a\xef\xbf\xbd"
                     "b\xef\xbf\xbd\xef\xbf\xbd\"");
    assert_true(str_is_utf8(buf_view(&buf)));
    buf_done(&buf);
}

static void json_is_whole_or_absent(void **state)
{
    (void)state;
    for (size_t max = 1; max < 16; max++) {
        Buf buf;
        buf_init(&buf, max);
        buf_char(&buf, '[');
        bool done = buf_json(
            &buf, STR("a\n\"\xff"
                      "bc"));
        assert_int_equal(done, max >= 1 + 2 + 1 + 2 + 2 + 3 + 2);
        assert_int_equal(buf.full, !done);
        assert_int_equal(buf.len, done ? 13 : 1);
        buf_done(&buf);
    }
}

static void what_was_consumed_is_dropped(void **state)
{
    (void)state;
    Buf buf;
    buf_init(&buf, 100);
    buf_cstr(&buf, "250 ok\r\n220");
    buf_drop_front(&buf, 8);
    assert_string_equal(buf_c(&buf), "220");
    buf_drop_front(&buf, 3);
    assert_int_equal(buf.len, 0);
    buf_drop_front(&buf, 0);
    buf_done(&buf);
}

static void reserved_room_can_be_written(void **state)
{
    (void)state;
    Buf buf;
    buf_init(&buf, 100000);
    assert_true(buf_reserve(&buf, 70000));
    memset(buf.ptr, 'x', 70000);
    buf.len = 70000;
    assert_int_equal(buf_c(&buf)[70000], '\0');
    assert_false(buf_reserve(&buf, 30001));
    buf_done(&buf);
}

static void integers_are_decimal(void **state)
{
    (void)state;
    static const struct {
        int64_t number;
        const char *text;
    } rows[] = {
        {0, "0"},
        {-7, "-7"},
        {1999, "1999"},
        {INT64_MAX, "9223372036854775807"},
        {INT64_MIN, "-9223372036854775808"},
    };
    Buf buf;
    buf_init(&buf, 20);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        buf_clear(&buf);
        assert_true(buf_int(&buf, rows[i].number));
        assert_string_equal(buf_c(&buf), rows[i].text);
    }
    assert_false(buf_int(&buf, 1)); // full
    buf_done(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_follow_each_other),
        cmocka_unit_test(exactly_the_maximum_fits),
        cmocka_unit_test(integers_are_decimal),
        cmocka_unit_test(past_the_maximum_nothing_changes_any_more),
        cmocka_unit_test(printf_grows_and_is_bounded),
        cmocka_unit_test(json_escapes_what_must_be),
        cmocka_unit_test(json_replaces_bad_utf8),
        cmocka_unit_test(json_is_whole_or_absent),
        cmocka_unit_test(what_was_consumed_is_dropped),
        cmocka_unit_test(reserved_room_can_be_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
