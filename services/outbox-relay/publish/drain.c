// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/publish/drain.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "services/outbox-relay/publish/claim.h"
#include "services/outbox-relay/publish/drain_state.h"

enum {
    POLL_MIN_MS = 20,
    FAIL_MIN_MS = 200, // after a failed claim, or a batch that gave rows back
    FAIL_MAX_MS = 5000,
    SCAN_MIN_MS = 1000, // between two claims that scan the whole table
    SCAN_SHARE = 20,    // and at least this many times the duration of one
    CLAIM_ID_SIZE = 64,
    ADOPT_MS = 1000, // between two searches for expired claims
    PIECE_ROWS = 20000,
    PIECE_MIN_ROWS = 500,
    ASIDES_MAX = 3,   // rows put aside one after the other, without a successful claim
    TIMEOUTS_MAX = 3, // then /readyz reports it
};

struct Drain {
    BatchContext *context;
    DrainOptions options;
    DrainHandlers handlers;
    void *ctx;
    uv_timer_t timer;
    DrainState state; // written by move() alone
    int under_way;
    // Facts that outlast a claim.
    bool woken;            // there may be rows that no claim has read
    bool claims_fail;      // since the last success; logged once
    bool adoptions_fail;   // likewise
    uint64_t claims;       // so far; part of the claims' ids
    int64_t idle_ms;       // the next pause
    int64_t fail_ms;       // the next pause after a failure
    int64_t resting_until; // monotonic
    // In a table that keeps published rows each claim would read all of them. So claims start
    // behind the last claimed position, and a scan reads the whole table in pieces, for rows that
    // were committed late, given back or retried. The first scan makes no pauses; later each piece
    // is followed by a pause of many times its duration.
    int64_t cursor;
    int64_t scan_from; // start of the next piece
    int64_t scan_due;  // monotonic
    int64_t adopt_due; // monotonic
    int64_t rows;      // to claim at most: fewer after a failed claim
    int64_t piece;     // likewise
    int asides;        // rows put aside since the last success
    int timeouts;      // likewise
    char claim_id[CLAIM_ID_SIZE];
    BatchQuery query; // of the claim in flight
    int64_t claim_started;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

static void try_claim(Drain *drain);

static bool move(Drain *drain, DrainState next)
{
    return drain_state_move(&drain->state, next, drain->context->relay);
}

static bool is_stopping(const Drain *drain)
{
    return drain->state >= DRAIN_LAST_ANSWER;
}

// The awaited answer has arrived; *ret_was: to what. false: no answer was awaited, ignore it.
static bool take_answer(Drain *drain, DrainState *ret_was)
{
    *ret_was = drain->state;
    return move(drain, drain->state == DRAIN_LAST_ANSWER ? DRAIN_ENDING : DRAIN_IDLE);
}

// ---- pauses ----

static void on_timer(uv_timer_t *timer)
{
    try_claim(timer->data);
}

static void pause_ms(Drain *drain, int64_t ms)
{
    uv_update_time(bus_loop(drain->context->bus));
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

// ---- where the next claim starts ----

static bool has_cursor(const Drain *drain)
{
    return drain->context->sql->mapping->position.len > 0;
}

static DrainState next_claim(const Drain *drain)
{
    if (drain->claim_started >= drain->adopt_due) {
        return DRAIN_ADOPTING;
    }
    bool scan = !has_cursor(drain) || drain->cursor == BATCH_FROM_START ||
                drain->claim_started >= drain->scan_due;
    return scan ? DRAIN_SCANNING : DRAIN_READING;
}

static void plan_scan(Drain *drain)
{
    int64_t now = clock_mono_us();
    int64_t share = SCAN_SHARE * (now - drain->claim_started);
    int64_t least = SCAN_MIN_MS * INT64_C(1000);
    drain->scan_due = now + (share > least ? share : least);
}

static void move_scan(Drain *drain, const BatchClaim *claim)
{
    if (claim->rows > 0 && claim->edge != BATCH_FROM_START) {
        drain->scan_from = claim->last_position;
    } else if (claim->cut) {
        drain->scan_from = claim->edge;
    } else {
        drain->scan_from = BATCH_FROM_START; // the scan is complete
    }
    if (claim->full) {
        drain->scan_due = 0;
    } else {
        plan_scan(drain);
    }
}

// After a claim without rows the cursor may pass everything that was read.
static void move_cursor(Drain *drain, DrainState was, const BatchClaim *claim)
{
    bool first = drain->cursor == BATCH_FROM_START;
    if (was == DRAIN_SCANNING) {
        move_scan(drain, claim);
    }
    if (!has_cursor(drain)) {
        return;
    }
    if (claim->rows > 0) {
        drain->cursor = claim->last_position > drain->cursor ? claim->last_position : drain->cursor;
    } else if (claim->cut ? !first : first && claim->edge != BATCH_FROM_START) {
        drain->cursor = claim->edge > drain->cursor ? claim->edge : drain->cursor;
    }
}

// ---- claiming ----

static void on_aside(void *ctx, Str key, const Error *err);

static bool is_timeout(const Error *err)
{
    return strstr(err->text, "(57014)") != NULL;
}

// One row that makes the claim fail must not hold up the others. If the table rejects every claim,
// that is reported instead.
static bool shrink(Drain *drain, const Error *err)
{
    if (is_timeout(err)) {
        drain->timeouts++;
        drain->rows = drain->rows > 1 ? drain->rows / 2 : 1;
        drain->piece = drain->piece / 2 > PIECE_MIN_ROWS ? drain->piece / 2 : PIECE_MIN_ROWS;
        return false;
    }
    if (err->kind != ERROR_PERMANENT || drain->asides >= ASIDES_MAX) {
        drain->asides = 0;
        return false;
    }
    if (drain->rows > 1) {
        drain->rows /= 2;
        try_claim(drain);
        return true;
    }
    if (!move(drain, DRAIN_PUTTING_ASIDE)) {
        return false;
    }
    drain->asides++;
    claim_put_aside(drain->context, &drain->query, err->text, on_aside, drain);
    return true;
}

static void take_adopt_failure(Drain *drain, const Error *err)
{
    if (!drain->adoptions_fail) {
        LOG(LOG_ERROR, "an expired claim could not be adopted, retrying", log_error(err));
    }
    drain->adoptions_fail = true;
    drain->adopt_due = clock_mono_us() + FAIL_MAX_MS * INT64_C(1000);
    try_claim(drain);
}

static void take_failure(Drain *drain, DrainState was, const Error *err)
{
    if (was == DRAIN_ADOPTING && (err->kind == ERROR_PERMANENT || is_timeout(err))) {
        take_adopt_failure(drain, err);
        return;
    }
    if (was == DRAIN_SCANNING) {
        plan_scan(drain);
    }
    bool trouble = err->kind == ERROR_CONFIG ||
                   (err->kind == ERROR_PERMANENT && drain->asides >= ASIDES_MAX) ||
                   (is_timeout(err) && drain->timeouts + 1 >= TIMEOUTS_MAX);
    if (!drain->claims_fail && err->kind != ERROR_CANCELLED) {
        LOG(trouble ? LOG_ERROR : LOG_WARN, "outbox rows could not be claimed, retrying",
            log_error(err));
    }
    drain->claims_fail = true;
    if (trouble) {
        drain->handlers.trouble(drain->ctx, err);
    }
    if (!shrink(drain, err)) {
        rest(drain);
    }
}

static void take_success(Drain *drain)
{
    if (drain->claims_fail) {
        LOG_PLAIN(LOG_INFO, "outbox rows are claimed again");
        drain->handlers.trouble(drain->ctx, NULL);
    }
    drain->claims_fail = false;
    drain->asides = 0;
    drain->timeouts = 0;
    drain->rows =
        2 * drain->rows < drain->context->rows_max ? 2 * drain->rows : drain->context->rows_max;
    drain->piece = 2 * drain->piece < PIECE_ROWS ? 2 * drain->piece : PIECE_ROWS;
}

// After few rows a short pause lets the next ones gather.
static void plan_next(Drain *drain, DrainState was, const BatchClaim *claim)
{
    bool more = claim->full || (claim->cut && !(was == DRAIN_SCANNING && has_cursor(drain) &&
                                                drain->cursor != BATCH_FROM_START));
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
    if (err == NULL && claim->rows > 0) {
        drain->under_way++;
        drain->handlers.claimed(drain->ctx, claim);
    }
    DrainState was;
    if (!take_answer(drain, &was)) {
        return;
    }
    if (is_stopping(drain)) {
        finish_stop(drain);
    } else if (err != NULL) {
        take_failure(drain, was, err);
    } else if (was == DRAIN_ADOPTING) {
        drain->adoptions_fail = false;
        drain->adopt_due = claim->rows > 0 ? 0 : clock_mono_us() + ADOPT_MS * INT64_C(1000);
        try_claim(drain);
    } else {
        take_success(drain);
        move_cursor(drain, was, claim);
        plan_next(drain, was, claim);
    }
}

static void on_aside(void *ctx, Str key, const Error *err)
{
    Drain *drain = ctx;
    DrainState was;
    if (err == NULL && key.len > 0) {
        LOG(LOG_ERROR,
            "the outbox table rejects the claim of a row, the row is put aside (stentor outbox "
            "show)",
            log_str("row", key));
    }
    if (!take_answer(drain, &was)) {
        return;
    }
    if (is_stopping(drain)) {
        finish_stop(drain);
    } else if (err != NULL) {
        rest(drain);
    } else {
        try_claim(drain);
    }
}

static void on_batch_ended(void *ctx, const BatchClaim *claim, const BatchEnd *end)
{
    Drain *drain = ctx;
    drain->under_way--;
    drain->handlers.ended(drain->ctx, end);
    if (is_stopping(drain)) {
        finish_stop(drain);
        return;
    }
    // Rows that waited for one of the batch's keys, or were given back, are before the cursor.
    if ((claim->keyed || end->left > 0) && has_cursor(drain) &&
        claim->first_position <= drain->cursor) {
        drain->cursor = claim->first_position - 1;
    }
    if (end->left > 0) {
        rest(drain);
        return;
    }
    drain->fail_ms = FAIL_MIN_MS;
    if (claim->keyed || claim->full || drain->woken) {
        try_claim(drain);
    }
}

// A pause is not over, or a connection is away; checked again when the timer fires.
static bool is_away(const Drain *drain)
{
    return clock_mono_us() < drain->resting_until || !bus_connected(drain->context->bus) ||
           !db_pool_ready(drain->context->pool);
}

static void try_claim(Drain *drain)
{
    static const BatchHandlers handlers = {.claimed = on_batch_claimed, .ended = on_batch_ended};
    if (drain->state != DRAIN_IDLE || drain->under_way >= drain->options.batches_max) {
        drain->woken = true;
        return;
    }
    if (is_away(drain)) {
        pause_ms(drain, double_up(&drain->idle_ms, drain->options.poll_max_ms));
        return;
    }
    drain->claim_started = clock_mono_us();
    if (!move(drain, next_claim(drain))) {
        return;
    }
    drain->woken = false;
    snprintf(
        drain->claim_id, sizeof drain->claim_id, "%s/%llu", drain->context->relay,
        (unsigned long long)++drain->claims);
    drain->query = (BatchQuery){
        .claim_id = drain->claim_id,
        .adopt = drain->state == DRAIN_ADOPTING,
        .after_position = drain->state == DRAIN_ADOPTING   ? BATCH_FROM_START
                          : drain->state == DRAIN_SCANNING ? drain->scan_from
                                                           : drain->cursor,
        .rows = drain->rows,
        .piece = drain->piece,
    };
    batch_start(drain->context, &drain->query, &handlers, drain);
}

void drain_wake(Drain *drain)
{
    drain->idle_ms = POLL_MIN_MS;
    try_claim(drain);
}

// ---- starting and stopping ----

Drain *drain_new(
    BatchContext *context, const DrainOptions *options, const DrainHandlers *handlers, void *ctx)
{
    Drain *drain = xcalloc(1, sizeof(*drain));
    drain->context = context;
    drain->options = *options;
    drain->handlers = *handlers;
    drain->ctx = ctx;
    drain->idle_ms = POLL_MIN_MS;
    drain->fail_ms = FAIL_MIN_MS;
    drain->cursor = BATCH_FROM_START;
    drain->scan_from = BATCH_FROM_START;
    drain->rows = context->rows_max;
    drain->piece = PIECE_ROWS;
    uv_timer_init(bus_loop(context->bus), &drain->timer);
    drain->timer.data = drain;
    return drain;
}

void drain_start(Drain *drain)
{
    if (move(drain, DRAIN_IDLE)) {
        drain_wake(drain);
    }
}

static void on_timer_closed(uv_handle_t *handle)
{
    Drain *drain = handle->data;
    drain->on_stopped(drain->stopped_ctx);
}

static void finish_stop(Drain *drain)
{
    if (drain->state == DRAIN_ENDING && drain->under_way == 0 && move(drain, DRAIN_STOPPED)) {
        uv_close((uv_handle_t *)&drain->timer, on_timer_closed);
    }
}

void drain_stop(Drain *drain, void (*on_stopped)(void *ctx), void *ctx)
{
    assert(!is_stopping(drain));
    bool idle = drain->state == DRAIN_NEW || drain->state == DRAIN_IDLE;
    drain->on_stopped = on_stopped;
    drain->stopped_ctx = ctx;
    drain->context->stopping = true;
    if (move(drain, idle ? DRAIN_ENDING : DRAIN_LAST_ANSWER)) {
        finish_stop(drain);
    }
}

void drain_free(Drain *drain)
{
    free(drain);
}
