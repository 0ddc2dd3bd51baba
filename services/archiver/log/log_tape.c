// SPDX-License-Identifier: Apache-2.0
#include "services/archiver/log/log_tape.h"

#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/bus/consume/stream_check.h"

enum { READ_BATCH = 512, API_TIMEOUT_MS = 5000, STREAM_SHARE = 10 };

static const int64_t pause_min_us = 1000000, pause_max_us = 60000000;
static const int64_t tail_margin_us = 60000000;

static void finish_store(Tape *tape, const Error *err);

// ---- trouble ----

static void wait_longer(Tape *tape, const char *what, const Error *err)
{
    tape->pause_us = tape->pause_us == 0 ? pause_min_us : 2 * tape->pause_us;
    tape->pause_us = tape->pause_us < pause_max_us ? tape->pause_us : pause_max_us;
    tape->retry_at_us = clock_mono_us() + tape->pause_us;
    metric_add(tape->shared->failures, 1);
    LOG(err->kind == ERROR_TRANSIENT ? LOG_WARN : LOG_ERROR, what,
        log_text("stream", tape->stream->stream), log_error(err),
        log_int("retry_s", tape->pause_us / 1000000));
}

static void note_progress(Tape *tape)
{
    tape->pause_us = 0;
    tape->retry_at_us = 0;
}

// ---- the reader ----

static void finish_reader(Tape *tape)
{
    tape->reader_closing = false;
    tape_go(tape);
}

static void on_reader_freed(void *ctx)
{
    finish_reader(ctx);
}

static void close_reader(Tape *tape)
{
    Reader *reader = tape->reader;
    if (reader != NULL) {
        tape->reader = NULL;
        tape->reader_closing = true;
        reader_free(reader, on_reader_freed, tape);
    }
    tape->asked = false;
}

static void give_up(Tape *tape)
{
    log_window_clear(&tape->window);
    tape->hole = (TapeHole){0};
    tape->refused = false;
    tape->by_time = false;
    close_reader(tape);
    note_progress(tape);
    if (tape_idle(tape)) {
        tape->shared->on_idle(tape->shared->ctx);
    }
}

// ---- messages ----

static void close_window(Tape *tape)
{
    Error err = {0};
    tape->next_file = 0;
    if (tape->reader != NULL) {
        reader_pause(tape->reader, true);
    }
    if (!log_window_close(&tape->window, &err)) {
        wait_longer(tape, "log segment cannot be written, reading it again", &err);
        log_window_clear(&tape->window);
        close_reader(tape);
    }
}

static void find_hole(Tape *tape, const char *reason, uint64_t first, uint64_t last)
{
    tape->hole = (TapeHole){reason, first, last};
    if (tape->window.events > 0) {
        close_window(tape);
    }
}

static void handle_unstored(Tape *tape, const BusMessage *message, const Error *err)
{
    if (err->kind == ERROR_PERMANENT) {
        LOG(LOG_ERROR, "message fits no log segment", log_text("stream", tape->stream->stream),
            log_int("sequence", (int64_t)message->sequence), log_error(err));
        find_hole(tape, "unstorable", message->sequence, message->sequence);
        return;
    }
    wait_longer(tape, "log segment cannot be written, reading it again", err);
    log_window_clear(&tape->window);
    close_reader(tape);
}

// false: the rest of what came is not taken; it is read again.
static bool take_message(Tape *tape, const BusMessage *message)
{
    LogWindow *w = &tape->window;
    uint64_t expected = (w->events > 0 ? w->last : tape->at.sequence) + 1;
    if (reader_tails_lost(tape->reader) > 0) {
        log_window_clear(w);
        find_hole(tape, "tail_lost", message->sequence, tape->at.sequence);
        return false;
    }
    bool any = tape->by_time && w->events == 0;
    if (message->sequence > expected && !any && !tape->stream->thins_out) {
        find_hole(tape, "removed", expected, message->sequence - 1);
        return false;
    }
    if (w->events == 0) {
        w->created_us = reader_stream_created_us(tape->reader);
    }
    Error err = {0};
    uint64_t first = any ? message->sequence : expected;
    if (!log_window_add(w, first, message, clock_mono_us(), &err)) {
        handle_unstored(tape, message, &err);
        return false;
    }
    return true;
}

static void take_messages(Tape *tape, const BusMessage *messages, size_t count)
{
    if (tape->reader == NULL || tape->window.closed || tape->hole.reason != NULL) {
        return;
    }
    for (size_t i = 0; i < count && take_message(tape, &messages[i]); i++) {
    }
    tape_go(tape);
}

static void on_reader_messages(void *ctx, const BusMessage *messages, size_t count)
{
    take_messages(ctx, messages, count);
}

static void on_reader_caught_up(void *ctx)
{
    (void)ctx;
}

static void handle_reader_failed(Tape *tape, const Error *err)
{
    wait_longer(tape, "stream of the log cannot be read, looking at it again", err);
    tape->refused = err->kind == ERROR_CONFIG;
    if (tape->window.events > 0 && !tape->window.closed) {
        close_window(tape);
    }
    close_reader(tape);
    tape_go(tape);
}

static void on_reader_failed(void *ctx, const Error *err)
{
    handle_reader_failed(ctx, err);
}

static void open_reader(Tape *tape)
{
    static const ReaderHandlers handlers = {
        on_reader_messages, on_reader_caught_up, on_reader_failed};
    const TapePosition *at = &tape->at;
    bool behind_gap = tape->first_sequence > at->sequence + 1;
    ReaderOptions options = {.stream = tape->stream->stream, .batch_max = READ_BATCH};
    if (tape->by_time) {
        options.start_time_us = at->stored_at_us - tail_margin_us;
    } else {
        options.start_sequence = behind_gap ? tape->first_sequence : at->sequence + 1;
        options.expect_created_us = at->sequence > 0 ? at->created_us : 0;
        // A letter that was read may be gone rightly; CONFIG's reader knows that by itself.
        bool certain = !behind_gap && strcmp(tape->stream->stream, "DEAD") != 0;
        options.last_stored_at_us = certain ? at->stored_at_us : 0;
    }
    tape->reader = reader_new(tape->shared->bus, &options, &handlers, tape);
}

// ---- where the stream begins ----

static void handle_facts(Tape *tape)
{
    uint64_t next = tape->at.sequence + 1;
    bool knew = tape->at.number > 0 || tape->at.sequence > 0;
    if (tape->first_sequence > next && !tape->stream->thins_out && !tape->by_time) {
        find_hole(tape, knew ? "removed" : "before", next, tape->first_sequence - 1);
    } else if (tape->refused) {
        find_hole(tape, "recreated", next, next);
    }
    tape->refused = false;
}

static uint64_t number(const json_t *object, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(object, name));
    return value > 0 ? (uint64_t)value : 0;
}

static void finish_ask(Tape *tape, Str reply, const Error *failed)
{
    tape->busy = false;
    StreamState state;
    json_t *root = failed == NULL ? json_loadb(reply.ptr, reply.len, 0, NULL) : NULL;
    if (stream_state_read(root, &state)) {
        tape->asked = true;
        tape->first_sequence = state.first;
        tape->found_created_us = state.created_us;
        tape->max_bytes = number(json_object_get(root, "config"), "max_bytes");
        handle_facts(tape);
    } else {
        tape->retry_at_us = clock_mono_us() + pause_min_us;
    }
    json_decref(root);
    tape_go(tape);
}

static void on_stream_info(void *ctx, Str reply, const Error *err)
{
    finish_ask(ctx, reply, err);
}

static void ask(Tape *tape)
{
    char subject[128];
    snprintf(subject, sizeof subject, "$JS.API.STREAM.INFO.%s", tape->stream->stream);
    tape->busy = true;
    bus_request(tape->shared->bus, subject, STR_EMPTY, API_TIMEOUT_MS, on_stream_info, tape);
}

// ---- storing ----

static void note_window(Tape *tape)
{
    LogWindow *w = &tape->window;
    TapeShared *shared = tape->shared;
    tape->at = (TapePosition){tape->at.number + 1, w->last, w->created_us, w->last_at_us};
    tape->by_time = false;
    metric_add(shared->events, (double)w->events);
    for (size_t i = 0; i < w->file_count; i++) {
        metric_add(shared->segments, 1);
        metric_add(shared->bytes, (double)w->files[i].bytes);
    }
    log_window_clear(w);
    note_progress(tape);
    if (tape->reader != NULL && tape->hole.reason == NULL) {
        reader_pause(tape->reader, false);
    }
}

static void note_hole(Tape *tape)
{
    TapeHole hole = tape->hole;
    tape->hole = (TapeHole){0};
    metric_add(tape->shared->holes, strcmp(hole.reason, "before") == 0 ? 0 : 1);
    LOG(LOG_ERROR, "the log has a hole", log_text("stream", tape->stream->stream),
        log_text("reason", hole.reason), log_int("first", (int64_t)hole.first),
        log_int("last", (int64_t)hole.last));
    tape->by_time = strcmp(hole.reason, "tail_lost") == 0;
    if (!tape->by_time) {
        bool other = strcmp(hole.reason, "recreated") == 0;
        tape->at.sequence = other ? 0 : hole.last;
        tape->at.stored_at_us = 0;
        tape->at.created_us = tape->found_created_us;
    }
    tape->asked = false;
    note_progress(tape);
}

static void finish_commit(Tape *tape, const Error *err)
{
    tape->busy = false;
    bool is_window = tape->window.closed;
    if (err == NULL && is_window) {
        CRASH_POINT("archiver.segments_committed");
        note_window(tape);
    } else if (err == NULL) {
        note_hole(tape);
    } else if (err->kind == ERROR_TRANSIENT) {
        wait_longer(tape, "log segments are stored but not named by rows, trying again", err);
    } else if (err->kind != ERROR_CANCELLED) {
        wait_longer(tape, "postgres refuses log segments, reading the positions again", err);
        tape->shared->on_refused(tape->shared->ctx);
        return;
    }
    tape_go(tape);
}

static void on_committed(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    finish_commit(ctx, err);
}

static void commit(Tape *tape)
{
    DbTxn *txn = db_txn_new(tape->shared->pool);
    if (tape->window.closed) {
        tape_add_window(tape, txn);
    } else {
        tape_add_hole(tape, txn);
    }
    tape->busy = true;
    db_txn_submit(txn, on_committed, tape);
}

static void on_stored(void *ctx, const Error *err)
{
    finish_store(ctx, err);
}

static void finish_store(Tape *tape, const Error *err)
{
    tape->busy = false;
    if (err == NULL) {
        tape->next_file++;
    } else {
        wait_longer(tape, "log segment was not stored, trying again", err);
    }
    tape_go(tape);
    tape->shared->on_free_store(tape->shared->ctx);
}

static void store_next(Tape *tape)
{
    TapeShared *shared = tape->shared;
    if (!log_store_busy(shared->store)) {
        tape->busy = true;
        log_store_put(shared->store, &tape->window.files[tape->next_file], on_stored, tape);
    }
}

// ---- what comes next ----

// A small stream is full before a window is large: then trimming would wait for it in vain.
static bool is_due(const Tape *tape)
{
    const LogWindow *w = &tape->window;
    const TapeShared *shared = tape->shared;
    return w->events > 0 &&
           (log_window_bytes(w) >= shared->segment_bytes || log_window_full(w) ||
            (tape->max_bytes > 0 && w->raw_bytes >= tape->max_bytes / STREAM_SHARE) ||
            clock_mono_us() - w->opened_us >= shared->segment_age_us);
}

static void go_on(Tape *tape)
{
    if (tape->window.closed && tape->next_file < tape->window.file_count) {
        store_next(tape);
    } else if (tape->window.closed) {
        commit(tape);
    } else if (tape->hole.reason != NULL) {
        close_reader(tape);
        if (!tape->reader_closing) {
            commit(tape);
        }
    } else if (tape->reader == NULL && !tape->asked) {
        ask(tape);
    } else if (tape->reader == NULL) {
        open_reader(tape);
    } else if (is_due(tape)) {
        close_window(tape);
        tape_go(tape);
    }
}

void tape_go(Tape *tape)
{
    if (tape->busy || tape->reader_closing) {
        return;
    }
    if (!tape->shared->runs) {
        give_up(tape);
    } else if (clock_mono_us() >= tape->retry_at_us) {
        go_on(tape);
    }
}

bool tape_idle(const Tape *tape)
{
    return !tape->busy && !tape->reader_closing && tape->reader == NULL;
}

int64_t tape_oldest_us(const Tape *tape)
{
    return tape->window.events > 0 ? tape->window.first_at_us : 0;
}

void tape_init(
    Tape *tape, TapeShared *shared, const LogStream *stream, SegmentPacker *packer,
    const char *spool_folder)
{
    *tape = (Tape){.shared = shared, .stream = stream};
    tape->window = (LogWindow){
        .stream = stream, .packer = packer, .folder = spool_folder, .scratch = arena_new(0)};
}

void tape_done(Tape *tape)
{
    log_window_clear(&tape->window);
    arena_free(tape->window.scratch);
}
