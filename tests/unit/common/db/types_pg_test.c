// SPDX-License-Identifier: Apache-2.0
// Every parameter type there and back through a real Postgres.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/common/db/pg_fixture.h"

static const DbStatement SCALARS = {
    "scalars", "SELECT $1::text, $2::bytea, $3::int8, $4::int4, $5::bool, $6::timestamptz,"
               " $6::timestamptz::text"};
static const DbStatement COLUMNS = {
    "columns",
    "SELECT * FROM unnest($1::text[], $2::bytea[], $3::int8[], $4::int4[], $5::int2[], $6::bool[],"
    " $7::timestamptz[]) WITH ORDINALITY"};
static const DbStatement CASTS = {
    "casts", "SELECT $1::smallint, extract(epoch from $2::interval)::int8, $3::text IS NULL"};
static const DbStatement MAYBE = {"maybe", "SELECT $1::smallint, $2::text"};

static const int64_t SOME_TIME_US = 1795199136123456; // 2026-11-20T18:25:36.123456Z

static int set_up(void **state)
{
    *state = fixture_new(&(DbPoolOptions){.url = test_url(), .connections = 1});
    return 0;
}

static int tear_down(void **state)
{
    fixture_free(*state);
    return 0;
}

static void assert_text(Str got, const char *want, size_t len)
{
    assert_int_equal(got.len, len);
    assert_memory_equal(got.ptr, want, len);
}

static void scalars_come_back_as_they_went(void **state)
{
    Fixture *fx = *state;
    Answer answer = {0};
    DbTxn *txn = db_txn_new(fx->pool);
    DbParams *p = db_txn_add(txn, &SCALARS, NULL);
    db_text(
        p, STR("gr\xc3\xbc\xc3\x9f"
               "e"));
    db_bytes(p, str_of("\0\xff\x01", 3));
    db_i64(p, INT64_MIN);
    db_i32(p, -42);
    db_bool(p, true);
    db_time(p, SOME_TIME_US);
    submit_and_wait(fx, txn, &answer);
    assert_int_equal(answer.err.kind, ERROR_NONE);
    const PGresult *rows = answer.rows[0];
    assert_int_equal(db_rows(rows), 1);
    assert_text(
        db_get_text(rows, 0, 0),
        "gr\xc3\xbc\xc3\x9f"
        "e",
        7);
    assert_text(db_get_text(rows, 0, 1), "\0\xff\x01", 3);
    assert_true(db_get_int(rows, 0, 2) == INT64_MIN);
    assert_int_equal(db_get_int(rows, 0, 3), -42);
    assert_int_equal(db_get_int(rows, 0, 4), 1);
    assert_true(db_get_time(rows, 0, 5) == SOME_TIME_US);
    assert_true(str_starts(db_get_text(rows, 0, 6), STR("2026-11-20 ")));
    answer_clear(&answer);
}

static void nulls_come_back_as_nulls(void **state)
{
    Fixture *fx = *state;
    Answer answer = {0};
    DbTxn *txn = db_txn_new(fx->pool);
    DbParams *p = db_txn_add(txn, &SCALARS, NULL);
    for (int i = 0; i < 5; i++) {
        db_null(p);
    }
    db_time(p, 0);
    submit_and_wait(fx, txn, &answer);
    assert_int_equal(answer.err.kind, ERROR_NONE);
    for (int i = 0; i < 6; i++) {
        assert_true(db_is_null(answer.rows[0], 0, i));
    }
    assert_int_equal(db_get_time(answer.rows[0], 0, 5), 0);
    assert_int_equal(db_get_int(answer.rows[0], 0, 2), 0);
    assert_int_equal(db_get_text(answer.rows[0], 0, 0).len, 0);
    answer_clear(&answer);
}

static const DbType COLUMN_TYPES[] = {DB_TEXT, DB_BYTES, DB_I64, DB_I32, DB_I16, DB_BOOL, DB_TIME};
enum { COLUMN_COUNT = sizeof COLUMN_TYPES / sizeof COLUMN_TYPES[0] };

static void make_columns(DbParams *p, DbArray *columns[COLUMN_COUNT])
{
    for (int i = 0; i < COLUMN_COUNT; i++) {
        columns[i] = db_array(p, COLUMN_TYPES[i]);
    }
}

static void push_row(DbArray *columns[COLUMN_COUNT], int row)
{
    char text[2000];
    int len = snprintf(text, sizeof text, "row %0*d", row + 1, row); // longer and longer
    db_push_text(columns[0], str_of(text, (size_t)len));
    db_push_text(columns[1], str_of("\0\1\2\3", (size_t)(row % 5)));
    db_push_int(columns[2], (int64_t)row * -10000000000);
    db_push_int(columns[3], row * -1000);
    db_push_int(columns[4], -row);
    db_push_int(columns[5], row % 2);
    db_push_time(columns[6], SOME_TIME_US + row);
}

static void check_row(const PGresult *rows, int row)
{
    char text[2000];
    int len = snprintf(text, sizeof text, "row %0*d", row + 1, row);
    assert_text(db_get_text(rows, row, 0), text, (size_t)len);
    assert_text(db_get_text(rows, row, 1), "\0\1\2\3", (size_t)(row % 5));
    assert_true(db_get_int(rows, row, 2) == (int64_t)row * -10000000000);
    assert_int_equal(db_get_int(rows, row, 3), row * -1000);
    assert_int_equal(db_get_int(rows, row, 4), -row);
    assert_int_equal(db_get_int(rows, row, 5), row % 2);
    assert_true(db_get_time(rows, row, 6) == SOME_TIME_US + row);
    assert_int_equal(db_get_int(rows, row, 7), row + 1);
}

static void arrays_of_many_rows_come_back_in_order(void **state)
{
    Fixture *fx = *state;
    enum { ROWS = 1000 };
    Answer answer = {0};
    DbTxn *txn = db_txn_new(fx->pool);
    DbArray *columns[COLUMN_COUNT];
    make_columns(db_txn_add(txn, &COLUMNS, NULL), columns);
    for (int i = 0; i < ROWS; i++) {
        push_row(columns, i);
    }
    submit_and_wait(fx, txn, &answer);
    assert_int_equal(answer.err.kind, ERROR_NONE);
    assert_int_equal(db_rows(answer.rows[0]), ROWS);
    for (int i = 0; i < ROWS; i++) {
        check_row(answer.rows[0], i);
    }
    answer_clear(&answer);
}

static void nulls_stand_in_arrays(void **state)
{
    Fixture *fx = *state;
    Answer answer = {0};
    DbTxn *txn = db_txn_new(fx->pool);
    DbArray *columns[COLUMN_COUNT];
    make_columns(db_txn_add(txn, &COLUMNS, NULL), columns);
    push_row(columns, 0);
    for (int i = 0; i < COLUMN_COUNT; i++) {
        db_push_null(columns[i]);
    }
    push_row(columns, 2);
    submit_and_wait(fx, txn, &answer);
    assert_int_equal(answer.err.kind, ERROR_NONE);
    assert_int_equal(db_rows(answer.rows[0]), 3);
    check_row(answer.rows[0], 0);
    for (int i = 0; i < COLUMN_COUNT; i++) {
        assert_true(db_is_null(answer.rows[0], 1, i));
    }
    check_row(answer.rows[0], 2);
    answer_clear(&answer);
}

static void empty_arrays_give_no_rows(void **state)
{
    Fixture *fx = *state;
    Answer answer = {0};
    DbTxn *txn = db_txn_new(fx->pool);
    DbArray *columns[COLUMN_COUNT];
    make_columns(db_txn_add(txn, &COLUMNS, NULL), columns);
    submit_and_wait(fx, txn, &answer);
    assert_int_equal(answer.err.kind, ERROR_NONE);
    assert_int_equal(db_rows(answer.rows[0]), 0);
    answer_clear(&answer);
}

static void a_parameter_is_cast_by_postgres(void **state)
{
    Fixture *fx = *state;
    Answer answer = {0};
    DbTxn *txn = db_txn_new(fx->pool);
    DbParams *p = db_txn_add(txn, &CASTS, NULL);
    db_i32(p, 7);
    db_text(p, STR("2 minutes"));
    db_null(p);
    submit_and_wait(fx, txn, &answer);
    assert_int_equal(answer.err.kind, ERROR_NONE);
    assert_int_equal(db_get_int(answer.rows[0], 0, 0), 7);
    assert_int_equal(db_get_int(answer.rows[0], 0, 1), 120);
    assert_int_equal(db_get_int(answer.rows[0], 0, 2), 1);
    answer_clear(&answer);
}

static void ask_maybe(Fixture *fx, Answer *answer, bool number, bool text)
{
    DbTxn *txn = db_txn_new(fx->pool);
    DbParams *p = db_txn_add(txn, &MAYBE, NULL);
    number ? db_i32(p, 7) : db_null(p);
    text ? db_text(p, STR("x")) : db_null(p);
    submit_and_wait(fx, txn, answer);
    assert_int_equal(answer->err.kind, ERROR_NONE);
    assert_int_equal(db_is_null(answer->rows[0], 0, 0), !number);
    assert_int_equal(db_get_int(answer->rows[0], 0, 0), number ? 7 : 0);
    assert_int_equal(db_get_text(answer->rows[0], 0, 1).len, text ? 1 : 0);
    answer_clear(answer);
}

static void a_null_first_does_not_fix_the_type(void **state)
{
    Answer answer = {0};
    ask_maybe(*state, &answer, false, false);
    ask_maybe(*state, &answer, true, false);
    ask_maybe(*state, &answer, false, true);
    ask_maybe(*state, &answer, true, true);
    ask_maybe(*state, &answer, false, false);
}

static void changing_types_are_an_error_of_ours(void **state)
{
    Fixture *fx = *state;
    Answer answer = {0};
    ask_maybe(fx, &answer, true, true);
    DbTxn *txn = db_txn_new(fx->pool);
    DbParams *p = db_txn_add(txn, &MAYBE, NULL);
    db_text(p, STR("7"));
    db_text(p, STR("x"));
    submit_and_wait(fx, txn, &answer);
    assert_int_equal(answer.err.kind, ERROR_CONFIG);
    assert_non_null(strstr(answer.err.text, "'maybe'"));
    ask_maybe(fx, &answer, true, true); // and the pool goes on
}

static void a_number_that_does_not_fit_is_refused(void **state)
{
    Fixture *fx = *state;
    Answer answer = {0};
    DbTxn *txn = db_txn_new(fx->pool);
    DbArray *columns[COLUMN_COUNT];
    make_columns(db_txn_add(txn, &COLUMNS, NULL), columns);
    push_row(columns, 0);
    db_push_int(columns[4], 32768);
    submit_and_wait(fx, txn, &answer);
    assert_int_equal(answer.err.kind, ERROR_PERMANENT);
    assert_string_equal(answer.err.text, "32768 does not fit into 'columns'");
    answer_clear(&answer);
}

static void too_much_data_is_refused(void **state)
{
    Fixture *fx = *state;
    Answer answer = {0};
    size_t len = 10 * 1024 * 1024;
    char *large = calloc(1, len);
    DbTxn *txn = db_txn_new(fx->pool);
    DbArray *columns[COLUMN_COUNT];
    make_columns(db_txn_add(txn, &COLUMNS, NULL), columns);
    for (int i = 0; i < 10; i++) {
        db_push_text(columns[1], str_of(large, len));
    }
    free(large);
    submit_and_wait(fx, txn, &answer);
    assert_int_equal(answer.err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(answer.err.text, "64 MiB"));
    answer_clear(&answer);
}

static void a_megabyte_goes_through_whole(void **state)
{
    Fixture *fx = *state;
    Answer answer = {0};
    size_t len = 5 * 1024 * 1024;
    char *large = malloc(len);
    memset(large, 'x', len);
    DbTxn *txn = db_txn_new(fx->pool);
    DbParams *p = db_txn_add(txn, &MAYBE, NULL);
    db_null(p);
    db_text(p, str_of(large, len));
    submit_and_wait(fx, txn, &answer);
    assert_int_equal(answer.err.kind, ERROR_NONE);
    assert_text(db_get_text(answer.rows[0], 0, 1), large, len);
    free(large);
    answer_clear(&answer);
}

static void bad_text_is_permanent(void **state)
{
    Fixture *fx = *state;
    Answer answer = {0};
    DbTxn *txn = db_txn_new(fx->pool);
    DbParams *p = db_txn_add(txn, &MAYBE, NULL);
    db_null(p);
    db_text(p, STR("\xff"));
    submit_and_wait(fx, txn, &answer);
    assert_int_equal(answer.err.kind, ERROR_PERMANENT);
    answer_clear(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_come_back_as_they_went),
        cmocka_unit_test(nulls_come_back_as_nulls),
        cmocka_unit_test(arrays_of_many_rows_come_back_in_order),
        cmocka_unit_test(nulls_stand_in_arrays),
        cmocka_unit_test(empty_arrays_give_no_rows),
        cmocka_unit_test(a_parameter_is_cast_by_postgres),
        cmocka_unit_test(a_null_first_does_not_fix_the_type),
        cmocka_unit_test(changing_types_are_an_error_of_ours),
        cmocka_unit_test(a_number_that_does_not_fit_is_refused),
        cmocka_unit_test(too_much_data_is_refused),
        cmocka_unit_test(a_megabyte_goes_through_whole),
        cmocka_unit_test(bad_text_is_permanent),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
