// SPDX-License-Identifier: Apache-2.0
// The functions of migrations/*/*_retention.sql: what they drop, what they never drop, and that
// they go on where they were.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

#define ULID "01KAGTQ5M0" // 2025-11-20T14:29:28.32Z

static int migrate_once(void **state)
{
    migrate_these(migrate_schemas);
    PGconn *admin = admin_connect();
    admin_exec(
        admin, "SELECT stentor.ensure_partitions('dispatcher.ledger', now() - interval '9 years', "
               "now()), stentor.ensure_partitions('archiver.notifications', now() - interval '3 "
               "months', now()), stentor.ensure_partitions('archiver.delivery_attempts', now() - "
               "interval '3 months', now())");
    // A notification of that age: its id holds its time, as those of the pipeline do.
    admin_exec(
        admin,
        "CREATE FUNCTION public.aged(age interval, n integer) RETURNS text LANGUAGE sql AS $$ "
        "SELECT 'ntf_' || string_agg(substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (floor(extract("
        "epoch FROM date_trunc('day', now()) - age) * 1000)::bigint >> (5 * (9 - i)) & "
        "31)::integer + 1, 1), '' "
        "ORDER BY i) || lpad(n::text, 16, '0') FROM generate_series(0, 9) i $$");
    admin_exec(
        admin,
        "CREATE PROCEDURE public.tell(id text, tenant text, status text, category text, touched "
        "interval) LANGUAGE sql AS $$ INSERT INTO archiver.notifications (created_at, "
        "retention_class, id, tenant_id, channel, category, status, status_rank, updated_at) "
        "VALUES (ingest.id_time(id), CASE category WHEN 'marketing' THEN 'S' ELSE 'R' END, id, "
        "tenant, 'email', category, status, 5, now() - touched); INSERT INTO "
        "archiver.delivery_attempts (created_at, retention_class, notification_id, "
        "attempt_number, id, tenant_id, channel, vendor, outcome) VALUES (ingest.id_time(id), "
        "CASE category WHEN 'marketing' THEN 'S' ELSE 'R' END, id, 1, 'dat_1', tenant, 'email', "
        "'smtp', 'accepted') $$");
    *state = admin;
    return 0;
}

static int disconnect(void **state)
{
    PQfinish(*state);
    return 0;
}

static void check(PGconn *admin, const char *sql, const char *wanted)
{
    const char *seen = admin_value(admin, sql);
    if (strcmp(seen, wanted) != 0) {
        fail_msg("%s\n  wanted '%s', seen '%s'", sql, wanted, seen);
    }
}

// Calls the function as its service until it says that that was all; returns how many it dropped.
static int drop(
    PGconn *admin, const char *role, const char *function, const char *tenant, const char *keep,
    int at_most)
{
    char sql[512], go_on[256] = "";
    int dropped = 0;
    snprintf(sql, sizeof sql, "SET ROLE %s", role);
    admin_exec(admin, sql);
    for (int turn = 0; turn < 100; turn++) {
        snprintf(
            sql, sizeof sql,
            "SELECT dropped || ' ' || coalesce(go_on, '') FROM %s(%s, '%s', '%s', %d)", function,
            tenant, keep, go_on, at_most);
        const char *answer = admin_value(admin, sql);
        int64_t count = 0;
        const char *rest = strchr(answer, ' ');
        assert_true(str_to_i64(str_of(answer, (size_t)(rest - answer)), &count));
        dropped += (int)count;
        snprintf(go_on, sizeof go_on, "%s", rest + 1);
        if (go_on[0] == '\0') {
            break;
        }
    }
    assert_string_equal(go_on, "");
    admin_exec(admin, "RESET ROLE");
    return dropped;
}

static void the_time_in_an_id_is_read(void **state)
{
    check(
        *state, "SELECT ingest.id_time('ntf_" ULID "000000000000000A') = '2025-11-20T14:29:28.32Z'",
        "t");
}

// ---- the accept log ----

static void accepted(
    PGconn *admin, int id, const char *tenant, const char *age, const char *published)
{
    char sql[512];
    snprintf(
        sql, sizeof sql,
        "INSERT INTO ingest.accept_log (accept_id, tenant_id, accepted_at, notification_ids, "
        "events, published_at) OVERRIDING SYSTEM VALUE VALUES (%d, '%s', now() - interval '%s', "
        "ARRAY[public.aged('%s', %d)], '', %s)",
        id, tenant, age, age, id, published);
    admin_exec(admin, sql);
}

static void tell(PGconn *admin, int n, const char *age, const char *tenant, const char *status)
{
    char sql[512];
    snprintf(
        sql, sizeof sql,
        "CALL public.tell(public.aged('%s', %d), '%s', '%s', 'billing', '40 days')", age, n, tenant,
        status);
    admin_exec(admin, sql);
}

static void accepted_rows_go_when_all_of_them_has_ended(void **state)
{
    PGconn *admin = *state;
    admin_exec(
        admin, "TRUNCATE ingest.accept_log; DELETE FROM archiver.notifications; DELETE FROM "
               "archiver.delivery_attempts");
    accepted(admin, 1, "acme", "40 days", "now()");
    tell(admin, 1, "40 days", "acme", "sent");
    accepted(admin, 2, "acme", "40 days", "now()"); // waits for its time
    tell(admin, 2, "40 days", "acme", "scheduled");
    accepted(admin, 3, "acme", "40 days", "NULL"); // not published
    tell(admin, 3, "40 days", "acme", "failed");
    accepted(admin, 4, "acme", "100 days", "now()"); // history does not know it
    accepted(admin, 5, "acme", "500 days", "now()"); // nor this one, and nothing waits for so long
    accepted(admin, 6, "acme", "40 days", "now()");  // known of another tenant only
    tell(admin, 6, "40 days", "globex", "sent");
    accepted(admin, 7, "globex", "40 days", "now()");
    tell(admin, 7, "40 days", "globex", "bounced");
    accepted(admin, 8, "acme", "40 days", "now()"); // one of two
    tell(admin, 8, "40 days", "acme", "delivered");
    admin_exec(
        admin, "UPDATE ingest.accept_log SET notification_ids = notification_ids || "
               "public.aged('40 days', 2) WHERE accept_id = 8");
    accepted(admin, 9, "acme", "30 days", "now()"); // young
    tell(admin, 9, "30 days", "acme", "sent");

    assert_int_equal(
        drop(admin, "stentor_ingest", "ingest.drop_accepted", "'globex'", "35 days", 2), 1);
    check(admin, "SELECT count(*) FROM ingest.accept_log WHERE accept_id = 7", "0");
    assert_int_equal(
        drop(admin, "stentor_ingest", "ingest.drop_accepted", "NULL", "35 days", 2), 2);
    check(
        admin, "SELECT string_agg(accept_id::text, ' ' ORDER BY accept_id) FROM ingest.accept_log",
        "2 3 4 6 8 9");
    assert_int_equal(
        drop(admin, "stentor_ingest", "ingest.drop_accepted", "NULL", "35 days", 2), 0);
    check(
        admin,
        "SELECT ingest.audit_since() BETWEEN now() - interval '36 days' AND now() - interval '34 "
        "days'",
        "t");
}

// History may be in Postgres for a shorter time than the accept log.
static void accepted_rows_go_when_history_was_archived_or_removed(void **state)
{
    PGconn *admin = *state;
    admin_exec(
        admin, "TRUNCATE ingest.accept_log; DELETE FROM archiver.notifications; DELETE FROM "
               "archiver.delivery_attempts");
    for (int i = 1; i <= 3; i++) {
        accepted(admin, i, "acme", i == 3 ? "40 days" : "60 days", "now()");
    }
    tell(admin, 2, "60 days", "acme", "scheduled"); // still there, and waits
    assert_int_equal(
        drop(admin, "stentor_ingest", "ingest.drop_accepted", "NULL", "35 days", 2), 0);
    admin_exec(
        admin, "INSERT INTO stentor.sealed_periods VALUES ('R', now() - interval '70 days', now() "
               "- interval '50 days'), ('S', now() - interval '70 days', now())");
    assert_int_equal(
        drop(admin, "stentor_ingest", "ingest.drop_accepted", "NULL", "35 days", 2), 1);
    check(
        admin, "SELECT string_agg(accept_id::text, ' ' ORDER BY accept_id) FROM ingest.accept_log",
        "2 3");
    admin_exec(admin, "INSERT INTO stentor.history_removed VALUES ('R', now() - interval '38 d')");
    assert_int_equal(
        drop(admin, "stentor_ingest", "ingest.drop_accepted", "NULL", "35 days", 2), 1);
    check(admin, "SELECT accept_id FROM ingest.accept_log", "2");
    admin_exec(admin, "DELETE FROM stentor.sealed_periods; DELETE FROM stentor.history_removed");
}

static void one_process_at_a_time(void **state)
{
    PGconn *admin = *state;
    PGconn *other = admin_connect();
    admin_exec(other, "BEGIN; SELECT pg_advisory_xact_lock(hashtext('ingest.retention'))");
    check(
        admin, "SELECT dropped || ' ' || go_on FROM ingest.drop_accepted(NULL, '35 days', '7', 10)",
        "-1 7");
    PQfinish(other);
}

// ---- batches, resends ----

static void members_go_after_their_batch_and_batches_much_later(void **state)
{
    PGconn *admin = *state;
    admin_exec(admin, "TRUNCATE ingest.batches CASCADE");
    admin_exec(
        admin,
        "INSERT INTO ingest.batches (id, tenant_id, name, category, channel, priority, template, "
        "template_version, locale, rate_per_second, step, status, created_by, created_at, "
        "ended_at) SELECT id, 'acme', id, 'marketing', 'email', 'low', 't', '1.0.0', '', 0, 1, "
        "status, 'key', now() - age::interval, CASE WHEN ended THEN now() - age::interval END FROM "
        "(VALUES ('dbt_over', 'completed', '40 days', true), ('dbt_young', 'completed', '30 days', "
        "true), ('dbt_draft', 'draft', '9 years', false), ('dbt_running', 'running', '1 year', "
        "false), ('dbt_ancient', 'cancelled', '8 years', true)) AS v (id, status, age, ended)");
    admin_exec(
        admin, "INSERT INTO ingest.batch_chunks (batch_id, number, tenant_id, part, ordinal, "
               "first_index, members) SELECT id, n, 'acme', 0, n, 0, 1 FROM ingest.batches, "
               "generate_series(1, 7) n");
    admin_exec(
        admin, "INSERT INTO ingest.batch_parts (batch_id, part, tenant_id, hash, members, broken) "
               "SELECT id, 0, 'acme', '', 1, 0 FROM ingest.batches");
    assert_int_equal(
        drop(admin, "stentor_ingest", "ingest.drop_batch_members", "'globex'", "35 days", 3), 0);
    assert_int_equal(
        drop(admin, "stentor_ingest", "ingest.drop_batches", "NULL", "84 months", 3), 0);
    assert_int_equal(
        drop(admin, "stentor_ingest", "ingest.drop_batch_members", "NULL", "35 days", 3), 16);
    check(
        admin,
        "SELECT string_agg(DISTINCT batch_id, ' ' ORDER BY batch_id) FROM ingest.batch_chunks",
        "dbt_draft dbt_running dbt_young");
    assert_int_equal(
        drop(admin, "stentor_ingest", "ingest.drop_batches", "NULL", "84 months", 3), 1);
    check(admin, "SELECT count(*) FROM ingest.batches WHERE id = 'dbt_ancient'", "0");
    check(admin, "SELECT count(*) FROM ingest.batches", "4");
}

static void notes_of_resends_outlive_dead_letters(void **state)
{
    PGconn *admin = *state;
    admin_exec(admin, "TRUNCATE ingest.resends");
    admin_exec(
        admin, "INSERT INTO ingest.resends SELECT 'acme', n::text, 'ntf_1', n, '', now() - n * "
               "interval '1 day' + interval '1 hour' FROM generate_series(95, 104) n");
    assert_int_equal(
        drop(admin, "stentor_ingest", "ingest.drop_resends", "NULL", "100 days", 2), 4);
    check(admin, "SELECT max(letter_sequence) FROM ingest.resends", "100");
}

// ---- the ledger ----

static void attempts_that_ended_long_ago_go_and_open_ones_stay(void **state)
{
    PGconn *admin = *state;
    admin_exec(admin, "TRUNCATE dispatcher.ledger");
    admin_exec(
        admin,
        "INSERT INTO dispatcher.ledger (created_at, notification_id, attempt, tenant_id, state, "
        "owner, lease_until, claimed_at, finished_at) SELECT now() - made::interval, id, attempt, "
        "tenant, state, 'p', now(), now() - made::interval, now() - ended::interval FROM (VALUES "
        "('120 days', 'a', 1, 'acme', 'deferred', '120 days'), ('120 days', 'a', 2, 'acme', "
        "'sent', '119 days'), ('300 days', 'b', 1, 'acme', 'parked', '299 days'), ('300 days', "
        "'c', 1, 'acme', 'claimed', NULL), ('300 days', 'd', 1, 'acme', 'failed', '20 days'), "
        "('120 days', 'e', 1, 'globex', 'sent', '119 days'), ('50 days', 'f', 1, 'acme', 'sent', "
        "'50 days')) AS v (made, id, attempt, tenant, state, ended)");
    const char *left = "SELECT string_agg(notification_id || attempt, ' ' ORDER BY notification_id,"
                       " attempt) FROM dispatcher.ledger";
    assert_int_equal(
        drop(admin, "stentor_dispatcher", "dispatcher.drop_ended", "'globex'", "100 days", 1), 1);
    check(admin, left, "a1 a2 b1 c1 d1 f1");
    assert_int_equal(
        drop(admin, "stentor_dispatcher", "dispatcher.drop_ended", "NULL", "100 days", 1), 2);
    check(admin, left, "b1 c1 d1 f1");
    check(
        admin,
        "SELECT dispatcher.audit_since() < now() - interval '99 days' AND "
        "dispatcher.audit_since() > now() - interval '101 days'",
        "t");
    check(
        admin,
        "SELECT count(*) > 60 FROM pg_inherits WHERE inhparent = 'dispatcher.ledger'::regclass",
        "t");
}

// ---- history ----

static int expire(PGconn *admin, const char *keep, const char *tenant)
{
    return drop(admin, "stentor_archiver", "stentor.drop_expired_history", tenant, keep, 2);
}

static void empty_history(PGconn *admin)
{
    admin_exec(
        admin,
        "DELETE FROM archiver.notifications; DELETE FROM archiver.delivery_attempts;"
        " DELETE FROM stentor.history_removed; DELETE FROM stentor.sealed_periods;"
        " SELECT stentor.ensure_partitions(t::regclass, now() - m * interval '1 month', now() - m"
        " * interval '1 month') FROM unnest(ARRAY[23, 26, 27, 86, 100]) m,"
        " unnest(ARRAY['archiver.notifications', 'archiver.delivery_attempts']) t");
}

static const char months_of[] =
    "SELECT count(*) FROM pg_inherits WHERE inhparent = 'archiver.%s_%s'::regclass AND"
    " substring(pg_get_expr((SELECT relpartbound FROM pg_class WHERE oid = inhrelid), inhrelid)"
    " FROM 'TO \\(''([^'']+)')::timestamptz <= now() - interval '%s'";

static void check_months(
    PGconn *admin, const char *table, const char *class, const char *age, const char *wanted)
{
    char sql[512];
    snprintf(sql, sizeof sql, months_of, table, class, age);
    check(admin, sql, wanted);
}

static void whole_partitions_go_past_the_span_of_their_class(void **state)
{
    PGconn *admin = *state;
    empty_history(admin);
    admin_exec(
        admin,
        "DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM (VALUES "
        "(1, '26 months', 'acme', 'opened', 'marketing'), "
        "(2, '26 months', 'acme', 'sent', 'billing'), "
        "(3, '86 months', 'acme', 'sent', 'billing'), "
        "(4, '26 months', 'globex', 'failed', 'marketing'), "
        "(5, '23 months', 'acme', 'sent', 'marketing'), "
        "(6, '100 months', 'acme', 'sent', NULL)) AS v (n, age, tenant, status, category) LOOP "
        "CALL public.tell(public.aged(r.age::interval, r.n), r.tenant, r.status, r.category, '1 "
        "year'); END LOOP; END $$");
    assert_int_equal(expire(admin, "S=24 months", "NULL"), 2);
    assert_int_equal(expire(admin, "R=84 months", "NULL"), 2);
    check(
        admin,
        "SELECT string_agg(right(id, 1), ' ' ORDER BY right(id, 1)) FROM archiver.notifications",
        "2 5");
    check(
        admin,
        "SELECT string_agg(right(notification_id, 1), ' ' ORDER BY right(notification_id, 1)) FROM "
        "archiver.delivery_attempts",
        "2 5");
    check_months(admin, "notifications", "standard", "24 months", "0");
    check_months(admin, "delivery_attempts", "standard", "24 months", "0");
    check_months(admin, "notifications", "record", "84 months", "0");
    check(
        admin,
        "SELECT standard BETWEEN now() - interval '24 months 1 hour' AND now() - interval '24 "
        "months'"
        " + interval '1 hour' AND record < now() - interval '80 months' AND brief IS NULL"
        " FROM stentor.history_audit_since()",
        "t");
    assert_int_equal(expire(admin, "S=24 months", "NULL"), 0);
}

static void what_has_not_ended_or_was_touched_stays_and_the_rest_of_its_month_goes(void **state)
{
    PGconn *admin = *state;
    empty_history(admin);
    admin_exec(
        admin,
        "DO $$ DECLARE r record; BEGIN FOR r IN SELECT n, 'acme' AS tenant, CASE n WHEN 5 THEN "
        "'scheduled' ELSE 'sent' END AS status, CASE n WHEN 6 THEN '20 days' ELSE '2 years' END AS "
        "touched FROM generate_series(1, 9) n LOOP CALL public.tell(public.aged('26 months', r.n), "
        "r.tenant, r.status, 'marketing', r.touched::interval); END LOOP; END $$");
    assert_int_equal(expire(admin, "S=24 months", "NULL"), 7);
    check(
        admin,
        "SELECT string_agg(right(n.id, 1) || right(a.notification_id, 1), ' ' ORDER BY n.id) FROM "
        "archiver.notifications n FULL JOIN archiver.delivery_attempts a ON a.notification_id = "
        "n.id",
        "55 66");
    check_months(admin, "notifications", "standard", "24 months", "1");
    admin_exec(
        admin, "UPDATE archiver.notifications SET status = 'sent', updated_at = now() - interval "
               "'40 days'");
    assert_int_equal(expire(admin, "S=24 months", "NULL"), 2);
    check_months(admin, "notifications", "standard", "24 months", "0");
}

static void one_tenants_rows_go_alone(void **state)
{
    PGconn *admin = *state;
    empty_history(admin);
    admin_exec(
        admin,
        "DO $$ BEGIN FOR n IN 1 .. 8 LOOP CALL public.tell(public.aged(n % 2 * interval '1 month' "
        "+ '26 months', n), CASE WHEN n < 6 THEN 'acme' ELSE 'globex' END, 'sent', 'marketing', '1 "
        "year'); END LOOP; END $$");
    assert_int_equal(expire(admin, "S=24 months", "'globex'"), 3);
    check(admin, "SELECT string_agg(DISTINCT tenant_id, ' ') FROM archiver.notifications", "acme");
    check(admin, "SELECT count(*) FROM archiver.delivery_attempts", "5");
    check(admin, "SELECT count(*) FROM stentor.history_removed", "0");
}

static void a_sealed_period_is_the_archives(void **state)
{
    PGconn *admin = *state;
    empty_history(admin);
    admin_exec(
        admin, "CALL public.tell(public.aged('26 months', 1), 'acme', 'sent', 'marketing', '1 "
               "year'); INSERT INTO stentor.sealed_periods SELECT 'S', date_trunc('month', "
               "created_at, 'UTC'), date_trunc('month', created_at, 'UTC') + interval '1 month' "
               "FROM archiver.notifications");
    assert_int_equal(expire(admin, "S=24 months", "NULL"), 0);
    check(admin, "SELECT count(*) FROM archiver.notifications", "1");
    admin_exec(admin, "DELETE FROM stentor.sealed_periods");
}

static void a_partition_that_is_read_is_left_to_the_next_pass(void **state)
{
    PGconn *admin = *state;
    empty_history(admin);
    admin_exec(
        admin, "CALL public.tell(public.aged('26 months', 1), 'acme', 'sent', 'marketing', '1 "
               "year')");
    PGconn *reader = admin_connect();
    admin_exec(reader, "BEGIN; SELECT count(*) FROM archiver.delivery_attempts");
    assert_int_equal(expire(admin, "S=24 months", "NULL"), 0);
    check(admin, "SELECT count(*) FROM archiver.notifications", "1");
    PQfinish(reader);
    assert_int_equal(expire(admin, "S=24 months", "NULL"), 1);
}

static void with_storage_a_clean_up_asks_for_one_run(void **state)
{
    PGconn *admin = *state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            drop(admin, "stentor_archiver", "stentor.roll_archive", "'acme'", "", 1), 0);
    }
    check(admin, "SELECT string_agg(kind || state, ' ') FROM archive.requests", "runwaiting");
}

static void other_services_may_not_call_the_functions(void **state)
{
    PGconn *admin = *state;
    static const char *const rows[][2] = {
        {"stentor_renderer", "SELECT ingest.drop_accepted(NULL, '1 day', '', 1)"},
        {"stentor_ingest", "SELECT dispatcher.drop_ended(NULL, '1 day', '', 1)"},
        {"stentor_dispatcher", "SELECT stentor.drop_expired_history(NULL, 'x=1 day', '', 1)"},
        {"stentor_ingest", "DELETE FROM ingest.accept_log"},
        {"stentor_archiver", "DELETE FROM archiver.notifications"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char sql[64];
        snprintf(sql, sizeof sql, "SET ROLE %s", rows[i][0]);
        admin_exec(admin, sql);
        PGresult *res = PQexec(admin, rows[i][1]);
        assert_string_equal(PQresultErrorField(res, PG_DIAG_SQLSTATE), "42501");
        PQclear(res);
        admin_exec(admin, "RESET ROLE");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_time_in_an_id_is_read),
        cmocka_unit_test(accepted_rows_go_when_all_of_them_has_ended),
        cmocka_unit_test(accepted_rows_go_when_history_was_archived_or_removed),
        cmocka_unit_test(one_process_at_a_time),
        cmocka_unit_test(members_go_after_their_batch_and_batches_much_later),
        cmocka_unit_test(notes_of_resends_outlive_dead_letters),
        cmocka_unit_test(attempts_that_ended_long_ago_go_and_open_ones_stay),
        cmocka_unit_test(whole_partitions_go_past_the_span_of_their_class),
        cmocka_unit_test(what_has_not_ended_or_was_touched_stays_and_the_rest_of_its_month_goes),
        cmocka_unit_test(one_tenants_rows_go_alone),
        cmocka_unit_test(a_sealed_period_is_the_archives),
        cmocka_unit_test(a_partition_that_is_read_is_left_to_the_next_pass),
        cmocka_unit_test(with_storage_a_clean_up_asks_for_one_run),
        cmocka_unit_test(other_services_may_not_call_the_functions),
    };
    return cmocka_run_group_tests(tests, migrate_once, disconnect);
}
