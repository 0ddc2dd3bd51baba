// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "tests/unit/common/history/history_flush.h"

static void the_months_of_the_tests_are_made(void **state)
{
    Fixture *f = *state;
    DbTxn *txn = db_txn_new(f->pool);
    history_ensure_months(&f->sql, txn, AT(0), AT(0));
    submit(f, txn);
    assert_string_equal(
        value(f, "SELECT to_regclass('archiver.notifications_record_y2025m11') IS NOT NULL"), "t");
    assert_string_equal(
        value(f, "SELECT to_regclass('archiver.delivery_attempts_record_y2025m11') IS NOT NULL"),
        "t");
}

static void a_batchs_totals_count_its_notifications_by_status(void **state)
{
    Fixture *f = *state;
    static const char *const ids[] = {
        NTF_ID, "ntf_01KAGTQ5M0000000000000000B", "ntf_01KAGTQ5M0000000000000000C"};
    for (size_t i = 0; i < 3; i++) {
        fold_ok(f, request_message(f->arena, request_new(f->arena, ids[i])));
    }
    // A status that came without the batch's id leaves it there, and moves the totals.
    StatusEvent *sent = status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_SENT, AT(3));
    fold_ok(f, status_message(f->arena, sent));
    flush(f);
    static const char totals[] = "SELECT string_agg(status || notifications, ',' ORDER BY status)"
                                 " FROM stentor.batch_totals('%s', '%s', to_timestamp(0))";
    char sql[256];
    snprintf(sql, sizeof sql, totals, "demo", "dbt_1");
    assert_string_equal(value(f, sql), "queued2,sent1");
    snprintf(sql, sizeof sql, totals, "rival", "dbt_1");
    assert_string_equal(value(f, sql), "");
}

static void a_row_holds_what_the_events_said(void **state)
{
    Fixture *f = *state;
    Request *request = request_new(f->arena, NTF_ID);
    request->digest_window_id = arena_cstr(f->arena, STR("dgw_1"));
    fold_ok(f, request_message(f->arena, request));
    StatusEvent *sent = status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_SENT, AT(3));
    sent->rendered_at_us = AT(1);
    sent->content_checksum = pb_data(STR("checksum"));
    attempt_new(f->arena, sent, 1, STENTOR__V1__OUTCOME__OUTCOME_ACCEPTED);
    sent->attempt->retry_after_ms = 60000;
    sent->from_domain = arena_cstr(f->arena, STR("acme.test"));
    sent->provider = arena_cstr(f->arena, STR("gmail.com"));
    sent->gate_trace = arena_cstr(f->arena, STR("T+S+A+"));
    fold_ok(f, status_message(f->arena, sent));
    flush(f);
    assert_string_equal(
        value(
            f, "SELECT concat_ws('|', id, tenant_id, channel, category, priority, status, "
               "status_rank, template,"
               " template_version, locale, recipient_id, correlation_id, source_event_id, batch_id,"
               " source_event_type, digest_window_id, copy_of, from_domain, provider, gate_trace,"
               " convert_from(address_hash, 'UTF8'), convert_from(content_checksum, 'UTF8'))"
               " FROM archiver.notifications"),
        NTF_ID
        "|demo|email|transactional|high|sent|5|welcome|1.0.0|en-US|rcp_1|corr-1|evt_1|dbt_1|"
        "stay.confirmed|dgw_1|ntf_first|acme.test|gmail.com|T+S+A+|hash-hash-hash-hash-hash-hash-"
        "32|checksum");
    assert_string_equal(
        value(
            f, "SELECT extract(epoch FROM sent_at - queued_at) || '|' ||"
               " extract(epoch FROM rendered_at - created_at) || '|' || extract(epoch FROM "
               "expires_at - created_at)"
               " || '|' || num_nulls(reason_code, reason, scheduled_for, scheduled_at, "
               "delivered_at, opened_at,"
               " clicked_at, ended_at) FROM archiver.notifications"),
        "3.000000|1.000000|3600.000000|8");
    assert_string_equal(
        value(
            f, "SELECT concat_ws('|', notification_id, attempt_number, id, tenant_id, channel, "
               "vendor, outcome, code,"
               " enhanced_code, reply, extract(epoch FROM finished_at - started_at), was_unknown, "
               "retry_after_ms)"
               " FROM archiver.delivery_attempts"),
        NTF_ID "|1|dat_01KAGTQ5M0000000000000000B|demo|email|smtp|accepted|250|2.0.0|ok, "
               "queued|1.000000|f|60000");
}

static void updated_at_is_when_the_row_was_written(void **state)
{
    Fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        int64_t before_us = clock_now_us();
        fold_ok(f, request_message(f->arena, request_new(f->arena, NTF_ID)));
        flush(f);
        const char *written = value(
            f,
            "SELECT (extract(epoch FROM updated_at) * 1000000)::int8 FROM archiver.notifications");
        int64_t written_us = 0;
        assert_true(str_to_i64(str_from(written), &written_us));
        assert_true(written_us >= before_us && written_us <= clock_now_us());
    }
}

// Notification n of 120 gets the five events of the story in the n-th order, one event a flush;
// number 120 gets them all in one flush. The columns have to be the same for all.
static void flush_in_every_order(Fixture *f, Story story)
{
    for (int step = 0; step < STORY_EVENTS; step++) {
        for (int n = 0; n < STORY_ORDERS; n++) {
            int order[STORY_EVENTS];
            story_order(n, order);
            const char *id = arena_printf(f->arena, "ntf_01KAGTQ5M00000000000000%03d", n);
            fold_ok(f, story(f->arena, id, order[step]));
        }
        flush(f);
    }
    for (int number = 0; number < STORY_EVENTS; number++) {
        fold_ok(f, story(f->arena, "ntf_01KAGTQ5M00000000000000120", number));
    }
    flush(f);
    assert_string_equal(
        value(
            f, "SELECT count(*) || '|' || count(DISTINCT to_jsonb(n) - 'id' - 'updated_at')"
               " FROM archiver.notifications n"),
        "121|1");
}

static void every_order_of_flushes_gives_the_same_rows(void **state)
{
    Fixture *f = *state;
    flush_in_every_order(f, story_event);
    assert_string_equal(
        value(
            f, "SELECT count(*) || '|' || count(DISTINCT to_jsonb(a) - 'notification_id')"
               " FROM archiver.delivery_attempts a"),
        "242|2");
    assert_string_equal(
        value(
            f, "SELECT DISTINCT concat_ws('|', status, reason_code, reason, template_version) FROM "
               "archiver.notifications"),
        "bounced|mailbox_full|the mailbox is full|2.0.0");
}

static void a_callbacks_price_joins_its_attempt_in_every_order_of_flushes(void **state)
{
    Fixture *f = *state;
    flush_in_every_order(f, cost_event);
    assert_string_equal(
        value(
            f, "SELECT string_agg(DISTINCT concat_ws('|', attempt_number, id, vendor, outcome, "
               "code, finished_at IS NULL, segments, cost_micros, currency, calling_code, "
               "price_category, credential, route), ' ') FROM archiver.delivery_attempts"),
        "1|dat_01KAGTQ5M0000000000000000B|smtp|accepted|250|f|1|43|main|austria "
        "2|dat_01KAGTQ5M0000000000000000B|smtp|accepted|250|f|2|15000|USD|43|marketing|main|"
        "austria");
}

static void a_later_life_wins_in_every_order_of_flushes(void **state)
{
    Fixture *f = *state;
    flush_in_every_order(f, resend_event);
    assert_string_equal(
        value(
            f, "SELECT DISTINCT concat_ws('|', status, status_rank, num_nulls(reason_code, reason),"
               " extract(epoch FROM sent_at - ended_at)) FROM archiver.notifications"),
        "sent|205|2|30.000000");
}

static void a_callback_is_stored_above_every_life(void **state)
{
    Fixture *f = *state;
    StatusEvent *sent = status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_SENT, AT(3));
    sent->resends = FOLD_RESENDS_MAX;
    StatusEvent *delivered =
        status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_DELIVERED, AT(4));
    for (int i = 0; i < 3; i++) {
        fold_ok(f, status_message(f->arena, i == 1 ? delivered : sent));
        flush(f);
    }
    assert_string_equal(
        value(f, "SELECT status || '|' || status_rank FROM archiver.notifications"),
        "delivered|30006");
}

static void the_order_of_outcomes_in_sql_is_that_of_the_enumeration(void **state)
{
    Fixture *f = *state;
    for (int outcome = OUTCOME_ACCEPTED; outcome < OUTCOME_COUNT; outcome++) {
        for (int other = OUTCOME_ACCEPTED; other < OUTCOME_COUNT; other++) {
            sql(f, "DELETE FROM archiver.notifications; DELETE FROM archiver.delivery_attempts");
            const int turns[] = {outcome, other};
            for (int i = 0; i < 2; i++) {
                StatusEvent *event =
                    status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_SENDING, AT(3));
                attempt_new(f->arena, event, 1, (Stentor__V1__Outcome)turns[i]);
                fold_ok(f, status_message(f->arena, event));
                flush(f);
            }
            int greater = outcome > other ? outcome : other;
            assert_string_equal(
                value(f, "SELECT outcome FROM archiver.delivery_attempts"),
                outcome_name((Outcome)greater));
        }
    }
}

static void a_repeated_attempt_writes_nothing(void **state)
{
    Fixture *f = *state;
    const char *written[2];
    for (int i = 0; i < 2; i++) {
        StatusEvent *event = status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_SENT, AT(3));
        attempt_new(f->arena, event, 1, STENTOR__V1__OUTCOME__OUTCOME_ACCEPTED);
        fold_ok(f, status_message(f->arena, event));
        flush(f);
        written[i] = value(f, "SELECT xmin || ' ' || ctid FROM archiver.delivery_attempts");
    }
    assert_string_equal(written[0], written[1]);
}

static void an_id_of_another_tenant_cannot_touch_its_row_or_stop_the_flush(void **state)
{
    Fixture *f = *state;
    fold_ok(f, request_message(f->arena, request_new(f->arena, NTF_ID)));
    flush(f);
    StatusEvent *forged =
        status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_COMPLAINED, AT(3));
    attempt_new(f->arena, forged, 1, STENTOR__V1__OUTCOME__OUTCOME_COMPLAINT);
    forged->meta->tenant = (char *)(uintptr_t) "other";
    fold_ok(f, status_message(f->arena, forged));
    flush(f);
    assert_string_equal(
        value(f, "SELECT status FROM archiver.notifications WHERE tenant_id = 'demo'"), "queued");
    assert_string_equal(
        value(f, "SELECT status FROM archiver.notifications WHERE tenant_id = 'other'"),
        "complained");
}

static void an_event_of_an_unknown_month_brings_its_partitions(void **state)
{
    Fixture *f = *state;
    HistoryMonths months = {0};
    const char *old = "ntf_01GW0000000000000000000000"; // 2023-03
    BusMessage message = request_message(f->arena, request_new(f->arena, old));
    for (int i = 0; i < 2; i++) {
        fold_ok(f, message);
        DbTxn *txn = db_txn_new(f->pool);
        history_months_write(&f->sql, &months, f->fold, txn);
        assert_int_equal(months.asked, 1);
        history_write(&f->sql, f->fold, txn);
        submit(f, txn);
        history_months_committed(&months);
        assert_int_equal(months.known, 1);
        fold_clear(f->fold);
    }
    assert_string_equal(
        value(f, "SELECT count(*) FROM archiver.notifications_record_y2023m03"), "1");
}

// A lazy commit is lost in a crash of Postgres, and the partitions with it.
static void a_month_that_postgres_lost_is_made_again(void **state)
{
    Fixture *f = *state;
    HistoryMonths months = {0};
    const char *old = "ntf_01GPFVP9M00000000000000000"; // 2023-01
    for (int i = 0; i < 2; i++) {
        fold_ok(f, request_message(f->arena, request_new(f->arena, old)));
        DbTxn *txn = db_txn_new(f->pool);
        history_months_write(&f->sql, &months, f->fold, txn);
        history_write(&f->sql, f->fold, txn);
        submit(f, txn);
        history_months_committed(&months);
        fold_clear(f->fold);
        assert_string_equal(
            value(f, "SELECT count(*) FROM archiver.notifications_record_y2023m01"), "1");
        sql(f, "DROP TABLE archiver.notifications_record_y2023m01, "
               "archiver.delivery_attempts_record_y2023m01");
        history_months_forget(&months); // what the archiver does when its flush was dropped
    }
}

static void a_month_whose_flush_failed_is_asked_again(void **state)
{
    Fixture *f = *state;
    HistoryMonths months = {0};
    fold_ok(f, request_message(f->arena, request_new(f->arena, NTF_ID)));
    for (int i = 0; i < 2; i++) {
        DbTxn *txn = db_txn_new(f->pool);
        history_months_write(&f->sql, &months, f->fold, txn);
        assert_int_equal(months.asked, 1);
        assert_int_equal(months.known, 0);
        db_txn_abandon(txn);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_months_of_the_tests_are_made), // first: the others write there
        TEST(a_batchs_totals_count_its_notifications_by_status),
        TEST(a_row_holds_what_the_events_said),
        TEST(updated_at_is_when_the_row_was_written),
        TEST(every_order_of_flushes_gives_the_same_rows),
        TEST(a_callbacks_price_joins_its_attempt_in_every_order_of_flushes),
        TEST(a_later_life_wins_in_every_order_of_flushes),
        TEST(a_callback_is_stored_above_every_life),
        TEST(the_order_of_outcomes_in_sql_is_that_of_the_enumeration),
        TEST(a_repeated_attempt_writes_nothing),
        TEST(an_id_of_another_tenant_cannot_touch_its_row_or_stop_the_flush),
        TEST(an_event_of_an_unknown_month_brings_its_partitions),
        TEST(a_month_that_postgres_lost_is_made_again),
        TEST(a_month_whose_flush_failed_is_asked_again),
    };
    return cmocka_run_group_tests(tests, migrate_all, NULL);
}
