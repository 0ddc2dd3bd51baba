// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/db/migrate.h"
#include "services/dispatcher/ledger.h"
#include "tests/unit/common/db/pg_fixture.h"

enum { KEYS = 4, LEASE_MS = 60000 };

typedef struct Stage {
    Fixture *fx;
    char ids[KEYS][ID_SIZE];
    LedgerKey keys[KEYS];
    const LedgerKey *list[KEYS];
    Answer answer;
} Stage;

static int migrate_once(void **state)
{
    (void)state;
    const char *const schemas[] = {"stentor", "keys", "dispatch", NULL};
    MigrateReport report;
    Error err;
    if (!db_migrate(
            test_url(), STENTOR_SOURCE_DIR "/migrations", schemas, &report, NULL, NULL, &err)) {
        fail_msg("%s", err.text);
    }
    return 0;
}

static int stage_up(void **state)
{
    Stage *stage = calloc(1, sizeof *stage);
    char url[256];
    stage->fx = fixture_new(&(DbPoolOptions){
        .url = url_with("&user=stentor_dispatcher", url, sizeof url), .connections = 1});
    admin_exec(stage->fx->admin, "TRUNCATE dispatch.ledger");
    int64_t now = clock_now_us();
    for (int i = 0; i < KEYS; i++) {
        id_new("ntf_", now, stage->ids[i]);
        int64_t ms = 0;
        assert_true(id_parse(str_from(stage->ids[i]), "ntf_", &ms));
        stage->keys[i] = (LedgerKey){
            ms * 1000, str_from(stage->ids[i]), 1, i % 2 == 0 ? STR("acme") : STR("zeta")};
        stage->list[i] = &stage->keys[i];
    }
    *state = stage;
    return 0;
}

static int stage_down(void **state)
{
    Stage *stage = *state;
    answer_clear(&stage->answer);
    fixture_free(stage->fx);
    free(stage);
    return 0;
}

static void committed(Stage *stage, DbTxn *txn)
{
    submit_and_wait(stage->fx, txn, &stage->answer);
    if (stage->answer.err.kind != ERROR_NONE) {
        fail_msg("%s", stage->answer.err.text);
    }
}

static LedgerClaim claim_by(const char *owner)
{
    return (LedgerClaim){str_from(owner), LEASE_MS, clock_now_us()};
}

static size_t claim(Stage *stage, size_t count, const char *owner)
{
    DbTxn *txn = db_txn_new(stage->fx->pool);
    LedgerClaim held = claim_by(owner);
    ledger_add_claim(txn, stage->list, count, &held);
    committed(stage, txn);
    return ledger_conflicts(stage->answer.rows[0]);
}

static LedgerRow sent_row(void)
{
    return (LedgerRow){
        .state = LEDGER_SENT,
        .claimed_at_us = 1000000,
        .finished_at_us = 2000000,
        .rung = -1,
        .vendor = STR("smtp"),
        .vendor_message_id = STR("id@x"),
        .code = STR("250"),
        .enhanced = STR("2.0.0"),
        .reply = STR("Ok"),
    };
}

static size_t record(Stage *stage, const LedgerRow *row, size_t count, const char *owner)
{
    const LedgerRow *rows[KEYS] = {row, row, row, row};
    DbTxn *txn = db_txn_new(stage->fx->pool);
    ledger_add_outcomes(txn, stage->list, rows, count, str_from(owner));
    committed(stage, txn);
    return (size_t)db_rows(stage->answer.rows[0]);
}

static size_t take_over(Stage *stage, size_t count, const char *owner)
{
    DbTxn *txn = db_txn_new(stage->fx->pool);
    LedgerClaim held = claim_by(owner);
    ledger_add_take_over(txn, stage->list, count, &held);
    committed(stage, txn);
    return (size_t)db_rows(stage->answer.rows[0]);
}

static void expire(Stage *stage)
{
    admin_exec(
        stage->fx->admin, "UPDATE dispatch.ledger SET lease_until = now() - interval '1 second'");
}

static void a_claim_is_given_once(void **state)
{
    Stage *stage = *state;
    assert_int_equal(claim(stage, 2, "one"), 0);
    assert_int_equal(claim(stage, KEYS, "two"), 2); // the first two are held
    LedgerConflict conflict = ledger_conflict(stage->answer.rows[0], 0);
    assert_int_equal(conflict.row.state, LEDGER_CLAIMED);
    assert_true(str_eq(conflict.owner, STR("one")));
    assert_true(conflict.wait_ms > LEASE_MS - 5000 && conflict.wait_ms <= LEASE_MS);
    assert_true(conflict.index < 2);
    assert_string_equal(
        admin_value(stage->fx->admin, "SELECT count(*) FROM dispatch.ledger WHERE owner = 'two'"),
        "2");
}

static void an_outcome_is_told_to_the_next_who_asks(void **state)
{
    Stage *stage = *state;
    claim(stage, 1, "one");
    LedgerRow row = sent_row();
    row.state = LEDGER_DEFERRED;
    row.due_at_us = 1795199136123456;
    row.rung = 3;
    row.unknown_count = 1;
    assert_int_equal(record(stage, &row, 1, "one"), 1);
    assert_int_equal(claim(stage, 1, "two"), 1);
    LedgerRow seen = ledger_conflict(stage->answer.rows[0], 0).row;
    assert_int_equal(seen.state, LEDGER_DEFERRED);
    assert_int_equal(seen.due_at_us, row.due_at_us);
    assert_int_equal(seen.finished_at_us, row.finished_at_us);
    assert_int_equal(seen.rung, 3);
    assert_int_equal(seen.unknown_count, 1);
    assert_true(
        str_eq(seen.vendor, row.vendor) && str_eq(seen.code, row.code) &&
        str_eq(seen.enhanced, row.enhanced));
    assert_true(
        str_eq(seen.reply, row.reply) && str_eq(seen.vendor_message_id, row.vendor_message_id));
}

static void only_the_owner_records_and_only_once(void **state)
{
    Stage *stage = *state;
    claim(stage, 2, "one");
    LedgerRow row = sent_row();
    assert_int_equal(record(stage, &row, 2, "two"), 0);
    assert_int_equal(record(stage, &row, 2, "one"), 2);
    assert_int_equal(record(stage, &row, 2, "one"), 2); // a repeat after a COMMIT without an answer
    row.state = LEDGER_FAILED;
    assert_int_equal(record(stage, &row, 2, "one"), 0);
    assert_string_equal(
        admin_value(stage->fx->admin, "SELECT count(*) FROM dispatch.ledger WHERE state = 'sent'"),
        "2");
}

static void a_dead_owners_claim_is_taken_over_and_counted(void **state)
{
    Stage *stage = *state;
    claim(stage, 1, "one");
    assert_int_equal(take_over(stage, 1, "two"), 0); // its lease lives
    expire(stage);
    assert_int_equal(take_over(stage, 1, "two"), 1);
    LedgerHit hit = ledger_hit(stage->answer.rows[0], 0);
    assert_true(str_eq(hit.notification_id, stage->keys[0].notification_id));
    assert_int_equal(hit.unknown_count, 1);
    LedgerRow row = sent_row();
    assert_int_equal(record(stage, &row, 1, "one"), 0); // too late
}

static void its_own_claim_is_taken_again_without_counting(void **state)
{
    Stage *stage = *state;
    claim(stage, 1, "one");
    assert_int_equal(take_over(stage, 1, "one"), 1);
    assert_int_equal(ledger_hit(stage->answer.rows[0], 0).unknown_count, 0);
}

static void a_released_claim_is_free_at_once_and_not_unknown(void **state)
{
    Stage *stage = *state;
    claim(stage, 1, "one");
    DbTxn *txn = db_txn_new(stage->fx->pool);
    ledger_add_release(txn, stage->list, 1, STR("one"));
    committed(stage, txn);
    assert_int_equal(claim(stage, 1, "two"), 1);
    LedgerConflict conflict = ledger_conflict(stage->answer.rows[0], 0);
    assert_int_equal(conflict.owner.len, 0);
    assert_int_equal(conflict.wait_ms, 0);
    assert_int_equal(take_over(stage, 1, "two"), 1);
    assert_int_equal(ledger_hit(stage->answer.rows[0], 0).unknown_count, 0);
}

static void parking_takes_only_what_may_have_been_sent(void **state)
{
    Stage *stage = *state;
    claim(stage, 2, "one");
    DbTxn *txn = db_txn_new(stage->fx->pool);
    ledger_add_release(txn, stage->list, 1, STR("one"));
    committed(stage, txn);
    expire(stage);
    LedgerClaim held = claim_by("two");
    txn = db_txn_new(stage->fx->pool);
    ledger_add_park(txn, stage->list, 2, &held);
    committed(stage, txn);
    assert_int_equal(db_rows(stage->answer.rows[0]), 1);
    assert_true(str_eq(
        ledger_hit(stage->answer.rows[0], 0).notification_id, stage->keys[1].notification_id));
    assert_string_equal(
        admin_value(stage->fx->admin, "SELECT sum(unknown_count) FROM dispatch.ledger"), "1");
}

static void a_lease_is_made_longer_by_its_owner(void **state)
{
    Stage *stage = *state;
    claim(stage, 1, "one");
    expire(stage);
    LedgerClaim held = claim_by("two");
    DbTxn *txn = db_txn_new(stage->fx->pool);
    ledger_add_renew(txn, stage->list, 1, &held);
    committed(stage, txn);
    assert_int_equal(db_rows(stage->answer.rows[0]), 0);
    held = claim_by("one");
    txn = db_txn_new(stage->fx->pool);
    ledger_add_renew(txn, stage->list, 1, &held);
    committed(stage, txn);
    assert_int_equal(db_rows(stage->answer.rows[0]), 1);
    assert_int_equal(take_over(stage, 1, "two"), 0);
}

static void a_time_without_a_partition_is_permanent(void **state)
{
    Stage *stage = *state;
    stage->keys[0].created_at_us = 1; // 1970
    DbTxn *txn = db_txn_new(stage->fx->pool);
    LedgerClaim held = claim_by("one");
    ledger_add_claim(txn, stage->list, 1, &held);
    submit_and_wait(stage->fx, txn, &stage->answer);
    assert_int_equal(stage->answer.err.kind, ERROR_PERMANENT);
}

static void months_are_made_by_the_service_itself(void **state)
{
    Stage *stage = *state;
    admin_exec(
        stage->fx->admin,
        "DO $$ BEGIN EXECUTE (SELECT 'DROP TABLE ' || max(inhrelid::regclass::text) FROM "
        "pg_inherits "
        "WHERE inhparent = 'dispatch.ledger'::regclass AND inhrelid::regclass::text LIKE "
        "'%' || to_char(now() + interval '1 month', 'YYYY\"m\"MM')); END $$");
    DbTxn *txn = db_txn_new(stage->fx->pool);
    ledger_add_partitions(txn);
    committed(stage, txn);
    assert_int_equal(db_get_int(stage->answer.rows[0], 0, 0), 1);
}

// The claim must stay a look-up however the planner sees the table: it is prepared when the table
// is empty.
static void a_conflict_is_found_by_key_in_a_large_table(void **state)
{
    Stage *stage = *state;
    claim(stage, 1, "one");
    for (int i = 0; i < 8; i++) { // past the five plans that are made for the values
        claim(stage, 1, "two");
    }
    admin_exec(stage->fx->admin, "ALTER TABLE dispatch.ledger DISABLE ROW LEVEL SECURITY");
    admin_exec(
        stage->fx->admin, "INSERT INTO dispatch.ledger (created_at, notification_id, attempt, "
                          "tenant_id, state, owner, lease_until, claimed_at)"
                          " SELECT now(), 'ntf_' || n, 1, 'acme', 'sent', 'x', now(), now() FROM "
                          "generate_series(1, 50000) n");
    admin_exec(stage->fx->admin, "ALTER TABLE dispatch.ledger ENABLE ROW LEVEL SECURITY");
    admin_exec(stage->fx->admin, "SELECT pg_stat_reset()");
    for (int i = 0; i < 5; i++) {
        claim(stage, KEYS, "two");
    }
    fixture_close_pool(stage->fx); // its backend reports its counts when it ends
    const char *scans = "0";
    for (int i = 0; i < 250 && strcmp(scans, "0") == 0; i++) {
        run_ms(&stage->fx->loop, 20);
        admin_exec(stage->fx->admin, "SELECT pg_stat_clear_snapshot()");
        scans = admin_value(
            stage->fx->admin, "SELECT coalesce(sum(idx_scan), 0) FROM pg_stat_user_tables WHERE "
                              "schemaname = 'dispatch'");
    }
    assert_string_not_equal(scans, "0"); // the counts have arrived
    assert_string_equal(
        admin_value(
            stage->fx->admin,
            "SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE schemaname = 'dispatch'"),
        "0");
}

#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, stage_up, stage_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE(a_claim_is_given_once),
        ON_STAGE(an_outcome_is_told_to_the_next_who_asks),
        ON_STAGE(only_the_owner_records_and_only_once),
        ON_STAGE(a_dead_owners_claim_is_taken_over_and_counted),
        ON_STAGE(its_own_claim_is_taken_again_without_counting),
        ON_STAGE(a_released_claim_is_free_at_once_and_not_unknown),
        ON_STAGE(parking_takes_only_what_may_have_been_sent),
        ON_STAGE(a_lease_is_made_longer_by_its_owner),
        ON_STAGE(a_time_without_a_partition_is_permanent),
        ON_STAGE(months_are_made_by_the_service_itself),
        ON_STAGE(a_conflict_is_found_by_key_in_a_large_table),
    };
    return cmocka_run_group_tests(tests, migrate_once, NULL);
}
