// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/access/access_export.h"

static void assert_table(json_t *list, const char *wanted)
{
    Arena *arena = arena_new(0);
    Str text = STR_EMPTY;
    Error err = {0};
    assert_true(access_csv("subject", list, ACCESS_CSV_MAX, arena, &text, &err));
    assert_string_equal(arena_cstr(arena, text), wanted);
    arena_free(arena);
    json_decref(list);
}

static void a_text_is_never_a_formula(void **state)
{
    (void)state;
    static const char *const begins[] = {"=", "+", "-", "@", "\t", "\r"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        char wanted[64];
        snprintf(wanted, sizeof wanted, "a\r\n\"'%s1\"\r\n", begins[i]);
        assert_table(json_pack("[{s:o}]", "a", json_sprintf("%s1", begins[i])), wanted);
    }
}

static void numbers_and_other_texts_stay(void **state)
{
    (void)state;
    assert_table(
        json_pack("[{s:i, s:s, s:s, s:n, s:b}]", "a", -5, "b", "1=\"2\"", "c", "", "d", "e", 1),
        "a,b,c,d,e\r\n-5,\"1=\"\"2\"\"\",\"\",,true\r\n");
    assert_table(json_array(), "");
}

static void a_table_over_its_limit_is_refused_by_name(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    json_t *list = json_pack("[{s:s}]", "a", "1");
    Str text = STR_EMPTY;
    Error err = {0};
    assert_true(access_csv("attempts", list, 8, arena, &text, &err));
    assert_int_equal(text.len, 8);
    assert_false(access_csv("attempts", list, 7, arena, &text, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(err.text, "'attempts'"));
    assert_int_equal(text.len, 0);
    json_decref(list);
    arena_free(arena);
}

static void what_is_not_utf_8_is_a_gap_of_its_section(void **state)
{
    (void)state;
    AccessExport x = {.gaps = json_array()};
    json_t *list = json_array(), *row = json_object();
    access_append(&x, list, json_pack("{s:s}", "a", "fine"));
    access_end_section(&x, "subject");
    assert_int_equal(json_array_size(x.gaps), 0);
    access_append(&x, list, json_pack("{s:s}", "a", "\xff"));
    access_set(&x, row, "a", json_string("\xff"));
    assert_true(json_is_null(json_object_get(row, "a")));
    access_end_section(&x, "requests");
    access_end_section(&x, "contents");
    assert_int_equal(json_array_size(list), 1);
    assert_int_equal(json_array_size(x.gaps), 1);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(x.gaps, 0), "what")),
        "2 rows or fields of 'requests' whose text is not UTF-8");
    json_decref(row);
    json_decref(list);
    json_decref(x.gaps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_never_a_formula),
        cmocka_unit_test(numbers_and_other_texts_stay),
        cmocka_unit_test(a_table_over_its_limit_is_refused_by_name),
        cmocka_unit_test(what_is_not_utf_8_is_a_gap_of_its_section),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
