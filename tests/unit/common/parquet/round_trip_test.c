// SPDX-License-Identifier: Apache-2.0
// What the writer writes the reader reads, cell by cell.
#include "memory_file.h"

#include <stdio.h>

enum { COLUMNS = 9 };

static const ParquetColumn all_types[COLUMNS] = {
    {.name = "id", .type = PARQUET_STRING, .bloom = true, .sorted = true},
    {.name = "yes", .type = PARQUET_BOOL, .optional = true},
    {.name = "small", .type = PARQUET_I32, .logical = PARQUET_I16, .optional = true},
    {.name = "number", .type = PARQUET_I32, .optional = true, .bloom = true},
    {.name = "at",
     .type = PARQUET_I64,
     .logical = PARQUET_TIME_US,
     .encoding = PARQUET_DELTA,
     .optional = true},
    {.name = "wide", .type = PARQUET_I64},
    {.name = "channel", .type = PARQUET_STRING, .encoding = PARQUET_DICTIONARY, .optional = true},
    {.name = "variables", .type = PARQUET_STRING, .logical = PARQUET_JSON, .optional = true},
    {.name = "sealed",
     .type = PARQUET_BYTES,
     .optional = true,
     .uncompressed = true,
     .no_statistics = true},
};

static void make_mixed(size_t i, ParquetValue *values)
{
    static char id[32], sealed[40];
    static const char *const channels[] = {"email", "sms", "web-push", "in-app"};
    static const int64_t extremes[] = {INT64_MIN, INT64_MAX, 0, -1, 1, INT64_MIN, INT64_MIN};
    snprintf(id, sizeof id, "ntf_%010zu", i);
    for (size_t k = 0; k < sizeof sealed; k++) {
        sealed[k] = (char)(i * 31 + k * 7);
    }
    values[0] = text_value(id);
    values[1] = i % 3 == 0 ? null_value() : number_value(i % 2 == 0);
    values[2] = i % 5 == 0 ? null_value() : number_value(i % 2 == 0 ? INT16_MIN : INT16_MAX);
    values[3] = i % 7 == 6 ? null_value() : number_value(i % 2 == 0 ? INT32_MIN : INT32_MAX);
    values[4] = i % 11 == 0 ? null_value() : number_value(extremes[i % 7]);
    values[5] = number_value(1790000000000000 + (int64_t)i * 12345);
    values[6] = i % 4 == 3 ? null_value() : text_value(channels[i % 3]);
    values[7] = i % 2 == 0 ? null_value() : text_value("{\"line\\n\": \"gr\xc3\xbc\xc3\x9f\"}\n");
    values[8] = i % 9 == 8 ? null_value()
                           : (ParquetValue){.bytes = str_of(sealed, i % (sizeof sealed + 1))};
}

static void check(const FileShape *shape)
{
    ParquetTotals totals;
    Buf file = write_file(shape, &totals);
    assert_reads_back(&file, shape, &totals);
    buf_done(&file);
}

static void every_type_comes_back_whatever_the_number_of_rows(void **state)
{
    (void)state;
    const size_t counts[] = {0, 1, 2, 7, 8, 9, 99, 100, 101, 999, 1000, 1001};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        const FileShape shape = {all_types, COLUMNS, counts[i], 100, 16, make_mixed};
        check(&shape);
    }
}

static void make_null(size_t i, ParquetValue *values)
{
    make_mixed(i, values);
    for (size_t c = 0; c < COLUMNS; c++) {
        values[c] = all_types[c].optional ? null_value() : values[c];
    }
}

static void a_chunk_of_nulls_alone_comes_back(void **state)
{
    (void)state;
    const FileShape shape = {all_types, COLUMNS, 250, 100, 16, make_null};
    check(&shape);
}

// The first page is null, so a dictionary has no value yet.
static void make_late(size_t i, ParquetValue *values)
{
    if (i < 40) {
        make_null(i, values);
    } else {
        make_mixed(i, values);
    }
}

static void values_that_begin_late_come_back(void **state)
{
    (void)state;
    const FileShape shape = {all_types, COLUMNS, 300, 100, 16, make_late};
    check(&shape);
}

// ---- dictionaries ----

static const ParquetColumn dictionary_column[] = {
    {.name = "text", .type = PARQUET_STRING, .encoding = PARQUET_DICTIONARY, .bloom = true}};

static void make_all_different(size_t i, ParquetValue *values)
{
    static char text[32];
    snprintf(text, sizeof text, "different %zu", i * 7919);
    values[0] = text_value(text);
}

static void make_different_later(size_t i, ParquetValue *values)
{
    make_all_different(i < 30000 ? i % 3 : i, values);
}

static void make_one(size_t i, ParquetValue *values)
{
    (void)i;
    values[0] = text_value("always");
}

static void a_dictionary_that_does_not_help_is_left(void **state)
{
    (void)state;
    const MakeRow makes[] = {make_all_different, make_different_later, make_one};
    for (size_t i = 0; i < 3; i++) {
        const FileShape shape = {dictionary_column, 1, 50000, 0, 0, makes[i]};
        check(&shape);
    }
}

static void a_row_group_of_the_usual_size_comes_back(void **state)
{
    (void)state;
    const FileShape shape = {dictionary_column, 1, PARQUET_GROUP_ROWS + 1, 0, 0,
                             make_all_different};
    check(&shape);
}

// Values of 256 KiB that are few by place; then the dictionary is full.
static void make_large_by_place(size_t i, ParquetValue *values)
{
    static char large[PARQUET_VALUE_MAX / 4 + 8];
    memset(large, 'a' + (int)(i < 400 ? i % 3 : i % 26), sizeof large);
    values[0] = (ParquetValue){.bytes = str_of(large, sizeof large - 8)};
}

static void large_values_that_repeat_stay_small(void **state)
{
    (void)state;
    ParquetTotals totals;
    const FileShape shape = {dictionary_column, 1, 600, 0, 0, make_large_by_place};
    Buf file = write_file(&shape, &totals);
    assert_true(file.len < 64 * 1024);
    assert_reads_back(&file, &shape, &totals);
    buf_done(&file);
}

// ---- sizes ----

static const ParquetColumn wide_column[] = {
    {.name = "raw", .type = PARQUET_BYTES, .uncompressed = true, .optional = true}};

static void make_wide(size_t i, ParquetValue *values)
{
    static char bytes[PARQUET_VALUE_MAX];
    memset(bytes, (int)i, sizeof bytes);
    values[0] = (ParquetValue){.bytes = str_of(bytes, i % 3 == 0 ? sizeof bytes : i % 1000)};
}

static void wide_values_end_pages_and_row_groups_early(void **state)
{
    (void)state;
    ParquetTotals totals;
    Error err = {0};
    const FileShape shape = {wide_column, 1, 120, 0, 0, make_wide};
    Buf file = write_file(&shape, &totals);
    ParquetReader *reader = parquet_reader_open(from_memory, &file, file.len, &err);
    assert_int_equal(parquet_reader_groups(reader), 2);
    parquet_reader_free(reader);
    assert_reads_back(&file, &shape, &totals);
    buf_done(&file);
}

static void the_same_rows_give_the_same_bytes(void **state)
{
    (void)state;
    ParquetTotals one, other;
    const FileShape shape = {all_types, COLUMNS, 1000, 300, 50, make_mixed};
    Buf a = write_file(&shape, &one), b = write_file(&shape, &other);
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.ptr, b.ptr, a.len);
    assert_true(parquet_totals_equal(&one, &other));
    buf_done(&a);
    buf_done(&b);
}

static void the_schema_and_the_metadata_come_back(void **state)
{
    (void)state;
    ParquetTotals totals;
    Error err = {0};
    const FileShape shape = {all_types, COLUMNS, 3, 100, 16, make_mixed};
    Buf file = write_file(&shape, &totals);
    ParquetReader *reader = parquet_reader_open(from_memory, &file, file.len, &err);
    const ParquetColumn *columns;
    assert_int_equal(parquet_reader_columns(reader, &columns), COLUMNS);
    for (size_t i = 0; i < COLUMNS; i++) {
        assert_string_equal(columns[i].name, all_types[i].name);
        assert_int_equal(columns[i].type, all_types[i].type);
        assert_int_equal(columns[i].logical, all_types[i].logical);
        assert_int_equal(columns[i].optional, all_types[i].optional);
    }
    assert_string_equal(parquet_reader_metadata(reader, "unit"), "notifications/record/2026-10");
    assert_string_equal(parquet_reader_metadata(reader, "empty"), "");
    assert_null(parquet_reader_metadata(reader, "other"));
    assert_int_equal(parquet_reader_rows(reader), 3);
    parquet_reader_free(reader);
    buf_done(&file);
}

// ---- files of other versions ----

static void a_column_that_the_file_does_not_have_is_null(void **state)
{
    (void)state;
    ParquetTotals totals;
    Error err = {0};
    const FileShape shape = {all_types, COLUMNS, 120, 100, 16, make_mixed};
    Buf file = write_file(&shape, &totals);
    ParquetReader *reader = parquet_reader_open(from_memory, &file, file.len, &err);
    const char *const names[] = {"later", "channel", "id"};
    const char *const twice[] = {"id", "id"};
    ParquetValue found[3], expected[COLUMNS];
    bool end = false;
    assert_true(parquet_reader_want(reader, names, 3, &err));
    for (size_t i = 0; i < 120; i++) {
        make_mixed(i, expected);
        assert_true(parquet_reader_next(reader, found, &end, &err));
        assert_true(found[0].null);
        assert_values_equal(&all_types[6], &found[1], &expected[6]);
        assert_values_equal(&all_types[0], &found[2], &expected[0]);
    }
    assert_int_equal(parquet_reader_totals(reader).rows, 0);
    assert_false(parquet_reader_want(reader, twice, 2, &err));
    parquet_reader_free(reader);
    buf_done(&file);
}

// ---- refusals ----

static void refuse(ParquetWriter *writer, size_t column, ParquetValue value, const char *why)
{
    Error err = {0};
    ParquetValue values[COLUMNS];
    make_mixed(1, values);
    values[column] = value;
    assert_false(parquet_writer_row(writer, values, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(err.text, why));
}

static void a_row_that_does_not_fit_is_refused_whole(void **state)
{
    (void)state;
    Buf file;
    Error err = {0};
    ParquetTotals totals;
    ParquetValue values[COLUMNS];
    static char large[PARQUET_VALUE_MAX + 1];
    buf_init(&file, FILE_MAX);
    ParquetWriter *writer = parquet_writer_new(all_types, COLUMNS, to_memory, &file);
    refuse(writer, 0, null_value(), "'id' must not be null");
    refuse(writer, 0, text_value("\xff"), "'id' is not UTF-8");
    refuse(writer, 2, number_value(32768), "'small': 32768 does not fit");
    refuse(writer, 3, number_value(INT64_C(-2147483649)), "'number'");
    refuse(writer, 8, (ParquetValue){.bytes = str_of(large, sizeof large)}, "1048577 bytes");
    make_mixed(0, values);
    assert_true(parquet_writer_row(writer, values, &err));
    assert_true(parquet_writer_finish(writer, NULL, 0, &totals, &err));
    const FileShape shape = {all_types, COLUMNS, 1, 0, 0, make_mixed};
    assert_reads_back(&file, &shape, &totals);
    parquet_writer_free(writer);
    buf_done(&file);
}

static void a_sink_that_is_full_is_transient(void **state)
{
    (void)state;
    for (size_t room = 0; room < 2000; room += 150) {
        Buf file;
        Error err = {0};
        ParquetTotals totals;
        ParquetValue values[COLUMNS];
        buf_init(&file, room);
        ParquetWriter *writer = parquet_writer_new(all_types, COLUMNS, to_memory, &file);
        make_mixed(1, values);
        bool ok = parquet_writer_row(writer, values, &err) &&
                  parquet_writer_finish(writer, NULL, 0, &totals, &err);
        assert_false(ok);
        assert_int_equal(err.kind, ERROR_TRANSIENT);
        parquet_writer_free(writer);
        buf_done(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_comes_back_whatever_the_number_of_rows),
        cmocka_unit_test(a_row_group_of_the_usual_size_comes_back),
        cmocka_unit_test(a_chunk_of_nulls_alone_comes_back),
        cmocka_unit_test(values_that_begin_late_come_back),
        cmocka_unit_test(a_dictionary_that_does_not_help_is_left),
        cmocka_unit_test(large_values_that_repeat_stay_small),
        cmocka_unit_test(wide_values_end_pages_and_row_groups_early),
        cmocka_unit_test(the_same_rows_give_the_same_bytes),
        cmocka_unit_test(the_schema_and_the_metadata_come_back),
        cmocka_unit_test(a_column_that_the_file_does_not_have_is_null),
        cmocka_unit_test(a_row_that_does_not_fit_is_refused_whole),
        cmocka_unit_test(a_sink_that_is_full_is_transient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
