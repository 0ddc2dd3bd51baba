// SPDX-License-Identifier: Apache-2.0
// The drain without NATS and Postgres: its batches are this file's. What it does when a move is
// refused, as in a release build.
#include "services/outbox-relay/publish/drain.c" // NOLINT: its state is written from outside

#include "tests/unit/common/base/states/states_walk.h"

typedef struct Stage {
    uv_loop_t loop;
    RelaySql sql;
    Mapping mapping;
    BatchContext context;
    Drain *drain;
    int claims, claimed_rows, ended, stopped;
    BatchHandlers handlers; // of the last claim
    void *ctx;
} Stage;

static Stage *stage;

// ---- what the drain calls ----

uv_loop_t *bus_loop(Bus *bus)
{
    (void)bus;
    return &stage->loop;
}

bool bus_connected(const Bus *bus)
{
    (void)bus;
    return true;
}

bool db_pool_ready(const DbPool *pool)
{
    (void)pool;
    return true;
}

void batch_start(
    BatchContext *context, const BatchQuery *query, const BatchHandlers *handlers, void *ctx)
{
    (void)context;
    (void)query;
    stage->claims++;
    stage->handlers = *handlers;
    stage->ctx = ctx;
}

void claim_put_aside(
    BatchContext *context, const BatchQuery *query, const char *reason,
    void (*done)(void *ctx, Str key, const Error *err), void *ctx)
{
    (void)context;
    (void)query;
    (void)done;
    (void)ctx;
    fail_msg("nothing is put aside here: %s", reason);
}

// ---- what it reports ----

static void on_claimed(void *ctx, const BatchClaim *claim)
{
    ((Stage *)ctx)->claimed_rows += (int)claim->rows;
}

static void on_ended(void *ctx, const BatchEnd *end)
{
    (void)end;
    ((Stage *)ctx)->ended++;
}

static void on_trouble(void *ctx, const Error *err)
{
    (void)ctx;
    assert_null(err);
}

static void on_stopped(void *ctx)
{
    ((Stage *)ctx)->stopped++;
}

static int stage_up(void **state)
{
    static const DrainHandlers handlers = {
        .claimed = on_claimed, .ended = on_ended, .trouble = on_trouble};
    stage = xcalloc(1, sizeof *stage);
    uv_loop_init(&stage->loop);
    stage->sql.mapping = &stage->mapping;
    stage->context = (BatchContext){.sql = &stage->sql, .relay = "relay-1", .rows_max = 10};
    stage->drain = drain_new(
        &stage->context, &(DrainOptions){.batches_max = 1, .poll_max_ms = 1000}, &handlers, stage);
    drain_start(stage->drain);
    assert_int_equal(stage->claims, 1);
    states_survive(true);
    *state = stage;
    return 0;
}

static int stage_down(void **state)
{
    (void)state;
    states_survive(false);
    drain_free(stage->drain);
    int left = uv_loop_close(&stage->loop);
    free(stage);
    return left;
}

static void an_answer_that_was_not_awaited_is_left_to_itself_and_its_rows_are_not(void **state)
{
    (void)state;
    const BatchClaim claim = {.rows = 2};
    stage->drain->state = DRAIN_IDLE; // the claim is under way all the same
    stage->handlers.claimed(stage->ctx, &claim, NULL);
    assert_int_equal(stage->drain->state, DRAIN_IDLE);
    assert_int_equal(stage->claimed_rows, 2);
    assert_int_equal(stage->drain->under_way, 1); // its end is waited for
    assert_int_equal(stage->claims, 1);
    drain_stop(stage->drain, on_stopped, stage);
    uv_run(&stage->loop, UV_RUN_NOWAIT);
    assert_int_equal(stage->stopped, 0);
    stage->handlers.ended(stage->ctx, &claim, &(BatchEnd){.marked = 2});
    uv_run(&stage->loop, UV_RUN_DEFAULT);
    assert_int_equal(stage->ended, 1);
    assert_int_equal(stage->stopped, 1);
}

// The answer that is awaited, if one is, and then the end.
static void stop(void)
{
    drain_stop(stage->drain, on_stopped, stage);
    if (stage->drain->state == DRAIN_LAST_ANSWER) {
        stage->handlers.claimed(stage->ctx, &(BatchClaim){.rows = 0}, NULL);
    }
    uv_run(&stage->loop, UV_RUN_DEFAULT);
    assert_int_equal(stage->stopped, 1);
}

static void a_drain_that_refused_a_move_claims_again_when_it_is_woken(void **state)
{
    (void)state;
    stage->drain->state = DRAIN_IDLE;
    stage->handlers.claimed(stage->ctx, &(BatchClaim){.rows = 0}, NULL);
    assert_int_equal(stage->claims, 1); // nothing follows from it
    drain_wake(stage->drain);
    assert_int_equal(stage->claims, 2);
    stop();
}

#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, stage_up, stage_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE(an_answer_that_was_not_awaited_is_left_to_itself_and_its_rows_are_not),
        ON_STAGE(a_drain_that_refused_a_move_claims_again_when_it_is_woken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
