// SPDX-License-Identifier: Apache-2.0
#include "services/digest-flusher/flusher.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/bus/consume/projector.h"
#include "common/model/rules/fair_share.h"
#include "common/recipients/digest_people.h"
#include "services/digest-flusher/digest_sql.h"
#include "services/digest-flusher/due_work_sql.h"
#include "services/digest-flusher/emit.h"
#include "services/digest-flusher/figures/pending.h"
#include "services/digest-flusher/figures/tables.h"
#include "services/digest-flusher/flush.h"
#include "services/digest-flusher/intake.h"
#include "services/digest-flusher/trimmer.h"

enum { BACKLOG_PERIOD_MS = 15 * 1000 };

typedef struct FlusherOptions {
    int64_t lease_ms;
    int64_t trim_ms;
    int64_t share_per_s;
    int64_t figures_ms;
} FlusherOptions;

typedef struct Flusher {
    Service *service;
    Intake *intake;
    Emit *emit;
    Keyring *keyring;
    Flush *flush;
    DigestPeople *people;
    Projector *projector; // of PEOPLE
    Trimmer *trimmer;
    Pending *pending;
    Tables *tables;
    uv_timer_t backlog_timer;
    bool counting;
    bool passes_stopped;
    int stopped_count; // of on_part_stopped
    int64_t waiting;
    int64_t windows_waiting;
    int64_t oldest_due_us; // of rows and windows; 0: none waits
    Metric *taken;
    Metric *emitted;
    Metric *late_seconds;
    Metric *digests;
    Metric *singles;
    Metric *suppressed;
} Flusher;

static void on_intake_stored(void *ctx, size_t count, int64_t work_due_us, int64_t window_due_us)
{
    Flusher *flusher = ctx;
    metric_add(flusher->taken, (double)count);
    emit_wake_at(flusher->emit, work_due_us);
    flush_wake_at(flusher->flush, window_due_us);
}

static void on_flush_flushed(void *ctx, const FlushCounts *counts)
{
    Flusher *flusher = ctx;
    metric_add(flusher->digests, (double)counts->digests);
    metric_add(flusher->singles, (double)counts->singles);
    metric_add(flusher->suppressed, (double)counts->suppressed);
    emit_wake_at(flusher->emit, 0);
}

static void on_emit_emitted(void *ctx, size_t count, int64_t late_max_us)
{
    Flusher *flusher = ctx;
    metric_add(flusher->emitted, (double)count);
    metric_observe(flusher->late_seconds, (double)late_max_us / 1e6);
}

// ---- PEOPLE ----

static bool on_people_fold(void *ctx, const BusMessage *message, Arena *arena, Error *err)
{
    const Flusher *flusher = ctx;
    return digest_people_fold(flusher->people, message, arena, err);
}

static void on_people_write(void *ctx, DbTxn *txn)
{
    const Flusher *flusher = ctx;
    db_txn_lazy_commit(txn); // a crash loses rows and position together; both are read again
    digest_people_write(flusher->people, txn);
    digest_people_wake(flusher->people, txn);
}

// The next pass, here or in another replica, finds the windows that became due.
static void on_people_committed(void *ctx, DbTxn *txn)
{
    Flusher *flusher = ctx;
    if (txn != NULL && digest_people_count(flusher->people) > 0) {
        flush_wake_at(flusher->flush, 0);
    }
    digest_people_clear(flusher->people);
}

static void open_projector(Flusher *flusher)
{
    static const ProjectorHandlers handlers = {
        .fold = on_people_fold, .write = on_people_write, .committed = on_people_committed};
    static const char *const streams[] = {"PEOPLE", NULL};
    Service *service = flusher->service;
    ProjectorOptions options = {
        .name = "digests",
        .stage = "digest-flusher",
        .schema = "digest_flusher",
        .streams = streams,
        .database_url = service_database_url(service),
        .pool = service_pool(service),
    };
    flusher->projector = projector_new(service_bus(service), &options, &handlers, flusher);
}

static bool check_ready(void *state, Buf *reason)
{
    const Flusher *flusher = state;
    const char *failure = projector_failure(flusher->projector);
    if (failure != NULL) {
        buf_printf(reason, "changes of preferences are not read: %s", failure);
    }
    return failure == NULL;
}

// ---- counts for the metrics ----

static void finish_stop(Flusher *flusher);

static void on_backlog_done(void *ctx, DbTxn *txn, const Error *err)
{
    Flusher *flusher = ctx;
    flusher->counting = false;
    if (err == NULL) {
        const PGresult *res = db_txn_result(txn, 0);
        flusher->waiting = db_get_int(res, 0, 0);
        flusher->oldest_due_us = db_get_time(res, 0, 1);
        res = db_txn_result(txn, 1);
        flusher->windows_waiting = db_get_int(res, 0, 0);
        int64_t window_us = db_get_time(res, 0, 1);
        bool older = flusher->oldest_due_us == 0 || window_us < flusher->oldest_due_us;
        flusher->oldest_due_us = window_us != 0 && older ? window_us : flusher->oldest_due_us;
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
    due_work_backlog(txn);
    digest_backlog(txn);
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

static double read_windows(void *ctx)
{
    const Flusher *flusher = ctx;
    return (double)flusher->windows_waiting;
}

static double read_people_lag(void *ctx)
{
    const Flusher *flusher = ctx;
    return (double)projector_lag(flusher->projector);
}

static double read_overdue(void *ctx)
{
    const Flusher *flusher = ctx;
    int64_t late_us = flusher->oldest_due_us == 0 ? 0 : clock_now_us() - flusher->oldest_due_us;
    return late_us > 0 ? (double)late_us / 1e6 : 0;
}

static void register_digest_metrics(Flusher *flusher, Metrics *metrics)
{
    static const char name[] = "stentor_digest_flusher_windows_flushed_total";
    static const char help[] = "Digest windows decided, by what became of their items";
    flusher->digests = metrics_counter(metrics, name, "as=\"digest\"", help);
    flusher->singles = metrics_counter(metrics, name, "as=\"items\"", help);
    flusher->suppressed = metrics_counter(metrics, name, "as=\"suppressed\"", help);
    metrics_gauge_fn(
        metrics, "stentor_digest_flusher_windows_waiting", "",
        "Digest windows that are open or being flushed, every 15 s; the same from each replica",
        read_windows, flusher);
    metrics_gauge_fn(
        metrics, "stentor_digest_flusher_people_lag", "",
        "Events of PEOPLE not applied yet; 0 from a stand-by", read_people_lag, flusher);
}

static void register_metrics(Flusher *flusher, Metrics *metrics)
{
    static const double bounds[] = {0.005, 0.01, 0.05, 0.1, 0.5, 1, 2, 5, 15, 60, 600};
    flusher->taken = metrics_counter(
        metrics, "stentor_digest_flusher_taken_total", "", "Deferred events stored as due work");
    flusher->emitted =
        metrics_counter(metrics, "stentor_digest_flusher_emitted_total", "", "Due work published");
    flusher->late_seconds = metrics_histogram(
        metrics, "stentor_digest_flusher_late_seconds", "",
        "Time from when it was due to its ack, of the latest row of each pass", bounds,
        sizeof(bounds) / sizeof(bounds[0]));
    metrics_gauge_fn(
        metrics, "stentor_digest_flusher_waiting", "",
        "Rows of due work, every 15 s; the same from each replica", read_waiting, flusher);
    metrics_gauge_fn(
        metrics, "stentor_digest_flusher_oldest_overdue_seconds", "",
        "How long the oldest row or window is overdue; 0: none is", read_overdue, flusher);
    register_digest_metrics(flusher, metrics);
}

// ---- starting ----

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
        service_bus(service), service_pool(service), own->lease_ms, own->share_per_s,
        &emit_handlers, flusher);
    flusher->keyring =
        keyring_new(service_pool(service), service_master_key(service), &(KeyringOptions){0});
    flusher->flush = flush_new(&(FlushOptions){
        .loop = service_loop(service),
        .pool = service_pool(service),
        .keyring = flusher->keyring,
        .lease_ms = own->lease_ms,
        .handlers = {.on_flushed = on_flush_flushed},
        .ctx = flusher});
    flusher->people = digest_people_new();
    open_projector(flusher);
    flusher->trimmer = trimmer_new(
        service_bus(service), service_pool(service), service_metrics(service), own->trim_ms);
    flusher->pending = pending_new(
        service_bus(service), service_pool(service), service_metrics(service), own->figures_ms);
    flusher->tables =
        tables_new(service_loop(service), service_pool(service), service_metrics(service));
    uv_timer_init(service_loop(service), &flusher->backlog_timer);
    flusher->backlog_timer.data = flusher;
    uv_timer_start(&flusher->backlog_timer, on_backlog_timer, 1000, BACKLOG_PERIOD_MS);
    *ret_state = flusher;
    return true;
}

// ---- stopping, in this order: intake, projector, the passes, the timer ----

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

static void on_part_stopped(void *ctx)
{
    Flusher *flusher = ctx;
    switch (flusher->stopped_count++) {
    case 0:
        projector_stop(flusher->projector, on_part_stopped, flusher);
        break;
    case 1:
        flush_stop(flusher->flush, on_part_stopped, flusher);
        break;
    case 2:
        emit_stop(flusher->emit, on_part_stopped, flusher);
        break;
    case 3:
        trimmer_stop(flusher->trimmer, on_part_stopped, flusher);
        break;
    case 4:
        pending_stop(flusher->pending, on_part_stopped, flusher);
        break;
    case 5:
        tables_stop(flusher->tables, on_part_stopped, flusher);
        break;
    default:
        flusher->passes_stopped = true;
        uv_timer_stop(&flusher->backlog_timer);
        finish_stop(flusher);
        break;
    }
}

static void stop_flusher(void *state)
{
    Flusher *flusher = state;
    intake_stop(flusher->intake, on_part_stopped, flusher);
}

static void free_flusher(void *state)
{
    Flusher *flusher = state;
    tables_free(flusher->tables);
    pending_free(flusher->pending);
    trimmer_free(flusher->trimmer);
    projector_free(flusher->projector);
    digest_people_free(flusher->people);
    flush_free(flusher->flush);
    keyring_free(flusher->keyring);
    emit_free(flusher->emit);
    intake_free(flusher->intake);
    free(flusher);
}

// clang-format off
static const Option options_table[] = {
    {"STENTOR_FLUSHER_LEASE_MS", OPTION_INT, offsetof(FlusherOptions, lease_ms), "30000", 15000, 600000, false,
     "how long claimed work is held before another replica may publish it, in ms"},
    {"STENTOR_TRIM_MS", OPTION_INT, offsetof(FlusherOptions, trim_ms), "15000", 1000, 3600000, false,
     "pause between two checks for nearly full streams, in ms"},
    {"STENTOR_FIGURES_MS", OPTION_INT, offsetof(FlusherOptions, figures_ms), "15000", 500, 3600000, false,
     "pause between two counts of what waits for each service, in ms"},
    {"STENTOR_TENANT_SHARE", OPTION_INT, offsetof(FlusherOptions, share_per_s), "100", 0, FAIR_SHARE_PER_S_MAX, false,
     "due notifications a second of one tenant that keep their lane, per lane and process; others take a lower one; 0: no limit"},
};
// clang-format on

const ServiceSpec flusher_service = {
    .name = "stentor-digest-flusher",
    .summary = "publishes work that has waited for its time, and flushes digests",
    .options = options_table,
    .option_count = sizeof(options_table) / sizeof(options_table[0]),
    .options_size = sizeof(FlusherOptions),
    .wants_database = true,
    .wants_master_key = true,
    .start = start_flusher,
    .ready = check_ready,
    .stop = stop_flusher,
    .free = free_flusher,
};
