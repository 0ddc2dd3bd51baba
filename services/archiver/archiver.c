// SPDX-License-Identifier: Apache-2.0
#include "services/archiver/archiver.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/bus/consume/projector.h"
#include "common/history/fold.h"
#include "common/history/history_sql.h"
#include "common/history/rebuild.h"
#include "common/service/cleanup.h"
#include "services/archiver/retention.h"

enum {
    AHEAD_MONTHS = 12,
    AHEAD_PERIOD_MS = 24 * 3600 * 1000,
    AHEAD_RETRY_MS = 60 * 1000,
    AHEAD_POOL_MS = 1000, // until the database is ready
    DROP_ROWS = 1000,
};

static const int64_t month_max_us = INT64_C(31) * 86400 * 1000000;

typedef struct ArchiverOptions {
    int64_t flush_max;
    int64_t flush_ms;
    const char *retention;
    int64_t cleanup_every_s;
} ArchiverOptions;

typedef struct Archiver {
    Service *service;
    Projector *projector;
    HistorySql sql;
    Fold *fold;
    HistoryMonths months;
    Cleanup *cleanup;
    char keep[CATEGORY_COUNT][RETENTION_RULE_SIZE];
    uv_timer_t ahead_timer;
    bool ahead_running;
    bool stopping;
    int64_t write_started_us; // monotonic
    Metric *folded;
    Metric *unreadable;
    Metric *rows;
    Metric *attempts;
    Metric *flush_seconds;
} Archiver;

// ---- the projection ----

static bool on_projector_fold(void *ctx, const BusMessage *message, Arena *arena, Error *err)
{
    Archiver *archiver = ctx;
    bool folded = fold_event(archiver->fold, message, arena, err);
    metric_add(folded ? archiver->folded : archiver->unreadable, 1);
    return folded;
}

// Killed before the COMMIT: neither rows nor sequence are there, and the events are folded again.
// Killed after it: both are there. There is no state in between.
// tests/integration/faults/test_kill.py kills the archiver within a flush.
static void on_projector_write(void *ctx, DbTxn *txn)
{
    Archiver *archiver = ctx;
    CRASH_POINT("archiver.folded");
    archiver->write_started_us = clock_mono_us();
    db_txn_lazy_commit(txn); // rows and sequence are lost together, and read again from the streams
    history_months_write(&archiver->sql, &archiver->months, archiver->fold, txn);
    history_write(&archiver->sql, archiver->fold, txn);
}

static void count_flush(const Archiver *archiver)
{
    size_t rows = 0;
    size_t attempts = 0;
    fold_rows(archiver->fold, &rows);
    fold_attempts(archiver->fold, &attempts);
    metric_add(archiver->rows, (double)rows);
    metric_add(archiver->attempts, (double)attempts);
    metric_observe(
        archiver->flush_seconds, (double)(clock_mono_us() - archiver->write_started_us) / 1e6);
}

static void on_projector_committed(void *ctx, DbTxn *txn)
{
    Archiver *archiver = ctx;
    if (txn != NULL) {
        count_flush(archiver);
        history_months_committed(&archiver->months);
    } else { // not committed: discarded here, and folded again
        history_months_forget(&archiver->months);
    }
    fold_clear(archiver->fold);
}

// ---- partitions ahead ----

static void on_ahead_timer(uv_timer_t *timer);
static void finish_stop(Archiver *archiver);

static void on_ahead_done(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    Archiver *archiver = ctx;
    archiver->ahead_running = false;
    if (archiver->stopping) {
        finish_stop(archiver);
        return;
    }
    if (err != NULL) {
        LOG(LOG_WARN, "monthly partitions were not created in advance; trying again in a minute",
            log_error(err));
    }
    uint64_t wait_ms = err != NULL ? AHEAD_RETRY_MS : AHEAD_PERIOD_MS;
    uv_timer_start(&archiver->ahead_timer, on_ahead_timer, wait_ms, 0);
}

static void make_ahead(Archiver *archiver)
{
    if (!db_pool_ready(service_pool(archiver->service))) {
        uv_timer_start(&archiver->ahead_timer, on_ahead_timer, AHEAD_POOL_MS, 0);
        return;
    }
    int64_t now_us = clock_now_us();
    DbTxn *txn = db_txn_new(service_pool(archiver->service));
    history_ensure_months(&archiver->sql, txn, now_us, now_us + AHEAD_MONTHS * month_max_us);
    archiver->ahead_running = true;
    db_txn_submit(txn, on_ahead_done, archiver);
}

static void on_ahead_timer(uv_timer_t *timer)
{
    make_ahead(timer->data);
}

// ---- retention ----

static const DbStatement drop_statement = {
    .name = "history_drop_expired",
    .sql = "SELECT dropped, go_on FROM stentor.drop_expired_history($1::text, $2::text, $3::text, "
           "$4::int4)",
};

static void open_cleanup(Archiver *archiver, const Retention *retention, int64_t every_s)
{
    CleanupRule rules[CATEGORY_COUNT];
    for (int i = 0; i < CATEGORY_COUNT; i++) {
        retention_rule(retention, (Category)i, archiver->keep[i]);
        rules[i] = (CleanupRule){"notifications", &drop_statement, archiver->keep[i], DROP_ROWS};
    }
    archiver->cleanup = cleanup_new(&(CleanupOptions){
        .bus = service_bus(archiver->service),
        .pool = service_pool(archiver->service),
        .metrics = service_metrics(archiver->service),
        .rules = rules,
        .rule_count = CATEGORY_COUNT,
        .every_s = every_s,
    });
}

// ---- metrics ----

static double read_lag(void *ctx)
{
    const Archiver *archiver = ctx;
    return (double)projector_lag(archiver->projector);
}

static double read_oldest(void *ctx)
{
    const Archiver *archiver = ctx;
    int64_t oldest_us = fold_oldest_us(archiver->fold);
    int64_t age_us = oldest_us == 0 ? 0 : clock_now_us() - oldest_us;
    return age_us > 0 ? (double)age_us / 1e6 : 0;
}

static double read_active(void *ctx)
{
    const Archiver *archiver = ctx;
    return projector_active(archiver->projector) ? 1 : 0;
}

static double read_tails_lost(void *ctx)
{
    const Archiver *archiver = ctx;
    return (double)projector_tails_lost(archiver->projector);
}

static void register_metrics(Archiver *archiver, Metrics *metrics)
{
    static const double bounds[] = {0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10};
    // clang-format off
    archiver->folded = metrics_counter(metrics, "stentor_archiver_events_total", "result=\"folded\"", "Events read from the streams");
    archiver->unreadable = metrics_counter(metrics, "stentor_archiver_events_total", "result=\"unreadable\"", "Events read from the streams");
    archiver->rows = metrics_counter(metrics, "stentor_archiver_rows_total", "table=\"notifications\"", "Rows inserted or merged");
    archiver->attempts = metrics_counter(metrics, "stentor_archiver_rows_total", "table=\"delivery_attempts\"", "Rows inserted or merged");
    archiver->flush_seconds = metrics_histogram(
        metrics, "stentor_archiver_flush_seconds", "",
        "From the first statement of a flush to its commit", bounds,
        sizeof(bounds) / sizeof(bounds[0]));
    metrics_gauge_fn(metrics, "stentor_archiver_lag", "", "Events that wait in the streams", read_lag, archiver);
    metrics_gauge_fn(metrics, "stentor_archiver_oldest_unwritten_seconds", "", "Age of the oldest event folded and not yet committed", read_oldest, archiver);
    metrics_gauge_fn(metrics, "stentor_archiver_active", "", "1: this process writes; 0: it stands by", read_active, archiver);
    metrics_counter_fn(metrics, "stentor_archiver_tail_lost_total", "", "Streams that lost events already folded, and were read again by time", read_tails_lost, archiver);
    // clang-format on
}

// ---- start and stop ----

static void open_projector(Archiver *archiver, const ArchiverOptions *options)
{
    static const ProjectorHandlers handlers = {
        .fold = on_projector_fold,
        .write = on_projector_write,
        .committed = on_projector_committed};
    ProjectorOptions projector = {
        .name = "history",
        .stage = "archiver",
        .schema = "archiver",
        .streams = history_streams,
        .database_url = service_database_url(archiver->service),
        .pool = service_pool(archiver->service),
        .flush_max = (size_t)options->flush_max,
        .flush_ms = (int)options->flush_ms,
        .remedy = "stentor rebuild history --carry-older",
    };
    archiver->projector =
        projector_new(service_bus(archiver->service), &projector, &handlers, archiver);
}

static bool start_archiver(Service *service, const void *options, void **ret_state, Error *err)
{
    const ArchiverOptions *own = options;
    Retention retention;
    if (!retention_parse(str_from(own->retention), &retention, err)) {
        service_wrong_options(service);
        return error_wrap(err, "STENTOR_HISTORY_RETENTION");
    }
    Archiver *archiver = xcalloc(1, sizeof(*archiver));
    archiver->service = service;
    archiver->fold = fold_new();
    history_sql_init(&archiver->sql, "archiver");
    register_metrics(archiver, service_metrics(service));
    open_projector(archiver, own);
    open_cleanup(archiver, &retention, own->cleanup_every_s);
    uv_timer_init(service_loop(service), &archiver->ahead_timer);
    archiver->ahead_timer.data = archiver;
    make_ahead(archiver);
    *ret_state = archiver;
    return true;
}

// A stand-by is ready too; a projection that has stopped is not.
static bool check_ready(void *state, Buf *reason)
{
    const Archiver *archiver = state;
    const char *failure = projector_failure(archiver->projector);
    if (failure != NULL) {
        buf_printf(reason, "the history projection has stopped: %s", failure);
    }
    return failure == NULL;
}

static void on_timer_closed(uv_handle_t *handle)
{
    Archiver *archiver = handle->data;
    service_stopped(archiver->service);
}

// Continues when the projector has stopped and no own transaction is under way.
static void finish_stop(Archiver *archiver)
{
    if (!archiver->ahead_running) {
        uv_close((uv_handle_t *)&archiver->ahead_timer, on_timer_closed);
    }
}

static void on_cleanup_stopped(void *ctx)
{
    Archiver *archiver = ctx;
    archiver->stopping = true;
    finish_stop(archiver);
}

static void on_projector_stopped(void *ctx)
{
    Archiver *archiver = ctx;
    cleanup_stop(archiver->cleanup, on_cleanup_stopped, archiver);
}

static void stop_archiver(void *state)
{
    Archiver *archiver = state;
    uv_timer_stop(&archiver->ahead_timer);
    projector_stop(archiver->projector, on_projector_stopped, archiver);
}

static void free_archiver(void *state)
{
    Archiver *archiver = state;
    cleanup_free(archiver->cleanup);
    projector_free(archiver->projector);
    fold_free(archiver->fold);
    free(archiver);
}

// clang-format off
static const Option options_table[] = {
    {"STENTOR_HISTORY_FLUSH_MAX", OPTION_INT, offsetof(ArchiverOptions, flush_max), "2000", 1, 8000, false,
     "most events folded into one transaction"},
    {"STENTOR_HISTORY_FLUSH_MS", OPTION_INT, offsetof(ArchiverOptions, flush_ms), "20", 1, 5000, false,
     "how long a transaction waits for more events, in ms; longer: fewer rows written"},
    {"STENTOR_HISTORY_RETENTION", OPTION_TEXT, offsetof(ArchiverOptions, retention), "", 0, 0, false,
     "months to keep a notification, by category: marketing=12,social=6; a category not named keeps its default"},
    {"STENTOR_CLEANUP_EVERY_S", OPTION_INT, offsetof(ArchiverOptions, cleanup_every_s), "86400", 1, 604800, false,
     "seconds between two removals of rows past their retention"},
};
// clang-format on

const ServiceSpec archiver_service = {
    .name = "stentor-archiver",
    .summary = "folds requests and statuses into the history tables",
    .options = options_table,
    .option_count = sizeof(options_table) / sizeof(options_table[0]),
    .options_size = sizeof(ArchiverOptions),
    .wants_database = true,
    .start = start_archiver,
    .ready = check_ready,
    .stop = stop_archiver,
    .free = free_archiver,
};
