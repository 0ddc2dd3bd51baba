// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <libpq-fe.h>

#include "common/base/arena.h"
#include "common/history/rebuild_schema.h"
#include "tests/unit/common/db/migrated.h"

typedef struct Fixture {
    Arena *arena;
    PGconn *super;
    PGconn *writer; // as the archiver, with its statements prepared
    RebuildSchema *schema;
    char lines[4096];
} Fixture;

static const char *test_url(void)
{
    const char *url = getenv("STENTOR_TEST_DATABASE_URL");
    assert_non_null(url);
    return url;
}

static const char *value(Fixture *f, PGconn *pg, const char *sql)
{
    PGresult *res = PQexec(pg, sql);
    ExecStatusType status = PQresultStatus(res);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        fail_msg("%s: %s", sql, PQerrorMessage(pg));
    }
    const char *found = PQntuples(res) == 1 ? PQgetvalue(res, 0, 0) : "";
    found = arena_cstr(f->arena, str_from(found));
    PQclear(res);
    return found;
}

static void note_line(void *ctx, const char *line)
{
    Fixture *f = ctx;
    size_t len = strlen(f->lines);
    snprintf(f->lines + len, sizeof f->lines - len, "%s\n", line);
}

static const char insert_sql[] =
    "INSERT INTO archiver.notifications (created_at, id, tenant_id, channel, status, status_rank)"
    " VALUES (now(), $1, 'acme', 'email', 'sent', 5)";

static int set_up(void **state)
{
    Error err = {0};
    Fixture *f = xcalloc(1, sizeof *f);
    f->arena = arena_new(0);
    f->super = PQconnectdb(test_url());
    f->writer = PQconnectdb(arena_printf(f->arena, "%s&user=stentor_archiver", test_url()));
    assert_int_equal(PQstatus(f->writer), CONNECTION_OK);
    value(
        f, f->super,
        "TRUNCATE archiver.notifications, archiver.delivery_attempts, archiver.positions");
    value(f, f->writer, "SELECT set_config('app.tenant_id', 'acme', false)");
    PQclear(PQprepare(f->writer, "insert", insert_sql, 0, NULL));
    if (!rebuild_schema_open(&f->schema, test_url(), &err)) {
        fail_msg("%s", err.text);
    }
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    Error err;
    rebuild_schema_drop(f->schema, &err);
    rebuild_schema_drop_old(f->schema, &err);
    rebuild_schema_close(f->schema);
    PQfinish(f->super);
    PQfinish(f->writer);
    arena_free(f->arena);
    free(f);
    return 0;
}

static void send_insert(Fixture *f, const char *id)
{
    const char *params[] = {id};
    assert_int_equal(PQsendQueryPrepared(f->writer, "insert", 1, params, NULL, NULL, 0), 1);
}

static void take_insert(Fixture *f)
{
    PGresult *res;
    while ((res = PQgetResult(f->writer)) != NULL) {
        if (PQresultStatus(res) != PGRES_COMMAND_OK) {
            fail_msg("%s", PQerrorMessage(f->writer));
        }
        PQclear(res);
    }
}

static void insert(Fixture *f, const char *id)
{
    send_insert(f, id);
    take_insert(f);
}

static void make(Fixture *f)
{
    Error err = {0};
    if (!rebuild_schema_make(f->schema, note_line, f, &err)) {
        fail_msg("%s\n%s", err.text, f->lines);
    }
}

// Fails when a migration adds to the schema what a rebuild would forget.
static void a_rebuild_knows_everything_that_the_schema_has(void **state)
{
    Fixture *f = *state;
    make(f);
    assert_string_equal(f->lines, "");
}

static void unknown_objects_are_named(void **state)
{
    Fixture *f = *state;
    Error err = {0};
    value(f, f->super, "CREATE VIEW stentor.recent AS SELECT id FROM archiver.notifications");
    value(f, f->super, "CREATE SEQUENCE archiver.numbers");
    assert_false(rebuild_schema_make(f->schema, note_line, f, &err));
    value(f, f->super, "DROP VIEW stentor.recent; DROP SEQUENCE archiver.numbers");
    assert_int_equal(err.kind, ERROR_CONFIG);
    assert_non_null(strstr(f->lines, "view stentor.recent depends on it"));
    assert_non_null(strstr(f->lines, "only in archiver: relation S numbers"));
}

static void only_one_rebuild_at_a_time(void **state)
{
    (void)state;
    RebuildSchema *second = NULL;
    Error err = {0};
    assert_false(rebuild_schema_open(&second, test_url(), &err));
    assert_int_equal(err.kind, ERROR_CONFLICT);
}

static void a_swap_makes_prepared_statements_meet_the_new_tables(void **state)
{
    Fixture *f = *state;
    Error err = {0};
    RebuildPositions live;
    for (int i = 0; i < 8; i++) { // past the five runs after which Postgres may keep a generic plan
        char id[16];
        snprintf(id, sizeof id, "old%d", i);
        insert(f, id);
    }
    make(f);
    assert_true(rebuild_schema_freeze(f->schema, &live, &err));
    assert_true(rebuild_schema_swap(f->schema, &err));
    insert(f, "new");
    assert_string_equal(value(f, f->writer, "SELECT id FROM archiver.notifications"), "new");
    assert_string_equal(value(f, f->super, "SELECT count(*) FROM archiver_old.notifications"), "8");
    assert_true(rebuild_schema_drop_old(f->schema, &err));
    insert(f, "newer");
    assert_string_equal(value(f, f->writer, "SELECT count(*) FROM archiver.notifications"), "2");
}

// Holds `first` of the former schema, and wants its other tables when the drop holds some of them.
// Which one the drop takes first is Postgres's own order: one of two deadlocks at least.
static void drop_against(Fixture *f, const char *first)
{
    Error err = {0};
    PGresult *res;
    make(f);
    RebuildPositions live;
    assert_true(rebuild_schema_freeze(f->schema, &live, &err));
    assert_true(rebuild_schema_swap(f->schema, &err));
    value(f, f->super, "BEGIN");
    value(
        f, f->super,
        "SET LOCAL deadlock_timeout = '20s'"); // the drop's session is the one that ends
    value(f, f->super, arena_printf(f->arena, "LOCK archiver_old.%s IN ACCESS SHARE MODE", first));
    assert_int_equal(
        PQsendQuery(
            f->super,
            "SELECT pg_sleep(0.5); LOCK archiver_old.notifications, archiver_old.delivery_attempts,"
            " archiver_old.positions IN ACCESS SHARE MODE; COMMIT"),
        1);
    if (!rebuild_schema_drop_old(f->schema, &err)) {
        fail_msg("%s", err.text);
    }
    while ((res = PQgetResult(f->super)) != NULL) {
        PQclear(res);
    }
    assert_string_equal(
        value(f, f->super, "SELECT count(*) FROM pg_namespace WHERE nspname = 'archiver_old'"),
        "0");
}

static void a_drop_that_meets_a_deadlock_is_tried_again(void **state)
{
    drop_against(*state, "notifications");
    drop_against(*state, "positions");
}

// The window that would lose rows: a flush that has begun when the swap begins.
static void a_write_that_waits_for_the_swap_goes_into_the_new_tables(void **state)
{
    Fixture *f = *state;
    Error err = {0};
    RebuildPositions live;
    insert(f, "old");
    make(f);
    assert_true(rebuild_schema_freeze(f->schema, &live, &err));
    send_insert(f, "waited");
    assert_int_equal(PQflush(f->writer), 0);
    const char *waiting = "";
    for (int i = 0; i < 200 && strcmp(waiting, "1") != 0; i++) {
        value(f, f->super, "SELECT pg_sleep(0.02)");
        waiting = value(f, f->super, "SELECT count(*) FROM pg_locks WHERE NOT granted");
    }
    assert_string_equal(waiting, "1");
    assert_true(rebuild_schema_swap(f->schema, &err));
    take_insert(f);
    assert_string_equal(value(f, f->super, "SELECT id FROM archiver.notifications"), "waited");
    assert_string_equal(value(f, f->super, "SELECT id FROM archiver_old.notifications"), "old");
}

static void a_month_that_came_meanwhile_is_there_after_the_swap(void **state)
{
    Fixture *f = *state;
    Error err = {0};
    RebuildPositions live;
    make(f);
    value(
        f, f->super,
        "SELECT stentor.ensure_partitions('archiver.notifications', '2020-02-01', '2020-02-01')");
    assert_true(rebuild_schema_freeze(f->schema, &live, &err));
    assert_true(rebuild_schema_swap(f->schema, &err));
    assert_string_not_equal(
        value(f, f->super, "SELECT to_regclass('archiver.notifications_record_y2020m02')"), "");
}

static void older_rows_are_copied_and_differences_found(void **state)
{
    Fixture *f = *state;
    Error err = {0};
    RebuildPositions live;
    int64_t copied = 0, differences = 0;
    insert(f, "one");
    insert(f, "two");
    value(
        f, f->super,
        "INSERT INTO archiver.positions VALUES ('history', 'STATUS', 7, '2026-01-02T00:00:00Z')");
    make(f);
    assert_true(
        rebuild_schema_copy(f->schema, INT64_C(4000000000000000), true, &live, &copied, &err));
    assert_int_equal(copied, 2);
    assert_int_equal(live.sequence[4], 7);
    assert_int_equal(live.stream_created_us[4], INT64_C(1767312000000000));
    assert_true(rebuild_schema_compare(f->schema, "", note_line, f, &differences, &err));
    assert_int_equal(differences, 0);
    value(
        f, f->super,
        "UPDATE " REBUILD_SCHEMA ".notifications SET updated_at = now() + interval '1 h'");
    value(f, f->super, "UPDATE " REBUILD_SCHEMA ".notifications SET reason = 'x' WHERE id = 'two'");
    assert_true(rebuild_schema_compare(f->schema, "", note_line, f, &differences, &err));
    assert_int_equal(differences, 1);
    assert_string_equal(f->lines, "notifications two acme: differs\n");
    assert_true(rebuild_schema_compare(f->schema, "other,two", note_line, f, &differences, &err));
    assert_int_equal(differences, 0);
}

// A rebuild folds nothing into a sealed period: its rows and those that came late stay as they are.
static void what_is_sealed_is_carried_over(void **state)
{
    Fixture *f = *state;
    Error err = {0};
    RebuildPositions live;
    int64_t copied = 1, differences = 1;
    insert(f, "sealed");
    value(
        f, f->super,
        "INSERT INTO archiver.late_notifications SELECT * FROM archiver.notifications;"
        "INSERT INTO stentor.sealed_periods SELECT 'R', date_trunc('month', now(), 'UTC'),"
        " date_trunc('month', now(), 'UTC') + interval '1 month'");
    make(f);
    assert_true(rebuild_schema_copy(f->schema, 0, true, &live, &copied, &err));
    assert_int_equal(copied, 0);
    assert_true(rebuild_schema_compare(f->schema, "", note_line, f, &differences, &err));
    assert_int_equal(differences, 0);
    assert_true(rebuild_schema_freeze(f->schema, &live, &err));
    assert_true(rebuild_schema_swap(f->schema, &err));
    assert_string_equal(
        value(
            f, f->super,
            "SELECT (SELECT count(*) FROM archiver.notifications) || ' ' || (SELECT count(*) FROM"
            " archiver.late_notifications) || ' ' || (SELECT count(*) FROM"
            " archiver_old.notifications)"),
        "1 1 1");
    value(
        f, f->super, "DELETE FROM stentor.sealed_periods; DELETE FROM archiver.late_notifications");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_rebuild_knows_everything_that_the_schema_has),
        TEST(unknown_objects_are_named),
        TEST(only_one_rebuild_at_a_time),
        TEST(a_swap_makes_prepared_statements_meet_the_new_tables),
        TEST(a_drop_that_meets_a_deadlock_is_tried_again),
        TEST(a_write_that_waits_for_the_swap_goes_into_the_new_tables),
        TEST(a_month_that_came_meanwhile_is_there_after_the_swap),
        TEST(older_rows_are_copied_and_differences_found),
        TEST(what_is_sealed_is_carried_over),
    };
    return cmocka_run_group_tests(tests, migrate_all, NULL);
}
