// SPDX-License-Identifier: Apache-2.0
#include "services/digest-flusher/flusher.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "services/digest-flusher/clock_sql.h"
#include "services/digest-flusher/emit.h"
#include "services/digest-flusher/intake.h"
#include "services/digest-flusher/trimmer.h"

enum { BACKLOG_PERIOD_MS = 15 * 1000 };

typedef struct FlusherOptions {
    int64_t lease_ms;
    int64_t trim_ms;
} FlusherOptions;

typedef struct Flusher {
    Service *service;
    Intake *intake;
    Emit *emit;
    Trimmer *trimmer;
    uv_timer_t backlog_timer;
    bool counting;
    bool passes_stopped;
    int64_t waiting;
    int64_t oldest_due_us; // 0: nothing waits
    Metric *taken;
    Metric *emitted;
    Metric *late_seconds;
} Flusher;

static void on_intake_stored(void *ctx, size_t count, int64_t earliest_due_us)
{
    Flusher *flusher = ctx;
    metric_add(flusher->taken, (double)count);
    emit_wake_at(flusher->emit, earliest_due_us);
}

static void on_emit_emitted(void *ctx, size_t count, int64_t late_max_us)
{
    Flusher *flusher = ctx;
    metric_add(flusher->emitted, (double)count);
    metric_observe(flusher->late_seconds, (double)late_max_us / 1e6);
}

// ---- what waits, for the metrics ----

static void finish_stop(Flusher *flusher);

static void on_backlog_done(void *ctx, DbTxn *txn, const Error *err)
{
    Flusher *flusher = ctx;
    flusher->counting = false;
    if (err == NULL) {
        const PGresult *res = db_txn_result(txn, 0);
        flusher->waiting = db_get_int(res, 0, 0);
        flusher->oldest_due_us = db_get_time(res, 0, 1);
    }
    if (flusher->passes_stopped) {
        finish_stop(flusher);
    }
}

static void count_backlog(Flusher *flusher)
{
    DbPool *pool = service_pool(flusher->service);
    if (flusher->counting || !db_pool_ready(pool)) {
        return;
    }
    flusher->counting = true;
    DbTxn *txn = db_txn_new(pool);
    clock_backlog(txn);
    db_txn_submit(txn, on_backlog_done, flusher);
}

static void on_backlog_timer(uv_timer_t *timer)
{
    count_backlog(timer->data);
}

static double read_waiting(void *ctx)
{
    const Flusher *flusher = ctx;
    return (double)flusher->waiting;
}

static double read_overdue(void *ctx)
{
    const Flusher *flusher = ctx;
    int64_t late_us = flusher->oldest_due_us == 0 ? 0 : clock_now_us() - flusher->oldest_due_us;
    return late_us > 0 ? (double)late_us / 1e6 : 0;
}

static void register_metrics(Flusher *flusher, Metrics *metrics)
{
    static const double bounds[] = {0.005, 0.01, 0.05, 0.1, 0.5, 1, 2, 5, 15, 60, 600};
    flusher->taken = metrics_counter(
        metrics, "stentor_clock_taken_total", "", "Deferred events stored as due work");
    flusher->emitted =
        metrics_counter(metrics, "stentor_clock_emitted_total", "", "Due work published");
    flusher->late_seconds = metrics_histogram(
        metrics, "stentor_clock_late_seconds", "",
        "The latest row of each pass: from its time to its ack", bounds,
        sizeof(bounds) / sizeof(bounds[0]));
    metrics_gauge_fn(
        metrics, "stentor_clock_waiting", "",
        "Rows of due work, every 15 s; the same from each replica", read_waiting, flusher);
    metrics_gauge_fn(
        metrics, "stentor_clock_oldest_overdue_seconds", "",
        "How long the oldest row is past its time; 0: none is", read_overdue, flusher);
}

// ---- life ----

static bool start_flusher(Service *service, const void *options, void **ret_state, Error *err)
{
    static const IntakeHandlers intake_handlers = {.on_stored = on_intake_stored};
    static const EmitHandlers emit_handlers = {.on_emitted = on_emit_emitted};
    const FlusherOptions *own = options;
    Flusher *flusher = xcalloc(1, sizeof(*flusher));
    flusher->service = service;
    flusher->intake =
        intake_new(service_bus(service), service_pool(service), &intake_handlers, flusher, err);
    if (flusher->intake == NULL) {
        free(flusher);
        return false;
    }
    register_metrics(flusher, service_metrics(service));
    flusher->emit = emit_new(
        service_bus(service), service_pool(service), own->lease_ms, &emit_handlers, flusher);
    flusher->trimmer = trimmer_new(
        service_bus(service), service_pool(service), service_metrics(service), own->trim_ms);
    uv_timer_init(service_loop(service), &flusher->backlog_timer);
    flusher->backlog_timer.data = flusher;
    uv_timer_start(&flusher->backlog_timer, on_backlog_timer, 1000, BACKLOG_PERIOD_MS);
    *ret_state = flusher;
    return true;
}

// ---- stop: the intake, then the passes under way, then the timer, in this order ----

static void on_timer_closed(uv_handle_t *handle)
{
    Flusher *flusher = handle->data;
    service_stopped(flusher->service);
}

static void finish_stop(Flusher *flusher)
{
    if (!flusher->counting) {
        uv_close((uv_handle_t *)&flusher->backlog_timer, on_timer_closed);
    }
}

static void on_trimmer_stopped(void *ctx)
{
    Flusher *flusher = ctx;
    flusher->passes_stopped = true;
    uv_timer_stop(&flusher->backlog_timer);
    finish_stop(flusher);
}

static void on_emit_stopped(void *ctx)
{
    Flusher *flusher = ctx;
    trimmer_stop(flusher->trimmer, on_trimmer_stopped, flusher);
}

static void on_intake_stopped(void *ctx)
{
    Flusher *flusher = ctx;
    emit_stop(flusher->emit, on_emit_stopped, flusher);
}

static void stop_flusher(void *state)
{
    Flusher *flusher = state;
    intake_stop(flusher->intake, on_intake_stopped, flusher);
}

static void free_flusher(void *state)
{
    Flusher *flusher = state;
    trimmer_free(flusher->trimmer);
    emit_free(flusher->emit);
    intake_free(flusher->intake);
    free(flusher);
}

// clang-format off
static const Option options_table[] = {
    {"STENTOR_CLOCK_LEASE_MS", OPTION_INT, offsetof(FlusherOptions, lease_ms), "30000", 15000, 600000, false,
     "how long claimed work is held before another replica may emit it, in ms"},
    {"STENTOR_TRIM_MS", OPTION_INT, offsetof(FlusherOptions, trim_ms), "15000", 1000, 3600000, false,
     "how often streams are looked at that may have to be trimmed, in ms"},
};
// clang-format on

const ServiceSpec flusher_service = {
    .name = "stentor-digest-flusher",
    .summary = "the clock: emits scheduled requests and retries when they are due",
    .options = options_table,
    .option_count = sizeof(options_table) / sizeof(options_table[0]),
    .options_size = sizeof(FlusherOptions),
    .wants_database = true,
    .start = start_flusher,
    .stop = stop_flusher,
    .free = free_flusher,
};
