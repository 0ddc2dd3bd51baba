// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/services/digest-flusher/flusher_stage.h"

#include <string.h>

#define WINDOW "dgw_windowwindowwindow0001"
#define RECIPIENT "rcp_01KAGTQ5M0000000000000000A"

enum { PAST_S = -60, FUTURE_S = 3600 };

static int64_t from_now(int64_t seconds)
{
    return clock_now_us() + seconds * 1000000;
}

static DueWork *add(Fixture *f, const char *tenant, size_t number)
{
    DueWork *work = arena_zalloc(f->arena, sizeof *work);
    work->tenant = str_from(tenant);
    work->work_id = str_from(arena_printf(f->arena, "work%018zu", number));
    work->notification_id =
        str_from(arena_printf(f->arena, "ntf_01KAGTQ5M0000000000%07zu", number));
    work->reason = STR("schedule");
    snprintf(work->subject, sizeof work->subject, "ntf.request.low.%s", tenant);
    snprintf(work->event_id, sizeof work->event_id, "event%017zu", number);
    work->payload = str_from(arena_printf(f->arena, "payload%zu", number));
    work->due_at_us = from_now(FUTURE_S);
    work->caused_at_us = work->accepted_at_us = from_now(-1000 + (int64_t)number);
    f->work[f->work_count++] = work;
    return work;
}

static DueWork *add_item(Fixture *f, const char *tenant, size_t number, int64_t flush_in_s)
{
    Stentor__V1__DigestWindow *window = arena_alloc(f->arena, sizeof *window);
    stentor__v1__digest_window__init(window);
    window->window_id = arena_cstr(f->arena, STR(WINDOW));
    window->recipient_id = arena_cstr(f->arena, STR(RECIPIENT));
    window->category = STENTOR__V1__CATEGORY__CATEGORY_SOCIAL;
    window->channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    window->flush_at_us = from_now(flush_in_s);
    window->template_ = arena_cstr(f->arena, STR("digest"));
    window->template_version = arena_cstr(f->arena, STR("1.0.0"));
    DueWork *work = add(f, tenant, number);
    work->kind = WORK_GATHER;
    work->reason = STR("digest");
    work->due_at_us = window->flush_at_us;
    work->window = window;
    return work;
}

static void add_cancel(Fixture *f, const char *tenant, const char *key, int64_t before_us)
{
    Stentor__V1__Cancel *cancel = arena_alloc(f->arena, sizeof *cancel);
    stentor__v1__cancel__init(cancel);
    cancel->before_us = before_us;
    cancel->reason = arena_cstr(f->arena, STR("stay.cancelled"));
    DueWork *work = add(f, tenant, 900 + f->work_count);
    work->kind = WORK_CANCEL;
    work->cancel = cancel;
    work->cancel_key = str_from(key);
}

static void insert_and_forget(Fixture *f)
{
    insert(f);
    f->work_count = 0;
}

// ---- a freeze and what follows ----

static void on_freeze_done(void *ctx, DbTxn *txn, const Error *err)
{
    Fixture *f = ctx;
    on_txn_done(ctx, txn, err);
    if (err != NULL) {
        return;
    }
    const PGresult *rows = db_txn_result(txn, 1);
    f->rows = db_rows(rows);
    f->next_us = db_get_time(db_txn_result(txn, 2), 0, 0);
    f->waiting = f->rows > 0 ? db_get_int(rows, 0, FREEZE_LIVE) : -1;
    if (f->rows > 0 && !db_is_null(rows, 0, FREEZE_PAYLOAD)) {
        f->first_payload = arena_str(f->arena, db_get_text(rows, 0, FREEZE_PAYLOAD));
    }
}

static int freeze(Fixture *f, int64_t lease_ms)
{
    DbTxn *txn = db_txn_new(f->pool);
    digest_freeze(txn, lease_ms);
    submit(f, txn, on_freeze_done);
    return f->rows;
}

static void make(Fixture *f, bool with_digest)
{
    Digest digest = {.tenant = STR("demo"), .window_id = STR(WINDOW)};
    if (with_digest) {
        snprintf(digest.id, sizeof digest.id, "ntf_01KAGTQ5M0000000000DDDDDDD");
        snprintf(digest.event_id, sizeof digest.event_id, "digest0000000000000001");
        snprintf(digest.status_id, sizeof digest.status_id, "digest0000000000000002");
        snprintf(digest.subject, sizeof digest.subject, "ntf.request.low.demo");
        digest.payload = STR("digest");
        digest.head = STR("head");
    }
    DbTxn *txn = db_txn_new(f->pool);
    digest_make(txn, &digest, 1);
    submit(f, txn, on_txn_done);
}

static const char *state_of(Fixture *f)
{
    return cell(f, "SELECT state FROM digest_flusher.digest_windows");
}

static void items_gather_until_the_window_is_due(void **state)
{
    Fixture *f = *state;
    add_item(f, "demo", 1, FUTURE_S);
    add_item(f, "demo", 2, FUTURE_S);
    insert_and_forget(f);
    assert_string_equal(cell(f, "SELECT count(*) FROM digest_flusher.due_work"), "0");
    assert_int_equal(freeze(f, 60000), 0);
    assert_true(f->next_us > from_now(FUTURE_S - 60));
    sql(f, "UPDATE digest_flusher.digest_windows SET due_at = now()");
    assert_int_equal(freeze(f, 60000), 2);
    assert_int_equal(f->waiting, 2);
    assert_true(str_eq(f->first_payload, STR("payload1")));
    assert_string_equal(state_of(f), "flushing");
}

static void a_frozen_window_belongs_to_its_process_until_the_lease_ends(void **state)
{
    Fixture *f = *state;
    add_item(f, "demo", 1, PAST_S);
    insert_and_forget(f);
    assert_int_equal(freeze(f, 60000), 1);
    assert_int_equal(freeze(f, 60000), 0);
    sql(f, "UPDATE digest_flusher.digest_windows SET claimed_until = now() - interval '1 s'");
    assert_int_equal(freeze(f, 60000), 1);
}

static void the_decision_makes_due_work_of_the_digest_and_its_items(void **state)
{
    Fixture *f = *state;
    add_item(f, "demo", 1, PAST_S);
    add_item(f, "demo", 2, PAST_S);
    insert_and_forget(f);
    freeze(f, 60000);
    make(f, true);
    assert_string_equal(state_of(f), "flushed");
    assert_string_equal(
        cell(
            f, "SELECT string_agg(coalesce(status, 'itself') || ' ' || coalesce(reason_code, '-'), "
               "', ' ORDER BY work_id)"
               " FROM digest_flusher.due_work"),
        "itself -, queued -, superseded digest, superseded digest");
    assert_string_equal(
        cell(f, "SELECT count(*) FROM digest_flusher.digest_items WHERE payload IS NOT NULL"), "0");
    sql(f, "DELETE FROM digest_flusher.due_work"); // all was emitted
    make(f, true);                                 // a replica that was slow
    assert_string_equal(cell(f, "SELECT count(*) FROM digest_flusher.due_work"), "0");
}

static void a_single_item_goes_out_as_itself(void **state)
{
    Fixture *f = *state;
    add_item(f, "demo", 1, PAST_S);
    insert_and_forget(f);
    freeze(f, 60000);
    make(f, false);
    assert_string_equal(
        cell(
            f, "SELECT concat_ws(' ', subject, event_id, convert_from(payload, 'UTF8'), status) "
               "FROM digest_flusher.due_work"),
        "ntf.request.low.demo event00000000000000001 payload1");
}

static void an_item_delivered_again_after_its_window_does_not_come_again(void **state)
{
    Fixture *f = *state;
    add_item(f, "demo", 1, PAST_S);
    insert(f);
    freeze(f, 60000);
    make(f, false);
    sql(f, "DELETE FROM digest_flusher.due_work");
    insert(f);
    assert_string_equal(cell(f, "SELECT count(*) FROM digest_flusher.due_work"), "0");
    assert_int_equal(freeze(f, 60000), 0);
}

static void a_late_item_goes_out_as_itself_and_once(void **state)
{
    Fixture *f = *state;
    add_item(f, "demo", 1, PAST_S);
    insert_and_forget(f);
    freeze(f, 60000);
    add_item(f, "demo", 2, PAST_S);
    insert(f);
    assert_string_equal(
        cell(f, "SELECT concat_ws(' ', event_id, status) FROM digest_flusher.due_work"),
        "event00000000000000002");
    sql(f, "DELETE FROM digest_flusher.due_work");
    insert(f);
    assert_string_equal(cell(f, "SELECT count(*) FROM digest_flusher.due_work"), "0");
}

static void an_expired_item_is_not_in_the_digest(void **state)
{
    Fixture *f = *state;
    add_item(f, "demo", 1, PAST_S)->expires_at_us = from_now(-1);
    add_item(f, "demo", 2, PAST_S);
    add_item(f, "demo", 3, PAST_S)->expires_at_us = from_now(FUTURE_S);
    insert_and_forget(f);
    assert_int_equal(freeze(f, 60000), 2);
    assert_int_equal(f->waiting, 2);
    make(f, true);
    assert_string_equal(
        cell(
            f, "SELECT string_agg(event_id, ',') FROM digest_flusher.due_work WHERE status IS NULL "
               "AND "
               "subject <> ''"
               " AND event_id LIKE 'event%'"),
        "event00000000000000001");
}

static void a_freeze_lists_the_oldest_and_the_newest(void **state)
{
    Fixture *f = *state;
    for (size_t i = 0; i < DIGEST_LIST_MAX + 10; i++) {
        add_item(f, "demo", i, PAST_S);
    }
    insert_and_forget(f);
    assert_int_equal(freeze(f, 60000), DIGEST_LIST_MAX + 1);
    assert_int_equal(f->waiting, DIGEST_LIST_MAX + 10);
    assert_true(str_eq(f->first_payload, STR("payload0")));
}

static void a_large_window_is_absorbed_in_parts(void **state)
{
    Fixture *f = *state;
    for (size_t i = 0; i < DIGEST_ABSORB_MAX + 10; i++) {
        add_item(f, "demo", i, PAST_S);
    }
    insert_and_forget(f);
    freeze(f, 60000);
    make(f, true);
    assert_string_equal(state_of(f), "absorbing");
    freeze(f, 60000); // every pass goes on with what is left
    assert_string_equal(state_of(f), "flushed");
    char expected[16];
    snprintf(expected, sizeof expected, "%d", DIGEST_ABSORB_MAX + 12);
    assert_string_equal(cell(f, "SELECT count(*) FROM digest_flusher.due_work"), expected);
}

static void two_tenants_with_the_same_window_id_have_two_windows(void **state)
{
    Fixture *f = *state;
    add_item(f, "demo", 1, PAST_S);
    add_item(f, "other", 2, PAST_S);
    insert_and_forget(f);
    assert_int_equal(freeze(f, 60000), 2);
    make(f, false); // demo's
    assert_string_equal(
        cell(f, "SELECT string_agg(tenant_id, ',') FROM digest_flusher.due_work"), "demo");
}

// ---- cancellations ----

static void a_cancellation_suppresses_what_waits_under_its_key(void **state)
{
    Fixture *f = *state;
    add(f, "demo", 1)->cancel_key = STR("stay1");
    add(f, "demo", 2)->cancel_key = STR("stay2");
    add(f, "other", 3)->cancel_key = STR("stay1");
    DueWork *later = add(f, "demo", 4);
    later->cancel_key = STR("stay1");
    later->caused_at_us = from_now(-1);
    insert_and_forget(f);
    add_cancel(f, "demo", "stay1", from_now(-60));
    insert_and_forget(f);
    assert_string_equal(
        cell(
            f, "SELECT string_agg(concat_ws(' ', event_id, status, reason_code, detail), ',') FROM "
               "digest_flusher.due_work"
               " WHERE status IS NOT NULL OR due_at <= now()"),
        "event00000000000000001 suppressed obsolete stay.cancelled");
}

static void a_deferral_that_comes_after_its_cancellation_is_suppressed(void **state)
{
    Fixture *f = *state;
    add_cancel(f, "demo", "stay1", from_now(-60));
    insert_and_forget(f);
    add(f, "demo", 1)->cancel_key = STR("stay1");
    DueWork *later = add(f, "demo", 2);
    later->cancel_key = STR("stay1");
    later->caused_at_us = from_now(-1);
    insert_and_forget(f);
    assert_string_equal(
        cell(
            f, "SELECT string_agg(event_id || ' ' || reason_code || ' ' || (due_at <= now()), ',') "
               "FROM digest_flusher.due_work"
               " WHERE status = 'suppressed'"),
        "event00000000000000001 obsolete true");
}

static void add_newer(Fixture *f, const char *key, int64_t event_at_us, const char *event_id)
{
    add_cancel(f, "demo", key, event_at_us);
    Stentor__V1__Cancel *cancel =
        arena_copy(f->arena, f->work[f->work_count - 1]->cancel, sizeof *cancel);
    cancel->newer_event_id = arena_cstr(f->arena, str_from(event_id));
    cancel->newer_at_us = event_at_us;
    cancel->before_us = 1; // for older readers
    cancel->reason = arena_printf(f->arena, "event %s", event_id);
    DueWork *work = arena_copy(f->arena, f->work[f->work_count - 1], sizeof *work);
    work->cancel = cancel;
    f->work[f->work_count - 1] = work;
}

static DueWork *add_of_event(Fixture *f, size_t number, int64_t event_at_us, const char *event_id)
{
    DueWork *work = add(f, "demo", number);
    work->cancel_key = STR("remind/s1");
    work->event_at_us = event_at_us;
    work->source_event_id = str_from(event_id);
    return work;
}

static const char *stopped(Fixture *f)
{
    return cell(
        f,
        "SELECT coalesce(string_agg(concat_ws(' ', right(event_id, 1), reason_code, detail), ',' "
        "ORDER BY event_id), '') FROM digest_flusher.due_work WHERE status = 'suppressed' AND "
        "due_at <= now()");
}

// By the events' own times and ids, in whatever order, before or after what they supersede, often.
static void the_newest_event_of_a_subject_is_what_stays(void **state)
{
    Fixture *f = *state;
    int64_t at = from_now(-100);
    for (int order = 0; order < 6; order++) {
        static const int ORDERS[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                         {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
        sql(f, "TRUNCATE digest_flusher.due_work, digest_flusher.cancellations");
        for (int i = 0; i < 6; i++) { // each twice
            int n = ORDERS[order][i % 3];
            const char *id = n == 0 ? "b" : n == 1 ? "c" : "d"; // 1 and 2 are of the same time
            int64_t event_at = n == 0 ? at : at + 1;
            add_newer(f, "remind/s1", event_at, id);
            add_of_event(f, (size_t)n + 1, event_at, id);
            insert_and_forget(f);
        }
        assert_string_equal(
            cell(
                f, "SELECT string_agg(concat_ws(' ', right(event_id, 1), reason_code), ',' ORDER "
                   "BY event_id) FROM digest_flusher.due_work"),
            "1 rescheduled,2 rescheduled,3");
    }
}

static void a_newer_event_leaves_other_subjects_and_what_is_claimed(void **state)
{
    Fixture *f = *state;
    add_of_event(f, 1, from_now(-100), "a")->cancel_key = STR("remind/s2");
    add_of_event(f, 2, from_now(-100), "a")->due_at_us = from_now(PAST_S);
    insert_and_forget(f);
    DbTxn *txn = db_txn_new(f->pool);
    due_work_claim(txn, 60000);
    submit(f, txn, on_txn_done);
    add_newer(f, "remind/s1", from_now(-50), "b");
    insert_and_forget(f);
    assert_string_equal(stopped(f), "");
}

// Both reasons stand in one row.
static void a_cancellation_and_a_newer_event_of_one_key_are_both_kept(void **state)
{
    Fixture *f = *state;
    int64_t at = from_now(-500);
    for (int newer_first = 0; newer_first < 2; newer_first++) {
        sql(f, "TRUNCATE digest_flusher.due_work, digest_flusher.cancellations");
        if (newer_first) {
            add_newer(f, "remind/s1", at, "b");
            insert_and_forget(f);
        }
        add_cancel(f, "demo", "remind/s1", at - 1000000);
        insert_and_forget(f);
        if (!newer_first) {
            add_newer(f, "remind/s1", at, "b");
            insert_and_forget(f);
        }
        add_of_event(f, 1, at - 1, "a")->caused_at_us = at - 2000000; // before both
        add_of_event(f, 2, at - 1, "a")->caused_at_us = at - 1;       // after the cancellation
        add_of_event(f, 3, at, "b")->caused_at_us = at;               // the newer one itself
        insert_and_forget(f);
        assert_string_equal(stopped(f), "1 obsolete stay.cancelled,2 rescheduled event b");
    }
}

static void a_claim_finds_the_newer_event_that_the_insert_did_not_see(void **state)
{
    Fixture *f = *state;
    DueWork *work = add_of_event(f, 1, from_now(-100), "a");
    work->due_at_us = from_now(PAST_S);
    insert_and_forget(f);
    sql(f, "INSERT INTO digest_flusher.cancellations (tenant_id, cancel_key, newest_at, newest_id, "
           "newest_reason) VALUES ('demo', 'remind/s1', now(), 'b', 'event b')");
    DbTxn *txn = db_txn_new(f->pool);
    due_work_claim(txn, 60000);
    submit(f, txn, on_txn_done);
    assert_string_equal(stopped(f), "1 rescheduled event b");
}

static void a_newer_event_ends_items_of_open_windows(void **state)
{
    Fixture *f = *state;
    DueWork *old = add_item(f, "demo", 1, FUTURE_S);
    DueWork *new = add_item(f, "demo", 2, FUTURE_S);
    old->cancel_key = new->cancel_key = STR("remind/s1");
    old->event_at_us = from_now(-100);
    new->event_at_us = from_now(-50);
    new->source_event_id = STR("b");
    insert_and_forget(f);
    add_newer(f, "remind/s1", new->event_at_us, "b");
    insert_and_forget(f);
    assert_string_equal(stopped(f), "1 rescheduled event b");
    assert_string_equal(
        cell(
            f, "SELECT string_agg(right(event_id, 1), '') FROM digest_flusher.digest_items WHERE "
               "payload IS NOT NULL"),
        "2");
    DueWork *late = add_item(f, "demo", 3, FUTURE_S);
    late->cancel_key = STR("remind/s1");
    late->event_at_us = from_now(-80);
    insert_and_forget(f);
    assert_string_equal(stopped(f), "1 rescheduled event b,3 rescheduled event b");
}

// Stored at the same moment, they did not see each other: the freeze looks again.
static void a_freeze_finds_the_newer_event_that_the_insert_did_not_see(void **state)
{
    Fixture *f = *state;
    DueWork *item = add_item(f, "demo", 1, PAST_S);
    item->cancel_key = STR("remind/s1");
    item->event_at_us = from_now(-100);
    insert_and_forget(f);
    sql(f, "INSERT INTO digest_flusher.cancellations (tenant_id, cancel_key, newest_at, newest_id, "
           "newest_reason) VALUES ('demo', 'remind/s1', now(), 'b', 'event b')");
    DbTxn *txn = db_txn_new(f->pool);
    digest_freeze(txn, 60000);
    submit(f, txn, on_txn_done);
    assert_string_equal(stopped(f), "1 rescheduled event b");
}

// ---- one notification ----

// As gateway does, which has its own role; the function is its owner's.
static const char *cancel_one(Fixture *f, const char *tenant, size_t number)
{
    return cell(
        f, arena_printf(
               f->arena,
               "SELECT outcome FROM digest_flusher.cancel_notification('%s', "
               "'ntf_01KAGTQ5M0000000000%07zu', ARRAY['other', 'work%018zu'], 'by API key k1')",
               tenant, number, number));
}

static const char *ends(Fixture *f)
{
    return cell(
        f, "SELECT coalesce(string_agg(concat_ws(' ', right(event_id, 1), status, reason_code, "
           "detail, due_at <= now()), ',' ORDER BY event_id), '') FROM digest_flusher.due_work");
}

static void one_that_waits_is_cancelled_once_and_no_other(void **state)
{
    Fixture *f = *state;
    add(f, "demo", 1);
    add(f, "demo", 2);
    insert_and_forget(f);
    assert_string_equal(cancel_one(f, "other", 1), "absent");
    assert_string_equal(cancel_one(f, "demo", 1), "cancelled");
    assert_string_equal(cancel_one(f, "demo", 1), "cancelled");
    assert_string_equal(ends(f), "1 suppressed cancelled by API key k1 t,2 f");
    assert_string_equal(cancel_one(f, "demo", 3), "absent");
}

static void a_cancelled_one_that_is_delivered_again_is_not_stored_again(void **state)
{
    Fixture *f = *state;
    add(f, "demo", 1);
    insert_and_forget(f);
    assert_string_equal(cancel_one(f, "demo", 1), "cancelled");
    add(f, "demo", 1);
    insert_and_forget(f); // while its row is there
    assert_string_equal(ends(f), "1 suppressed cancelled by API key k1 t");
    sql(f, "TRUNCATE digest_flusher.due_work");
    add(f, "demo", 1);
    add(f, "demo", 2);
    insert_and_forget(f); // when it has been reported
    assert_string_equal(ends(f), "2 f");
    assert_string_equal(cancel_one(f, "demo", 1), "cancelled");
}

// A claim that a crash of Postgres took back leaves a row that is due and looks unclaimed.
static void what_is_due_or_claimed_or_ended_is_not_cancelled(void **state)
{
    Fixture *f = *state;
    add(f, "demo", 1)->due_at_us = from_now(PAST_S);
    add(f, "demo", 2);
    add(f, "demo", 3);
    add(f, "demo", 4)->reason = STR("retry");
    insert_and_forget(f);
    sql(f, "UPDATE digest_flusher.due_work SET claimed_until = now() - interval '1 second' WHERE "
           "event_id LIKE '%2'");
    sql(f, "UPDATE digest_flusher.due_work SET status = 'suppressed', reason_code = 'obsolete' "
           "WHERE event_id LIKE '%3'");
    assert_string_equal(cancel_one(f, "demo", 1), "due");
    assert_string_equal(cancel_one(f, "demo", 2), "due");
    assert_string_equal(cancel_one(f, "demo", 3), "ended");
    assert_string_equal(ends(f), "1 t,2 f,3 suppressed obsolete f,4 f");
    assert_string_equal(cell(f, "SELECT count(*) FROM digest_flusher.cancelled"), "0");
}

static void an_item_is_cancelled_in_its_open_window(void **state)
{
    Fixture *f = *state;
    add_item(f, "demo", 1, FUTURE_S);
    add_item(f, "demo", 2, FUTURE_S);
    insert_and_forget(f);
    assert_string_equal(cancel_one(f, "demo", 1), "cancelled");
    assert_string_equal(cancel_one(f, "demo", 1), "cancelled");
    assert_string_equal(ends(f), "1 suppressed cancelled by API key k1 t");
    sql(f, "UPDATE digest_flusher.digest_windows SET due_at = now()");
    assert_string_equal(cancel_one(f, "demo", 2), "due");
    add_item(f, "demo", 1, FUTURE_S);
    insert_and_forget(f); // delivered again
    assert_string_equal(
        cell(
            f, "SELECT string_agg(right(event_id, 1), '') FROM digest_flusher.digest_items WHERE "
               "payload IS NOT NULL"),
        "2");
}

static void what_waits_is_listed_in_pages_of_one_tenant(void **state)
{
    Fixture *f = *state;
    add(f, "demo", 1)->due_at_us = from_now(30);
    add(f, "demo", 2)->due_at_us = from_now(10);
    add(f, "other", 3);
    add(f, "demo", 4)->reason = STR("saga");
    DueWork *retry = add(f, "demo", 5);
    retry->reason = STR("retry");
    retry->attempt = 3;
    retry->due_at_us = from_now(40);
    add_item(f, "demo", 6, 20);
    insert_and_forget(f);
    sql(f, "UPDATE digest_flusher.due_work SET status = 'suppressed' WHERE event_id LIKE '%4'");
    static const char LIST[] =
        "SELECT string_agg(concat_ws(' ', right(notification_id, 1), reason, cancellable, attempt, "
        "convert_from(request, 'UTF8')), ',') FROM digest_flusher.scheduled('demo', %s, NULL, "
        "NULL, %s, '1970-01-01', '', %d)";
    assert_string_equal(
        cell(f, arena_printf(f->arena, LIST, "NULL", "NULL", 10)),
        "2 schedule t payload2,6 digest t payload6,1 schedule t payload1,5 retry f 3");
    assert_string_equal(
        cell(f, arena_printf(f->arena, LIST, "NULL", "NULL", 2)),
        "2 schedule t payload2,6 digest t payload6");
    assert_string_equal(
        cell(f, arena_printf(f->arena, LIST, "'schedule'", "now() + interval '15 seconds'", 10)),
        "2 schedule t payload2");
}

// However much waits: of 20,000 rows and 20,000 items a page of 10 reads about as many.
static void a_page_of_what_waits_reads_what_is_on_it(void **state)
{
    Fixture *f = *state;
    sql(f, "INSERT INTO digest_flusher.due_work (work_id, tenant_id, notification_id, reason, "
           "due_at, subject, event_id, payload,"
           " to_recipient) SELECT 'w' || g, 'demo', 'n' || g, 'schedule', now() + g * interval '1 "
           "second', '', '', '', 'rcp_' || g"
           " FROM generate_series(1, 20000) AS g");
    sql(f, "INSERT INTO digest_flusher.digest_windows (tenant_id, window_id, recipient_id, "
           "category, channel, flush_at, due_at,"
           " template, template_version, locale, opened_at) SELECT 'demo', 'dgw_' || g, 'rcp_' || "
           "g, 'social', 'email', t, t, '', '',"
           " '', t FROM generate_series(10001, 20000) AS g, (SELECT now() + interval '1 day' AS t) "
           "AS at");
    sql(f, "INSERT INTO digest_flusher.digest_items (tenant_id, window_id, notification_id, "
           "work_id, subject, event_id, accepted_at,"
           " caused_at, payload) SELECT 'demo', w.window_id, 'i' || n, w.window_id || n, '', '', "
           "now(), now(), ''"
           " FROM digest_flusher.digest_windows w, generate_series(1, 2) AS n");
    sql(f, "ANALYZE digest_flusher.due_work, digest_flusher.digest_windows, "
           "digest_flusher.digest_items");
    // The tables' counters of this transaction, read behind the page.
    static const char READ[] =
        "WITH page AS MATERIALIZED (SELECT count(*) AS n FROM digest_flusher.scheduled('demo', %s, "
        "%s, NULL, NULL, %s, %s, 10))"
        " SELECT n || ' ' || (SELECT sum(pg_stat_get_xact_tuples_fetched(t) + "
        "pg_stat_get_xact_tuples_returned(t)) < 300"
        " FROM unnest(ARRAY['digest_flusher.due_work', 'digest_flusher.digest_windows', "
        "'digest_flusher.digest_items']::regclass[])"
        " AS t WHERE n >= 0) FROM page";
    static const char *const PAGES[][5] = {
        {"NULL", "NULL", "'1970-01-01'", "''", "10 true"},
        {"'limit'", "NULL", "'1970-01-01'", "''", "0 true"},
        {"NULL", "'rcp_19000'", "'1970-01-01'", "''", "3 true"},
        {"'digest'", "NULL", "now()", "''", "10 true"},
        {"'digest'", "NULL",
         "(SELECT due_at FROM digest_flusher.digest_windows WHERE window_id = 'dgw_19000')",
         "'dgw_19000/i1'", "10 true"},
    };
    for (size_t i = 0; i < sizeof PAGES / sizeof PAGES[0]; i++) {
        const char *const *p = PAGES[i];
        sql(f, "SELECT pg_stat_force_next_flush()"); // the counters hold the statements before, too
        const char *got = cell(f, arena_printf(f->arena, READ, p[0], p[1], p[2], p[3]));
        if (strcmp(got, p[4]) != 0) {
            fail_msg("page %zu: %s", i, got);
        }
    }
}

static void a_page_of_what_waits_has_no_more_than_8_mib_of_requests(void **state)
{
    Fixture *f = *state;
    for (size_t i = 1; i <= 3; i++) {
        add(f, "demo", i)->due_at_us = from_now(10 * (int64_t)i);
    }
    insert_and_forget(f);
    sql(f, "UPDATE digest_flusher.due_work SET payload = convert_to(repeat('x', 3 << 20), 'UTF8')");
    assert_string_equal(
        cell(
            f, "SELECT string_agg(right(notification_id, 1) || ' ' || (request IS NULL), ',') FROM "
               "digest_flusher.scheduled('demo', NULL, NULL, NULL, NULL, '1970-01-01', '', 10)"),
        "1 false,2 false,3 true");
}

static void what_is_claimed_is_not_cancelled_any_more(void **state)
{
    Fixture *f = *state;
    DueWork *work = add(f, "demo", 1);
    work->cancel_key = STR("stay1");
    work->due_at_us = from_now(PAST_S);
    insert_and_forget(f);
    DbTxn *txn = db_txn_new(f->pool);
    due_work_claim(txn, 1);
    submit(f, txn, on_txn_done);
    add_cancel(f, "demo", "stay1", from_now(0));
    insert_and_forget(f);
    txn = db_txn_new(f->pool);
    due_work_claim(txn, 60000); // the first one died: it may have published
    submit(f, txn, on_txn_done);
    assert_string_equal(
        cell(f, "SELECT coalesce(status, 'itself') FROM digest_flusher.due_work"), "itself");
}

static void a_claim_finds_the_cancellation_that_the_insert_did_not_see(void **state)
{
    Fixture *f = *state;
    DueWork *work = add(f, "demo", 1);
    work->cancel_key = STR("stay1");
    work->due_at_us = from_now(PAST_S);
    insert_and_forget(f);
    sql(f, "INSERT INTO digest_flusher.cancellations VALUES ('demo', 'stay1', now(), 'gone')");
    DbTxn *txn = db_txn_new(f->pool);
    due_work_claim(txn, 60000);
    submit(f, txn, on_txn_done);
    assert_string_equal(
        cell(f, "SELECT concat_ws(' ', status, reason_code, detail) FROM digest_flusher.due_work"),
        "suppressed obsolete gone");
}

static void work_that_went_out_is_not_reported_as_cancelled_when_delivered_again(void **state)
{
    Fixture *f = *state;
    add(f, "demo", 1)->cancel_key = STR("stay1");
    insert(f);
    DbTxn *txn = db_txn_new(f->pool);
    due_work_delete(txn, &f->work[0]->work_id, 1);
    submit(f, txn, on_txn_done);
    add_cancel(f, "demo", "stay1", from_now(0));
    insert(f);
    assert_string_equal(cell(f, "SELECT count(*) FROM digest_flusher.due_work"), "0");
}

static void an_item_is_cancelled_in_its_open_window_and_not_behind_it(void **state)
{
    Fixture *f = *state;
    add_item(f, "demo", 1, PAST_S)->cancel_key = STR("stay1");
    add_item(f, "demo", 2, PAST_S);
    add_item(f, "demo", 3, PAST_S)->cancel_key = STR("stay2");
    insert_and_forget(f);
    add_cancel(f, "demo", "stay1", from_now(0));
    insert_and_forget(f);
    assert_string_equal(
        cell(f, "SELECT string_agg(event_id || ' ' || status, ',') FROM digest_flusher.due_work"),
        "event00000000000000001 suppressed");
    assert_int_equal(freeze(f, 60000), 2);
    add_cancel(f, "demo", "stay2", from_now(0));
    insert_and_forget(f);
    make(f, true);
    assert_string_equal(
        cell(f, "SELECT count(*) FROM digest_flusher.due_work WHERE status = 'superseded'"), "2");
}

static void an_item_that_comes_after_its_cancellation_is_suppressed_once(void **state)
{
    Fixture *f = *state;
    add_cancel(f, "demo", "stay1", from_now(0));
    insert_and_forget(f);
    add_item(f, "demo", 1, PAST_S)->cancel_key = STR("stay1");
    insert(f);
    assert_string_equal(cell(f, "SELECT status FROM digest_flusher.due_work"), "suppressed");
    sql(f, "DELETE FROM digest_flusher.due_work");
    insert(f);
    assert_string_equal(cell(f, "SELECT count(*) FROM digest_flusher.due_work"), "0");
    assert_int_equal(freeze(f, 60000), 1);
    assert_int_equal(f->waiting, 0);
}

static void a_freeze_finds_the_cancellation_that_the_item_did_not_see(void **state)
{
    Fixture *f = *state;
    add_item(f, "demo", 1, PAST_S)->cancel_key = STR("stay1");
    add_item(f, "demo", 2, PAST_S);
    insert_and_forget(f);
    sql(f, "INSERT INTO digest_flusher.cancellations VALUES ('demo', 'stay1', now(), 'gone')");
    freeze(f, 60000);
    assert_int_equal(f->waiting, 1);
    assert_string_equal(
        cell(f, "SELECT concat_ws(' ', event_id, status, detail) FROM digest_flusher.due_work"),
        "event00000000000000001 suppressed gone");
}

// ---- what the recipient wants ----

static void the_most_specific_preference_decides(void **state)
{
    Fixture *f = *state;
    static const struct {
        const char *rows;
        const char *verdict;
    } cases[] = {
        {"('any','any',false,true)", "immediate"},
        {"('any','any',false,false)", ""},
        {"('social','email',false,false), ('any','any',true,true)", ""},
        {"('social','email',true,true), ('any','any',false,false)", "preference"},
        {"('social','any',true,true), ('any','email',false,false)", "preference"},
        {"('any','email',true,true), ('any','any',false,false)", "preference"},
        {"('billing','email',true,true)", "immediate"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sql(f, "TRUNCATE digest_flusher.preferences");
        sql(f, arena_printf(
                   f->arena,
                   "INSERT INTO digest_flusher.preferences SELECT 'demo', 'rcp_a', c, h, o, m FROM "
                   "(VALUES "
                   "%s) AS v(c, h, o, m)",
                   cases[i].rows));
        assert_string_equal(
            cell(f, "SELECT digest_flusher.digest_verdict('demo', 'rcp_a', 'social', 'email')"),
            cases[i].verdict);
    }
}

static void who_is_gone_or_has_unsubscribed_gets_nothing(void **state)
{
    Fixture *f = *state;
    sql(f, "INSERT INTO digest_flusher.unsubscribed_recipients VALUES ('demo', 'rcp_a', false, "
           "true), ('demo', "
           "'rcp_b', "
           "true, true)");
    sql(f, "INSERT INTO digest_flusher.preferences VALUES ('demo', 'rcp_a', 'any', 'any', false, "
           "false)");
    assert_string_equal(
        cell(f, "SELECT digest_flusher.digest_verdict('demo', 'rcp_a', 'social', 'email')"),
        "unsubscribed");
    assert_string_equal(
        cell(f, "SELECT digest_flusher.digest_verdict('demo', 'rcp_a', 'transactional', 'email')"),
        "");
    assert_string_equal(
        cell(f, "SELECT digest_flusher.digest_verdict('demo', 'rcp_b', 'transactional', 'email')"),
        "no_address");
}

static void a_window_that_is_not_wanted_any_more_is_suppressed_whole(void **state)
{
    Fixture *f = *state;
    add_item(f, "demo", 1, FUTURE_S);
    add_item(f, "demo", 2, FUTURE_S);
    insert_and_forget(f);
    sql(f, "INSERT INTO digest_flusher.preferences VALUES ('demo', '" RECIPIENT
           "', 'any', 'email', true, true)");
    sql(f, "UPDATE digest_flusher.digest_windows SET due_at = now()");
    assert_int_equal(freeze(f, 60000), 1);
    make(f, false);
    assert_string_equal(
        cell(
            f, "SELECT string_agg(status || ' ' || reason_code, ',') FROM digest_flusher.due_work"),
        "suppressed preference,suppressed preference");
    add_item(f, "demo", 3, FUTURE_S); // was on its way
    add_item(f, "demo", 4, FUTURE_S)->accepted_at_us = from_now(10);
    insert_and_forget(f);
    assert_string_equal(
        cell(
            f, "SELECT string_agg(event_id || ' ' || coalesce(status, 'itself') || ' ' || (due_at "
               "<= now()), ','"
               " ORDER BY event_id) FROM digest_flusher.due_work WHERE event_id > "
               "'event00000000000000002'"),
        "event00000000000000003 suppressed true,event00000000000000004 itself false");
}

// ---- housekeeping and audit ----

static void what_is_old_is_forgotten_and_the_rest_kept(void **state)
{
    Fixture *f = *state;
    add_item(f, "demo", 1, PAST_S);
    add_item(f, "other", 2, FUTURE_S);
    add_cancel(f, "demo", "stay1", from_now(0));
    add(f, "demo", 5)->cancel_key = STR("stay9");
    insert_and_forget(f);
    freeze(f, 60000);
    make(f, false);
    sql(f, "SELECT digest_flusher.done(ARRAY['work000000000000000005'])");
    DbTxn *txn = db_txn_new(f->pool);
    digest_forget(txn);
    submit(f, txn, on_txn_done);
    const char *counts =
        "SELECT concat_ws(' ', (SELECT count(*) FROM digest_flusher.digest_windows),"
        " (SELECT count(*) FROM digest_flusher.digest_items), (SELECT count(*) FROM "
        "digest_flusher.cancellations),"
        " (SELECT count(*) FROM digest_flusher.emitted))";
    assert_string_equal(cell(f, counts), "2 2 1 1");
    sql(f, "UPDATE digest_flusher.digest_windows SET flushed_at = flushed_at - interval '36 days'");
    sql(f,
        "UPDATE digest_flusher.cancellations SET recorded_at = recorded_at - interval '36 days'");
    sql(f, "UPDATE digest_flusher.emitted SET emitted_at = emitted_at - interval '36 days'");
    txn = db_txn_new(f->pool);
    digest_forget(txn);
    submit(f, txn, on_txn_done);
    assert_string_equal(cell(f, counts), "1 1 0 0");
}

static void the_audit_sees_items_that_wait_and_digests_that_were_made(void **state)
{
    Fixture *f = *state;
    add_item(f, "demo", 1, PAST_S);
    add_item(f, "other", 2, FUTURE_S);
    insert_and_forget(f);
    const char *due = "SELECT string_agg(work_id, ',') FROM digest_flusher.audit_due('ntf_0', "
                      "'ntf_z', NULL, '', 10)";
    assert_string_equal(cell(f, due), "work000000000000000001,work000000000000000002");
    assert_string_equal(
        cell(
            f, "SELECT string_agg(work_id, ',') FROM digest_flusher.audit_due('ntf_0', 'ntf_z', "
               "'other', "
               "'', 10)"),
        "work000000000000000002");
    freeze(f, 60000);
    make(f, true);
    sql(f, "DELETE FROM digest_flusher.due_work");
    assert_string_equal(cell(f, due), "work000000000000000002");
    assert_string_equal(
        cell(
            f,
            "SELECT notification_id || ' ' || tenant_id FROM digest_flusher.audit_digests('ntf_0', "
            "'ntf_z', NULL, '', 10)"),
        "ntf_01KAGTQ5M0000000000DDDDDDD demo");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(items_gather_until_the_window_is_due),
        TEST(a_frozen_window_belongs_to_its_process_until_the_lease_ends),
        TEST(the_decision_makes_due_work_of_the_digest_and_its_items),
        TEST(a_single_item_goes_out_as_itself),
        TEST(an_item_delivered_again_after_its_window_does_not_come_again),
        TEST(a_late_item_goes_out_as_itself_and_once),
        TEST(an_expired_item_is_not_in_the_digest),
        TEST(a_freeze_lists_the_oldest_and_the_newest),
        TEST(a_large_window_is_absorbed_in_parts),
        TEST(two_tenants_with_the_same_window_id_have_two_windows),
        TEST(a_cancellation_suppresses_what_waits_under_its_key),
        TEST(a_deferral_that_comes_after_its_cancellation_is_suppressed),
        TEST(the_newest_event_of_a_subject_is_what_stays),
        TEST(a_newer_event_leaves_other_subjects_and_what_is_claimed),
        TEST(a_cancellation_and_a_newer_event_of_one_key_are_both_kept),
        TEST(a_claim_finds_the_newer_event_that_the_insert_did_not_see),
        TEST(a_newer_event_ends_items_of_open_windows),
        TEST(a_freeze_finds_the_newer_event_that_the_insert_did_not_see),
        TEST(one_that_waits_is_cancelled_once_and_no_other),
        TEST(a_cancelled_one_that_is_delivered_again_is_not_stored_again),
        TEST(what_is_due_or_claimed_or_ended_is_not_cancelled),
        TEST(an_item_is_cancelled_in_its_open_window),
        TEST(what_waits_is_listed_in_pages_of_one_tenant),
        TEST(a_page_of_what_waits_reads_what_is_on_it),
        TEST(a_page_of_what_waits_has_no_more_than_8_mib_of_requests),
        TEST(what_is_claimed_is_not_cancelled_any_more),
        TEST(a_claim_finds_the_cancellation_that_the_insert_did_not_see),
        TEST(work_that_went_out_is_not_reported_as_cancelled_when_delivered_again),
        TEST(an_item_is_cancelled_in_its_open_window_and_not_behind_it),
        TEST(an_item_that_comes_after_its_cancellation_is_suppressed_once),
        TEST(a_freeze_finds_the_cancellation_that_the_item_did_not_see),
        TEST(the_most_specific_preference_decides),
        TEST(who_is_gone_or_has_unsubscribed_gets_nothing),
        TEST(a_window_that_is_not_wanted_any_more_is_suppressed_whole),
        TEST(what_is_old_is_forgotten_and_the_rest_kept),
        TEST(the_audit_sees_items_that_wait_and_digests_that_were_made),
    };
    return cmocka_run_group_tests(tests, migrate_all, NULL);
}
