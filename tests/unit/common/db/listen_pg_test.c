// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/db/listen.h"
#include "tests/unit/common/db/pg_fixture.h"

typedef struct Stage {
    uv_loop_t loop;
    PGconn *admin;
    DbListen *listen;
    bool live;
    bool heard;
    bool closed;
    int count;
    int changes;
    char payload[32];
} Stage;

static void on_notified(void *ctx, Str payload)
{
    Stage *stage = ctx;
    stage->heard = true;
    stage->count++;
    assert_true(str_to_c(payload, stage->payload, sizeof stage->payload));
}

static void on_listening(void *ctx, bool listening)
{
    Stage *stage = ctx;
    stage->live = listening;
    stage->changes++;
}

static void on_closed(void *ctx)
{
    *(bool *)ctx = true;
}

static int set_up(void **state)
{
    static const DbListenEvents events = {.notified = on_notified, .listening = on_listening};
    Stage *stage = calloc(1, sizeof *stage);
    uv_loop_init(&stage->loop);
    stage->admin = admin_connect();
    stage->listen = db_listen_new(&stage->loop, test_url(), "outbox_test", &events, stage);
    assert_true(run_for(&stage->loop, &stage->live, true, WAIT_MS));
    assert_true(db_listen_live(stage->listen));
    *state = stage;
    return 0;
}

static int tear_down(void **state)
{
    Stage *stage = *state;
    int changes = stage->changes;
    db_listen_close(stage->listen, on_closed, &stage->closed);
    assert_true(run_for(&stage->loop, &stage->closed, true, WAIT_MS));
    assert_int_equal(stage->changes, changes); // closing is no loss
    PQfinish(stage->admin);
    assert_int_equal(uv_loop_close(&stage->loop), 0);
    free(stage);
    return 0;
}

static void what_another_session_says_is_heard_with_its_payload(void **state)
{
    Stage *stage = *state;
    admin_exec(stage->admin, "NOTIFY outbox_test, 'memo'");
    assert_true(run_for(&stage->loop, &stage->heard, true, WAIT_MS));
    assert_string_equal(stage->payload, "memo");
    assert_int_equal(stage->count, 1);
}

static void one_transaction_says_it_once(void **state)
{
    Stage *stage = *state;
    admin_exec(
        stage->admin, "SELECT pg_notify('outbox_test', 'memo') FROM generate_series(1, 500)");
    assert_true(run_for(&stage->loop, &stage->heard, true, WAIT_MS));
    run_ms(&stage->loop, 200);
    assert_int_equal(stage->count, 1);
}

static void other_channels_are_not_heard(void **state)
{
    Stage *stage = *state;
    admin_exec(stage->admin, "NOTIFY outbox_other, 'memo'; NOTIFY outbox_test, 'order'");
    assert_true(run_for(&stage->loop, &stage->heard, true, WAIT_MS));
    assert_string_equal(stage->payload, "order");
    assert_int_equal(stage->count, 1);
}

static void what_is_rolled_back_was_not_said(void **state)
{
    Stage *stage = *state;
    admin_exec(stage->admin, "BEGIN; NOTIFY outbox_test, 'memo'; ROLLBACK");
    run_ms(&stage->loop, 300);
    assert_false(stage->heard);
}

static void a_lost_connection_is_reported_and_it_listens_again(void **state)
{
    Stage *stage = *state;
    admin_exec(
        stage->admin, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                      " WHERE application_name = 'stentor-listen'");
    assert_true(run_for(&stage->loop, &stage->live, false, WAIT_MS));
    assert_false(db_listen_live(stage->listen));
    assert_true(run_for(&stage->loop, &stage->live, true, WAIT_MS));
    assert_int_equal(stage->changes, 3);
    admin_exec(stage->admin, "NOTIFY outbox_test, 'again'");
    assert_true(run_for(&stage->loop, &stage->heard, true, WAIT_MS));
    assert_string_equal(stage->payload, "again");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_another_session_says_is_heard_with_its_payload),
        TEST(one_transaction_says_it_once),
        TEST(other_channels_are_not_heard),
        TEST(what_is_rolled_back_was_not_said),
        TEST(a_lost_connection_is_reported_and_it_listens_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
