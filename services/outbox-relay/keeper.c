// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/keeper.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"

enum {
    COUNT_SHARE = 20,    // a count is followed by this many times its duration without one
    KEEP_PAUSE_MS = 100, // between two deletions of one look, and
    KEEP_SHARE = 4,      // this many times as long as one takes
    CALM_SHARE = 2,      // the alert is over when the backlog is down to half of it
};

struct Keeper {
    uv_loop_t *loop;
    KeeperOptions options;
    KeeperHandlers handlers;
    void *ctx;
    uv_timer_t count_timer;
    uv_timer_t keep_timer;
    bool counting;
    bool keeping;
    int keep_at;
    int64_t count_started; // monotonic
    int64_t keep_started;
    bool alarmed;
    bool count_failing;
    bool keep_failing;
    int handles;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

static void finish_stop(Keeper *keeper);

// Once for each change: a database that is away would fill the log.
static void tell_failure(bool *failing, const char *what, const Error *err)
{
    if (err != NULL && !*failing && err->kind != ERROR_CANCELLED) {
        LOG(LOG_WARN, what, log_error(err));
    }
    *failing = err != NULL;
}

// ---- counting ----

static void on_count_timer(uv_timer_t *timer);

static void tell_crossing(Keeper *keeper, const KeeperBacklog *backlog)
{
    int64_t alert = keeper->options.sql->mapping->backlog_alert;
    if (!keeper->alarmed && backlog->rows >= alert) {
        keeper->alarmed = true;
        LOG(LOG_WARN, "the outbox's backlog is above its alert",
            log_str("mapping", keeper->options.sql->mapping->name), log_int("rows", backlog->rows),
            log_int("alert", alert));
    } else if (keeper->alarmed && backlog->rows < alert / CALM_SHARE) {
        keeper->alarmed = false;
        LOG(LOG_INFO, "the outbox's backlog is below its alert again",
            log_str("mapping", keeper->options.sql->mapping->name), log_int("rows", backlog->rows));
    }
}

static void plan_count(Keeper *keeper)
{
    int64_t took_ms = (clock_mono_us() - keeper->count_started) / 1000;
    int64_t wait_ms = COUNT_SHARE * took_ms;
    int64_t least_ms = keeper->options.count_ms;
    uv_timer_start(
        &keeper->count_timer, on_count_timer, (uint64_t)(wait_ms > least_ms ? wait_ms : least_ms),
        0);
}

static void on_counted(void *ctx, DbTxn *txn, const Error *err)
{
    Keeper *keeper = ctx;
    keeper->counting = false;
    tell_failure(&keeper->count_failing, "the outbox's backlog is not counted", err);
    if (err == NULL) {
        const PGresult *res = db_txn_result(txn, 1);
        const KeeperBacklog backlog = {
            .rows = db_get_int(res, 0, 0),
            .oldest_at_us = db_get_time(res, 0, 1),
            .claims = db_get_int(res, 0, 2),
            .refused = db_get_int(res, 0, 3),
        };
        tell_crossing(keeper, &backlog);
        keeper->handlers.counted(keeper->ctx, &backlog);
    }
    if (keeper->on_stopped != NULL) {
        finish_stop(keeper);
    } else {
        plan_count(keeper);
    }
}

static void count(Keeper *keeper)
{
    keeper->count_started = clock_mono_us();
    if (!db_pool_ready(keeper->options.pool)) {
        plan_count(keeper);
        return;
    }
    keeper->counting = true;
    DbTxn *txn = db_txn_new(keeper->options.pool);
    db_txn_add(txn, &keeper->options.sql->plan, NULL);
    DbParams *p = db_txn_add(txn, &keeper->options.sql->backlog, NULL);
    db_i64(p, KEEPER_COUNT_MAX);
    db_null(p);
    db_txn_submit(txn, on_counted, keeper);
}

static void on_count_timer(uv_timer_t *timer)
{
    count(timer->data);
}

// ---- retention ----

static void on_keep_timer(uv_timer_t *timer);

// Full: there is more of the same. Else the next rule, and after the last one the long pause.
static void plan_keep(Keeper *keeper, bool full)
{
    keeper->keep_at += full ? 0 : 1;
    bool over = keeper->keep_at >= keeper->options.sql->keep_count;
    if (over) {
        keeper->keep_at = 0;
    }
    int64_t wait_ms = KEEP_SHARE * (clock_mono_us() - keeper->keep_started) / 1000;
    int64_t least_ms = over ? keeper->options.keep_ms : KEEP_PAUSE_MS;
    uv_timer_start(
        &keeper->keep_timer, on_keep_timer, (uint64_t)(wait_ms > least_ms ? wait_ms : least_ms), 0);
}

static void on_kept(void *ctx, DbTxn *txn, const Error *err)
{
    Keeper *keeper = ctx;
    keeper->keeping = false;
    tell_failure(&keeper->keep_failing, "old rows of the outbox are not deleted", err);
    int64_t rows = err == NULL ? db_get_int(db_txn_result(txn, 0), 0, 0) : 0;
    if (rows > 0) {
        keeper->handlers.deleted(keeper->ctx, (size_t)rows);
    }
    if (keeper->on_stopped != NULL) {
        finish_stop(keeper);
    } else {
        plan_keep(keeper, rows >= keeper->options.keep_rows);
    }
}

static void keep(Keeper *keeper)
{
    keeper->keep_started = clock_mono_us();
    if (keeper->options.sql->keep_count == 0) {
        return;
    }
    if (!db_pool_ready(keeper->options.pool)) {
        keeper->keep_at = keeper->options.sql->keep_count;
        plan_keep(keeper, false);
        return;
    }
    keeper->keeping = true;
    DbTxn *txn = db_txn_new(keeper->options.pool);
    DbParams *p = db_txn_add(txn, &keeper->options.sql->keep[keeper->keep_at], NULL);
    db_i32(p, (int32_t)keeper->options.keep_rows);
    db_txn_submit(txn, on_kept, keeper);
}

static void on_keep_timer(uv_timer_t *timer)
{
    keep(timer->data);
}

// ---- life ----

Keeper *keeper_new(
    uv_loop_t *loop, const KeeperOptions *options, const KeeperHandlers *handlers, void *ctx)
{
    Keeper *keeper = xcalloc(1, sizeof(*keeper));
    keeper->loop = loop;
    keeper->options = *options;
    keeper->handlers = *handlers;
    keeper->ctx = ctx;
    keeper->handles = 2;
    uv_timer_init(loop, &keeper->count_timer);
    uv_timer_init(loop, &keeper->keep_timer);
    keeper->count_timer.data = keeper;
    keeper->keep_timer.data = keeper;
    return keeper;
}

void keeper_start(Keeper *keeper)
{
    uv_timer_start(&keeper->count_timer, on_count_timer, 0, 0);
    uv_timer_start(&keeper->keep_timer, on_keep_timer, (uint64_t)keeper->options.keep_ms, 0);
}

static void on_timer_closed(uv_handle_t *handle)
{
    Keeper *keeper = handle->data;
    if (--keeper->handles == 0) {
        keeper->on_stopped(keeper->stopped_ctx);
    }
}

static void finish_stop(Keeper *keeper)
{
    if (keeper->counting || keeper->keeping) {
        return;
    }
    uv_close((uv_handle_t *)&keeper->count_timer, on_timer_closed);
    uv_close((uv_handle_t *)&keeper->keep_timer, on_timer_closed);
}

void keeper_stop(Keeper *keeper, void (*on_stopped)(void *ctx), void *ctx)
{
    keeper->on_stopped = on_stopped;
    keeper->stopped_ctx = ctx;
    uv_timer_stop(&keeper->count_timer);
    uv_timer_stop(&keeper->keep_timer);
    finish_stop(keeper);
}

void keeper_free(Keeper *keeper)
{
    free(keeper);
}
