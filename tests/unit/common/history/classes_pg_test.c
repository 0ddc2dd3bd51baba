// SPDX-License-Identifier: Apache-2.0
// History by class and period: where rows go, what a sealed period does to them, and that a
// database of the shape before is converted.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/common/history/history_flush.h"

// All of one millisecond, of 2025-11-20.
#define RECORD_ID "ntf_01KAGTQ5M0R00000000000000A"
#define STANDARD_ID "ntf_01KAGTQ5M0S00000000000000A"
#define BRIEF_ID "ntf_01KAGTQ5M0B00000000000000A"
#define PARTITION_OF "SELECT tableoid::regclass FROM archiver.%s WHERE %s = '%s'"

static const char *partition_of(Fixture *f, const char *table, const char *column, const char *id)
{
    return value(f, arena_printf(f->arena, PARTITION_OF, table, column, id));
}

// ---- the shape before ----

static void link_files(const char *folder, const char *schema, const char *const *files)
{
    char path[300], target[500];
    snprintf(path, sizeof path, "%s/%s", folder, schema);
    assert_int_equal(mkdir(path, 0700), 0);
    for (; *files != NULL; files++) {
        snprintf(path, sizeof path, "%s/%s/%s", folder, schema, *files);
        snprintf(target, sizeof target, STENTOR_SOURCE_DIR "/migrations/%s/%s", schema, *files);
        assert_int_equal(symlink(target, path), 0);
    }
}

static void link_all(const char *folder)
{
    static const char *const before[] = {
        "0001_history.sql", "0002_questions.sql", "0003_audit.sql", "0004_retention.sql", NULL};
    for (const char *const *schema = migrate_schemas; *schema != NULL; schema++) {
        char path[300], target[300];
        if (strcmp(*schema, "archiver") == 0) {
            link_files(folder, *schema, before);
            continue;
        }
        snprintf(path, sizeof path, "%s/%s", folder, *schema);
        snprintf(target, sizeof target, STENTOR_SOURCE_DIR "/migrations/%s", *schema);
        assert_int_equal(symlink(target, path), 0);
    }
}

static void migrate_the_set_before(const char *url)
{
    Error err = {0};
    MigrateReport report;
    char folder[] = "/tmp/classes_XXXXXX";
    assert_non_null(mkdtemp(folder));
    link_all(folder);
    MigrateJob job = {
        .url = url, .folder = folder, .schemas = migrate_schemas, .role = MIGRATE_OWNER};
    if (!db_bootstrap(url, STENTOR_SOURCE_DIR "/migrations", &err) ||
        !db_migrate(&job, &report, &err)) {
        fail_msg("%s", err.text);
    }
}

static void run_sql(PGconn *super, const char *text)
{
    PGresult *res = PQexec(super, text);
    ExecStatusType status = PQresultStatus(res);
    PQclear(res);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        fail_msg("%s: %s", text, PQerrorMessage(super));
    }
}

static int fill_the_shape_before(void **state)
{
    (void)state;
    migrate_the_set_before(test_url());
    PGconn *super = PQconnectdb(test_url());
    run_sql(
        super, "SELECT stentor.ensure_partitions(t::regclass, '2019-03-01', '2019-03-01')"
               " FROM unnest('{archiver.notifications,archiver.delivery_attempts}'::text[]) AS t");
    run_sql(
        super,
        "INSERT INTO archiver.notifications (created_at, id, tenant_id, channel, status,"
        " status_rank, template, batch_id) SELECT CASE id WHEN 'x' THEN '2019-03-04' ELSE now()"
        " END, id, 'acme', 'email', 'sent', 5, 't', 'b' FROM"
        " unnest(ARRAY['" RECORD_ID "', '" STANDARD_ID "', '" BRIEF_ID "', 'x']) AS i (id);"
        "INSERT INTO archiver.delivery_attempts (created_at, notification_id, attempt_number, id,"
        " tenant_id, channel, vendor, outcome) SELECT created_at, id, 1, 'dat_1', tenant_id,"
        " 'email', 'smtp', 'accepted' FROM archiver.notifications;"
        "CREATE TABLE public.before AS SELECT to_jsonb(n) AS value FROM archiver.notifications n"
        " UNION ALL SELECT to_jsonb(a) FROM archiver.delivery_attempts a");
    PQfinish(super);
    return 0;
}

static void check(PGconn *super, const char *text, const char *wanted)
{
    PGresult *res = PQexec(super, text);
    if (PQresultStatus(res) != PGRES_TUPLES_OK || PQntuples(res) != 1) {
        fail_msg("%s: %s", text, PQerrorMessage(super));
    }
    assert_string_equal(PQgetvalue(res, 0, 0), wanted);
    PQclear(res);
}

static void a_database_of_the_shape_before_is_converted(void **state)
{
    migrate_all(state);
    PGconn *super = PQconnectdb(test_url());
    check(super, "SELECT count(*) FROM public.before", "8");
    check(
        super,
        "SELECT count(*) FROM public.before FULL JOIN (SELECT to_jsonb(n) -"
        " '{retention_class,source_event_type,digest_window_id,copy_of,from_domain,provider,gate_"
        "trace}'::"
        "text[] AS value"
        " FROM archiver.notifications n UNION ALL SELECT to_jsonb(a) -"
        " '{retention_class,retry_after_ms,segments,cost_micros,currency,calling_code,"
        "price_category,credential,route}'::text[] FROM archiver.delivery_attempts a) AS now"
        " USING (value)",
        "8");
    check(
        super, "SELECT string_agg(retention_class, '' ORDER BY id) FROM archiver.notifications",
        "BRSR");
    check(
        super,
        "SELECT tableoid::regclass FROM archiver.delivery_attempts WHERE notification_id = 'x'",
        "archiver.delivery_attempts_record_y2019m03");
    check(super, "SELECT count(*) FROM pg_namespace WHERE nspname = 'archiver_before'", "0");
    PQfinish(super);
}

// ---- classes ----

static void request(Fixture *f, const char *id)
{
    fold_ok(f, request_message(f->arena, request_new(f->arena, id)));
}

static void sent(Fixture *f, const char *id)
{
    StatusEvent *event = status_new(f->arena, id, STENTOR__V1__STATUS__STATUS_SENT, AT(3));
    attempt_new(f->arena, event, 1, STENTOR__V1__OUTCOME__OUTCOME_ACCEPTED);
    fold_ok(f, status_message(f->arena, event));
}

static void each_class_has_its_tables(void **state)
{
    Fixture *f = *state;
    static const char *const rows[][2] = {
        {RECORD_ID, "record"}, {STANDARD_ID, "standard"}, {BRIEF_ID, "brief"}, {NTF_ID, "record"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sent(f, rows[i][0]);
    }
    flush_with_months(f);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_string_equal(
            partition_of(f, "notifications", "id", rows[i][0]),
            arena_printf(f->arena, "archiver.notifications_%s_y2025m11", rows[i][1]));
        assert_string_equal(
            partition_of(f, "delivery_attempts", "notification_id", rows[i][0]),
            arena_printf(f->arena, "archiver.delivery_attempts_%s_y2025m11", rows[i][1]));
    }
}

static void the_class_in_sql_is_that_of_the_program(void **state)
{
    Fixture *f = *state;
    static const char *const ids[] = {
        RECORD_ID,
        STANDARD_ID,
        BRIEF_ID,
        NTF_ID,
        "",
        "S",
        "ntf_01KAGTQ5M0s00000000000000A",
        "1KAGTQ5M0S00000000000000A",
        "01KAGTQ5M0S00000000000000A"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        char code[] = {retention_class_code(retention_class_of_id(str_from(ids[i]))), '\0'};
        assert_string_equal(
            value(f, arena_printf(f->arena, "SELECT stentor.retention_class('%s')", ids[i])), code);
    }
}

// ---- sealed periods ----

static void seal(Fixture *f, const char *class, const char *code)
{
    sql(f, arena_printf(
               f->arena,
               "INSERT INTO archive.units (id, kind, class, starts_at, ends_at, owner_epoch)"
               " VALUES ('notifications/%s/2025-11', 'notifications', '%s', '2025-11-01Z',"
               " '2025-12-01Z', 0); UPDATE archive.units SET state = 'sealed' WHERE class = '%s'",
               class, code, code));
}

static void what_comes_for_a_sealed_period_goes_to_the_late_tables(void **state)
{
    Fixture *f = *state;
    request(f, STANDARD_ID);
    request(f, RECORD_ID);
    flush_with_months(f);
    seal(f, "standard", "S");
    const char *written = value(f, "SELECT xmin FROM archiver.notifications_standard_y2025m11");
    StatusEvent *opened =
        status_new(f->arena, STANDARD_ID, STENTOR__V1__STATUS__STATUS_OPENED, AT(9));
    fold_ok(f, status_message(f->arena, opened));
    sent(f, RECORD_ID);
    flush_with_months(f);
    sent(f, STANDARD_ID); // merged there as it would be here, in any order
    flush_with_months(f);
    assert_string_equal(
        value(f, "SELECT xmin FROM archiver.notifications_standard_y2025m11"), written);
    assert_string_equal(
        value(
            f, "SELECT concat_ws('|', retention_class, id, status, extract(epoch FROM opened_at -"
               " created_at), extract(epoch FROM sent_at - created_at)) FROM"
               " archiver.late_notifications"),
        "S|" STANDARD_ID "|opened|9.000000|3.000000");
    assert_string_equal(
        value(
            f, "SELECT concat_ws('|', retention_class, notification_id, outcome, updated_at >"
               " now() - interval '1 minute') FROM archiver.late_attempts"),
        "S|" STANDARD_ID "|accepted|t");
    assert_string_equal(
        value(f, "SELECT status FROM archiver.notifications WHERE id = '" RECORD_ID "'"), "sent");
    assert_string_equal(
        value(
            f, "SELECT status FROM stentor.notification_seen('demo', (SELECT created_at FROM"
               " archiver.late_notifications), '" STANDARD_ID "')"),
        "opened");
    assert_string_equal(
        value(
            f, "SELECT string_agg(status || reached, ' ' ORDER BY id) FROM"
               " stentor.audit_history('2025-11-01', '2025-12-01', NULL, '-infinity', '', '',"
               " 10)"),
        "sent5 opened21");
    assert_string_equal(
        value(
            f, "SELECT count(*) FROM stentor.audit_attempts('2025-11-01', '2025-12-01', NULL,"
               " '-infinity', '', 0::smallint, '', 10)"),
        "2");
    assert_string_equal(
        value(
            f, "SELECT string_agg(status || notifications, ' ' ORDER BY status) FROM"
               " stentor.batch_totals('demo', 'dbt_1', '2025-11-01')"),
        "opened1 sent1");
}

static void a_removed_period_is_not_made_again_and_stops_no_flush(void **state)
{
    Fixture *f = *state;
    request(f, STANDARD_ID);
    flush_with_months(f);
    seal(f, "standard", "S");
    sql(f, "DROP TABLE archiver.notifications_standard_y2025m11,"
           " archiver.delivery_attempts_standard_y2025m11");
    f->months = (HistoryMonths){0};
    sent(f, STANDARD_ID);
    flush_with_months(f);
    assert_string_equal(
        value(f, "SELECT to_regclass('archiver.notifications_standard_y2025m11') IS NULL"), "t");
    assert_string_equal(value(f, "SELECT status FROM archiver.late_notifications"), "sent");
    assert_string_equal(value(f, "SELECT count(*) FROM archiver.late_attempts"), "1");
}

// The flush took nothing for open that is sealed by the time that it gets its tables.
static void a_flush_that_waited_for_the_sealing_sees_it(void **state)
{
    Fixture *f = *state;
    request(f, STANDARD_ID);
    request(f, RECORD_ID);
    for (int i = 0; i < 8; i++) { // past the runs after which Postgres may keep a generic plan
        request(f, STANDARD_ID);
        flush_with_months(f);
    }
    sql(f, "BEGIN");
    seal(f, "standard", "S");
    sent(f, STANDARD_ID);
    DbTxn *txn = db_txn_new(f->pool);
    history_write(&f->sql, f->fold, txn);
    f->done = false;
    db_txn_submit(txn, on_flush_done, f);
    const char *waiting = "";
    for (int i = 0; i < 500 && strcmp(waiting, "1") != 0; i++) {
        uv_run(&f->loop, UV_RUN_NOWAIT);
        sql(f, "SELECT pg_sleep(0.01)");
        waiting = value(f, "SELECT count(*) FROM pg_locks WHERE NOT granted");
    }
    assert_string_equal(waiting, "1");
    sql(f, "COMMIT");
    run_until_done(f);
    assert_int_equal(f->kind, ERROR_NONE);
    fold_clear(f->fold);
    assert_string_equal(value(f, "SELECT status FROM archiver.late_notifications"), "sent");
    assert_string_equal(
        value(f, "SELECT status FROM archiver.notifications WHERE retention_class = 'S'"),
        "queued");
}

static void nothing_is_sealed_while_a_flush_is_in_the_air(void **state)
{
    Fixture *f = *state;
    PGconn *flush = PQconnectdb(test_url());
    run_sql(flush, "BEGIN; LOCK TABLE archiver.notifications IN ROW EXCLUSIVE MODE");
    sql(f, "INSERT INTO archive.units (id, kind, class, starts_at, ends_at, owner_epoch) VALUES"
           " ('notifications/brief/2025-11', 'notifications', 'B', '2025-11-01Z', '2025-12-01Z',"
           " 0)");
    PGresult *res = PQexec(f->super, "UPDATE archive.units SET state = 'sealed'");
    assert_string_equal(PQresultErrorField(res, PG_DIAG_SQLSTATE), "55P03"); // lock not available
    PQclear(res);
    run_sql(
        flush, "COMMIT; SELECT pg_advisory_lock(hashtextextended('stentor.rebuild.history', 0))");
    res = PQexec(f->super, "UPDATE archive.units SET state = 'sealed'");
    assert_non_null(strstr(PQresultErrorMessage(res), "a rebuild of history runs"));
    PQclear(res);
    PQfinish(flush);
    assert_string_equal(value(f, "SELECT count(*) FROM stentor.sealed_periods"), "0");
}

// ---- months and days ----

static const char *made(Fixture *f, const char *since, const char *until)
{
    return value(
        f, arena_printf(
               f->arena,
               "SELECT stentor.ensure_partitions('archiver.notifications_brief', '%s', '%s')",
               since, until));
}

static void a_class_may_have_days(void **state)
{
    Fixture *f = *state;
    sql(f, "SELECT stentor.set_partition_periods('{B}', '{day}')");
    assert_string_equal(made(f, "2024-02-10Z", "2024-02-10Z"), "29");
    assert_string_equal(made(f, "2024-02-01Z", "2024-02-29Z"), "0");
    assert_string_equal(
        value(
            f, "SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname ="
               " 'notifications_brief_y2024m02d29'"),
        "FOR VALUES FROM ('2024-02-29 00:00:00+00') TO ('2024-03-01 00:00:00+00')");
    sql(f, "SELECT stentor.set_partition_periods('{B}', '{month}')");
    assert_string_equal(made(f, "2024-02-01Z", "2024-03-01Z"), "1"); // March, as a month
    sql(f, "DROP TABLE archiver.notifications_brief_y2024m02d11");
    assert_string_equal(made(f, "2024-02-01Z", "2024-02-01Z"), "1"); // of a month in days, a day
    sql(f, "SELECT stentor.set_partition_periods('{B}', '{day}')");
    assert_string_equal(made(f, "2024-03-01Z", "2024-03-01Z"), "0");
}

static void days_are_made_45_days_ahead(void **state)
{
    Fixture *f = *state;
    sql(f, "DROP TABLE archiver.notifications_brief; CREATE TABLE archiver.notifications_brief"
           " PARTITION OF archiver.notifications FOR VALUES IN ('B') PARTITION BY RANGE"
           " (created_at); ALTER TABLE archiver.notifications_brief OWNER TO stentor_owner;"
           " SELECT stentor.set_partition_periods('{B}', '{day}');"
           "SELECT stentor.ensure_partitions('archiver.notifications', now(), now() + interval '14"
           " months')");
    assert_string_equal(
        value(
            f, "SELECT count(*) FROM pg_inherits WHERE inhparent ="
               " 'archiver.notifications_brief'::regclass AND inhrelid::regclass::text >="
               " 'archiver.notifications_brief_' || to_char(now() AT TIME ZONE 'UTC',"
               " '\"y\"YYYY\"m\"MM\"d\"DD')"),
        "46");
}

static void a_name_that_is_taken_stops_nothing(void **state)
{
    Fixture *f = *state;
    assert_string_equal(made(f, "2024-05-01Z", "2024-05-01Z"), "1");
    sql(f, "ALTER TABLE archiver.notifications_brief DETACH PARTITION"
           " archiver.notifications_brief_y2024m05");
    assert_string_equal(made(f, "2024-05-01Z", "2024-05-01Z"), "1");
    assert_string_equal(
        value(f, "SELECT to_regclass('archiver.notifications_brief_y2024m05_2') IS NOT NULL"), "t");
    sql(f, "DROP TABLE archiver.notifications_brief_y2024m05,"
           " archiver.notifications_brief_y2024m05_2");
}

static int set_up_classes(void **state)
{
    set_up(state);
    Fixture *f = *state;
    sql(f, "DELETE FROM archiver.late_notifications; DELETE FROM archiver.late_attempts;"
           " DELETE FROM archive.units; DELETE FROM stentor.sealed_periods;"
           " SELECT stentor.set_partition_periods('{B}', '{month}')");
    return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_classes, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_database_of_the_shape_before_is_converted),
        TEST(each_class_has_its_tables),
        TEST(the_class_in_sql_is_that_of_the_program),
        TEST(what_comes_for_a_sealed_period_goes_to_the_late_tables),
        TEST(a_removed_period_is_not_made_again_and_stops_no_flush),
        TEST(a_flush_that_waited_for_the_sealing_sees_it),
        TEST(nothing_is_sealed_while_a_flush_is_in_the_air),
        TEST(a_class_may_have_days),
        TEST(a_name_that_is_taken_stops_nothing),
        TEST(days_are_made_45_days_ahead), // last: it takes the partitions away
    };
    return cmocka_run_group_tests(tests, fill_the_shape_before, NULL);
}
