// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/services/dispatcher/ledger_stage.h"

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
        admin_value(stage->fx->admin, "SELECT count(*) FROM dispatcher.ledger WHERE owner = 'two'"),
        "2");
}

static void an_outcome_is_returned_to_the_next_claim(void **state)
{
    Stage *stage = *state;
    claim(stage, 1, "one");
    LedgerRow row = sent_row();
    row.state = LEDGER_DEFERRED;
    row.due_at_us = 1795199136123456;
    row.rung = 3;
    row.unknown_count = 1;
    row.segments = 2;
    row.cost_micros = 7500;
    row.currency = STR("USD");
    assert_int_equal(record(stage, &row, 1, "one"), 1);
    assert_int_equal(claim(stage, 1, "two"), 1);
    LedgerRow seen = ledger_conflict(stage->answer.rows[0], 0).row;
    assert_int_equal(seen.state, LEDGER_DEFERRED);
    assert_int_equal(seen.due_at_us, row.due_at_us);
    assert_int_equal(seen.finished_at_us, row.finished_at_us);
    assert_int_equal(seen.rung, 3);
    assert_int_equal(seen.unknown_count, 1);
    assert_int_equal(seen.segments, 2);
    assert_int_equal(seen.cost_micros, 7500);
    assert_true(str_eq(seen.currency, STR("USD")));
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
        admin_value(
            stage->fx->admin, "SELECT count(*) FROM dispatcher.ledger WHERE state = 'sent'"),
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

static void a_claim_says_at_which_vendor_it_is(void **state)
{
    Stage *stage = *state;
    stage->place = (LedgerPlace){STR("postmark"), STR("main"), STR("k-1")};
    claim(stage, 1, "one");
    assert_int_equal(claim(stage, 1, "two"), 1);
    LedgerRow seen = ledger_conflict(stage->answer.rows[0], 0).row;
    assert_true(str_eq(seen.vendor, STR("postmark")));
    assert_true(str_eq(seen.credential, STR("main")));
    assert_true(str_eq(seen.vendor_key, STR("k-1")));
}

static size_t move(Stage *stage, const char *owner, const char *vendor)
{
    LedgerPlace place = {str_from(vendor), STR("other"), STR_EMPTY};
    const LedgerPlace *places[] = {&place};
    DbTxn *txn = db_txn_new(stage->fx->pool);
    ledger_add_move(txn, stage->list, places, 1, str_from(owner));
    committed(stage, txn);
    return (size_t)db_rows(stage->answer.rows[0]);
}

static void an_unsent_mail_moves_to_another_vendor_under_the_same_claim(void **state)
{
    Stage *stage = *state;
    stage->place = (LedgerPlace){STR("postmark"), STR("main"), STR("k-1")};
    claim(stage, 1, "one");
    assert_int_equal(move(stage, "two", "sendgrid"), 0); // it is not the owner
    assert_int_equal(move(stage, "one", "sendgrid"), 1);
    assert_string_equal(
        admin_value(
            stage->fx->admin, "SELECT state || owner || vendor || credential || "
                              "coalesce(vendor_key, '-') || (lease_until > now()) FROM "
                              "dispatcher.ledger"),
        "claimedonesendgridother-true");
    LedgerRow row = sent_row();
    row.vendor = STR("sendgrid");
    assert_int_equal(record(stage, &row, 1, "one"), 1);
    assert_int_equal(move(stage, "one", "postmark"), 0); // it has an outcome
}

static void a_take_over_leaves_a_mail_where_it_may_have_been_sent(void **state)
{
    Stage *stage = *state;
    stage->place = (LedgerPlace){STR("postmark"), STR("main"), STR_EMPTY};
    claim(stage, 1, "one");
    expire(stage);
    stage->place.vendor = STR("sendgrid");
    assert_int_equal(take_over(stage, 1, "two"), 0);
    assert_int_equal(take_over(stage, 1, "one"), 1); // its own, and never sent
    DbTxn *txn = db_txn_new(stage->fx->pool);
    ledger_add_release(txn, stage->list, 1, STR("one"));
    committed(stage, txn);
    stage->place.vendor = STR("postmark");
    assert_int_equal(take_over(stage, 1, "two"), 1);
    assert_string_equal(
        admin_value(stage->fx->admin, "SELECT vendor FROM dispatcher.ledger"), "postmark");
}

static void a_take_over_keeps_the_time_since_when_it_may_have_been_sent(void **state)
{
    static const char FIRST[] = "SELECT claimed_at = '2026-11-27 08:00Z' FROM dispatcher.ledger";
    Stage *stage = *state;
    claim(stage, 1, "one");
    admin_exec(stage->fx->admin, "UPDATE dispatcher.ledger SET claimed_at = '2026-11-27 08:00Z'");
    expire(stage);
    assert_int_equal(take_over(stage, 1, "two"), 1);
    assert_string_equal(admin_value(stage->fx->admin, FIRST), "t");
    expire(stage);
    assert_int_equal(take_over(stage, 1, "three"), 1);
    assert_string_equal(admin_value(stage->fx->admin, FIRST), "t");
    DbTxn *txn = db_txn_new(stage->fx->pool);
    ledger_add_release(txn, stage->list, 1, STR("three"));
    committed(stage, txn);
    assert_int_equal(take_over(stage, 1, "four"), 1); // it was not sent
    assert_string_equal(admin_value(stage->fx->admin, FIRST), "f");
}

static void what_is_decided_here_is_at_no_vendor(void **state)
{
    Stage *stage = *state;
    stage->place = (LedgerPlace){STR("postmark"), STR("main"), STR_EMPTY};
    claim(stage, 1, "one");
    LedgerRow row = sent_row();
    row.state = LEDGER_FAILED;
    row.vendor = STR_EMPTY;
    row.code = STR("expired");
    assert_int_equal(record(stage, &row, 1, "one"), 1);
    assert_string_equal(
        admin_value(
            stage->fx->admin, "SELECT (vendor IS NULL AND credential IS NULL)::text FROM "
                              "dispatcher.ledger"),
        "true");
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
        admin_value(stage->fx->admin, "SELECT sum(unknown_count) FROM dispatcher.ledger"), "1");
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
    const LedgerPlace *places[] = {&stage->place};
    ledger_add_claim(txn, stage->list, places, 1, &held);
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
        "WHERE inhparent = 'dispatcher.ledger'::regclass AND inhrelid::regclass::text LIKE "
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
    note_as_small(stage);
    for (int i = 0; i < 8; i++) { // past the five plans that are made for the values
        claim(stage, 1, "two");
    }
    fill_table(stage);
    for (int i = 0; i < 5; i++) {
        claim(stage, KEYS, "two");
    }
    expect_no_scan(stage);
}

// The same for the look at earlier attempts.
static void a_retry_is_looked_up_by_key_in_a_large_table(void **state)
{
    Stage *stage = *state;
    for (int i = 0; i < KEYS; i++) {
        stage->keys[i].attempt = 2;
        stage->keys[i].retry = true;
    }
    claim(stage, 1, "one");
    note_as_small(stage);
    for (int i = 0; i < 8; i++) {
        claim(stage, 2, "one");
    }
    fill_table(stage);
    for (int i = 0; i < 5; i++) {
        claim(stage, KEYS, "two");
    }
    expect_no_scan(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE(a_claim_is_given_once),
        ON_STAGE(an_outcome_is_returned_to_the_next_claim),
        ON_STAGE(only_the_owner_records_and_only_once),
        ON_STAGE(a_dead_owners_claim_is_taken_over_and_counted),
        ON_STAGE(its_own_claim_is_taken_again_without_counting),
        ON_STAGE(a_released_claim_is_free_at_once_and_not_unknown),
        ON_STAGE(a_claim_says_at_which_vendor_it_is),
        ON_STAGE(an_unsent_mail_moves_to_another_vendor_under_the_same_claim),
        ON_STAGE(a_take_over_leaves_a_mail_where_it_may_have_been_sent),
        ON_STAGE(a_take_over_keeps_the_time_since_when_it_may_have_been_sent),
        ON_STAGE(what_is_decided_here_is_at_no_vendor),
        ON_STAGE(parking_takes_only_what_may_have_been_sent),
        ON_STAGE(a_lease_is_made_longer_by_its_owner),
        ON_STAGE(a_time_without_a_partition_is_permanent),
        ON_STAGE(months_are_made_by_the_service_itself),
        ON_STAGE(a_conflict_is_found_by_key_in_a_large_table),
        ON_STAGE(a_retry_is_looked_up_by_key_in_a_large_table),
    };
    return cmocka_run_group_tests(tests, migrate_once, NULL);
}
