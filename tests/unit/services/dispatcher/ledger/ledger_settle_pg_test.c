// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/ledger/ledger_settle.h"

#include "tests/unit/services/dispatcher/ledger_stage.h"

static const LedgerVendor VENDOR = {"smtp", {"mail.example.com", 16}};

static LedgerProof proof_of(const Stage *stage, size_t key, const char *event_id)
{
    return (LedgerProof){
        .created_at_us = stage->keys[key].created_at_us,
        .notification_id = stage->keys[key].notification_id,
        .tenant = stage->keys[key].tenant,
        .event_id = str_from(event_id),
        .at_us = clock_now_us(),
        .vendor = STR("sendgrid"),
    };
}

static LedgerProof proof_from(
    const Stage *stage, const char *vendor, int32_t attempt, const char *event_id)
{
    LedgerProof proof = proof_of(stage, 0, event_id);
    proof.vendor = str_from(vendor);
    proof.attempt = attempt;
    proof.message_id = STR("m-1");
    return proof;
}

// The rows that it returns, in stage->answer.
static size_t settle(Stage *stage, const LedgerProof *proofs, size_t count)
{
    const LedgerProof *list[8];
    assert_true(count <= 8);
    for (size_t i = 0; i < count; i++) {
        list[i] = &proofs[i];
    }
    DbTxn *txn = db_txn_new(stage->fx->pool);
    ledger_add_settle(txn, list, count, &VENDOR);
    committed(stage, txn);
    return (size_t)db_rows(stage->answer.rows[0]);
}

static LedgerSettled settled_at(Stage *stage, size_t n)
{
    return ledger_settled(stage->answer.rows[0], n);
}

static void park(Stage *stage, size_t count, const char *owner)
{
    LedgerClaim held = claim_by(owner);
    DbTxn *txn = db_txn_new(stage->fx->pool);
    ledger_add_park(txn, stage->list, count, &held);
    committed(stage, txn);
}

static const char *value(Stage *stage, const char *sql)
{
    return admin_value(stage->fx->admin, sql);
}

static void a_parked_row_is_settled_once(void **state)
{
    Stage *stage = *state;
    claim(stage, 2, "one");
    expire(stage);
    park(stage, 2, "two");
    LedgerProof proofs[] = {
        proof_of(stage, 1, "e1"), proof_of(stage, 0, "e2"), proof_of(stage, 1, "e3")};
    assert_int_equal(settle(stage, proofs, 3), 2);
    for (size_t n = 0; n < 2; n++) {
        LedgerSettled settled = settled_at(stage, n);
        assert_true(settled.index < 2); // the first of a notification's two
        assert_false(settled.repeated);
        assert_int_equal(settled.attempt, 1);
        assert_int_equal(settled.row.state, LEDGER_SENT);
        assert_int_equal(settled.row.unknown_count, 1);
        assert_true(str_eq(settled.row.vendor, STR("smtp")));
        assert_true(str_ends(settled.row.vendor_message_id, STR("@mail.example.com")));
        assert_true(settled.row.finished_at_us >= settled.row.claimed_at_us);
    }
    assert_int_equal(settle(stage, &proofs[2], 1), 0);
    assert_int_equal(settle(stage, proofs, 1), 1); // the same event again
    assert_true(settled_at(stage, 0).repeated);
    assert_int_equal(settled_at(stage, 0).row.unknown_count, 1);
}

static void an_ended_claim_is_settled_and_counted_as_unknown(void **state)
{
    Stage *stage = *state;
    claim(stage, 1, "one");
    expire(stage);
    LedgerProof proof = proof_of(stage, 0, "e1");
    assert_int_equal(settle(stage, &proof, 1), 1);
    assert_int_equal(settled_at(stage, 0).row.state, LEDGER_SENT);
    assert_int_equal(settled_at(stage, 0).row.unknown_count, 1);
    LedgerRow row = sent_row();
    row.state = LEDGER_DEFERRED;
    assert_int_equal(record(stage, &row, 1, "one"), 0); // its owner wakes up too late
    assert_int_equal(take_over(stage, 1, "two"), 0);
    assert_int_equal(claim(stage, 1, "two"), 1);
    assert_int_equal(ledger_conflict(stage->answer.rows[0], 0).row.state, LEDGER_SENT);
}

static void on_a_living_claim_it_is_noted_and_what_ends_it_is_sent(void **state)
{
    Stage *stage = *state;
    claim(stage, 3, "one");
    LedgerProof proofs[] = {
        proof_of(stage, 0, "e0"), proof_of(stage, 1, "e1"), proof_of(stage, 2, "e2")};
    assert_int_equal(settle(stage, proofs, 3), 3);
    assert_int_equal(settled_at(stage, 0).row.state, LEDGER_CLAIMED);
    assert_string_equal(value(stage, "SELECT sum(unknown_count) FROM dispatcher.ledger"), "0");
    LedgerRow row = sent_row();
    row.state = LEDGER_DEFERRED;
    row.due_at_us = clock_now_us();
    row.finished_at_us = clock_now_us();
    assert_int_equal(record(stage, &row, 1, "one"), 1);
    assert_true(ledger_hit(stage->answer.rows[0], 0).settled);
    assert_int_equal(record(stage, &row, 1, "one"), 1); // a repeat after a COMMIT without an answer
    expire(stage);
    stage->list[0] = &stage->keys[1];
    assert_int_equal(take_over(stage, 1, "two"), 1);
    assert_true(ledger_hit(stage->answer.rows[0], 0).settled);
    stage->list[0] = &stage->keys[2];
    park(stage, 1, "two");
    assert_true(ledger_hit(stage->answer.rows[0], 0).settled);
    assert_string_equal(
        value(
            stage, "SELECT string_agg(state || unknown_count || (finished_at >= claimed_at), ' ' "
                   "ORDER BY notification_id) FROM dispatcher.ledger WHERE settled_at IS NOT NULL"),
        "sent1true sent1true sent1true");
}

static void the_owners_own_sent_is_as_without_a_proof(void **state)
{
    Stage *stage = *state;
    claim(stage, 1, "one");
    LedgerProof proof = proof_of(stage, 0, "e0");
    assert_int_equal(settle(stage, &proof, 1), 1);
    LedgerRow row = sent_row();
    assert_int_equal(record(stage, &row, 1, "one"), 1);
    assert_string_equal(
        value(stage, "SELECT state || unknown_count || code FROM dispatcher.ledger"), "sent0250");
}

static void what_has_a_known_outcome_is_left_alone(void **state)
{
    Stage *stage = *state;
    claim(stage, 3, "one");
    LedgerRow row = sent_row();
    record(stage, &row, 1, "one");
    stage->list[0] = &stage->keys[1];
    row.state = LEDGER_DEFERRED;
    record(stage, &row, 1, "one");
    stage->list[0] = &stage->keys[2];
    row.state = LEDGER_FAILED;
    record(stage, &row, 1, "one");
    LedgerProof proofs[] = {
        proof_of(stage, 0, "e0"), proof_of(stage, 1, "e1"), proof_of(stage, 2, "e2"),
        proof_of(stage, 3, "e3")};
    assert_int_equal(settle(stage, proofs, 4), 0);
    assert_string_equal(value(stage, "SELECT count(settled_at) FROM dispatcher.ledger"), "0");
}

static void a_failure_after_an_unknown_try_is_settled(void **state)
{
    Stage *stage = *state;
    claim(stage, 2, "one");
    LedgerRow row = sent_row();
    row.state = LEDGER_FAILED;
    row.unknown_count = 2;
    record(stage, &row, 1, "one");
    stage->list[0] = &stage->keys[1];
    row.vendor = STR_EMPTY; // decided here: expired after the try of a process that died
    row.code = STR("expired");
    record(stage, &row, 1, "one");
    LedgerProof proofs[] = {proof_of(stage, 0, "e0"), proof_of(stage, 1, "e1")};
    assert_int_equal(settle(stage, proofs, 2), 2);
    for (size_t n = 0; n < 2; n++) {
        LedgerSettled settled = settled_at(stage, n);
        assert_int_equal(settled.row.state, LEDGER_SENT);
        assert_true(str_eq(settled.row.vendor, STR("smtp")));
        assert_true(str_eq(settled.row.code, settled.index == 0 ? STR("250") : STR_EMPTY));
    }
}

static void the_latest_open_attempt_is_settled_and_none_beside_a_sent_one(void **state)
{
    Stage *stage = *state;
    claim(stage, 2, "one");
    LedgerRow row = sent_row();
    row.state = LEDGER_DEFERRED;
    row.unknown_count = 2;
    row.due_at_us = clock_now_us();
    record(stage, &row, 2, "one");
    stage->keys[0].attempt = 2;
    stage->keys[1].attempt = 2;
    claim(stage, 2, "one");
    row = sent_row();
    record(stage, &row, 1, "one");
    LedgerProof proofs[] = {proof_of(stage, 0, "e0"), proof_of(stage, 1, "e1")};
    assert_int_equal(settle(stage, proofs, 2), 1);
    assert_int_equal(settled_at(stage, 0).index, 1);
    assert_int_equal(settled_at(stage, 0).attempt, 2);
}

static void a_callback_settles_rows_of_its_own_vendor_only(void **state)
{
    Stage *stage = *state;
    stage->place = (LedgerPlace){STR("postmark"), STR("main"), STR("k-1")};
    claim(stage, 1, "one");
    expire(stage);
    LedgerProof other = proof_from(stage, "sendgrid", 0, "e0");
    LedgerProof own = proof_from(stage, "postmark", 0, "e1");
    assert_int_equal(settle(stage, &other, 1), 0);
    assert_int_equal(settle(stage, &own, 1), 1);
    LedgerSettled settled = settled_at(stage, 0);
    assert_true(str_eq(settled.row.vendor, STR("postmark")));
    assert_true(str_eq(settled.row.credential, STR("main")));
    assert_true(str_eq(settled.row.vendor_message_id, STR("m-1")));
    assert_false(settled.second);
    assert_string_equal(
        value(stage, "SELECT vendor || credential || vendor_key FROM dispatcher.ledger"),
        "postmarkmaink-1");
}

// Its answer never came, so the mail went to a second vendor, as its policy allows.
static void a_late_proof_of_the_first_vendor_is_a_second_sent(void **state)
{
    Stage *stage = *state;
    stage->place.vendor = STR("postmark");
    claim(stage, 1, "one");
    LedgerRow row = sent_row();
    row.vendor = STR("postmark");
    row.state = LEDGER_DEFERRED;
    row.unknown_count = 1;
    row.due_at_us = clock_now_us();
    record(stage, &row, 1, "one");
    stage->keys[0].attempt = 2;
    stage->place.vendor = STR("sendgrid");
    claim(stage, 1, "one");
    row = sent_row();
    row.vendor = STR("sendgrid");
    record(stage, &row, 1, "one");
    LedgerProof proof = proof_from(stage, "postmark", 0, "e1");
    assert_int_equal(settle(stage, &proof, 1), 1);
    assert_int_equal(settled_at(stage, 0).attempt, 1);
    assert_true(settled_at(stage, 0).second);
    assert_int_equal(settle(stage, &proof, 1), 1);
    assert_true(settled_at(stage, 0).repeated && settled_at(stage, 0).second);
    assert_string_equal(
        value(
            stage, "SELECT string_agg(vendor || ' ' || state, ', ' ORDER BY attempt) FROM "
                   "dispatcher.ledger"),
        "postmark sent, sendgrid sent");
}

static void a_callback_that_names_its_attempt_settles_that_one(void **state)
{
    Stage *stage = *state;
    LedgerRow row = sent_row();
    row.state = LEDGER_DEFERRED;
    row.unknown_count = 1;
    row.due_at_us = clock_now_us();
    for (int32_t attempt = 1; attempt <= 2; attempt++) {
        stage->keys[0].attempt = attempt;
        claim(stage, 1, "one");
        record(stage, &row, 1, "one");
    }
    LedgerProof proof = proof_from(stage, "sendgrid", 1, "e1");
    assert_int_equal(settle(stage, &proof, 1), 1);
    assert_int_equal(settled_at(stage, 0).attempt, 1);
    LedgerProof third = proof_from(stage, "sendgrid", 3, "e3");
    assert_int_equal(settle(stage, &third, 1), 0);
}

static void a_retry_after_a_settled_attempt_is_not_claimed(void **state)
{
    Stage *stage = *state;
    claim(stage, 2, "one");
    LedgerRow row = sent_row();
    row.state = LEDGER_DEFERRED;
    row.unknown_count = 2;
    record(stage, &row, 2, "one");
    LedgerProof proof = proof_of(stage, 1, "e1");
    assert_int_equal(settle(stage, &proof, 1), 1);
    for (size_t i = 0; i < 2; i++) {
        stage->keys[i].attempt = 3; // the second was refused, which proves nothing
        stage->keys[i].retry = true;
    }
    assert_int_equal(claim(stage, KEYS, "two"), 1);
    LedgerConflict conflict = ledger_conflict(stage->answer.rows[0], 0);
    assert_int_equal(conflict.index, 1);
    assert_int_equal(conflict.attempt, 1);
    assert_int_equal(conflict.row.state, LEDGER_SENT);
    assert_int_equal(conflict.row.unknown_count, 2);
    stage->keys[1].retry = false; // a person wants it
    stage->list[0] = &stage->keys[1];
    assert_int_equal(claim(stage, 1, "two"), 0);
    stage->keys[1].retry = true; // its own row comes before an earlier one
    assert_int_equal(claim(stage, 1, "two"), 1);
    conflict = ledger_conflict(stage->answer.rows[0], 0);
    assert_int_equal(conflict.attempt, 3);
    assert_int_equal(conflict.row.state, LEDGER_CLAIMED);
}

static LedgerOpen count_open(Stage *stage)
{
    DbTxn *txn = db_txn_new(stage->fx->pool);
    assert_int_equal(ledger_add_unknown_open(txn), 0);
    committed(stage, txn);
    return ledger_unknown_open(stage->answer.rows[0]);
}

static void open_unknowns_of_all_tenants_are_counted(void **state)
{
    Stage *stage = *state;
    claim(stage, KEYS, "one");
    assert_int_equal(count_open(stage).claimed, 0); // their leases live
    DbTxn *txn = db_txn_new(stage->fx->pool);
    ledger_add_release(txn, stage->list, 1, STR("one"));
    committed(stage, txn);
    assert_int_equal(count_open(stage).claimed, 0); // surely not sent
    expire(stage);
    assert_int_equal(count_open(stage).claimed, 3);
    stage->list[0] = &stage->keys[1];
    park(stage, 1, "two");
    assert_int_equal(count_open(stage).claimed, 2);
    assert_int_equal(count_open(stage).parked, 1);
    LedgerProof proofs[] = {proof_of(stage, 1, "e1"), proof_of(stage, 2, "e2")};
    assert_int_equal(settle(stage, proofs, 2), 2);
    assert_int_equal(count_open(stage).claimed, 1);
    assert_int_equal(count_open(stage).parked, 0);
}

static void proofs_and_the_count_scan_nothing_in_a_large_table(void **state)
{
    Stage *stage = *state;
    LedgerProof proofs[] = {proof_of(stage, 0, "e0"), proof_of(stage, 1, "e1")};
    claim(stage, 1, "one");
    note_as_small(stage);
    for (int i = 0; i < 8; i++) {
        settle(stage, proofs, 2);
        count_open(stage);
    }
    fill_table(stage);
    for (int i = 0; i < 5; i++) {
        settle(stage, proofs, 2);
        count_open(stage);
    }
    expect_no_scan(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE(a_parked_row_is_settled_once),
        ON_STAGE(an_ended_claim_is_settled_and_counted_as_unknown),
        ON_STAGE(on_a_living_claim_it_is_noted_and_what_ends_it_is_sent),
        ON_STAGE(the_owners_own_sent_is_as_without_a_proof),
        ON_STAGE(what_has_a_known_outcome_is_left_alone),
        ON_STAGE(a_failure_after_an_unknown_try_is_settled),
        ON_STAGE(the_latest_open_attempt_is_settled_and_none_beside_a_sent_one),
        ON_STAGE(a_callback_settles_rows_of_its_own_vendor_only),
        ON_STAGE(a_late_proof_of_the_first_vendor_is_a_second_sent),
        ON_STAGE(a_callback_that_names_its_attempt_settles_that_one),
        ON_STAGE(a_retry_after_a_settled_attempt_is_not_claimed),
        ON_STAGE(open_unknowns_of_all_tenants_are_counted),
        ON_STAGE(proofs_and_the_count_scan_nothing_in_a_large_table),
    };
    return cmocka_run_group_tests(tests, migrate_once, NULL);
}
