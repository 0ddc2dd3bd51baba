// SPDX-License-Identifier: Apache-2.0
#include "services/archiver/log/log_writer.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/db/lock.h"
#include "services/archiver/log/log_expiry.h"
#include "services/archiver/log/log_tape.h"

enum { TICK_MS = 500 };

static const int64_t load_pause_us = 5000000;

struct LogWriter {
    LogWriterOptions options;
    TapeShared shared;
    SegmentPacker *packer;
    LogExpiry *expiry; // NULL: archiving is off
    Tape tapes[LOG_STREAMS_MAX];
    size_t count; // 0: archiving is off
    DbLock *lock; // NULL: archiving is off
    uv_timer_t tick;
    bool held, loading, known;
    int64_t load_after_us;
    bool stopping, lock_closing;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

static const DbStatement begin_statement = {
    .name = "log_begin",
    .sql = "SELECT stream, window_number, sequence, stream_created_at, stored_at "
           "FROM archive.log_begin($1::text[])"};

static const DbStatement owner_statement = {
    .name = "log_installation", .sql = "SELECT id::text FROM archive.installation"};

static void look(LogWriter *writer);

// ---- positions ----

static void read_position(Tape *tape, const PGresult *rows)
{
    tape->at = (TapePosition){0};
    for (int row = 0; row < db_rows(rows); row++) {
        if (str_eq(db_get_text(rows, row, 0), str_from(tape->stream->stream))) {
            tape->at = (TapePosition){
                (uint64_t)db_get_int(rows, row, 1), (uint64_t)db_get_int(rows, row, 2),
                db_get_time(rows, row, 3), db_get_time(rows, row, 4)};
        }
    }
}

static void finish_load(LogWriter *writer, DbTxn *txn, const Error *err)
{
    writer->loading = false;
    if (err != NULL) {
        writer->load_after_us = clock_mono_us() + load_pause_us;
        LOG(LOG_WARN, "positions of the log's segments cannot be read, retrying", log_error(err));
    } else {
        writer->known = true;
        if (writer->shared.store != NULL) {
            log_store_own(writer->shared.store, db_get_text(db_txn_result(txn, 1), 0, 0));
        }
        for (size_t i = 0; i < writer->count; i++) {
            read_position(&writer->tapes[i], db_txn_result(txn, 0));
        }
    }
    if (err == NULL || writer->stopping) {
        look(writer);
    }
}

static void on_loaded(void *ctx, DbTxn *txn, const Error *err)
{
    finish_load(ctx, txn, err);
}

// With no stream: archiving is off, and what was stored holds no trimming back any more.
static void load(LogWriter *writer)
{
    if (!db_pool_ready(writer->options.pool) || clock_mono_us() < writer->load_after_us) {
        return;
    }
    DbTxn *txn = db_txn_new(writer->options.pool);
    DbArray *streams = db_array(db_txn_add(txn, &begin_statement, NULL), DB_TEXT);
    for (size_t i = 0; i < writer->count; i++) {
        db_push_text(streams, str_from(writer->tapes[i].stream->stream));
    }
    (void)db_txn_add(txn, &owner_statement, NULL);
    writer->loading = true;
    db_txn_submit(txn, on_loaded, writer);
}

// ---- what comes next ----

static bool is_idle(const LogWriter *writer)
{
    for (size_t i = 0; i < writer->count; i++) {
        if (!tape_idle(&writer->tapes[i])) {
            return false;
        }
    }
    return !writer->loading;
}

static void on_timer_closed(uv_handle_t *handle)
{
    LogWriter *writer = handle->data;
    writer->on_stopped(writer->stopped_ctx);
}

static void on_store_freed(void *ctx)
{
    LogWriter *writer = ctx;
    uv_close((uv_handle_t *)&writer->tick, on_timer_closed);
}

static void on_expiry_idle(void *ctx)
{
    LogWriter *writer = ctx;
    log_store_free(writer->shared.store, on_store_freed, writer);
}

static void on_lock_closed(void *ctx)
{
    LogWriter *writer = ctx;
    log_expiry_stop(writer->expiry, on_expiry_idle, writer);
}

static void finish_stop(LogWriter *writer)
{
    if (writer->lock_closing || !is_idle(writer)) {
        return;
    }
    writer->lock_closing = true;
    uv_timer_stop(&writer->tick);
    if (writer->lock != NULL) {
        db_lock_close(writer->lock, on_lock_closed, writer);
    } else {
        on_store_freed(writer);
    }
}

static void look(LogWriter *writer)
{
    writer->shared.runs = writer->held && writer->known && !writer->stopping;
    for (size_t i = 0; i < writer->count; i++) {
        tape_go(&writer->tapes[i]);
    }
    if (writer->stopping) {
        finish_stop(writer);
    } else if (writer->held && !writer->known && is_idle(writer)) {
        load(writer);
    }
}

static void on_tick(uv_timer_t *timer)
{
    LogWriter *writer = timer->data;
    look(writer);
    if (writer->shared.runs && writer->expiry != NULL) {
        log_expiry_look(writer->expiry, clock_now_us(), clock_mono_us());
    }
}

static void on_lock_change(void *ctx, bool held)
{
    LogWriter *writer = ctx;
    writer->held = held;
    writer->known = false;
    look(writer);
}

static void on_tape_idle(void *ctx)
{
    LogWriter *writer = ctx;
    if (writer->stopping) {
        finish_stop(writer);
    }
}

static void on_tape_refused(void *ctx)
{
    LogWriter *writer = ctx;
    writer->known = false;
    writer->shared.runs = false;
}

static void on_free_store(void *ctx)
{
    LogWriter *writer = ctx;
    for (size_t i = 0; i < writer->count && writer->shared.runs; i++) {
        if (writer->tapes[i].window.closed) {
            tape_go(&writer->tapes[i]);
        }
    }
}

// ---- metrics ----

static double read_age(void *ctx)
{
    int64_t oldest_us = tape_oldest_us(ctx);
    int64_t age_us = oldest_us == 0 ? 0 : clock_now_us() - oldest_us;
    return age_us > 0 ? (double)age_us / 1e6 : 0;
}

static double read_active(void *ctx)
{
    const LogWriter *writer = ctx;
    return writer->shared.runs && writer->count > 0 ? 1 : 0;
}

static void register_metrics(LogWriter *writer, Metrics *metrics)
{
    TapeShared *shared = &writer->shared;
    // clang-format off
    shared->segments = metrics_counter(metrics, "stentor_archiver_log_segments_total", "", "Log segments stored and verified");
    shared->events = metrics_counter(metrics, "stentor_archiver_log_events_total", "", "Messages in them");
    shared->bytes = metrics_counter(metrics, "stentor_archiver_log_bytes_total", "", "Bytes of them");
    shared->failures = metrics_counter(metrics, "stentor_archiver_log_failures_total", "", "Steps towards a log segment that failed and are done again");
    shared->holes = metrics_counter(metrics, "stentor_archiver_log_holes_total", "", "Messages of the log lost before they were stored: rows in archive.holes");
    metrics_gauge_fn(metrics, "stentor_archiver_log_active", "", "1: this process stores the log; 0: it stands by, or archiving is off", read_active, writer);
    // clang-format on
    for (size_t i = 0; i < writer->count; i++) {
        Buf labels;
        buf_init(&labels, 128);
        metrics_label(&labels, "stream", str_from(writer->tapes[i].stream->stream));
        metrics_gauge_fn(
            metrics, "stentor_archiver_log_unstored_seconds", buf_c(&labels),
            "Age of the oldest message of a stream that no segment holds yet", read_age,
            &writer->tapes[i]);
        buf_done(&labels);
    }
}

// ---- start and stop ----

static void add_tapes(LogWriter *writer)
{
    size_t count;
    const LogStream *streams = log_streams(&count);
    for (size_t i = 0; i < count && writer->count < LOG_STREAMS_MAX; i++) {
        if (log_stream_is_stored(&streams[i], &writer->options.ends.kept)) {
            tape_init(
                &writer->tapes[writer->count++], &writer->shared, &streams[i], writer->packer,
                writer->options.spool_folder);
        }
    }
}

static bool open_storage(LogWriter *writer, Error *err)
{
    const LogWriterOptions *o = &writer->options;
    if (o->storage.url == NULL || o->storage.url[0] == '\0') {
        return true;
    }
    writer->shared.store = log_store_new(bus_loop(o->bus), &o->storage, err);
    if (writer->shared.store == NULL) {
        return false;
    }
    writer->expiry = log_expiry_new(&(LogExpiryOptions){
        .pool = o->pool,
        .storage = log_store_storage(writer->shared.store),
        .metrics = o->metrics,
        .rules = o->ends});
    writer->packer = segment_packer_new();
    add_tapes(writer);
    return true;
}

LogWriter *log_writer_new(const LogWriterOptions *options, Error *err)
{
    LogWriter *writer = xcalloc(1, sizeof *writer);
    writer->options = *options;
    writer->shared = (TapeShared){
        .bus = options->bus,
        .pool = options->pool,
        .segment_bytes = options->segment_bytes,
        .segment_age_us = options->segment_age_us,
        .on_idle = on_tape_idle,
        .on_refused = on_tape_refused,
        .on_free_store = on_free_store,
        .ctx = writer};
    if (!open_storage(writer, err)) {
        free(writer);
        return NULL;
    }
    register_metrics(writer, options->metrics);
    uv_timer_init(bus_loop(options->bus), &writer->tick);
    writer->tick.data = writer;
    uv_timer_start(&writer->tick, on_tick, TICK_MS, TICK_MS);
    writer->held = writer->count == 0; // any process may say that archiving is off
    if (writer->count > 0) {
        writer->lock = db_lock_new(
            bus_loop(options->bus), options->database_url, "log", on_lock_change, writer);
    }
    return writer;
}

void log_writer_stop(LogWriter *writer, void (*on_stopped)(void *ctx), void *ctx)
{
    writer->stopping = true;
    writer->on_stopped = on_stopped;
    writer->stopped_ctx = ctx;
    look(writer);
}

void log_writer_free(LogWriter *writer)
{
    for (size_t i = 0; i < writer->count; i++) {
        tape_done(&writer->tapes[i]);
    }
    log_expiry_free(writer->expiry);
    segment_packer_free(writer->packer);
    free(writer);
}
