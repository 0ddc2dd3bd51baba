// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/services/digest-flusher/flusher_stage.h"

enum { HOUR_S = 3600 };

static void on_claim_done(void *ctx, DbTxn *txn, const Error *err)
{
    Fixture *f = ctx;
    on_txn_done(ctx, txn, err);
    if (err != NULL) {
        return;
    }
    const PGresult *rows = db_txn_result(txn, 0);
    f->rows = db_rows(rows);
    f->next_us = db_get_time(db_txn_result(txn, 1), 0, 0);
    if (f->rows > 0) {
        f->first_id = arena_str(f->arena, db_get_text(rows, 0, CLAIM_WORK_ID));
        f->first_subject = arena_str(f->arena, db_get_text(rows, 0, CLAIM_SUBJECT));
        f->first_event_id = arena_str(f->arena, db_get_text(rows, 0, CLAIM_EVENT_ID));
        f->first_payload = arena_str(f->arena, db_get_text(rows, 0, CLAIM_PAYLOAD));
    }
}

static void on_backlog_done(void *ctx, DbTxn *txn, const Error *err)
{
    Fixture *f = ctx;
    on_txn_done(ctx, txn, err);
    if (err == NULL) {
        f->waiting = db_get_int(db_txn_result(txn, 0), 0, 0);
        f->next_us = db_get_time(db_txn_result(txn, 0), 0, 1);
    }
}

static void add_work(Fixture *f, const char *tenant, int64_t due_in_s)
{
    DueWork *work = arena_zalloc(f->arena, sizeof(*work));
    work->work_id = str_from(arena_printf(f->arena, "work%018zu", f->work_count));
    work->tenant = str_from(tenant);
    work->notification_id = STR("ntf_01KAGTQ5M0000000000000000A");
    work->reason = STR("retry");
    work->due_at_us = clock_now_us() + due_in_s * 1000000;
    snprintf(work->subject, sizeof(work->subject), "ntf.rendered.low.%s", tenant);
    snprintf(work->event_id, sizeof(work->event_id), "event%017zu", f->work_count);
    work->payload = STR("pay\0load");
    f->work[f->work_count++] = work;
}

static void claim(Fixture *f, int64_t lease_ms)
{
    DbTxn *txn = db_txn_new(f->pool);
    due_work_claim(txn, lease_ms);
    submit(f, txn, on_claim_done);
}

static int64_t count_waiting(Fixture *f)
{
    DbTxn *txn = db_txn_new(f->pool);
    due_work_backlog(txn);
    submit(f, txn, on_backlog_done);
    return f->waiting;
}

static void what_is_due_is_claimed_as_it_went_in(void **state)
{
    Fixture *f = *state;
    add_work(f, "demo", -1);
    insert(f);
    claim(f, 60000);
    assert_int_equal(f->rows, 1);
    assert_true(str_eq(f->first_id, f->work[0]->work_id));
    assert_true(str_eq(f->first_subject, STR("ntf.rendered.low.demo")));
    assert_true(str_eq(f->first_event_id, STR("event00000000000000000")));
    assert_true(str_eq(f->first_payload, STR("pay\0load")));
    assert_int_equal(f->next_us, 0);
}

static void work_of_several_tenants_is_one_batch_and_one_claim(void **state)
{
    Fixture *f = *state;
    add_work(f, "demo", -1);
    add_work(f, "other", -1);
    insert(f);
    claim(f, 60000);
    assert_int_equal(f->rows, 2);
}

static void a_repeated_insert_changes_nothing(void **state)
{
    Fixture *f = *state;
    add_work(f, "demo", -1);
    f->work[f->work_count++] = f->work[0]; // twice within a batch, too
    insert(f);
    claim(f, 60000);
    insert(f);
    assert_int_equal(count_waiting(f), 1);
    claim(f, 60000);
    assert_int_equal(f->rows, 0); // the claim of before still holds
}

static void what_is_not_due_stays_and_tells_its_time(void **state)
{
    Fixture *f = *state;
    add_work(f, "demo", -1);
    add_work(f, "demo", 2 * HOUR_S);
    add_work(f, "demo", HOUR_S);
    insert(f);
    claim(f, 60000);
    assert_int_equal(f->rows, 1);
    assert_int_equal(f->next_us, f->work[2]->due_at_us);
}

static void a_claim_is_free_again_when_its_lease_ends(void **state)
{
    Fixture *f = *state;
    add_work(f, "demo", -1);
    insert(f);
    claim(f, 1);
    assert_int_equal(f->rows, 1);
    int64_t leased_us = clock_mono_us();
    while (clock_mono_us() < leased_us + 5000) {
        uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    claim(f, 60000);
    assert_int_equal(f->rows, 1);
    claim(f, 60000);
    assert_int_equal(f->rows, 0);
}

static void what_is_done_is_gone_and_the_rest_stays(void **state)
{
    Fixture *f = *state;
    add_work(f, "demo", -2);
    add_work(f, "other", -1);
    insert(f);
    claim(f, 60000);
    DbTxn *txn = db_txn_new(f->pool);
    due_work_delete(txn, &f->work[1]->work_id, 1);
    submit(f, txn, on_txn_done);
    assert_int_equal(count_waiting(f), 1);
    assert_int_equal(f->next_us, f->work[0]->due_at_us);
}

static void add_wished_work(Fixture *f)
{
    add_work(f, "demo", -1);
    DueWork *work = arena_copy(f->arena, f->work[f->work_count - 1], sizeof(*work));
    work->recipient_id = STR("rcp_a");
    work->category = CATEGORY_SOCIAL;
    work->channel = CHANNEL_EMAIL;
    f->work[f->work_count - 1] = work;
}

static const char *status_of(Fixture *f, size_t n)
{
    return cell(
        f, arena_printf(
               f->arena,
               "SELECT concat_ws(' ', status, reason_code) FROM digest_flusher.due_work WHERE "
               "work_id = "
               "'" STR_FMT "'",
               STR_ARG(f->work[n]->work_id)));
}

static void a_wish_is_asked_once_and_never_of_what_has_gone_out(void **state)
{
    Fixture *f = *state;
    static const char wish[] =
        "INSERT INTO digest_flusher.unsubscribed_recipients VALUES ('demo', 'rcp_a', false, true)";
    add_wished_work(f); // goes out before the wish
    add_wished_work(f); // is claimed before it: a dead process may have published it
    insert(f);
    claim(f, 1);
    DbTxn *txn = db_txn_new(f->pool);
    due_work_delete(txn, &f->work[0]->work_id, 1);
    submit(f, txn, on_txn_done);
    sql(f, wish);
    insert(f); // both are delivered once more
    assert_int_equal(count_waiting(f), 1);
    add_wished_work(f);
    add_work(f, "demo", -1); // a retry: by no preference
    insert(f);
    sql(f, "UPDATE digest_flusher.due_work SET claimed_until = now() - interval '1 second' WHERE "
           "claimed_until IS NOT NULL");
    claim(f, 60000);
    assert_int_equal(f->rows, 3);
    assert_string_equal(status_of(f, 1), "");
    assert_string_equal(status_of(f, 2), "suppressed unsubscribed");
    assert_string_equal(status_of(f, 3), "");
    sql(f, "DELETE FROM digest_flusher.unsubscribed_recipients");
}

static void a_claim_takes_at_most_its_maximum_and_the_oldest_first(void **state)
{
    Fixture *f = *state;
    for (int i = 0; i < DUE_WORK_CLAIM_MAX + 1; i++) {
        add_work(f, "demo", -1 - i);
    }
    insert(f);
    claim(f, 60000);
    assert_int_equal(f->rows, DUE_WORK_CLAIM_MAX);
    claim(f, 60000);
    assert_int_equal(f->rows, 1);
    assert_true(str_eq(f->first_id, f->work[0]->work_id)); // the one that is due last
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_is_due_is_claimed_as_it_went_in),
        TEST(work_of_several_tenants_is_one_batch_and_one_claim),
        TEST(a_repeated_insert_changes_nothing),
        TEST(what_is_not_due_stays_and_tells_its_time),
        TEST(a_claim_is_free_again_when_its_lease_ends),
        TEST(what_is_done_is_gone_and_the_rest_stays),
        TEST(a_wish_is_asked_once_and_never_of_what_has_gone_out),
        TEST(a_claim_takes_at_most_its_maximum_and_the_oldest_first),
    };
    return cmocka_run_group_tests(tests, migrate_all, NULL);
}
