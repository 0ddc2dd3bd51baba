// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/maintenance.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"

enum {
    COUNT_SHARE = 20,    // the pause after a count is this many times its duration
    KEEP_PAUSE_MS = 100, // between two deletions of one search, and
    KEEP_SHARE = 4,      // at least this many times the duration of one
    TALLY_SHARE = 200,   // the same for the tally, which may read the whole table
    CALM_SHARE = 2,      // the alert is over when the backlog is down to half of it
};

struct Maintenance {
    uv_loop_t *loop;
    MaintenanceOptions options;
    MaintenanceHandlers handlers;
    void *ctx;
    uv_timer_t count_timer;
    uv_timer_t keep_timer;
    bool counting;
    bool keeping;
    int keep_at;
    int64_t count_started; // monotonic
    int64_t tally_due;
    bool tallying; // the count in progress has the tally
    int64_t keep_started;
    bool alarmed;
    bool count_failing;
    bool keep_failing;
    int handles;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

static void finish_stop(Maintenance *maintenance);

// Logged once a change: an unreachable database would fill the log.
static void log_failure(bool *failing, const char *what, const Error *err)
{
    if (err != NULL && !*failing && err->kind != ERROR_CANCELLED) {
        LOG(LOG_WARN, what, log_error(err));
    }
    *failing = err != NULL;
}

// ---- counting ----

static void on_count_timer(uv_timer_t *timer);

static void log_crossing(Maintenance *maintenance, const MaintenanceBacklog *backlog)
{
    int64_t alert = maintenance->options.sql->mapping->backlog_alert;
    if (!maintenance->alarmed && backlog->rows >= alert) {
        maintenance->alarmed = true;
        LOG(LOG_WARN, "the outbox backlog has reached its alert threshold",
            log_str("mapping", maintenance->options.sql->mapping->name),
            log_int("rows", backlog->rows), log_int("alert", alert));
    } else if (maintenance->alarmed && backlog->rows < alert / CALM_SHARE) {
        maintenance->alarmed = false;
        LOG(LOG_INFO, "the outbox backlog is below half of its alert threshold again",
            log_str("mapping", maintenance->options.sql->mapping->name),
            log_int("rows", backlog->rows));
    }
}

static void plan_count(Maintenance *maintenance)
{
    int64_t took_ms = (clock_mono_us() - maintenance->count_started) / 1000;
    // A tally may have read the whole table: the backlog and its alert do not wait for that.
    int64_t wait_ms = maintenance->tallying ? 0 : COUNT_SHARE * took_ms;
    int64_t least_ms = maintenance->options.count_ms;
    uv_timer_start(
        &maintenance->count_timer, on_count_timer,
        (uint64_t)(wait_ms > least_ms ? wait_ms : least_ms), 0);
}

static void report_tally(Maintenance *maintenance, DbTxn *txn)
{
    if (!maintenance->tallying) {
        return;
    }
    const PGresult *res = db_txn_result(txn, 2);
    MaintenanceTally tally = {0};
    for (int row = 0; row < db_rows(res); row++) {
        int64_t retries = db_get_int(res, row, 0);
        int64_t count = db_get_int(res, row, 1);
        if (retries == 0) {
            tally.failed = count;
        } else if (retries <= RELAY_RETRIES_MAX) {
            tally.retried[retries] = count;
        }
    }
    maintenance->handlers.tallied(maintenance->ctx, &tally);
}

static void on_counted(void *ctx, DbTxn *txn, const Error *err)
{
    Maintenance *maintenance = ctx;
    maintenance->counting = false;
    if (maintenance->tallying) { // also when it failed: a table that is slow to read is left alone
        int64_t now = clock_mono_us();
        maintenance->tally_due = now + TALLY_SHARE * (now - maintenance->count_started);
    }
    log_failure(
        &maintenance->count_failing, "the outbox backlog could not be counted, retrying", err);
    if (err == NULL) {
        const PGresult *res = db_txn_result(txn, 1);
        const MaintenanceBacklog backlog = {
            .rows = db_get_int(res, 0, 0),
            .oldest_at_us = db_get_time(res, 0, 1),
            .claims = db_get_int(res, 0, 2),
            .refused = db_get_int(res, 0, 3),
        };
        log_crossing(maintenance, &backlog);
        maintenance->handlers.counted(maintenance->ctx, &backlog);
        report_tally(maintenance, txn);
    }
    if (maintenance->on_stopped != NULL) {
        finish_stop(maintenance);
    } else {
        plan_count(maintenance);
    }
}

static void count(Maintenance *maintenance)
{
    maintenance->count_started = clock_mono_us();
    if (!db_pool_ready(maintenance->options.pool)) {
        plan_count(maintenance);
        return;
    }
    maintenance->counting = true;
    DbTxn *txn = db_txn_new(maintenance->options.pool);
    db_txn_add(txn, &maintenance->options.sql->plan, NULL);
    DbParams *p = db_txn_add(txn, &maintenance->options.sql->backlog, NULL);
    db_i64(p, MAINTENANCE_COUNT_MAX);
    db_null(p);
    maintenance->tallying = maintenance->options.sql->tally.sql != NULL &&
                            maintenance->count_started >= maintenance->tally_due;
    if (maintenance->tallying) {
        p = db_txn_add(txn, &maintenance->options.sql->tally, NULL);
        db_i64(p, MAINTENANCE_COUNT_MAX);
    }
    db_txn_submit(txn, on_counted, maintenance);
}

static void on_count_timer(uv_timer_t *timer)
{
    count(timer->data);
}

// ---- retention ----

static void on_keep_timer(uv_timer_t *timer);

// full: more rows match the same rule. Else the next rule, and after the last one the long pause.
static void plan_keep(Maintenance *maintenance, bool full)
{
    maintenance->keep_at += full ? 0 : 1;
    bool over = maintenance->keep_at >= maintenance->options.sql->keep_count;
    if (over) {
        maintenance->keep_at = 0;
    }
    int64_t wait_ms = KEEP_SHARE * (clock_mono_us() - maintenance->keep_started) / 1000;
    int64_t least_ms = over ? maintenance->options.keep_ms : KEEP_PAUSE_MS;
    uv_timer_start(
        &maintenance->keep_timer, on_keep_timer,
        (uint64_t)(wait_ms > least_ms ? wait_ms : least_ms), 0);
}

static void on_kept(void *ctx, DbTxn *txn, const Error *err)
{
    Maintenance *maintenance = ctx;
    maintenance->keeping = false;
    log_failure(&maintenance->keep_failing, "old outbox rows could not be deleted, retrying", err);
    int64_t rows = err == NULL ? db_get_int(db_txn_result(txn, 0), 0, 0) : 0;
    if (rows > 0) {
        maintenance->handlers.deleted(maintenance->ctx, (size_t)rows);
    }
    if (maintenance->on_stopped != NULL) {
        finish_stop(maintenance);
    } else {
        plan_keep(maintenance, rows >= maintenance->options.keep_rows);
    }
}

static void keep(Maintenance *maintenance)
{
    maintenance->keep_started = clock_mono_us();
    if (maintenance->options.sql->keep_count == 0) {
        return;
    }
    if (!db_pool_ready(maintenance->options.pool)) {
        maintenance->keep_at = maintenance->options.sql->keep_count;
        plan_keep(maintenance, false);
        return;
    }
    maintenance->keeping = true;
    DbTxn *txn = db_txn_new(maintenance->options.pool);
    DbParams *p = db_txn_add(txn, &maintenance->options.sql->keep[maintenance->keep_at], NULL);
    db_i32(p, (int32_t)maintenance->options.keep_rows);
    db_txn_submit(txn, on_kept, maintenance);
}

static void on_keep_timer(uv_timer_t *timer)
{
    keep(timer->data);
}

// ---- starting and stopping ----

Maintenance *maintenance_new(
    uv_loop_t *loop, const MaintenanceOptions *options, const MaintenanceHandlers *handlers,
    void *ctx)
{
    Maintenance *maintenance = xcalloc(1, sizeof(*maintenance));
    maintenance->loop = loop;
    maintenance->options = *options;
    maintenance->handlers = *handlers;
    maintenance->ctx = ctx;
    maintenance->handles = 2;
    uv_timer_init(loop, &maintenance->count_timer);
    uv_timer_init(loop, &maintenance->keep_timer);
    maintenance->count_timer.data = maintenance;
    maintenance->keep_timer.data = maintenance;
    return maintenance;
}

void maintenance_start(Maintenance *maintenance)
{
    uv_timer_start(&maintenance->count_timer, on_count_timer, 0, 0);
    uv_timer_start(
        &maintenance->keep_timer, on_keep_timer, (uint64_t)maintenance->options.keep_ms, 0);
}

static void on_timer_closed(uv_handle_t *handle)
{
    Maintenance *maintenance = handle->data;
    if (--maintenance->handles == 0) {
        maintenance->on_stopped(maintenance->stopped_ctx);
    }
}

static void finish_stop(Maintenance *maintenance)
{
    if (maintenance->counting || maintenance->keeping) {
        return;
    }
    uv_close((uv_handle_t *)&maintenance->count_timer, on_timer_closed);
    uv_close((uv_handle_t *)&maintenance->keep_timer, on_timer_closed);
}

void maintenance_stop(Maintenance *maintenance, void (*on_stopped)(void *ctx), void *ctx)
{
    maintenance->on_stopped = on_stopped;
    maintenance->stopped_ctx = ctx;
    uv_timer_stop(&maintenance->count_timer);
    uv_timer_stop(&maintenance->keep_timer);
    finish_stop(maintenance);
}

void maintenance_free(Maintenance *maintenance)
{
    free(maintenance);
}
