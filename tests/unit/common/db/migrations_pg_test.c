// SPDX-License-Identifier: Apache-2.0
// The migrations as they stand: they apply, isolate the tenants, and their functions do what they
// say.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

static int migrate_once(void **state)
{
    migrate_these(migrate_schemas);
    *state = admin_connect();
    return 0;
}

static int disconnect(void **state)
{
    PQfinish(*state);
    return 0;
}

// ---- row-level security, through the pool and as a service ----

static const DbStatement INSERT_KEY = {
    "test_insert_key", "INSERT INTO ingest.idempotency_keys SELECT t, 's', 'k', '\\x00', 202, '',"
                       " now() FROM unnest($1::text[]) AS t"};
static const DbStatement SEE_KEYS = {
    "test_see_keys", "SELECT string_agg(tenant_id, ' ' ORDER BY tenant_id)"
                     " FROM ingest.idempotency_keys"};
static const DbStatement TOUCH_KEYS = {
    "test_touch_keys", "UPDATE ingest.idempotency_keys SET response_status = 500"};
static const DbStatement SEE_LEDGER = {"test_see_ledger", "SELECT count(*) FROM dispatcher.ledger"};
static const DbStatement SEE_PARTITION = {
    "test_see_partition", "SELECT count(*) FROM archiver.notifications_record_y2030m01"};

static Fixture *connect_as(const char *role)
{
    char url[200];
    return fixture_new(&(DbPoolOptions){.url = url_with(role, url, sizeof url), .connections = 1});
}

static DbTxn *txn_for(Fixture *fx, const char *tenants)
{
    DbTxn *txn = db_txn_new(fx->pool);
    Str rest = str_from(tenants);
    for (Str tenant; rest.len > 0 && str_split(&rest, ' ', &tenant);) {
        db_txn_tenant(txn, tenant);
    }
    return txn;
}

static ErrorKind insert_keys(Fixture *fx, const char *named, const char *first, const char *second)
{
    Answer answer = {0};
    DbTxn *txn = txn_for(fx, named);
    DbArray *tenants = db_array(db_txn_add(txn, &INSERT_KEY, NULL), DB_TEXT);
    db_push_text(tenants, str_from(first));
    if (second != NULL) {
        db_push_text(tenants, str_from(second));
    }
    submit_and_wait(fx, txn, &answer);
    ErrorKind kind = answer.err.kind;
    answer_clear(&answer);
    return kind;
}

static void assert_sees(Fixture *fx, const char *named, const char *wanted)
{
    Answer answer = {0};
    DbTxn *txn = txn_for(fx, named);
    db_txn_add(txn, &SEE_KEYS, NULL);
    submit_and_wait(fx, txn, &answer);
    assert_int_equal(answer.err.kind, ERROR_NONE);
    Str seen = db_get_text(answer.rows[0], 0, 0);
    if (!str_eq(seen, str_from(wanted))) {
        fail_msg("named '%s', saw '" STR_FMT "'", named, STR_ARG(seen));
    }
    answer_clear(&answer);
}

static void fill_keys(Fixture *fx)
{
    admin_exec(fx->admin, "TRUNCATE ingest.idempotency_keys");
    assert_int_equal(insert_keys(fx, "acme globex", "acme", "globex"), ERROR_NONE);
    assert_int_equal(insert_keys(fx, "initech", "initech", NULL), ERROR_NONE);
}

static void a_service_sees_the_tenants_it_named_and_no_other(void **state)
{
    (void)state;
    Fixture *fx = connect_as("&user=stentor_ingest");
    assert_sees(fx, "", ""); // nothing was ever named on this connection
    fill_keys(fx);
    assert_sees(fx, "acme", "acme");
    assert_sees(fx, "acme initech", "acme initech");
    assert_sees(fx, "unknown", "");
    assert_sees(fx, "", ""); // what was named before is over
    fixture_free(fx);
}

static void a_service_cannot_insert_for_a_tenant_it_did_not_name(void **state)
{
    (void)state;
    Fixture *fx = connect_as("&user=stentor_ingest");
    admin_exec(fx->admin, "TRUNCATE ingest.idempotency_keys");
    assert_int_equal(insert_keys(fx, "acme", "globex", NULL), ERROR_CONFIG);
    assert_int_equal(insert_keys(fx, "acme", "acme", "globex"), ERROR_CONFIG);
    assert_int_equal(insert_keys(fx, "", "acme", NULL), ERROR_CONFIG);
    assert_string_equal(
        admin_value(fx->admin, "SELECT count(*) FROM ingest.idempotency_keys"), "0");
    fixture_free(fx);
}

static void a_service_cannot_change_rows_of_a_tenant_it_did_not_name(void **state)
{
    (void)state;
    Fixture *fx = connect_as("&user=stentor_ingest");
    fill_keys(fx);
    Answer answer = {0};
    DbTxn *txn = txn_for(fx, "acme");
    db_txn_add(txn, &TOUCH_KEYS, NULL);
    submit_and_wait(fx, txn, &answer);
    assert_int_equal(answer.err.kind, ERROR_NONE);
    answer_clear(&answer);
    assert_string_equal(
        admin_value(
            fx->admin, "SELECT string_agg(tenant_id, ' ') FROM ingest.idempotency_keys"
                       " WHERE response_status = 500"),
        "acme");
    fixture_free(fx);
}

static void a_service_has_no_right_to_the_tables_of_another(void **state)
{
    (void)state;
    Fixture *fx = connect_as("&user=stentor_ingest");
    Answer answer = {0};
    run_statement(fx, &SEE_LEDGER, &answer);
    assert_int_equal(answer.err.kind, ERROR_CONFIG);
    fixture_free(fx);
}

// Policies stand on the parent only, so a partition must not be reachable by itself.
static void a_service_cannot_go_round_the_policy_through_a_partition(void **state)
{
    (void)state;
    Fixture *fx = connect_as("&user=stentor_archiver");
    admin_exec(
        fx->admin, "SELECT stentor.ensure_partitions('archiver.notifications', '2030-01-15',"
                   " '2030-01-15')");
    Answer answer = {0};
    run_statement(fx, &SEE_PARTITION, &answer);
    assert_int_equal(answer.err.kind, ERROR_CONFIG);
    assert_non_null(strstr(answer.err.text, "permission denied"));
    fixture_free(fx);
}

static void every_table_with_a_tenant_is_isolated(void **state)
{
    assert_string_equal(
        admin_value(
            *state, "SELECT coalesce(string_agg(c.oid::regclass::text, ' '), '') FROM pg_class c"
                    " JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a"
                    " ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped"
                    " WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition"
                    " AND n.nspname NOT LIKE 'pg\\_%' AND NOT (c.relrowsecurity AND EXISTS"
                    " (SELECT FROM pg_policy p WHERE p.polrelid = c.oid))"),
        "");
    assert_string_equal(
        admin_value(
            *state, "SELECT count(*) >= 7 FROM pg_policy WHERE polname = 'tenant_isolation'"),
        "t");
}

static void no_service_can_bypass_it(void **state)
{
    assert_string_equal(
        admin_value(
            *state, "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'stentor\\_%' AND rolcanlogin"
                    " AND (rolsuper OR rolbypassrls OR rolcreaterole)"),
        "0");
    assert_string_equal(
        admin_value(*state, "SELECT count(*) > 5 FROM pg_roles WHERE rolname LIKE 'stentor\\_%'"),
        "t");
}

// ---- partitions ----

static const char *bounds(PGconn *admin, const char *partition)
{
    char sql[200];
    snprintf(
        sql, sizeof sql, "SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = '%s'",
        partition);
    return admin_value(admin, sql);
}

static void partitions_are_made_once_for_each_month(void **state)
{
    const char *sql = "SELECT stentor.ensure_partitions('archiver.delivery_attempts',"
                      " '2031-11-30 23:59:59Z', '2032-02-01 00:00:00Z')";
    admin_exec(*state, "SET timezone = 'UTC'");
    assert_string_equal(admin_value(*state, sql), "12"); // of each of the three classes
    assert_string_equal(admin_value(*state, sql), "0");
    assert_string_equal(
        bounds(*state, "delivery_attempts_record_y2032m01"),
        "FOR VALUES FROM ('2032-01-01 00:00:00+00') TO ('2032-02-01 00:00:00+00')");
}

static void months_are_those_of_utc_in_every_time_zone(void **state)
{
    admin_exec(*state, "SET timezone = 'America/New_York'");
    admin_exec(
        *state, "SELECT stentor.ensure_partitions('archiver.notifications', '2033-02-15Z',"
                " '2033-05-15Z')");
    admin_exec(*state, "SET timezone = 'UTC'");
    assert_string_equal(
        bounds(*state, "notifications_record_y2033m03"),
        "FOR VALUES FROM ('2033-03-01 00:00:00+00') TO ('2033-04-01 00:00:00+00')");
    assert_string_equal(
        bounds(*state, "notifications_record_y2033m04"),
        "FOR VALUES FROM ('2033-04-01 00:00:00+00') TO ('2033-05-01 00:00:00+00')");
}

static void the_archiver_may_make_partitions_and_ingest_may_not(void **state)
{
    assert_string_equal(
        admin_value(
            *state,
            "SELECT string_agg(rolname, ' ' ORDER BY rolname) FROM pg_roles WHERE rolname IN"
            " ('stentor_archiver', 'stentor_ingest') AND has_function_privilege(oid,"
            " 'stentor.ensure_partitions(regclass, timestamptz, timestamptz)', 'EXECUTE')"),
        "stentor_archiver");
}

static void more_than_ten_years_of_partitions_are_refused(void **state)
{
    PGresult *res = PQexec(
        *state, "SELECT stentor.ensure_partitions('archiver.notifications', '2030-01-01',"
                " '2041-01-01')");
    assert_int_equal(PQresultStatus(res), PGRES_FATAL_ERROR);
    assert_string_equal(PQresultErrorField(res, PG_DIAG_SQLSTATE), "P0001");
    PQclear(res);
}

// ---- functions of the sweep and of digest-flusher ----

static void unpublished_rows_are_claimed_once_up_to_the_limit(void **state)
{
    PGconn *admin = *state;
    admin_exec(
        admin,
        "TRUNCATE ingest.accept_log; INSERT INTO ingest.accept_log (tenant_id, accepted_at,"
        " notification_ids, events, published_at) SELECT 'acme', now() - interval '1 minute',"
        " '{}', '\\x01', CASE WHEN n > 100 THEN now() END FROM generate_series(1, 200) n;"
        "INSERT INTO ingest.accept_log (tenant_id, accepted_at, notification_ids, events)"
        " VALUES ('globex', now(), '{}', '\\x02'); ANALYZE ingest.accept_log;"
        "SET ROLE stentor_ingest");
    const char *sql = "SELECT count(*) || ' ' || min(tenant_id) FROM"
                      " ingest.claim_unpublished('10 s', '1 minute', 60)";
    assert_string_equal(admin_value(admin, sql), "60 acme");
    assert_string_equal(admin_value(admin, sql), "40 acme");
    assert_string_equal(admin_value(admin, sql), ""); // leased, published, or too fresh
    admin_exec(
        admin, "RESET ROLE; UPDATE ingest.accept_log SET claimed_until = now() - interval '1 s'");
    assert_string_equal(
        admin_value(admin, "SELECT count(*) FROM ingest.claim_unpublished('10 s', '1 m', 1000)"),
        "100"); // the lease of a dead sweep ran out
}

static void two_sweeps_at_once_share_the_rows(void **state)
{
    PGconn *admin = *state;
    admin_exec(
        admin,
        "TRUNCATE ingest.accept_log; INSERT INTO ingest.accept_log (tenant_id, accepted_at,"
        " notification_ids, events) SELECT 'acme', now() - interval '1 minute', '{}', '\\x01'"
        " FROM generate_series(1, 100)");
    PGconn *other = admin_connect();
    admin_exec(admin, "BEGIN");
    const char *sql = "SELECT count(*) FROM ingest.claim_unpublished('10 s', '1 minute', 70)";
    assert_string_equal(admin_value(admin, sql), "70");
    assert_string_equal(admin_value(other, sql), "30"); // does not wait for the first
    admin_exec(admin, "COMMIT");
    PQfinish(other);
}

static void old_idempotency_keys_are_forgotten(void **state)
{
    PGconn *admin = *state;
    admin_exec(
        admin,
        "TRUNCATE ingest.idempotency_keys; INSERT INTO ingest.idempotency_keys SELECT 'acme',"
        " 's', 'k' || n, '\\x00', 202, '', now() - n * interval '1 hour'"
        " FROM generate_series(1, 48) n; SET ROLE stentor_ingest");
    const char *sql = "SELECT ingest.forget_idempotency_keys('24 hours', 20)";
    assert_string_equal(admin_value(admin, sql), "20");
    assert_string_equal(admin_value(admin, sql), "5"); // the 24th is 24 hours old and a little
    admin_exec(admin, "RESET ROLE");
    assert_string_equal(admin_value(admin, "SELECT count(*) FROM ingest.idempotency_keys"), "23");
}

static void due_work_is_claimed_when_due_and_gone_when_done(void **state)
{
    PGconn *admin = *state;
    admin_exec(
        admin,
        "TRUNCATE digest_flusher.due_work; INSERT INTO digest_flusher.due_work (work_id, tenant_id,"
        " notification_id, reason, due_at, subject, event_id, payload)"
        " SELECT 'w' || n, 'acme', 'n', 'retry', now() + (n - 50) * interval '1 minute', 's',"
        " 'e', '\\x01' FROM generate_series(1, 60) n; ANALYZE digest_flusher.due_work;"
        "SET ROLE stentor_digest_flusher");
    assert_string_equal(
        admin_value(
            admin, "SELECT string_agg(work_id, ' ' ORDER BY due_at) FROM"
                   " digest_flusher.claim_work('1 minute', 3)"),
        "w1 w2 w3");
    const char *rest = "SELECT count(*) FROM digest_flusher.claim_work('1 minute', 1000)";
    assert_string_equal(admin_value(admin, rest), "47");
    assert_string_equal(admin_value(admin, rest), "0");
    assert_string_equal(
        admin_value(admin, "SELECT digest_flusher.done('{w1,w2,w3,nothing}')"), "3");
    assert_string_equal(
        admin_value(
            admin, "SELECT waiting || ' ' || (next_due_at < now()) FROM digest_flusher.backlog()"),
        "57 true");
    admin_exec(admin, "RESET ROLE");
}

static void other_services_may_not_call_the_functions(void **state)
{
    assert_string_equal(
        admin_value(
            *state, "SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
                    " WHERE p.prosecdef AND n.nspname IN ('stentor', 'ingest', 'digest_flusher')"
                    " AND p.proname <> 'migration_heads'" // numbers, for everybody
                    " AND has_function_privilege('stentor_renderer', p.oid, 'EXECUTE')"),
        "0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_service_sees_the_tenants_it_named_and_no_other),
        cmocka_unit_test(a_service_cannot_insert_for_a_tenant_it_did_not_name),
        cmocka_unit_test(a_service_cannot_change_rows_of_a_tenant_it_did_not_name),
        cmocka_unit_test(a_service_has_no_right_to_the_tables_of_another),
        cmocka_unit_test(a_service_cannot_go_round_the_policy_through_a_partition),
        cmocka_unit_test(every_table_with_a_tenant_is_isolated),
        cmocka_unit_test(no_service_can_bypass_it),
        cmocka_unit_test(partitions_are_made_once_for_each_month),
        cmocka_unit_test(months_are_those_of_utc_in_every_time_zone),
        cmocka_unit_test(the_archiver_may_make_partitions_and_ingest_may_not),
        cmocka_unit_test(more_than_ten_years_of_partitions_are_refused),
        cmocka_unit_test(unpublished_rows_are_claimed_once_up_to_the_limit),
        cmocka_unit_test(two_sweeps_at_once_share_the_rows),
        cmocka_unit_test(old_idempotency_keys_are_forgotten),
        cmocka_unit_test(due_work_is_claimed_when_due_and_gone_when_done),
        cmocka_unit_test(other_services_may_not_call_the_functions),
    };
    return cmocka_run_group_tests(tests, migrate_once, disconnect);
}
