// SPDX-License-Identifier: Apache-2.0
#include "services/order-saga/retention.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"

enum {
    ROWS_MAX = 1000,    // of each table and statement
    PAUSE_MS = 20,      // between two statements: events have priority
    STRETCH_MS = 10000, // then the event is given back, before it would be redelivered anyway
    AGAIN_MS = 1000,
    ASK_MS = 10 * 60 * 1000,
    ASK_SOON_MS = 1000, // after a failed request
    WAITING_MAX = 64,   // events of waiting passes; others are given back
};

typedef struct Pass {
    Delivery *delivery;
    Str tenant; // empty: of all
} Pass;

struct Retention {
    RetentionOptions options;
    uv_timer_t ask_timer, step_timer;
    Pass passes[WAITING_MAX]; // the first is in progress
    size_t count;
    int64_t started_at_us; // of this part of the pass
    int64_t rows[RETENTION_STEPS];
    bool in_db, asking;
    int closing;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

static void begin_step(Retention *r);
static void finish_stop(Retention *r);

// ---- requesting the next pass ----

static void ask_later(Retention *r, uint64_t wait_ms);

static void on_bus_asked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate;
    Retention *r = ctx;
    r->asking = false;
    if (r->on_stopped != NULL) {
        finish_stop(r);
    } else {
        ask_later(r, err == NULL ? ASK_MS : ASK_SOON_MS);
    }
}

static void ask(Retention *r)
{
    Arena *arena = arena_new(0);
    OutMessage message;
    Error err = {0};
    int64_t period = clock_now_us() / 1000000 / r->options.period_s + 1;
    if (message_retention(period, r->options.period_s, arena, &message, &err)) {
        BusOut out = message_out(&message, STR_EMPTY, arena);
        r->asking = true;
        bus_publish(r->options.bus, &out, on_bus_asked, r);
    }
    arena_free(arena);
}

static void on_timer_ask(uv_timer_t *timer)
{
    Retention *r = timer->data;
    if (bus_connected(r->options.bus) && !r->asking) {
        ask(r);
    } else {
        ask_later(r, ASK_SOON_MS);
    }
}

static void ask_later(Retention *r, uint64_t wait_ms)
{
    (void)uv_timer_start(&r->ask_timer, on_timer_ask, wait_ms, 0);
}

// ---- a pass ----

static void begin_pass(Retention *r)
{
    r->started_at_us = clock_mono_us();
    for (int i = 0; i < RETENTION_STEPS; i++) {
        r->rows[i] = 0;
    }
    begin_step(r);
}

static void drop_pass(Retention *r)
{
    r->count--;
    for (size_t i = 0; i < r->count; i++) {
        r->passes[i] = r->passes[i + 1];
    }
    if (r->count > 0 && r->on_stopped == NULL) {
        begin_pass(r);
    }
}

static void log_pass(const Retention *r, const char *what)
{
    LOG(LOG_INFO, what, log_int("outbox", r->rows[0]), log_int("inbox", r->rows[1]),
        log_int("archived", r->rows[2]), log_int("dropped", r->rows[3]),
        log_int("ms", (clock_mono_us() - r->started_at_us) / 1000));
}

static void end_pass(Retention *r)
{
    const SagaMetrics *metrics = r->options.metrics;
    log_pass(r, "retention pass completed");
    metric_add(metrics->passes, 1);
    metric_set(metrics->retained_at, (double)clock_now_us() / 1e6);
    delivery_settle(r->passes[0].delivery, NULL);
    drop_pass(r);
    if (r->on_stopped == NULL) {
        ask_later(r, 0); // the next one
    }
}

static void on_timer_step(uv_timer_t *timer)
{
    begin_step(timer->data);
}

static void on_db_retained(void *ctx, DbTxn *txn, const Error *err)
{
    Retention *r = ctx;
    r->in_db = false;
    bool more = false;
    for (int i = 0; i < RETENTION_STEPS && err == NULL; i++) {
        int64_t rows = db_get_int(db_txn_result(txn, i), 0, 0);
        metric_add(r->options.metrics->retained[i], (double)rows);
        r->rows[i] += rows;
        more = more || rows >= ROWS_MAX;
    }
    if (r->on_stopped != NULL) {
        finish_stop(r);
    } else if (err != NULL) {
        LOG(LOG_WARN, "retention pass failed, it is retried when its event is redelivered",
            log_error(err));
        delivery_settle(r->passes[0].delivery, err);
        drop_pass(r);
    } else if (!more) {
        end_pass(r);
    } else if (clock_mono_us() - r->started_at_us > STRETCH_MS * INT64_C(1000)) {
        log_pass(r, "retention pass interrupted, it continues when its event is redelivered");
        delivery_redeliver(r->passes[0].delivery, AGAIN_MS);
        drop_pass(r);
    } else {
        (void)uv_timer_start(&r->step_timer, on_timer_step, PAUSE_MS, 0);
    }
}

static void begin_step(Retention *r)
{
    r->in_db = true;
    DbTxn *txn = db_txn_new(r->options.pool);
    saga_sql_retain(txn, &r->options.ages, r->passes[0].tenant, ROWS_MAX);
    db_txn_submit(txn, on_db_retained, r);
}

void retention_take(Retention *r, Delivery *delivery, Str tenant)
{
    if (r->on_stopped != NULL || r->count == WAITING_MAX) {
        delivery_redeliver(delivery, AGAIN_MS);
        return;
    }
    bool of_all = str_eq(tenant, STR("platform"));
    r->passes[r->count++] = (Pass){delivery, of_all ? STR_EMPTY : tenant};
    if (r->count == 1) {
        begin_pass(r);
    }
}

// ---- starting and stopping ----

Retention *retention_new(const RetentionOptions *options)
{
    Retention *r = xcalloc(1, sizeof *r);
    r->options = *options;
    (void)uv_timer_init(bus_loop(options->bus), &r->ask_timer);
    (void)uv_timer_init(bus_loop(options->bus), &r->step_timer);
    r->ask_timer.data = r->step_timer.data = r;
    ask_later(r, 0);
    return r;
}

static void on_timer_closed(uv_handle_t *handle)
{
    Retention *r = handle->data;
    if (--r->closing == 0) {
        r->on_stopped(r->stopped_ctx);
    }
}

static void finish_stop(Retention *r)
{
    if (r->in_db || r->asking || r->closing > 0) {
        return;
    }
    Error stopping = {0};
    (void)error_set(&stopping, ERROR_CANCELLED, "stopping");
    for (size_t i = 0; i < r->count; i++) {
        delivery_settle(r->passes[i].delivery, &stopping);
    }
    r->count = 0;
    r->closing = 2;
    uv_close((uv_handle_t *)&r->ask_timer, on_timer_closed);
    uv_close((uv_handle_t *)&r->step_timer, on_timer_closed);
}

void retention_stop(Retention *r, void (*on_stopped)(void *ctx), void *ctx)
{
    r->on_stopped = on_stopped;
    r->stopped_ctx = ctx;
    finish_stop(r);
}

void retention_free(Retention *r)
{
    free(r);
}
