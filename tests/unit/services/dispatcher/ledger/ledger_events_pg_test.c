// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/ledger/ledger_events.h"

#include "tests/unit/services/dispatcher/ledger_stage.h"

#define AT_US INT64_C(1790000000000000)

static LedgerEvent event(const char *id, uint64_t sequence, const char *message_id)
{
    return (LedgerEvent){
        .at_us = AT_US,
        .event_id = str_from(id),
        .tenant = STR("acme"),
        .sequence = sequence,
        .vendor = STR("postmark"),
        .message_id = str_from(message_id),
    };
}

static size_t look_up(Stage *stage, const LedgerEvent *events, size_t count)
{
    DbTxn *txn = db_txn_new(stage->fx->pool);
    ledger_add_late(txn, events, count);
    committed(stage, txn);
    return (size_t)db_rows(stage->answer.rows[0]);
}

static LedgerLate one(Stage *stage, LedgerEvent asked)
{
    assert_int_equal(look_up(stage, &asked, 1), 1);
    return ledger_late(stage->answer.rows[0], 0);
}

static void note(Stage *stage, LedgerEvent noted)
{
    DbTxn *txn = db_txn_new(stage->fx->pool);
    ledger_add_noted(txn, &noted, 1);
    committed(stage, txn);
}

// Key 0, acme's, at Postmark under the id "m1".
static void send_one(Stage *stage)
{
    admin_exec(stage->fx->admin, "TRUNCATE dispatcher.callback_events");
    LedgerRow row = sent_row();
    row.vendor = STR("postmark");
    row.vendor_message_id = STR("m1");
    claim(stage, 1, "one");
    assert_int_equal(record(stage, &row, 1, "one"), 1);
}

static void a_mail_is_found_by_its_vendors_id_for_its_own_tenant_and_vendor(void **state)
{
    Stage *stage = *state;
    send_one(stage);
    LedgerLate found = one(stage, event("e1", 7, "m1"));
    assert_true(str_eq(found.notification_id, stage->keys[0].notification_id));
    assert_false(found.repeated);
    LedgerEvent other = event("e2", 8, "m1");
    other.tenant = STR("zeta");
    assert_int_equal(one(stage, other).notification_id.len, 0);
    other = event("e3", 9, "m1");
    other.vendor = STR("resend");
    assert_int_equal(one(stage, other).notification_id.len, 0);
    assert_int_equal(one(stage, event("e4", 10, "m2")).notification_id.len, 0);
    assert_int_equal(one(stage, event("e5", 11, "")).notification_id.len, 0);
    LedgerEvent named = event("e6", 12, "");
    named.notification_id = STR("ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV");
    assert_true(str_eq(one(stage, named).notification_id, named.notification_id));
    // Only what was found is noted: what was not comes again.
    assert_string_equal(
        admin_value(stage->fx->admin, "SELECT count(*) FROM dispatcher.callback_events"), "2");
}

static void a_repeat_is_another_message_of_the_same_event(void **state)
{
    Stage *stage = *state;
    send_one(stage);
    assert_false(one(stage, event("e1", 7, "m1")).repeated);
    assert_false(one(stage, event("e1", 7, "m1")).repeated); // the same message after a crash
    assert_true(one(stage, event("e1", 8, "m1")).repeated);
    LedgerEvent later = event("e1", 9, "m1");
    later.at_us++; // it occurred at another time
    assert_false(one(stage, later).repeated);
    note(stage, event("e2", 20, "")); // published on time
    note(stage, event("e2", 20, ""));
    assert_true(one(stage, event("e2", 21, "m1")).repeated);
}

static void two_copies_in_one_batch_are_published_under_one_id(void **state)
{
    Stage *stage = *state;
    send_one(stage);
    LedgerEvent both[] = {event("e1", 7, "m1"), event("e1", 8, "m1")};
    assert_int_equal(look_up(stage, both, 2), 2); // the log recognises the second
    assert_string_equal(
        admin_value(stage->fx->admin, "SELECT count(*) FROM dispatcher.callback_events"), "1");
}

static void what_is_older_than_a_week_is_dropped(void **state)
{
    Stage *stage = *state;
    send_one(stage);
    admin_exec(
        stage->fx->admin,
        "INSERT INTO dispatcher.callback_events SELECT now() - d * interval '1 day', 'e' || d, "
        "'acme', d, now() - d * interval '1 day' FROM generate_series(1, 12) d");
    admin_exec(
        stage->fx->admin, // it occurred long ago and was noted today
        "INSERT INTO dispatcher.callback_events VALUES (now() - interval '30 days', 'x', 'acme', "
        "1)");
    assert_string_equal(
        admin_value(
            stage->fx->admin, "SELECT dropped || coalesce(go_on, '') FROM "
                              "dispatcher.drop_callback_events(NULL, '7 days 1 hour', '', 3)"),
        "3more");
    assert_string_equal(
        admin_value(
            stage->fx->admin, "SELECT dropped || coalesce(go_on, '') FROM "
                              "dispatcher.drop_callback_events(NULL, '7 days 1 hour', 'more', 3)"),
        "2");
    assert_string_equal(
        admin_value(stage->fx->admin, "SELECT count(*) FROM dispatcher.callback_events"), "8");
}

static void a_look_up_scans_nothing_in_a_large_table(void **state)
{
    Stage *stage = *state;
    send_one(stage);
    note_as_small(stage);
    for (int i = 0; i < 8; i++) {
        (void)one(stage, event("e1", 7, "m1"));
    }
    fill_table(stage);
    for (int i = 0; i < 5; i++) {
        (void)one(stage, event("e1", 7, "m1"));
    }
    expect_no_scan(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE(a_mail_is_found_by_its_vendors_id_for_its_own_tenant_and_vendor),
        ON_STAGE(a_repeat_is_another_message_of_the_same_event),
        ON_STAGE(two_copies_in_one_batch_are_published_under_one_id),
        ON_STAGE(what_is_older_than_a_week_is_dropped),
        ON_STAGE(a_look_up_scans_nothing_in_a_large_table),
    };
    return cmocka_run_group_tests(tests, migrate_once, NULL);
}
