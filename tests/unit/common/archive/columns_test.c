// SPDX-License-Identifier: Apache-2.0
// Rows between COPY BINARY and the values of a file; what the server really sends is in
// tests/integration/archive/test_archive_units.py.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/archive/columns.h"

static const UnitColumns all = {
    .count = 7,
    .cell = {CELL_TEXT, CELL_BYTES, CELL_TIME, CELL_I16, CELL_I64, CELL_BOOL, CELL_JSONB},
    .names = {"text", "bytes", "time", "small", "big", "flag", "json"}};

static const ParquetValue values[] = {
    {.bytes = {"caf\xc3\xa9", 5}},
    {.bytes = {"\0\1\2", 3}},
    {.number = INT64_C(1767225600123456)},
    {.number = -7},
    {.number = INT64_MIN},
    {.number = 1},
    {.bytes = {"{\"a\": 1}", 8}}};

static void a_row_is_the_same_after_both_ways(void **state)
{
    (void)state;
    Buf row;
    Error err = {0};
    ParquetValue got[7];
    buf_init(&row, 4096);
    assert_true(columns_encode(&all, values, &row));
    assert_true(columns_decode(&all, buf_view(&row), got, &err));
    for (size_t i = 0; i < all.count; i++) {
        assert_false(got[i].null);
        assert_int_equal(got[i].number, values[i].number);
        assert_true(str_eq(got[i].bytes, values[i].bytes));
    }
    buf_done(&row);
}

static void nulls_stay_nulls(void **state)
{
    (void)state;
    Buf row;
    ParquetValue nulls[7];
    ParquetValue got[7];
    for (int i = 0; i < 7; i++) {
        nulls[i] = (ParquetValue){.null = true};
    }
    buf_init(&row, 4096);
    assert_true(columns_encode(&all, nulls, &row));
    assert_int_equal(row.len, 2 + 7 * 4);
    assert_true(columns_decode(&all, buf_view(&row), got, NULL));
    for (int i = 0; i < 7; i++) {
        assert_true(got[i].null);
    }
    buf_done(&row);
}

// Each length of it, so that no read goes past the end.
static void a_row_that_ends_early_or_late_is_refused(void **state)
{
    (void)state;
    Buf row;
    ParquetValue got[7];
    buf_init(&row, 4096);
    assert_true(columns_encode(&all, values, &row));
    for (size_t len = 0; len < row.len; len++) {
        char *copy = xmalloc(len + 1);
        Error err = {0};
        memcpy(copy, row.ptr, len);
        assert_false(columns_decode(&all, str_of(copy, len), got, &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
        free(copy);
    }
    assert_true(buf_char(&row, 0));
    assert_false(columns_decode(&all, buf_view(&row), got, NULL));
    buf_done(&row);
}

static void infinity_has_no_place_in_a_file(void **state)
{
    (void)state;
    static const UnitColumns time = {.count = 1, .cell = {CELL_TIME}, .names = {"at"}};
    static const char greatest[] = "\0\1\0\0\0\10\x7f\xff\xff\xff\xff\xff\xff\xff";
    static const char least[] = "\0\1\0\0\0\10\x80\0\0\0\0\0\0\0";
    ParquetValue got;
    Error err = {0};
    assert_false(columns_decode(&time, str_of(greatest, 14), &got, &err));
    assert_non_null(strstr(err.text, "'at'"));
    assert_false(columns_decode(&time, str_of(least, 14), &got, &err));
}

static void a_copy_begins_with_its_header_and_ends_with_its_trailer(void **state)
{
    (void)state;
    Str message = str_of(copy_header, COPY_HEADER_LEN);
    assert_true(copy_skip_header(&message, NULL));
    assert_true(copy_is_end(message));
    assert_true(copy_is_end(STR("\377\377")));
    assert_false(copy_is_end(STR("\0\1")));
    message = STR("PGCOPY\n");
    assert_false(copy_skip_header(&message, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_the_same_after_both_ways),
        cmocka_unit_test(nulls_stay_nulls),
        cmocka_unit_test(a_row_that_ends_early_or_late_is_refused),
        cmocka_unit_test(infinity_has_no_place_in_a_file),
        cmocka_unit_test(a_copy_begins_with_its_header_and_ends_with_its_trailer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
