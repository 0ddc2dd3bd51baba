// SPDX-License-Identifier: Apache-2.0
#include "services/digest-flusher/trimmer.h"

#include <stdlib.h>

#include "common/base/log.h"
#include "common/bus/topology/topology.h"
#include "common/bus/topology/trim.h"
#include "common/deadletter/dead_trim.h"
#include "services/digest-flusher/due_work_sql.h"

enum { STUCK_PASSES = 8 }; // that only look at DEAD, after one that read in vain

typedef struct Gauge {
    const char *stream; // static
    Metric *fill;
    Metric *trimmed;
} Gauge;

struct Trimmer {
    Bus *bus;
    DbPool *pool;
    Gauge gauges[TRIM_STREAMS_MAX];
    size_t gauge_count;
    TrimFloor floors[TRIM_STREAMS_MAX]; // as read by the previous pass
    char names[TRIM_STREAMS_MAX][64];
    size_t floor_count;
    unsigned dead_rests; // passes for which DEAD is only looked at
    uv_timer_t timer;
    bool busy;
    bool stopping;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

// ---- a pass ----

static void on_timer_closed(uv_handle_t *handle)
{
    Trimmer *trimmer = handle->data;
    trimmer->on_stopped(trimmer->stopped_ctx);
}

static void end_pass(Trimmer *trimmer)
{
    trimmer->busy = false;
    if (trimmer->stopping) {
        uv_close((uv_handle_t *)&trimmer->timer, on_timer_closed);
    }
}

static void note(Trimmer *trimmer, const TrimStream *seen)
{
    for (size_t i = 0; i < trimmer->gauge_count; i++) {
        if (str_eq(str_from(trimmer->gauges[i].stream), str_from(seen->stream))) {
            metric_set(trimmer->gauges[i].fill, seen->fill);
            metric_add(trimmer->gauges[i].trimmed, (double)seen->removed);
        }
    }
}

static void on_dead_trimmed(void *ctx, const DeadTrim *result, const Error *err)
{
    Trimmer *trimmer = ctx;
    TrimStream seen = {.stream = "DEAD", .fill = result->fill, .removed = result->removed};
    note(trimmer, &seen);
    trimmer->dead_rests = result->stuck             ? STUCK_PASSES
                          : trimmer->dead_rests > 0 ? trimmer->dead_rests - 1
                                                    : 0;
    if (err != NULL) {
        LOG(LOG_WARN, "the stream of dead letters could not be trimmed, retrying", log_error(err));
    }
    end_pass(trimmer);
}

static void on_trimmed(void *ctx, const TrimStream *streams, size_t count, const Error *err)
{
    Trimmer *trimmer = ctx;
    for (size_t i = 0; i < count; i++) {
        note(trimmer, &streams[i]);
    }
    if (err != NULL) {
        LOG(LOG_WARN, "nearly full streams could not be checked, retrying", log_error(err));
    }
    if (trimmer->stopping) {
        end_pass(trimmer);
    } else {
        dead_trim_pass(trimmer->bus, trimmer->dead_rests == 0, on_dead_trimmed, trimmer);
    }
}

// Projections commit lazily: a crash of Postgres loses the last half second of positions, and the
// events to be read again must still exist. So a pass uses the floors that the previous pass read,
// which are on disk by now.
static void keep_floors(Trimmer *trimmer, const PGresult *res)
{
    trimmer->floor_count = 0;
    for (int row = 0; row < db_rows(res) && trimmer->floor_count < TRIM_STREAMS_MAX; row++) {
        char *name = trimmer->names[trimmer->floor_count];
        if (str_to_c(db_get_text(res, row, 0), name, sizeof trimmer->names[0])) {
            trimmer->floors[trimmer->floor_count++] =
                (TrimFloor){str_from(name), (uint64_t)db_get_int(res, row, 1)};
        }
    }
}

static void on_floors(void *ctx, DbTxn *txn, const Error *err)
{
    Trimmer *trimmer = ctx;
    if (err != NULL || trimmer->stopping) {
        end_pass(trimmer); // without floors nothing may be deleted; the pool logs its errors
        return;
    }
    trim_pass(trimmer->bus, trimmer->floors, trimmer->floor_count, on_trimmed, trimmer);
    keep_floors(trimmer, db_txn_result(txn, 0));
}

static void start_pass(Trimmer *trimmer)
{
    if (trimmer->busy || !bus_connected(trimmer->bus) || !db_pool_ready(trimmer->pool)) {
        return;
    }
    trimmer->busy = true;
    DbTxn *txn = db_txn_new(trimmer->pool);
    due_work_projected(txn);
    db_txn_submit(txn, on_floors, trimmer);
}

static void on_timer(uv_timer_t *timer)
{
    start_pass(timer->data);
}

// ---- starting and stopping ----

static bool has_gauge(const Trimmer *trimmer, const char *stream)
{
    for (size_t i = 0; i < trimmer->gauge_count; i++) {
        if (str_eq(str_from(trimmer->gauges[i].stream), str_from(stream))) {
            return true; // a stream that two services read
        }
    }
    return false;
}

static void add_gauge(Trimmer *trimmer, Metrics *metrics, const char *stream)
{
    if (has_gauge(trimmer, stream) || trimmer->gauge_count == TRIM_STREAMS_MAX) {
        return;
    }
    Buf labels;
    buf_init(&labels, 128);
    metrics_label(&labels, "stream", str_from(stream));
    trimmer->gauges[trimmer->gauge_count++] = (Gauge){
        .stream = stream,
        .fill = metrics_gauge(
            metrics, "stentor_digest_flusher_stream_fill", buf_c(&labels),
            "Bytes of a stream as a share of its limit; at 1 it rejects messages"),
        .trimmed = metrics_counter(
            metrics, "stentor_digest_flusher_stream_trimmed_total", buf_c(&labels),
            "Messages removed from a nearly full stream: what all readers had read; of DEAD the "
            "oldest letters of its fullest subject"),
    };
    buf_done(&labels);
}

static void add_gauges(Trimmer *trimmer, Metrics *metrics)
{
    size_t count;
    const ConsumerSpec *consumers = topology_consumers(&count);
    for (size_t i = 0; i < count; i++) {
        add_gauge(trimmer, metrics, consumers[i].stream);
    }
    add_gauge(trimmer, metrics, "DEAD");
}

Trimmer *trimmer_new(Bus *bus, DbPool *pool, Metrics *metrics, int64_t period_ms)
{
    Trimmer *trimmer = xcalloc(1, sizeof *trimmer);
    trimmer->bus = bus;
    trimmer->pool = pool;
    add_gauges(trimmer, metrics);
    uv_timer_init(bus_loop(bus), &trimmer->timer);
    trimmer->timer.data = trimmer;
    uv_timer_start(&trimmer->timer, on_timer, (uint64_t)period_ms, (uint64_t)period_ms);
    return trimmer;
}

void trimmer_stop(Trimmer *trimmer, void (*on_stopped)(void *ctx), void *ctx)
{
    trimmer->stopping = true;
    trimmer->on_stopped = on_stopped;
    trimmer->stopped_ctx = ctx;
    uv_timer_stop(&trimmer->timer);
    if (!trimmer->busy) {
        end_pass(trimmer);
    }
}

void trimmer_free(Trimmer *trimmer)
{
    free(trimmer);
}
