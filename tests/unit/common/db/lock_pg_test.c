// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/db/lock.h"
#include "tests/unit/common/db/pg_fixture.h"

typedef struct Holder {
    DbLock *lock;
    bool held;
    bool closed;
    int changes;
} Holder;

typedef struct Stage {
    uv_loop_t loop;
    PGconn *admin;
    Holder first;
    Holder second;
} Stage;

static void on_change(void *ctx, bool held)
{
    Holder *holder = ctx;
    holder->held = held;
    holder->changes++;
}

static void on_closed(void *ctx)
{
    *(bool *)ctx = true;
}

static void open_holder(Stage *stage, Holder *holder, const char *name)
{
    *holder = (Holder){0};
    holder->lock = db_lock_new(&stage->loop, test_url(), name, on_change, holder);
}

static void close_holder(Stage *stage, Holder *holder)
{
    if (holder->lock != NULL) {
        db_lock_close(holder->lock, on_closed, &holder->closed);
        assert_true(run_for(&stage->loop, &holder->closed, true, WAIT_MS));
        holder->lock = NULL;
    }
}

static int set_up(void **state)
{
    Stage *stage = calloc(1, sizeof *stage);
    uv_loop_init(&stage->loop);
    stage->admin = admin_connect();
    *state = stage;
    return 0;
}

static int tear_down(void **state)
{
    Stage *stage = *state;
    close_holder(stage, &stage->first);
    close_holder(stage, &stage->second);
    PQfinish(stage->admin);
    assert_int_equal(uv_loop_close(&stage->loop), 0);
    free(stage);
    return 0;
}

static void hold_first_then_queue_second(Stage *stage)
{
    open_holder(stage, &stage->first, "history/0");
    assert_true(run_for(&stage->loop, &stage->first.held, true, WAIT_MS));
    open_holder(stage, &stage->second, "history/0");
    run_ms(&stage->loop, 1300);
    assert_false(stage->second.held);
    assert_false(db_lock_held(stage->second.lock));
}

static void one_of_two_holds_it(void **state)
{
    Stage *stage = *state;
    hold_first_then_queue_second(stage);
    assert_true(db_lock_held(stage->first.lock));
    assert_int_equal(stage->first.changes, 1);
}

static void other_names_are_other_locks(void **state)
{
    Stage *stage = *state;
    open_holder(stage, &stage->first, "history/0");
    open_holder(stage, &stage->second, "history/1");
    assert_true(run_for(&stage->loop, &stage->first.held, true, WAIT_MS));
    assert_true(run_for(&stage->loop, &stage->second.held, true, WAIT_MS));
}

static void closing_hands_it_to_the_next(void **state)
{
    Stage *stage = *state;
    hold_first_then_queue_second(stage);
    close_holder(stage, &stage->first);
    assert_true(run_for(&stage->loop, &stage->second.held, true, 2500));
}

static void a_holder_whose_backend_dies_is_reported_and_the_second_takes_over(void **state)
{
    Stage *stage = *state;
    hold_first_then_queue_second(stage);
    admin_exec(
        stage->admin, "SELECT pg_terminate_backend(pid) FROM pg_locks"
                      " WHERE locktype = 'advisory' AND granted");
    assert_true(run_for(&stage->loop, &stage->first.held, false, 1000));
    assert_false(db_lock_held(stage->first.lock));
    assert_true(run_for(&stage->loop, &stage->second.held, true, 2500));
    run_ms(&stage->loop, 1500);
    assert_true(stage->second.held);
    assert_false(stage->first.held); // back as a stand-by
}

static void a_holder_that_gets_no_answer_counts_it_as_lost(void **state)
{
    Stage *stage = *state;
    open_holder(stage, &stage->first, "history/0");
    assert_true(run_for(&stage->loop, &stage->first.held, true, WAIT_MS));
    const char *holder = admin_value(
        stage->admin, "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted");
    int64_t pid = 0; // never 0: that would stop this process and its group
    assert_true(str_to_i64(str_from(holder), &pid) && pid > 1);
    assert_int_equal(kill((pid_t)pid, SIGSTOP), 0);
    bool lost = run_for(&stage->loop, &stage->first.held, false, 3500);
    assert_int_equal(kill((pid_t)pid, SIGCONT), 0);
    assert_true(lost);
    assert_true(run_for(&stage->loop, &stage->first.held, true, 5000)); // and comes back
}

// A stopped process: its sessions live, hold the lock and half a transaction, and say nothing.
static void a_holder_that_stands_still_is_relieved_within_five_seconds(void **state)
{
    Stage *stage = *state;
    char sql[128];
    PGconn *holder = admin_connect();
    PGconn *writer = admin_connect();
    snprintf(
        sql, sizeof sql, "SELECT pg_advisory_lock(%lld)",
        (long long)(int64_t)str_hash(str_from("history/0")));
    admin_exec(holder, sql);
    admin_exec(writer, "BEGIN; LOCK TABLE pg_description IN SHARE MODE");
    open_holder(stage, &stage->second, "history/0");
    run_ms(&stage->loop, DB_LOCK_SILENT_MS - 500);
    assert_false(stage->second.held);
    assert_true(run_for(&stage->loop, &stage->second.held, true, 5000 - DB_LOCK_SILENT_MS + 500));
    assert_string_equal(
        admin_value(
            stage->admin,
            "SELECT count(*) FROM pg_locks WHERE relation = 'pg_description'::regclass "
            "AND mode = 'ShareLock'"),
        "0");
    PQfinish(holder);
    PQfinish(writer);
}

static void a_holder_with_nothing_to_do_keeps_it(void **state)
{
    Stage *stage = *state;
    hold_first_then_queue_second(stage);
    run_ms(&stage->loop, 2 * DB_LOCK_SILENT_MS);
    assert_true(db_lock_held(stage->first.lock));
    assert_int_equal(stage->first.changes, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_of_two_holds_it),
        TEST(other_names_are_other_locks),
        TEST(closing_hands_it_to_the_next),
        TEST(a_holder_whose_backend_dies_is_reported_and_the_second_takes_over),
        TEST(a_holder_that_gets_no_answer_counts_it_as_lost),
        TEST(a_holder_that_stands_still_is_relieved_within_five_seconds),
        TEST(a_holder_with_nothing_to_do_keeps_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
