// SPDX-License-Identifier: Apache-2.0
// A file that was changed, cut short or made by someone else is refused with the place named; what
// is looked for is found with few pages.
#include "memory_file.h"

#include <stdio.h>

#include "common/parquet/checksum.h"
#include "common/parquet/read/thrift_reader.h"
#include "common/parquet/row_digest.h"

enum { COLUMNS = 5, ROWS = 60, DAY_US = 86400 };

static const ParquetColumn columns[COLUMNS] = {
    {.name = "id", .type = PARQUET_STRING, .bloom = true},
    {.name = "at",
     .type = PARQUET_I64,
     .logical = PARQUET_TIME_US,
     .encoding = PARQUET_DELTA,
     .no_statistics = true, // an index that nothing looks at may change unseen
     .sorted = true},
    {.name = "channel", .type = PARQUET_STRING, .encoding = PARQUET_DICTIONARY, .optional = true},
    {.name = "hash", .type = PARQUET_BYTES, .uncompressed = true, .bloom = true, .optional = true},
    {.name = "attempts",
     .type = PARQUET_I32,
     .logical = PARQUET_I16,
     .optional = true,
     .no_statistics = true},
};

static void make_row(size_t i, ParquetValue *values)
{
    static char id[32], hash[32];
    snprintf(id, sizeof id, "ntf_%08zu", i);
    uint64_t seed = parquet_xxh64(str_from(id));
    for (size_t k = 0; k < sizeof hash; k += 8) {
        seed = parquet_xxh64(str_of(&seed, sizeof seed));
        memcpy(hash + k, &seed, sizeof seed);
    }
    values[0] = text_value(id);
    values[1] = number_value((int64_t)i * DAY_US);
    values[2] = i % 5 == 0 ? null_value() : text_value(i % 2 == 0 ? "email" : "sms");
    values[3] = i % 4 == 0 ? null_value() : (ParquetValue){.bytes = str_of(hash, sizeof hash)};
    values[4] = i % 3 == 0 ? null_value() : number_value((int64_t)i % 6);
}

static const FileShape small = {columns, COLUMNS, ROWS, 40, 16, make_row};

// Bytes behind the pages are not read by a full reading; they are looked at when something is
// looked for.
static bool reads_and_finds(const Buf *file, Error *err)
{
    static const char *const names[] = {"id", "channel", "hash"};
    if (!reads(file, err)) {
        return false;
    }
    Buf copy = *file;
    bool ok = true, end = false;
    ParquetValue wanted[COLUMNS], values[COLUMNS];
    ParquetReader *reader = parquet_reader_open(from_memory, &copy, file->len, err);
    for (size_t row = 0; row < ROWS && ok; row++) {
        for (size_t c = 0; c < 3 && ok; c++) {
            make_row(row, wanted);
            size_t column = c == 0 ? 0 : c + 1;
            if (wanted[column].null) {
                continue;
            }
            size_t found = 0;
            ok = parquet_reader_find(reader, names[c], wanted[column].bytes, err);
            for (end = false; ok && !end; found++) {
                ok = parquet_reader_next(reader, values, &end, err);
            }
            assert_true(!ok || found > 1);
        }
    }
    parquet_reader_free(reader);
    assert_true(ok || err->kind == ERROR_PERMANENT);
    return ok;
}

static void every_byte_that_changes_is_noticed(void **state)
{
    (void)state;
    ParquetTotals totals;
    Error err = {0};
    Buf file = write_file(&small, &totals);
    assert_true(reads_and_finds(&file, &err));
    for (size_t i = 0; i < file.len; i++) {
        file.ptr[i] = (char)(file.ptr[i] ^ (1 << i % 8));
        if (reads_and_finds(&file, &err)) {
            fail_msg("byte %zu of %zu", i, file.len);
        }
        file.ptr[i] = (char)(file.ptr[i] ^ (1 << i % 8));
    }
    buf_done(&file);
}

static void a_file_that_was_cut_short_is_refused(void **state)
{
    (void)state;
    ParquetTotals totals;
    Error err = {0};
    Buf file = write_file(&small, &totals);
    for (size_t len = 0; len < file.len; len++) {
        Buf cut = file;
        cut.len = len;
        assert_false(reads(&cut, &err));
    }
    buf_done(&file);
}

static void the_place_of_the_damage_is_named(void **state)
{
    (void)state;
    ParquetTotals totals;
    Error err = {0};
    Buf file = write_file(&small, &totals);
    file.ptr[60] = (char)~file.ptr[60]; // in the first page
    assert_false(reads(&file, &err));
    assert_non_null(strstr(err.text, "column 'id', page at 4"));
    file.ptr[60] = (char)~file.ptr[60];
    file.ptr[file.len - 20] = (char)~file.ptr[file.len - 20];
    assert_false(reads(&file, &err));
    assert_non_null(strstr(err.text, "footer"));
    buf_done(&file);
}

// ---- looking for a value ----

static const FileShape large = {columns, COLUMNS, 40000, 8000, 1000, make_row};

static void find_row(ParquetReader *reader, const char *column, Str equals, size_t row)
{
    Error err = {0};
    ParquetValue found[COLUMNS], expected[COLUMNS];
    bool end = false;
    assert_true(parquet_reader_find(reader, column, equals, &err));
    assert_true(parquet_reader_next(reader, found, &end, &err));
    assert_false(end);
    make_row(row, expected);
    for (size_t c = 0; c < COLUMNS; c++) {
        assert_values_equal(&columns[c], &found[c], &expected[c]);
    }
    assert_true(parquet_reader_next(reader, found, &end, &err));
    assert_true(end);
}

static void a_value_is_found_with_few_pages(void **state)
{
    (void)state;
    ParquetTotals totals;
    Error err = {0};
    ParquetValue values[COLUMNS];
    Buf file = write_file(&large, &totals);
    ParquetReader *reader = parquet_reader_open(from_memory, &file, file.len, &err);
    const size_t rows[] = {1, 999, 1001, 23457, 39999};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char id[32];
        uint64_t before = parquet_reader_pages(reader);
        snprintf(id, sizeof id, "ntf_%08zu", rows[i]);
        find_row(reader, "id", str_from(id), rows[i]);
        // A page and a dictionary of each column at most, the searched one twice.
        assert_true(parquet_reader_pages(reader) - before <= COLUMNS + 2);
        make_row(rows[i], values);
        char hash[32];
        memcpy(hash, values[3].bytes.ptr, sizeof hash);
        if (!values[3].null) {
            find_row(reader, "hash", str_of(hash, sizeof hash), rows[i]);
        }
    }
    parquet_reader_free(reader);
    buf_done(&file);
}

static void what_is_not_there_costs_no_page(void **state)
{
    (void)state;
    ParquetTotals totals;
    Error err = {0};
    ParquetValue values[COLUMNS];
    Buf file = write_file(&large, &totals);
    ParquetReader *reader = parquet_reader_open(from_memory, &file, file.len, &err);
    const char *const absent[][2] = {
        {"id", "ntf_99999999"}, {"id", "a"}, {"channel", "zzz"}, {"later", "x"}};
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        bool end = false;
        assert_true(parquet_reader_find(reader, absent[i][0], str_from(absent[i][1]), &err));
        assert_true(parquet_reader_next(reader, values, &end, &err));
        assert_true(end);
    }
    assert_int_equal(parquet_reader_pages(reader), 0);
    assert_false(parquet_reader_find(reader, "at", STR("1"), &err));
    parquet_reader_free(reader);
    buf_done(&file);
}

static void every_row_with_the_value_is_found(void **state)
{
    (void)state;
    ParquetTotals totals;
    Error err = {0};
    ParquetValue values[1];
    Buf file = write_file(&large, &totals);
    ParquetReader *reader = parquet_reader_open(from_memory, &file, file.len, &err);
    const char *const names[] = {"at"};
    bool end = false;
    size_t count = 0;
    assert_true(parquet_reader_want(reader, names, 1, &err));
    assert_true(parquet_reader_find(reader, "channel", STR("sms"), &err));
    for (size_t row = 0;; row++) {
        assert_true(parquet_reader_next(reader, values, &end, &err));
        if (end) {
            break;
        }
        while (row % 5 == 0 || row % 2 == 0) {
            row++;
        }
        assert_int_equal(values[0].number, row * DAY_US);
        count++;
    }
    assert_int_equal(count, 16000);
    parquet_reader_free(reader);
    buf_done(&file);
}

// ---- digests and checksums ----

static void the_canonical_text_leaves_nulls_at_the_end_out_and_escapes(void **state)
{
    (void)state;
    const ParquetColumn some[] = {
        {.name = "a", .type = PARQUET_STRING, .optional = true},
        {.name = "n", .type = PARQUET_I64},
        {.name = "b", .type = PARQUET_BOOL},
        {.name = "c", .type = PARQUET_BYTES},
        {.name = "later", .type = PARQUET_STRING, .optional = true},
    };
    ParquetValue values[] = {
        null_value(), number_value(INT64_MIN), number_value(1),
        text_value("12345678\n\\n and\\ more\tthan eight\n"), null_value()};
    RowDigest *older = row_digest_new(some, 4), *newer = row_digest_new(some, 5);
    row_digest_add(older, values);
    row_digest_add(newer, values);
    const char *text = "\\N\t-9223372036854775808\ttrue\t"
                       "12345678\\n\\\\n and\\\\ more\\tthan eight\\n";
    assert_true(str_eq(row_digest_text(older), str_from(text)));
    ParquetTotals a = row_digest_totals(older), b = row_digest_totals(newer);
    assert_true(parquet_totals_equal(&a, &b));
    row_digest_add(newer, values);
    b = row_digest_totals(newer);
    assert_false(parquet_totals_equal(&a, &b));
    parquet_totals_add(&a, &a);
    assert_true(parquet_totals_equal(&a, &b));
    row_digest_free(older);
    row_digest_free(newer);
}

static void numbers_are_decimal(void **state)
{
    (void)state;
    const ParquetColumn one[] = {{.name = "n", .type = PARQUET_I64}};
    RowDigest *digest = row_digest_new(one, 1);
    for (int64_t number = INT64_MAX;; number = number / 3 - (number > 0 ? 1 : 0)) {
        for (int sign = 1; sign >= -1; sign -= 2) {
            char text[32];
            ParquetValue value = number_value(sign * number);
            snprintf(text, sizeof text, "%lld", (long long)(sign * number));
            row_digest_add(digest, &value);
            assert_true(str_eq(row_digest_text(digest), str_from(text)));
        }
        if (number == 0) {
            break;
        }
    }
    row_digest_free(digest);
}

static void digests_carry_over_all_words(void **state)
{
    (void)state;
    ParquetTotals a = {.rows = 1}, one = {.rows = 1, .row_sum = {[31] = 1}};
    memset(a.row_sum, 0xff, sizeof a.row_sum);
    parquet_totals_add(&a, &one);
    const ParquetTotals zero = {.rows = 2};
    assert_true(parquet_totals_equal(&a, &zero));
}

static void the_checksums_are_those_of_the_standards(void **state)
{
    (void)state;
    const char *text = "123456789";
    assert_int_equal(parquet_crc32(0, text, 9), 0xCBF43926);
    assert_int_equal(parquet_crc32(parquet_crc32(0, text, 4), text + 4, 5), 0xCBF43926);
    assert_true(parquet_xxh64(STR("")) == UINT64_C(0xEF46DB3751D8E999));
    assert_true(parquet_xxh64(STR("abc")) == UINT64_C(0x44BC2CF5AD770999));
    assert_true(
        parquet_xxh64(STR("xxhash of more than one stripe of thirty-two bytes")) ==
        UINT64_C(0x4f80d1e819d0c5d4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_that_changes_is_noticed),
        cmocka_unit_test(a_file_that_was_cut_short_is_refused),
        cmocka_unit_test(the_place_of_the_damage_is_named),
        cmocka_unit_test(a_value_is_found_with_few_pages),
        cmocka_unit_test(what_is_not_there_costs_no_page),
        cmocka_unit_test(every_row_with_the_value_is_found),
        cmocka_unit_test(the_canonical_text_leaves_nulls_at_the_end_out_and_escapes),
        cmocka_unit_test(numbers_are_decimal),
        cmocka_unit_test(digests_carry_over_all_words),
        cmocka_unit_test(the_checksums_are_those_of_the_standards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
