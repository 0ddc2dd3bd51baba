// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/ledger/ledger_calls.h"

#include "tests/unit/services/dispatcher/ledger_stage.h"

static LedgerCall call_of(const Stage *stage, size_t key, const char *reason)
{
    return (LedgerCall){
        .key = stage->keys[key],
        .vendor = STR("twilio_voice"),
        .reason = str_from(reason),
        .reply = STR("busy 486")};
}

// Taken; another call is due in so many seconds, or none.
static void taken(Stage *stage, size_t key, int due_s)
{
    stage->place = (LedgerPlace){STR("twilio_voice"), STR("main"), STR_EMPTY};
    const LedgerKey *keys[] = {&stage->keys[key]};
    const LedgerPlace *places[] = {&stage->place};
    LedgerClaim held = claim_by("us");
    DbTxn *txn = db_txn_new(stage->fx->pool);
    ledger_add_claim(txn, keys, places, 1, &held);
    committed(stage, txn);
    const LedgerRow row = {
        .state = LEDGER_SENT,
        .claimed_at_us = held.now_us,
        .finished_at_us = held.now_us,
        .due_at_us = due_s > 0 ? held.now_us + due_s * INT64_C(1000000) : 0,
        .rung = due_s > 0 ? 1 : -1,
        .vendor = STR("twilio_voice"),
        .code = STR("201")};
    const LedgerRow *rows[] = {&row};
    txn = db_txn_new(stage->fx->pool);
    ledger_add_outcomes(txn, keys, rows, 1, STR("us"));
    committed(stage, txn);
}

// How many another call follows.
static size_t reported(Stage *stage, const LedgerCall *calls, size_t count)
{
    DbTxn *txn = db_txn_new(stage->fx->pool);
    ledger_add_unanswered(txn, calls, count);
    committed(stage, txn);
    return (size_t)db_rows(stage->answer.rows[0]);
}

static const char *row_of(Stage *stage, size_t key)
{
    char sql[256];
    (void)snprintf(
        sql, sizeof sql,
        "SELECT state || ' ' || code || ' ' || coalesce(reply, '-') FROM dispatcher.ledger"
        " WHERE notification_id = '%s' AND attempt = 1",
        stage->ids[key]);
    return admin_value(stage->fx->admin, sql);
}

static void a_call_that_another_one_follows_is_deferred_once(void **state)
{
    Stage *stage = *state;
    taken(stage, 0, 60);
    LedgerCall calls[] = {
        call_of(stage, 0, "busy"), call_of(stage, 0, "busy")}; // twice in one batch
    assert_int_equal(reported(stage, calls, 2), 2);
    assert_string_equal(row_of(stage, 0), "deferred busy busy 486");
    calls[0].reason = STR("no_answer");
    assert_int_equal(reported(stage, calls, 1), 1); // again: the same
    assert_string_equal(row_of(stage, 0), "deferred busy busy 486");
}

static void without_another_call_or_too_late_it_stays_sent(void **state)
{
    Stage *stage = *state;
    taken(stage, 0, 0);
    taken(stage, 1, 1); // within what clocks may differ by
    taken(stage, 2, 60);
    LedgerCall calls[] = {
        call_of(stage, 0, "busy"), call_of(stage, 1, "busy"), call_of(stage, 2, "busy"),
        call_of(stage, 3, "busy")};
    calls[2].vendor = STR("vonage_voice"); // another vendor's report
    assert_int_equal(reported(stage, calls, 4), 0);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(row_of(stage, i), "sent 201 -");
    }
    calls[2] = call_of(stage, 2, "busy");
    calls[2].key.attempt = 2;
    assert_int_equal(reported(stage, &calls[2], 1), 0);
    calls[2] = call_of(stage, 2, "busy");
    calls[2].key.tenant = STR("zeta"); // row-level security, too
    assert_int_equal(reported(stage, &calls[2], 1), 0);
}

// 1: the claim of the second attempt holds.
static bool next_begins(Stage *stage, size_t key)
{
    LedgerKey second = stage->keys[key];
    second.attempt = 2;
    second.retry = true;
    const LedgerKey *keys[] = {&second};
    const LedgerPlace *places[] = {&stage->place};
    LedgerClaim held = claim_by("us");
    DbTxn *txn = db_txn_new(stage->fx->pool);
    ledger_add_claim(txn, keys, places, 1, &held);
    committed(stage, txn);
    size_t conflicts = ledger_conflicts(stage->answer.rows[0]);
    if (conflicts > 0) {
        LedgerConflict found = ledger_conflict(stage->answer.rows[0], 0);
        assert_int_equal(found.attempt, 1);
        assert_int_equal(found.row.state, LEDGER_SENT);
        assert_true(found.row.due_at_us > 0);
    }
    return conflicts == 0;
}

static void the_next_call_begins_only_when_this_one_was_not_answered(void **state)
{
    Stage *stage = *state;
    taken(stage, 0, 60);
    taken(stage, 1, 60);
    LedgerCall call = call_of(stage, 0, "no_answer");
    assert_int_equal(reported(stage, &call, 1), 1);
    assert_true(next_begins(stage, 0));
    assert_false(next_begins(stage, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_call_that_another_one_follows_is_deferred_once, stage_up, stage_down),
        cmocka_unit_test_setup_teardown(
            without_another_call_or_too_late_it_stays_sent, stage_up, stage_down),
        cmocka_unit_test_setup_teardown(
            the_next_call_begins_only_when_this_one_was_not_answered, stage_up, stage_down),
    };
    return cmocka_run_group_tests(tests, migrate_once, NULL);
}
