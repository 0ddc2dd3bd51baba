// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_scan.h"
#include "common/json/json_read.h"
#include "common/json/json_write.h"

#define ROW(literal)                                                                               \
    {                                                                                              \
        ("" literal), sizeof("" literal) - 1                                                       \
    }

static const Str SURE[] = {
    ROW("{}"),
    ROW(" [ ] "),
    ROW("{\"name\":\"Alice\",\"total\":1999,\"paid\":true,\"note\":null,\"of\":[1,-2,0,-0,{\"a\":[]"
        "}]}"),
    ROW("[\"\\u00fc\\uD83D\\ude00\\n\\\"\\\\\\/\\b\\f\\r\\t\", \"\xc3\xbc \xf0\x9f\x98\x80 \x7f "
        "long enough for words\"]"),
    ROW("{\"a\\nkey\":{\"another\\tkey\":\"a\\u0001value\"},\"last\":\"\"}"),
    ROW("[999999999999999999,-999999999999999999]"),
    ROW("[19.99,1e3,-0.5E-7,1.0]"),
    ROW("\t\r\n[1 , 2\n,\t3]\r\n"),
};

// With what jansson makes of each: NULL, or not.
static const struct {
    Str text;
    bool is_json;
} NOT_SURE[] = {
    {ROW(""), false},
    {ROW("{"), false},
    {ROW("[1,]"), false},
    {ROW("[1 2]"), false},
    {ROW("{\"a\" 1}"), false},
    {ROW("{a:1}"), false},
    {ROW("[01]"), false},
    {ROW("[-]"), false},
    {ROW("[1-2]"), false},
    {ROW("[1.]"), false},
    {ROW("[1.5-2]"), false},
    {ROW("[1e400]"), false},
    {ROW("[1234567890123456789]"), true},
    {ROW("[12345678901234567890]"), false},
    {ROW("[truex]"), false},
    {ROW("[\"a\\"), false},
    {ROW("[\"a\\x\"]"), false},
    {ROW("[\"\\u12\"]"), false},
    {ROW("[\"\\ud800\"]"), false},
    {ROW("[\"\\ud800\\u0041\"]"), false},
    {ROW("[\"\\udc00\"]"), false},
    {ROW("[\"\\u0000\"]"), false},
    {ROW("[\"a\tb\"]"), false},
    {ROW("[\"\xc0\x80\"]"), false},
    {ROW("[\"\xed\xa0\x80\"]"), false},
    {ROW("[\"open"), false},
    {ROW("[1] x"), false},
    {ROW("17"), false},
};

static void the_common_case_is_read_and_written_as_by_jansson(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof SURE / sizeof SURE[0]; i++) {
        json_t *ours = json_read_plain(SURE[i], JSON_REJECT_DUPLICATES);
        json_t *theirs = json_loadb(SURE[i].ptr, SURE[i].len, JSON_REJECT_DUPLICATES, NULL);
        if (ours == NULL || !json_equal(ours, theirs)) {
            fail_msg("row %zu", i);
        }
        static const size_t flags[] = {0, JSON_SORT_KEYS, JSON_DECIMALS};
        for (size_t j = 0; j < sizeof flags / sizeof flags[0]; j++) {
            char *text = json_dumps(theirs, JSON_COMPACT | flags[j]);
            assert_string_equal(json_text(ours, flags[j], arena).ptr, text);
            free(text);
        }
        json_decref(ours);
        json_decref(theirs);
    }
    arena_free(arena);
}

static void what_is_not_sure_is_left_to_jansson(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof NOT_SURE / sizeof NOT_SURE[0]; i++) {
        json_error_t ours = {0};
        json_error_t theirs = {0};
        Str text = NOT_SURE[i].text;
        if (json_read_plain(text, 0) != NULL) {
            fail_msg("row %zu", i);
        }
        json_t *value = json_read(text, 0, &ours);
        json_t *same = json_loadb(text.ptr, text.len, 0, &theirs);
        assert_true((value != NULL) == NOT_SURE[i].is_json);
        assert_true((same != NULL) == NOT_SURE[i].is_json);
        assert_string_equal(ours.text, theirs.text);
        assert_int_equal(ours.column, theirs.column);
        json_decref(value);
        json_decref(same);
    }
}

static void a_scalar_needs_its_flag(void **state)
{
    (void)state;
    json_t *value = json_read_plain(STR(" 17 "), JSON_DECODE_ANY);
    assert_int_equal(json_integer_value(value), 17);
    json_decref(value);
    assert_null(json_read_plain(STR("17"), 0));
    assert_null(json_read_plain(STR(""), JSON_DECODE_ANY));
    assert_null(
        json_read_plain(STR("[]"), JSON_DECODE_INT_AS_REAL)); // a flag that it does not know
}

static void a_key_twice_is_refused_or_the_last_one_counts(void **state)
{
    (void)state;
    Str text = STR("{\"a\":1,\"b\":2,\"a\":3}");
    json_t *value = json_read_plain(text, 0);
    assert_int_equal(json_integer_value(json_object_get(value, "a")), 3);
    json_decref(value);
    assert_null(json_read_plain(text, JSON_REJECT_DUPLICATES));
    json_error_t error;
    assert_null(json_read(text, JSON_REJECT_DUPLICATES, &error));
    assert_non_null(strstr(error.text, "duplicate"));
}

static json_t *read_repeated(const char *begin, const char *item, size_t times, const char *end)
{
    Buf buf;
    buf_init(&buf, 8 * 1024 * 1024);
    buf_cstr(&buf, begin);
    for (size_t i = 0; i < times; i++) {
        buf_cstr(&buf, item);
    }
    for (size_t i = 0; i < (strcmp(item, "[") == 0 ? times : 1); i++) {
        buf_cstr(&buf, end);
    }
    json_t *value = json_read_plain(buf_view(&buf), 0);
    buf_done(&buf);
    return value;
}

static void values_and_levels_are_bounded_as_by_the_scan(void **state)
{
    (void)state;
    json_t *deep = read_repeated("", "[", JSON_DEPTH_MAX, "]");
    json_t *many = read_repeated("[", "1,", JSON_VALUES_MAX - 2, "1]");
    assert_non_null(deep);
    assert_int_equal(json_array_size(many), JSON_VALUES_MAX - 1);
    json_decref(deep);
    json_decref(many);
    assert_null(read_repeated("", "[", JSON_DEPTH_MAX + 1, "]"));
    assert_null(read_repeated("[", "1,", JSON_VALUES_MAX - 1, "1]"));
}

static void what_is_too_deep_or_wide_is_written_by_jansson(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    json_t *deep = json_array();
    for (int i = 0; i < 400; i++) {
        json_t *outer = json_array();
        json_array_append_new(outer, deep);
        deep = outer;
    }
    json_t *wide = json_object();
    for (int i = 0; i < 200; i++) {
        char key[8];
        (void)snprintf(key, sizeof key, "k%d", (i * 37) % 200);
        json_object_set_new(wide, key, json_real(i / 3.0));
    }
    json_t *values[] = {deep, wide};
    for (size_t i = 0; i < 2; i++) {
        char *text = json_dumps(values[i], JSON_COMPACT | JSON_SORT_KEYS);
        assert_string_equal(json_text(values[i], JSON_SORT_KEYS, arena).ptr, text);
        free(text);
        json_decref(values[i]);
    }
    arena_free(arena);
}

// Found by a review: at 15 digits it would be beyond the largest double, and could not be read
// again.
static void the_largest_number_can_be_read_again(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    json_t *largest =
        json_read_plain(STR("[1.7976931348623157e308,-1.7976931348623157e308,1e300]"), 0);
    Str text = json_text(largest, JSON_DECIMALS, arena);
    json_t *again = json_read(text, 0, NULL);
    assert_true(json_equal(again, largest));
    json_decref(again);
    json_decref(largest);
    arena_free(arena);
}

static void what_cannot_be_written_is_empty(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    json_t *bad = json_string_nocheck("a\xff");
    assert_int_equal(json_text(bad, 0, arena).len, 0);
    assert_int_equal(json_text(NULL, 0, arena).len, 0);
    json_decref(bad);
    Buf small;
    json_t *text = json_string("longer than four bytes");
    buf_init(&small, 4);
    assert_false(json_write(text, 0, &small));
    buf_done(&small);
    json_decref(text);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_common_case_is_read_and_written_as_by_jansson),
        cmocka_unit_test(what_is_not_sure_is_left_to_jansson),
        cmocka_unit_test(a_scalar_needs_its_flag),
        cmocka_unit_test(a_key_twice_is_refused_or_the_last_one_counts),
        cmocka_unit_test(values_and_levels_are_bounded_as_by_the_scan),
        cmocka_unit_test(what_is_too_deep_or_wide_is_written_by_jansson),
        cmocka_unit_test(the_largest_number_can_be_read_again),
        cmocka_unit_test(what_cannot_be_written_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
