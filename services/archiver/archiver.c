// SPDX-License-Identifier: Apache-2.0
#include "services/archiver/archiver.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/base/span.h"
#include "common/bus/consume/projector.h"
#include "common/codec/event.h"
#include "common/history/accepted.h"
#include "common/history/fold.h"
#include "common/history/history_sql.h"
#include "common/history/hold.h"
#include "common/history/rebuild.h"
#include "common/service/cleanup.h"
#include "common/service/storage_rows.h"
#include "services/archiver/archive/archive_child.h"
#include "services/archiver/guard/guard_rails.h"
#include "services/archiver/log/log_writer.h"
#include "stentor/v1/status.pb-c.h"

enum {
    AHEAD_MONTHS = 14,
    AHEAD_PERIOD_MS = 24 * 3600 * 1000,
    AHEAD_RETRY_MS = 60 * 1000,
    AHEAD_POOL_MS = 1000, // until the database is ready
    DROP_ROWS = 1000,
    KEEP_SIZE = RETENTION_SPAN_SIZE + 2,
    HOLD_BYTES_MAX = 16 * 1024 * 1024,
};

static const int64_t month_max_us = INT64_C(31) * 86400 * 1000000;

typedef struct ArchiverOptions {
    int64_t flush_max;
    int64_t flush_ms;
    int64_t hold_ms;
    const char *spans;
    int64_t cleanup_every_s;
    StorageOptions storage;
    const char *content_kept;
    const char *callbacks_kept;
    const char *log_kept;
    ArchiveSettings archive;
    const char *log_spool;
    int64_t log_segment_mib;
    int64_t log_segment_s;
    int64_t guard_bounces_warn, guard_bounces_pause, guard_complaints_warn, guard_complaints_pause;
    int64_t guard_min_sends;
    int64_t guard_every_s;
} ArchiverOptions;

typedef struct Archiver {
    Service *service;
    Projector *projector;
    HistorySql sql;
    Fold *fold;
    Hold *hold;
    HistoryMonths months;
    Cleanup *cleanup;
    LogWriter *log;
    ArchiveChild *child;
    GuardRails *guard;
    RetentionPlan plan;
    char keep[RETENTION_CLASS_COUNT][KEEP_SIZE];
    uv_timer_t ahead_timer;
    bool ahead_running;
    bool stopping;
    int64_t write_started_us; // monotonic
    Metric *folded;
    Metric *unreadable;
    Metric *rows;
    Metric *attempts;
    Metric *flush_seconds;
    Metric *canary;
} Archiver;

// ---- the projection ----

// The canary of ingest has come round: the last thing that the pipeline does with it is this.
static void note_canary(Archiver *archiver, const BusMessage *message, Arena *arena)
{
    if (!str_eq(message->subject, STR("ntf.status.platform.inapp.sent"))) {
        return;
    }
    const Stentor__V1__NotificationStatus *status =
        (const Stentor__V1__NotificationStatus *)event_unpack(
            &stentor__v1__notification_status__descriptor, message->payload, arena, NULL);
    if (status != NULL && str_eq(str_from(status->template_), STR("canary"))) {
        metric_set(archiver->canary, (double)message->stored_at_us / 1e6);
    }
}

static bool on_projector_fold(void *ctx, const BusMessage *message, Arena *arena, Error *err)
{
    Archiver *archiver = ctx;
    fold_set_now(archiver->fold, clock_mono_us());
    bool folded = fold_event(archiver->fold, message, arena, err);
    metric_add(folded ? archiver->folded : archiver->unreadable, 1);
    if (folded) {
        note_canary(archiver, message, arena);
        guard_rails_note(archiver->guard, message, arena);
    }
    return folded;
}

// Killed before the COMMIT: neither rows nor sequence are there, and the events are folded again.
// Killed after it: both are there. There is no state in between.
// tests/integration/faults/test_kill.py kills the archiver within a flush.
// Killed while rows are held: the sequence of their stream stands before the oldest of them.
// tests/integration/faults/test_held_history.py kills it then.
static void on_projector_write(void *ctx, DbTxn *txn)
{
    Archiver *archiver = ctx;
    CRASH_POINT("archiver.folded");
    archiver->write_started_us = clock_mono_us();
    fold_ripen(archiver->fold, archiver->write_started_us);
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
        guard_rails_forget(archiver->guard);
        fold_forget(archiver->fold);
    }
    fold_clear(archiver->fold);
}

static int on_projector_wait(void *ctx)
{
    const Archiver *archiver = ctx;
    return fold_wait_ms(archiver->fold, clock_mono_us());
}

static bool on_projector_held(void *ctx, const char *stream, ProjectorPlace *ret_before)
{
    const Archiver *archiver = ctx;
    HoldPlace before;
    if (!hold_before(archiver->hold, stream, &before)) {
        return false;
    }
    *ret_before = (ProjectorPlace){before.sequence, before.stored_at_us};
    return true;
}

// ---- retention ----

static const DbStatement periods_statement = {
    .name = "history_periods",
    .sql = "SELECT stentor.set_partition_periods($1::text[], $2::text[])",
};

// How long the partitions are that are made from now on.
static void write_periods(const Archiver *archiver, DbTxn *txn)
{
    DbParams *params = db_txn_add(txn, &periods_statement, NULL);
    DbArray *codes = db_array(params, DB_TEXT);
    DbArray *periods = db_array(params, DB_TEXT);
    for (int i = 0; i < RETENTION_CLASS_COUNT; i++) {
        char code = retention_class_code((RetentionClass)i);
        db_push_text(codes, str_of(&code, 1));
        db_push_text(periods, str_from(retention_period_name(archiver->plan.of[i].period)));
    }
}

static const DbStatement drop_statement = {
    .name = "history_drop_expired",
    .sql = "SELECT dropped, go_on FROM stentor.drop_expired_history($1::text, $2::text, $3::text, "
           "$4::int4)",
};

static const DbStatement roll_statement = {
    .name = "history_roll_archive",
    .sql = "SELECT dropped, go_on FROM stentor.roll_archive($1::text, $2::text, $3::text, "
           "$4::int4)",
};

// "R=84 months"
static void print_keep(const Archiver *archiver, RetentionClass class, char out[KEEP_SIZE])
{
    char span[RETENTION_SPAN_SIZE];
    retention_span_text(archiver->plan.of[class].kept, span);
    (void)snprintf(out, KEEP_SIZE, "%c=%s", retention_class_code(class), span);
}

// With object storage nothing is removed for its age but by the archive.
static size_t set_rules(Archiver *archiver, bool archives, CleanupRule *rules)
{
    if (archives) {
        rules[0] = (CleanupRule){"archive", &roll_statement, "", DROP_ROWS};
        return 1;
    }
    for (int i = 0; i < RETENTION_CLASS_COUNT; i++) {
        print_keep(archiver, (RetentionClass)i, archiver->keep[i]);
        rules[i] = (CleanupRule){"notifications", &drop_statement, archiver->keep[i], DROP_ROWS};
    }
    return RETENTION_CLASS_COUNT;
}

static void open_cleanup(Archiver *archiver, bool archives, int64_t every_s)
{
    CleanupRule rules[RETENTION_CLASS_COUNT];
    size_t count = set_rules(archiver, archives, rules);
    archiver->cleanup = cleanup_new(&(CleanupOptions){
        .bus = service_bus(archiver->service),
        .pool = service_pool(archiver->service),
        .metrics = service_metrics(archiver->service),
        .rules = rules,
        .rule_count = count,
        .every_s = every_s,
    });
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
    write_periods(archiver, txn);
    history_ensure_months(&archiver->sql, txn, now_us, now_us + AHEAD_MONTHS * month_max_us);
    archiver->ahead_running = true;
    db_txn_submit(txn, on_ahead_done, archiver);
}

static void on_ahead_timer(uv_timer_t *timer)
{
    make_ahead(timer->data);
}

// ---- metrics ----

static double read_lag(void *ctx)
{
    const Archiver *archiver = ctx;
    return (double)projector_lag(archiver->projector) + (double)hold_count(archiver->hold);
}

static double read_oldest(void *ctx)
{
    const Archiver *archiver = ctx;
    int64_t oldest_us = fold_oldest_us(archiver->fold);
    int64_t age_us = oldest_us == 0 ? 0 : clock_now_us() - oldest_us;
    return age_us > 0 ? (double)age_us / 1e6 : 0;
}

static double read_held(void *ctx)
{
    const Archiver *archiver = ctx;
    return (double)hold_count(archiver->hold);
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
    archiver->canary = metrics_gauge(metrics, "stentor_archiver_canary_timestamp_seconds", "", "When the last canary came round, seen here; 0: none yet");
    metrics_gauge_fn(metrics, "stentor_archiver_lag", "", "Events that wait in the streams", read_lag, archiver);
    metrics_gauge_fn(metrics, "stentor_archiver_oldest_unwritten_seconds", "", "Age of the oldest event folded and not yet committed", read_oldest, archiver);
    metrics_gauge_fn(metrics, "stentor_archiver_held_rows", "", "Requests folded and not written: their end has not come yet", read_held, archiver);
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
        .committed = on_projector_committed,
        .wait_ms = on_projector_wait,
        .held = on_projector_held};
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
    bus_rest(service_bus(archiver->service), (int)options->flush_ms);
}

static bool parse_kept(const char *name, const char *text, int64_t *ret_us, Error *err)
{
    return span_parse(str_from(text), ret_us) ||
           error_set(
               err, ERROR_CONFIG, "%s is '%.40s': expected 90d, 12h or the like; 0s: not at all",
               name, text);
}

static LogWriter *open_log(
    Service *service, const ArchiverOptions *options, const RetentionPlan *plan, Error *err)
{
    LogEndRules ends = {.plan = *plan};
    LogKept *kept = &ends.kept;
    if (!parse_kept("STENTOR_CONTENT_KEPT", options->content_kept, &kept->content_us, err) ||
        !parse_kept("STENTOR_CALLBACKS_KEPT", options->callbacks_kept, &kept->callbacks_us, err) ||
        !log_span_parse(str_from(options->log_kept), &ends.log, err)) {
        service_wrong_options(service);
        return NULL;
    }
    LogWriterOptions log = {
        .bus = service_bus(service),
        .pool = service_pool(service),
        .database_url = service_database_url(service),
        .metrics = service_metrics(service),
        .storage = options->storage,
        .ends = ends,
        .spool_folder = options->log_spool,
        .segment_bytes = (uint64_t)options->log_segment_mib * 1024 * 1024,
        .segment_age_us = options->log_segment_s * 1000000,
    };
    if (options->storage.url[0] == '\0') {
        LOG_PLAIN(LOG_INFO, "archiving is off: STENTOR_STORAGE_URL is not set");
    }
    LogWriter *writer = log_writer_new(&log, err);
    if (writer == NULL) {
        service_wrong_options(service);
        error_wrap(err, "STENTOR_STORAGE_URL");
    }
    return writer;
}

// All that was stored before this time is in history; 0: not known.
static int64_t folded_until_us(void *ctx, int64_t now_us)
{
    const Archiver *archiver = ctx;
    if (!projector_caught_up(archiver->projector) || projector_unread(archiver->projector) > 0 ||
        !bus_connected(service_bus(archiver->service))) {
        return 0;
    }
    int64_t oldest_us = fold_oldest_us(archiver->fold); // read and not written
    return oldest_us != 0 && oldest_us < now_us ? oldest_us : now_us;
}

static bool is_active(void *ctx)
{
    const Archiver *archiver = ctx;
    return projector_active(archiver->projector);
}

static void open_child(Archiver *archiver, const ArchiverOptions *options)
{
    Service *service = archiver->service;
    archiver->child = archive_child_new(&(ArchiveChildOptions){
        .loop = service_loop(service),
        .bus = service_bus(service),
        .pool = service_pool(service),
        .metrics = service_metrics(service),
        .database_url = service_database_url(service),
        .storage = &options->storage,
        .spans = options->spans,
        .settings = &options->archive,
        .folded_until_us = folded_until_us,
        .is_active = is_active,
        .ctx = archiver});
}

static void open_guard(Archiver *archiver, const ArchiverOptions *o)
{
    Service *service = archiver->service;
    archiver->guard = guard_rails_new(&(GuardRailsOptions){
        .loop = service_loop(service),
        .bus = service_bus(service),
        .pool = service_pool(service),
        .metrics = service_metrics(service),
        .limits =
            {
                .warn =
                    {[GUARD_BOUNCED] = (uint32_t)o->guard_bounces_warn,
                     [GUARD_COMPLAINED] = (uint32_t)o->guard_complaints_warn},
                .pause =
                    {[GUARD_BOUNCED] = (uint32_t)o->guard_bounces_pause,
                     [GUARD_COMPLAINED] = (uint32_t)o->guard_complaints_pause},
                .min_sends = (uint32_t)o->guard_min_sends,
            },
        .every_ms = o->guard_every_s * 1000,
        .is_active = is_active,
        .ctx = archiver});
}

static bool start_archiver(Service *service, const void *options, void **ret_state, Error *err)
{
    const ArchiverOptions *own = options;
    RetentionPlan plan;
    if (!retention_plan_parse(str_from(own->spans), &plan, err)) {
        service_wrong_options(service);
        return error_wrap(err, "STENTOR_RETENTION_SPANS");
    }
    if (!archive_settings_check(&own->archive, err)) {
        service_wrong_options(service);
        return false;
    }
    LogWriter *log = open_log(service, own, &plan, err);
    if (log == NULL) {
        return false;
    }
    Archiver *archiver = xcalloc(1, sizeof(*archiver));
    archiver->service = service;
    archiver->plan = plan;
    archiver->log = log;
    archiver->fold = fold_new();
    archiver->hold = hold_new(own->hold_ms > 0 ? HOLD_BYTES_MAX : 0, own->hold_ms * 1000);
    fold_hold_back(archiver->fold, archiver->hold, accepted_finds);
    history_sql_init(&archiver->sql, "archiver", HISTORY_LATE_APART);
    register_metrics(archiver, service_metrics(service));
    open_guard(archiver, own);
    open_projector(archiver, own);
    open_cleanup(archiver, own->storage.url[0] != '\0', own->cleanup_every_s);
    open_child(archiver, own);
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

static void on_guard_stopped(void *ctx)
{
    Archiver *archiver = ctx;
    archiver->stopping = true;
    finish_stop(archiver);
}

static void on_cleanup_stopped(void *ctx)
{
    Archiver *archiver = ctx;
    guard_rails_stop(archiver->guard, on_guard_stopped, archiver);
}

static void on_log_stopped(void *ctx)
{
    Archiver *archiver = ctx;
    cleanup_stop(archiver->cleanup, on_cleanup_stopped, archiver);
}

static void on_child_stopped(void *ctx)
{
    Archiver *archiver = ctx;
    log_writer_stop(archiver->log, on_log_stopped, archiver);
}

static void on_projector_stopped(void *ctx)
{
    Archiver *archiver = ctx;
    archive_child_stop(archiver->child, on_child_stopped, archiver);
}

static void stop_archiver(void *state)
{
    Archiver *archiver = state;
    uv_timer_stop(&archiver->ahead_timer);
    hold_release(archiver->hold);
    projector_stop(archiver->projector, on_projector_stopped, archiver);
}

static void free_archiver(void *state)
{
    Archiver *archiver = state;
    cleanup_free(archiver->cleanup);
    archive_child_free(archiver->child);
    log_writer_free(archiver->log);
    projector_free(archiver->projector);
    guard_rails_free(archiver->guard);
    fold_free(archiver->fold);
    hold_free(archiver->hold);
    free(archiver);
}

// clang-format off
static const Option options_table[] = {
    {"STENTOR_HISTORY_FLUSH_MAX", OPTION_INT, offsetof(ArchiverOptions, flush_max), "2000", 1, 8000, false,
     "most events folded into one transaction"},
    {"STENTOR_HISTORY_FLUSH_MS", OPTION_INT, offsetof(ArchiverOptions, flush_ms), "100", 1, 5000, false,
     "how long a transaction waits for more events, in ms; longer: fewer rows written"},
    {"STENTOR_HISTORY_HOLD_MS", OPTION_INT, offsetof(ArchiverOptions, hold_ms), "250", 0, 30000, false,
     "ms that a request waits in memory for its mail to be sent, at least; up to 5 s where mails take as long; 0: none"},
    {"STENTOR_RETENTION_SPANS", OPTION_TEXT, offsetof(ArchiverOptions, spans), "", 0, 0, false,
     "how long each retention class is in Postgres, warm, and kept: default, bookworm or large, then record=24m:36m:7y/month"},
    {"STENTOR_CLEANUP_EVERY_S", OPTION_INT, offsetof(ArchiverOptions, cleanup_every_s), "86400", 1, 604800, false,
     "seconds between two removals of rows past their retention"},
    STORAGE_ROWS(ArchiverOptions, "nothing is archived"),
    {"STENTOR_CONTENT_KEPT", OPTION_TEXT, offsetof(ArchiverOptions, content_kept), "90d", 0, 0, false,
     "how long rendered content is kept in object storage; 0s: not there, and what is there goes"},
    {"STENTOR_CALLBACKS_KEPT", OPTION_TEXT, offsetof(ArchiverOptions, callbacks_kept), "548d", 0, 0, false,
     "how long vendors' callbacks are kept there as they came; 0s: not there, and what is there goes"},
    {"STENTOR_LOG_KEPT", OPTION_TEXT, offsetof(ArchiverOptions, log_kept), "", 0, 0, false,
     "how long requests, statuses and dead letters are kept there, at most: 2y, 18m, 400d; empty: as long as the rows of their class"},
    ARCHIVE_ROWS(ArchiverOptions, archive),
    {"STENTOR_SEGMENT_SPOOL_DIR", OPTION_TEXT, offsetof(ArchiverOptions, log_spool), "/var/tmp", 0, 0, false,
     "folder for log segments under way: at most STENTOR_SEGMENT_MIB for each stream"},
    {"STENTOR_SEGMENT_MIB", OPTION_INT, offsetof(ArchiverOptions, log_segment_mib), "64", 1, 1024, false,
     "size at which a log segment ends, in MiB"},
    {"STENTOR_SEGMENT_S", OPTION_INT, offsetof(ArchiverOptions, log_segment_s), "86400", 1, 604800, false,
     "seconds after which a log segment ends; until then its messages are in their stream alone"},
    {"STENTOR_GUARD_BOUNCES_WARN", OPTION_INT, offsetof(ArchiverOptions, guard_bounces_warn), "20", 0, 1000, false,
     "hard bounces in a thousand e-mails of a tenant, in an hour or a day, that are warned of; 0: none"},
    {"STENTOR_GUARD_BOUNCES_PAUSE", OPTION_INT, offsetof(ArchiverOptions, guard_bounces_pause), "50", 0, 1000, false,
     "so many pause its marketing e-mails; 0: none"},
    {"STENTOR_GUARD_COMPLAINTS_WARN", OPTION_INT, offsetof(ArchiverOptions, guard_complaints_warn), "1", 0, 1000, false,
     "complaints in a thousand that are warned of; 0: none"},
    {"STENTOR_GUARD_COMPLAINTS_PAUSE", OPTION_INT, offsetof(ArchiverOptions, guard_complaints_pause), "3", 0, 1000, false,
     "so many pause its marketing e-mails; 0: none"},
    {"STENTOR_GUARD_MIN_SENDS", OPTION_INT, offsetof(ArchiverOptions, guard_min_sends), "50", 1, 1000000, false,
     "fewer e-mails in the hour or day say nothing"},
    {"STENTOR_GUARD_EVERY_S", OPTION_INT, offsetof(ArchiverOptions, guard_every_s), "60", 1, 3600, false,
     "seconds between two looks at bounces and complaints"},
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
