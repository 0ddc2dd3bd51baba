// SPDX-License-Identifier: Apache-2.0
// Killed between the claim and the publish, the time-out is requested again after the same time.
#include "services/order-saga/waits.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"

enum {
    CLAIM_MAX = 500,
    LOOK_MIN_MS = 100,
    LOOK_MAX_MS = 30000,
    LOOKS_PER_TERM = 4,
};

struct Waits {
    WaitsOptions options;
    uv_timer_t timer;
    size_t in_flight;
    bool in_db, closing;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

static void on_timer_closed(uv_handle_t *handle)
{
    Waits *w = handle->data;
    w->on_stopped(w->stopped_ctx);
}

static void finish_stop(Waits *w)
{
    if (w->on_stopped != NULL && !w->in_db && w->in_flight == 0 && !w->closing) {
        w->closing = true;
        uv_close((uv_handle_t *)&w->timer, on_timer_closed);
    }
}

static void on_bus_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    Waits *w = ctx;
    w->in_flight--;
    metric_add(w->options.metrics->waits_repeated, err == NULL && !duplicate ? 1 : 0);
    finish_stop(w);
}

static void ask(Waits *w, const PGresult *res, int row, Arena *arena)
{
    Order order = {.tenant = arena_str(arena, db_get_text(res, row, OVERDUE_TENANT))};
    Command wait = {.order = &order, .retries = (int32_t)db_get_int(res, row, OVERDUE_RETRIES)};
    (void)str_to_c(
        db_get_text(res, row, OVERDUE_CORRELATION), order.correlation_id,
        sizeof order.correlation_id);
    (void)str_to_c(db_get_text(res, row, OVERDUE_TOKEN), wait.token_id, sizeof wait.token_id);
    OutMessage message;
    Error err = {0};
    if (!message_timeout(&wait, clock_now_us(), arena, &message, &err)) {
        LOG(LOG_ERROR, "a lost time-out could not be requested again", log_error(&err));
        return;
    }
    BusOut out = message_out(&message, STR_EMPTY, arena);
    w->in_flight++;
    bus_publish(w->options.bus, &out, on_bus_acked, w);
}

static void on_db_claimed(void *ctx, DbTxn *txn, const Error *err)
{
    Waits *w = ctx;
    w->in_db = false;
    int count = err == NULL ? db_rows(db_txn_result(txn, 0)) : 0;
    if (err != NULL && err->kind != ERROR_TRANSIENT && err->kind != ERROR_CANCELLED) {
        LOG(LOG_ERROR, "the search for lost time-outs failed, retrying", log_error(err));
    }
    if (count > 0) {
        LOG(LOG_WARN, "time-outs of orders are missing and are requested again",
            log_int("count", count));
        Arena *arena = arena_new(0);
        for (int row = 0; row < count; row++) {
            ask(w, db_txn_result(txn, 0), row, arena);
        }
        arena_free(arena);
    }
    finish_stop(w);
}

static void on_timer_tick(uv_timer_t *timer)
{
    Waits *w = timer->data;
    if (w->in_db || w->in_flight > 0 || w->on_stopped != NULL || !db_pool_ready(w->options.pool) ||
        !bus_connected(w->options.bus)) {
        return;
    }
    w->in_db = true;
    DbTxn *txn = db_txn_new(w->options.pool);
    saga_sql_overdue(txn, w->options.lost_after_ms, CLAIM_MAX);
    db_txn_submit(txn, on_db_claimed, w);
}

Waits *waits_new(const WaitsOptions *options)
{
    Waits *w = xcalloc(1, sizeof *w);
    w->options = *options;
    int64_t every_ms = options->lost_after_ms / LOOKS_PER_TERM;
    every_ms = every_ms < LOOK_MIN_MS ? LOOK_MIN_MS : every_ms;
    every_ms = every_ms > LOOK_MAX_MS ? LOOK_MAX_MS : every_ms;
    (void)uv_timer_init(bus_loop(options->bus), &w->timer);
    w->timer.data = w;
    (void)uv_timer_start(&w->timer, on_timer_tick, (uint64_t)every_ms, (uint64_t)every_ms);
    return w;
}

void waits_stop(Waits *w, void (*on_stopped)(void *ctx), void *ctx)
{
    w->on_stopped = on_stopped;
    w->stopped_ctx = ctx;
    finish_stop(w);
}

void waits_free(Waits *w)
{
    free(w);
}
