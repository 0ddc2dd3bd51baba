// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/drain.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/log.h"

enum {
    POLL_MIN_MS = 20,
    FAIL_MIN_MS = 200, // after a claim that failed, or a batch of which something was given back
    FAIL_MAX_MS = 5000,
    SCAN_MIN_MS = 1000, // between two claims that look at the whole table
    SCAN_SHARE = 20,    // and this many times as long as one takes
    CLAIM_ID_SIZE = 64,
};

struct Drain {
    BatchWorld *world;
    DrainOptions options;
    DrainHandlers handlers;
    void *ctx;
    uv_timer_t timer;
    bool started;
    bool claiming;
    bool woken; // while a claim was in the air
    bool failing;
    int under_way;
    uint64_t claims;       // so far: makes the claims' ids
    int64_t idle_ms;       // the next pause
    int64_t fail_ms;       // the next pause after a failure
    int64_t resting_until; // monotonic
    // Tables in which published rows stay pending until their fate is known would be scanned
    // through all of those at each claim. So claims begin behind the last position that was
    // claimed, and now and then one looks at everything, for what was committed late, given back or
    // asked for again.
    int64_t cursor;
    int64_t scan_due; // monotonic
    bool scanning;    // the claim in the air looks at everything
    int64_t claim_started;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

static void try_claim(Drain *drain);

// ---- pauses ----

static void on_timer(uv_timer_t *timer)
{
    try_claim(timer->data);
}

static void pause_ms(Drain *drain, int64_t ms)
{
    uv_update_time(bus_loop(drain->world->bus));
    uv_timer_start(&drain->timer, on_timer, (uint64_t)ms, 0);
}

static int64_t double_up(int64_t *ms, int64_t max_ms)
{
    int64_t now_ms = *ms;
    *ms = 2 * now_ms < max_ms ? 2 * now_ms : max_ms;
    return now_ms;
}

static void rest(Drain *drain)
{
    int64_t ms = double_up(&drain->fail_ms, FAIL_MAX_MS);
    drain->resting_until = clock_mono_us() + ms * 1000;
    pause_ms(drain, ms);
}

// ---- where the next claim looks ----

static bool has_cursor(const Drain *drain)
{
    return drain->world->sql->mapping->position.len > 0;
}

static int64_t next_start(Drain *drain)
{
    drain->claim_started = clock_mono_us();
    drain->scanning = !has_cursor(drain) || drain->cursor == BATCH_FROM_START ||
                      drain->claim_started >= drain->scan_due;
    return drain->scanning ? BATCH_FROM_START : drain->cursor;
}

static void move_cursor(Drain *drain, const BatchClaim *claim)
{
    int64_t now = clock_mono_us();
    if (drain->scanning) {
        int64_t share = SCAN_SHARE * (now - drain->claim_started);
        int64_t least = SCAN_MIN_MS * INT64_C(1000);
        drain->scan_due = now + (share > least ? share : least);
    }
    if (has_cursor(drain) && claim->rows > 0 && claim->last_position > drain->cursor) {
        drain->cursor = claim->last_position;
    }
}

// Rows that had to wait for one of the batch's keys, or were given back, are before the cursor.
static void take_cursor_back(Drain *drain, const BatchClaim *claim)
{
    if (has_cursor(drain) && claim->first_position <= drain->cursor) {
        drain->cursor = claim->first_position - 1;
    }
}

// ---- claiming ----

static void take_failure(Drain *drain, const Error *err)
{
    bool trouble = err->kind == ERROR_CONFIG || err->kind == ERROR_PERMANENT;
    if (!drain->failing && err->kind != ERROR_CANCELLED) {
        LOG(trouble ? LOG_ERROR : LOG_WARN, "the outbox cannot be claimed from, trying again",
            log_error(err));
    }
    drain->failing = true;
    if (trouble) {
        drain->handlers.trouble(drain->ctx, err);
    }
    rest(drain);
}

static void take_success(Drain *drain)
{
    if (drain->failing) {
        LOG_PLAIN(LOG_INFO, "the outbox is claimed from again");
        drain->handlers.trouble(drain->ctx, NULL);
    }
    drain->failing = false;
}

// Few rows: the next come together for a moment instead of one by one.
static void plan_next(Drain *drain, const BatchClaim *claim)
{
    bool more = claim->adopted || (int64_t)claim->rows == drain->world->rows_max;
    if (claim->rows > 0) {
        drain->idle_ms = POLL_MIN_MS;
    }
    if (more || drain->woken) {
        try_claim(drain);
    } else {
        pause_ms(drain, double_up(&drain->idle_ms, drain->options.poll_max_ms));
    }
}

static void finish_stop(Drain *drain);

static void on_batch_claimed(void *ctx, const BatchClaim *claim, const Error *err)
{
    Drain *drain = ctx;
    drain->claiming = false;
    if (err == NULL && claim->rows > 0) {
        drain->under_way++;
        drain->handlers.claimed(drain->ctx, claim);
    }
    if (drain->on_stopped != NULL) {
        finish_stop(drain);
    } else if (err != NULL) {
        take_failure(drain, err);
    } else {
        take_success(drain);
        move_cursor(drain, claim);
        plan_next(drain, claim);
    }
}

static void on_batch_ended(void *ctx, const BatchClaim *claim, const BatchEnd *end)
{
    Drain *drain = ctx;
    drain->under_way--;
    drain->handlers.ended(drain->ctx, end);
    if (drain->on_stopped != NULL) {
        finish_stop(drain);
        return;
    }
    if (claim->keyed || end->left > 0) {
        take_cursor_back(drain, claim);
    }
    if (end->left > 0) {
        rest(drain);
        return;
    }
    drain->fail_ms = FAIL_MIN_MS;
    bool full = (int64_t)claim->rows == drain->world->rows_max;
    if (claim->keyed || full || drain->woken) {
        try_claim(drain);
    }
}

static bool can_claim(const Drain *drain)
{
    return drain->started && drain->on_stopped == NULL && !drain->claiming &&
           drain->under_way < drain->options.batches_max;
}

// A pause that is not over is looked at again when the timer comes; the bus and the pool too.
static bool is_away(const Drain *drain)
{
    return clock_mono_us() < drain->resting_until || !bus_connected(drain->world->bus) ||
           !db_pool_ready(drain->world->pool);
}

static void try_claim(Drain *drain)
{
    static const BatchHandlers handlers = {.claimed = on_batch_claimed, .ended = on_batch_ended};
    if (!can_claim(drain)) {
        drain->woken = true;
        return;
    }
    if (is_away(drain)) {
        pause_ms(drain, double_up(&drain->idle_ms, drain->options.poll_max_ms));
        return;
    }
    drain->woken = false;
    drain->claiming = true;
    char claim_id[CLAIM_ID_SIZE];
    snprintf(
        claim_id, sizeof claim_id, "%s/%llu", drain->world->relay,
        (unsigned long long)++drain->claims);
    batch_start(drain->world, claim_id, next_start(drain), &handlers, drain);
}

void drain_wake(Drain *drain)
{
    drain->idle_ms = POLL_MIN_MS;
    try_claim(drain);
}

// ---- life ----

Drain *drain_new(
    BatchWorld *world, const DrainOptions *options, const DrainHandlers *handlers, void *ctx)
{
    Drain *drain = xcalloc(1, sizeof(*drain));
    drain->world = world;
    drain->options = *options;
    drain->handlers = *handlers;
    drain->ctx = ctx;
    drain->idle_ms = POLL_MIN_MS;
    drain->fail_ms = FAIL_MIN_MS;
    drain->cursor = BATCH_FROM_START;
    uv_timer_init(bus_loop(world->bus), &drain->timer);
    drain->timer.data = drain;
    return drain;
}

void drain_start(Drain *drain)
{
    drain->started = true;
    drain_wake(drain);
}

static void on_timer_closed(uv_handle_t *handle)
{
    Drain *drain = handle->data;
    drain->on_stopped(drain->stopped_ctx);
}

static void finish_stop(Drain *drain)
{
    if (!drain->claiming && drain->under_way == 0) {
        uv_close((uv_handle_t *)&drain->timer, on_timer_closed);
    }
}

void drain_stop(Drain *drain, void (*on_stopped)(void *ctx), void *ctx)
{
    assert(drain->on_stopped == NULL);
    drain->on_stopped = on_stopped;
    drain->stopped_ctx = ctx;
    drain->world->stopping = true;
    finish_stop(drain);
}

void drain_free(Drain *drain)
{
    free(drain);
}
