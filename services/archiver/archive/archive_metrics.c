// SPDX-License-Identifier: Apache-2.0
#include "services/archiver/archive/archive_metrics.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/archive/unit/unit_state.h"
#include "common/base/arena.h"
#include "common/base/clock.h"

enum {
    TICK_MS = 5000,
    FIRST_MS = 200,
    COLUMN_AGE = 0,
    COLUMN_FAILED,
    COLUMN_STILL,
    COLUMN_CLOCKS,
    COLUMN_STATES
};

struct ArchiveMetrics {
    DbPool *pool;
    int64_t (*folded_until_us)(void *ctx, int64_t now_us);
    void *ctx;
    uv_timer_t timer;
    bool running, stopping;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
    Metric *units[UNIT_STATE_COUNT];
    Metric *oldest, *failed, *still, *clocks;
};

// clang-format off
static const DbStatement folded_statement = {
    .name = "archive_folded",
    .sql = "UPDATE archive.installation SET folded_at = $1::timestamptz WHERE $1::timestamptz IS NOT NULL",
};

// The oldest unit that is in Postgres alone although its hot span is over is what a person must know of: one that was sealed, or failed.
static const DbStatement units_statement = {
    .name = "archive_units",
    .sql = "SELECT coalesce(max(extract(epoch FROM now() - u.state_at)) FILTER (WHERE u.state IN ('sealed', 'counted', 'written', 'verified')), 0)::int8,"
           " count(*) FILTER (WHERE u.failed_at IS NOT NULL)::int8,"
           " (SELECT (i.standing_still IS NOT NULL)::int::int8 FROM archive.installation i),"
           " (SELECT (i.clock_fault IS NOT NULL)::int::int8 FROM archive.installation i),"
           " count(*) FILTER (WHERE u.state = 'open')::int8, count(*) FILTER (WHERE u.state = 'sealed')::int8,"
           " count(*) FILTER (WHERE u.state = 'counted')::int8, count(*) FILTER (WHERE u.state = 'written')::int8,"
           " count(*) FILTER (WHERE u.state = 'verified')::int8, count(*) FILTER (WHERE u.state = 'committed')::int8,"
           " count(*) FILTER (WHERE u.state = 'removing')::int8, count(*) FILTER (WHERE u.state = 'removed')::int8,"
           " count(*) FILTER (WHERE u.state = 'restored')::int8, count(*) FILTER (WHERE u.state = 'expired')::int8"
           " FROM archive.units u",
};
// clang-format on

static void on_tick(uv_timer_t *timer);

static void on_timer_closed(uv_handle_t *handle)
{
    ArchiveMetrics *metrics = handle->data;
    metrics->on_stopped(metrics->stopped_ctx);
}

static void show(ArchiveMetrics *metrics, const PGresult *rows)
{
    metric_set(metrics->oldest, (double)db_get_int(rows, 0, COLUMN_AGE));
    metric_set(metrics->failed, (double)db_get_int(rows, 0, COLUMN_FAILED));
    metric_set(metrics->still, (double)db_get_int(rows, 0, COLUMN_STILL));
    metric_set(metrics->clocks, (double)db_get_int(rows, 0, COLUMN_CLOCKS));
    for (int i = 0; i < UNIT_STATE_COUNT; i++) {
        metric_set(metrics->units[i], (double)db_get_int(rows, 0, COLUMN_STATES + i));
    }
}

static void on_asked(void *ctx, DbTxn *txn, const Error *err)
{
    ArchiveMetrics *metrics = ctx;
    metrics->running = false;
    if (metrics->stopping) {
        uv_close((uv_handle_t *)&metrics->timer, on_timer_closed);
        return;
    }
    if (err == NULL) {
        show(metrics, db_txn_result(txn, 1));
    }
    uv_timer_start(&metrics->timer, on_tick, TICK_MS, 0);
}

static void on_tick(uv_timer_t *timer)
{
    ArchiveMetrics *metrics = timer->data;
    if (!db_pool_ready(metrics->pool)) {
        uv_timer_start(timer, on_tick, TICK_MS, 0);
        return;
    }
    DbTxn *txn = db_txn_new(metrics->pool);
    // The time first: an event stored later does not count as folded.
    int64_t now_us = clock_now_us();
    DbParams *params = db_txn_add(txn, &folded_statement, NULL);
    db_time(params, metrics->folded_until_us(metrics->ctx, now_us));
    db_txn_add(txn, &units_statement, NULL);
    metrics->running = true;
    db_txn_submit(txn, on_asked, metrics);
}

static void register_metrics(ArchiveMetrics *m, Metrics *metrics)
{
    for (int i = 0; i < UNIT_STATE_COUNT; i++) {
        char label[48];
        (void)snprintf(label, sizeof label, "state=\"%s\"", unit_state_name((UnitState)i));
        m->units[i] = metrics_gauge(
            metrics, "stentor_archiver_units", label, "Units (kind, class, period) by state");
    }
    // clang-format off
    m->oldest = metrics_gauge(metrics, "stentor_archiver_unit_waiting_seconds", "", "How long the unit that is furthest behind has been sealed or in a state before its manifest");
    m->failed = metrics_gauge(metrics, "stentor_archiver_units_failed", "", "Units whose last step failed: stentor archive list");
    m->still = metrics_gauge(metrics, "stentor_archiver_standing_still", "", "1: the bucket is not this database's, nothing is archived: stentor archive list");
    m->clocks = metrics_gauge(metrics, "stentor_archiver_clocks_disagree", "", "1: clocks disagree, so nothing is deleted: stentor archive list");
    // clang-format on
}

ArchiveMetrics *archive_metrics_new(const ArchiveChildOptions *options)
{
    ArchiveMetrics *metrics = xcalloc(1, sizeof *metrics);
    metrics->pool = options->pool;
    metrics->folded_until_us = options->folded_until_us;
    metrics->ctx = options->ctx;
    register_metrics(metrics, options->metrics);
    uv_timer_init(options->loop, &metrics->timer);
    metrics->timer.data = metrics;
    uv_timer_start(&metrics->timer, on_tick, FIRST_MS, 0);
    return metrics;
}

void archive_metrics_stop(ArchiveMetrics *metrics, void (*on_stopped)(void *ctx), void *ctx)
{
    metrics->stopping = true;
    metrics->on_stopped = on_stopped;
    metrics->stopped_ctx = ctx;
    if (!metrics->running) {
        uv_close((uv_handle_t *)&metrics->timer, on_timer_closed);
    }
}

void archive_metrics_free(ArchiveMetrics *metrics)
{
    free(metrics);
}
