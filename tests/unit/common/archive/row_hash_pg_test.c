// SPDX-License-Identifier: Apache-2.0
// The hash of a row is that which a real Postgres makes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/archive/row_hash.h"
#include "tests/unit/common/db/pg_fixture.h"

enum { COLUMNS = 6, TEXT_MAX = 4096 };

static const ParquetColumn columns[COLUMNS] = {
    {.name = "text", .type = PARQUET_STRING},
    {.name = "bytes", .type = PARQUET_BYTES},
    {.name = "time", .type = PARQUET_I64, .logical = PARQUET_TIME_US},
    {.name = "small", .type = PARQUET_I32, .logical = PARQUET_I16},
    {.name = "big", .type = PARQUET_I64},
    {.name = "flag", .type = PARQUET_BOOL}};

static void ask(PGconn *pg, const char *sql, char out[TEXT_MAX])
{
    PGresult *rows = PQexec(pg, sql);
    if (PQresultStatus(rows) != PGRES_TUPLES_OK) {
        fail_msg("%s: %s", sql, PQerrorMessage(pg));
    }
    (void)snprintf(out, TEXT_MAX, "%s", PQgetvalue(rows, 0, 0));
    PQclear(rows);
}

// The hash of these columns is what Postgres makes of ROW(expressions).
static void same(PGconn *pg, const char *names, const ParquetValue *values, const char *expressions)
{
    RowHash hash;
    Error err = {0};
    char sql[TEXT_MAX];
    char expected[TEXT_MAX];
    char got[24];
    assert_true(row_hash_init(&hash, str_from(names), columns, COLUMNS, &err));
    (void)snprintf(
        sql, sizeof sql, "SELECT hashtextextended(hash_record_extended(ROW(%s), 0)::text, 0)",
        expressions);
    ask(pg, sql, expected);
    (void)snprintf(got, sizeof got, "%lld", (long long)row_hash(&hash, values));
    if (strcmp(got, expected) != 0) {
        fail_msg("%s: %s, and not %s", expressions, got, expected);
    }
}

static void texts_of_every_length_have_the_hash_of_postgres(void **state)
{
    (void)state;
    PGconn *pg = admin_connect();
    char text[64];
    char row[256];
    for (size_t len = 0; len < sizeof text; len++) {
        memset(text, 'a' + (int)(len % 26), len);
        text[len] = '\0';
        ParquetValue values[COLUMNS] = {{.bytes = str_of(text, len)}, {.bytes = str_of(text, len)}};
        (void)snprintf(row, sizeof row, "'%s'::text, '%s'::bytea", text, text);
        same(pg, "text,bytes", values, row);
    }
    ParquetValue values[COLUMNS] = {
        {.bytes = STR("caf\xc3\xa9 \xe6\xbc\xa2")}, {.bytes = {"\0\x7f\xff\x80", 4}}};
    same(pg, "bytes,text", values, "'\\x007fff80'::bytea, 'caf\xc3\xa9 \xe6\xbc\xa2'::text");
    PQfinish(pg);
}

static void numbers_of_every_size_have_the_hash_of_postgres(void **state)
{
    (void)state;
    static const int64_t numbers[] = {
        0,
        1,
        -1,
        7,
        -7,
        INT16_MAX,
        INT16_MIN,
        INT32_MAX,
        INT32_MIN,
        INT64_C(1) << 32,
        -(INT64_C(1) << 32),
        INT64_C(0x123456789abcdef),
        INT64_MAX,
        INT64_MIN};
    PGconn *pg = admin_connect();
    char row[256];
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        ParquetValue values[COLUMNS] = {
            [2] = {.null = true},
            [3] = {.number = (int16_t)numbers[i]},
            [4] = {.number = numbers[i]},
            [5] = {.number = numbers[i] != 0}};
        (void)snprintf(
            row, sizeof row, "(%lld)::int8, (%d)::int2, %s, NULL::timestamptz",
            (long long)numbers[i], (int)(int16_t)numbers[i], numbers[i] != 0 ? "true" : "false");
        same(pg, "big,small,flag,time", values, row);
    }
    PQfinish(pg);
}

static void times_have_the_hash_of_postgres(void **state)
{
    (void)state;
    static const struct {
        int64_t at_us;
        const char *text;
    } times[] = {
        {INT64_C(1767225600123400), "2026-01-01T00:00:00.1234Z"},
        {0, "1970-01-01T00:00:00Z"},
        {-1, "1969-12-31T23:59:59.999999Z"},
        {INT64_C(253402300799999999), "9999-12-31T23:59:59.999999Z"}};
    PGconn *pg = admin_connect();
    char row[256];
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        ParquetValue values[COLUMNS] = {{.null = true}, [2] = {.number = times[i].at_us}};
        (void)snprintf(row, sizeof row, "NULL::text, '%s'::timestamptz", times[i].text);
        same(pg, "text,time", values, row);
    }
    PQfinish(pg);
}

static void a_value_that_changes_place_changes_the_hash(void **state)
{
    (void)state;
    RowHash hash;
    Error err = {0};
    ParquetValue one[COLUMNS] = {{.bytes = STR("a")}, {.bytes = STR("b")}};
    ParquetValue other[COLUMNS] = {{.bytes = STR("b")}, {.bytes = STR("a")}};
    assert_true(row_hash_init(&hash, STR("text,bytes"), columns, COLUMNS, &err));
    assert_int_not_equal(row_hash(&hash, one), row_hash(&hash, other));
}

static void a_sum_is_that_of_numbers_without_a_limit(void **state)
{
    (void)state;
    PGconn *pg = admin_connect();
    static const int64_t hashes[] = {INT64_MAX, INT64_MAX, INT64_MAX, -1, INT64_MIN, 5, -17};
    RowSum sum = {0};
    char sql[TEXT_MAX];
    char got[TEXT_MAX];
    char expected[TEXT_MAX];
    int len = snprintf(sql, sizeof sql, "SELECT 0::numeric");
    for (size_t i = 0; i < sizeof hashes / sizeof hashes[0]; i++) {
        row_sum_add(&sum, hashes[i]);
        len += snprintf(
            sql + len, sizeof sql - (size_t)len, " + (%lld)::numeric", (long long)hashes[i]);
        ask(pg, sql, expected);
        char check[128];
        (void)snprintf(
            check, sizeof check, "SELECT (%lld)::numeric * 18446744073709551616 + %llu::numeric",
            (long long)sum.high, (unsigned long long)sum.low);
        ask(pg, check, got);
        assert_string_equal(got, expected);
    }
    PQfinish(pg);
}

static void a_column_that_the_file_lacks_is_named(void **state)
{
    (void)state;
    RowHash hash;
    Error err = {0};
    assert_false(row_hash_init(&hash, STR("text,other"), columns, COLUMNS, &err));
    assert_non_null(strstr(err.text, "'other'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_every_length_have_the_hash_of_postgres),
        cmocka_unit_test(numbers_of_every_size_have_the_hash_of_postgres),
        cmocka_unit_test(times_have_the_hash_of_postgres),
        cmocka_unit_test(a_value_that_changes_place_changes_the_hash),
        cmocka_unit_test(a_sum_is_that_of_numbers_without_a_limit),
        cmocka_unit_test(a_column_that_the_file_lacks_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
