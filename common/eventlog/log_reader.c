// SPDX-License-Identifier: Apache-2.0
// A reader's steps: the stream is asked where it begins; windows are read until none is left; then
// the stream. Handlers are called from the timer or from the stream's reader, never from inside a
// call.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/bus/consume/stream_check.h"
#include "common/eventlog/log_reader_internal.h"

enum { BATCH_DEFAULT = 512, API_TIMEOUT_MS = 5000, RETRY_MS = 500 };

static void wake(LogReader *r, uint64_t after_ms);
static void end_if_free(LogReader *r);

// What is missing or damaged does not come back by itself: a projector must not try for ever.
static void fail(LogReader *r, const Error *err)
{
    Error named = *err;
    named.kind = err->kind == ERROR_PERMANENT ? ERROR_CONFIG : err->kind;
    r->failed = true;
    r->handlers.on_failed(r->ctx, &named);
}

// ---- the stream ----

static void on_live_messages(void *ctx, const BusMessage *messages, size_t count)
{
    LogReader *r = ctx;
    r->handlers.on_messages(r->ctx, messages, count);
}

static void on_live_caught_up(void *ctx)
{
    LogReader *r = ctx;
    r->handlers.on_caught_up(r->ctx);
}

static void on_live_failed(void *ctx, const Error *err)
{
    fail(ctx, err);
}

static void go_live(LogReader *r)
{
    static const ReaderHandlers handlers = {on_live_messages, on_live_caught_up, on_live_failed};
    ReaderOptions options = r->options;
    if (r->number > 0) {
        if (r->past->passes_holes && r->next > 0 && r->stream_first > r->next) {
            r->next = r->stream_first;
            r->last_at_us = 0;
        }
        options.start_time_us = r->next > 0 ? 0 : r->options.start_time_us;
        options.start_sequence = r->next;
        options.expect_created_us = r->created_us;
        options.last_stored_at_us = r->last_at_us;
    }
    r->live = reader_new(r->bus, &options, &handlers, r);
    reader_pause(r->live, r->paused);
}

// ---- windows ----

// *ret_open false: no window is left.
static bool open_window(LogReader *r, bool *ret_open, Error *err)
{
    LogWindowRow row;
    LogWanted wanted = {
        .after = r->number,
        .from_sequence = r->number == 0 ? r->next : 0,
        .created_us = r->options.expect_created_us,
        .from_us = r->next == 0 ? r->options.start_time_us : 0};
    if (!log_catalog_next(r->past->catalog, r->stream, &wanted, &row, ret_open, err) ||
        (*ret_open && !log_reader_joins_window(r, &row, err))) {
        return false;
    }
    if (!*ret_open) {
        return true;
    }
    r->row = row;
    r->window = log_window_open(
        r->past->storage, &r->row, r->stream, wanted.from_sequence, wanted.from_us, r->filter, err);
    r->number = row.number;
    r->created_us = row.created_us;
    return r->window != NULL;
}

static void end_window(LogReader *r)
{
    log_window_end(r->window);
    r->window = NULL;
    // Of a class that was deleted the last message's time is not known.
    r->last_at_us = r->next == r->row.last + 1 ? r->last_at_us : 0;
    r->next = r->row.last + 1;
}

// Up to a batch. false: failed.
static bool fill(LogReader *r, size_t *ret_count, Error *err)
{
    size_t most = r->options.batch_max > 0 ? r->options.batch_max : BATCH_DEFAULT;
    size_t bytes = 0, most_bytes = r->options.batch_bytes > 0 ? r->options.batch_bytes : SIZE_MAX;
    arena_reset(r->arena);
    for (*ret_count = 0; *ret_count < most && bytes < most_bytes && r->window != NULL;) {
        bool more;
        BusMessage *message = &r->batch[*ret_count];
        if (!log_window_next(r->window, r->arena, message, &more, err)) {
            return false;
        }
        if (!more) {
            end_window(r);
            break;
        }
        r->next = message->sequence + 1;
        r->last_at_us = message->stored_at_us;
        bytes += message->payload.len;
        ++*ret_count;
    }
    return true;
}

static void ask(LogReader *r);

static void read_past(LogReader *r)
{
    Error err = {0};
    bool open = true;
    if (r->window == NULL && !open_window(r, &open, &err)) {
        fail(r, &err);
        return;
    }
    if (!open && !log_reader_joins_stream(r, &err)) {
        fail(r, &err);
        return;
    }
    if (!open) {
        r->past_read = true;
        ask(r); // it may have lost messages meanwhile
        return;
    }
    size_t count;
    bool filled = fill(r, &count, &err);
    if (count > 0) {
        r->handlers.on_messages(r->ctx, r->batch, count);
    }
    if (!filled) {
        fail(r, &err);
    }
    wake(r, 0);
}

// ---- steps ----

// A message within the stream may be gone, and be in a segment.
static bool has_gaps(const json_t *info)
{
    return json_integer_value(json_object_get(json_object_get(info, "state"), "num_deleted")) > 0;
}

static bool begins_before(const json_t *info, int64_t at_us)
{
    int64_t first_us = 0;
    const json_t *state = json_object_get(info, "state");
    const char *text = json_string_value(json_object_get(state, "first_ts"));
    bool holds = json_integer_value(json_object_get(state, "messages")) > 0;
    return holds && text != NULL && clock_parse(str_from(text), &first_us) && first_us <= at_us;
}

// Where the stream holds all that is wanted, no object is read.
static void finish_ask(LogReader *r, Str reply, const Error *failed)
{
    StreamState state;
    r->asking = false;
    json_t *root = failed == NULL ? json_loadb(reply.ptr, reply.len, 0, NULL) : NULL;
    if (r->freeing) {
        end_if_free(r);
    } else if (!stream_state_read(root, &state)) {
        wake(r, RETRY_MS);
    } else {
        uint64_t first = r->next > 0 ? r->next : 1;
        bool by_time = r->options.start_time_us > 0;
        bool holds = by_time ? begins_before(root, r->options.start_time_us) : state.first <= first;
        bool whole = holds && !has_gaps(root);
        r->asked = true;
        r->stream_first = state.first;
        if (r->past_read || whole) {
            go_live(r);
        } else {
            wake(r, 0);
        }
    }
    json_decref(root);
}

static void on_stream_info(void *ctx, Str reply, const Error *err)
{
    finish_ask(ctx, reply, err);
}

static void ask(LogReader *r)
{
    char subject[128];
    snprintf(subject, sizeof subject, "$JS.API.STREAM.INFO.%s", r->stream);
    r->asking = true;
    bus_request(r->bus, subject, STR_EMPTY, API_TIMEOUT_MS, on_stream_info, r);
}

static void go_on(LogReader *r)
{
    if (r->failed || r->freeing || r->asking || r->live != NULL) {
        return;
    }
    if (!r->asked) {
        ask(r);
    } else if (!r->paused) {
        read_past(r);
    }
}

static void on_timer(uv_timer_t *timer)
{
    go_on(timer->data);
}

static void wake(LogReader *r, uint64_t after_ms)
{
    if (!r->freeing && !r->failed) {
        uv_timer_start(&r->timer, on_timer, after_ms, 0);
    }
}

LogReader *log_reader_new(
    LogPast *past, Bus *bus, const ReaderOptions *options, const ReaderHandlers *handlers,
    void *ctx)
{
    LogReader *r = xcalloc(1, sizeof *r);
    r->past = past;
    r->bus = bus;
    r->options = *options;
    r->options.stream = r->stream = xstrdup(options->stream);
    r->options.filter = r->filter = options->filter != NULL ? xstrdup(options->filter) : NULL;
    r->handlers = *handlers;
    r->ctx = ctx;
    r->next = options->start_time_us > 0 ? 0 : options->start_sequence;
    r->next = options->start_time_us == 0 && r->next == 0 ? 1 : r->next;
    r->last_at_us = options->last_stored_at_us;
    r->created_us = options->expect_created_us;
    size_t most = options->batch_max > 0 ? options->batch_max : BATCH_DEFAULT;
    r->batch = xcalloc(most, sizeof *r->batch);
    r->arena = arena_new(64 * 1024);
    uv_timer_init(bus_loop(bus), &r->timer);
    r->timer.data = r;
    wake(r, 0);
    return r;
}

void log_reader_pause(LogReader *r, bool paused)
{
    r->paused = paused;
    if (r->live != NULL) {
        reader_pause(r->live, paused);
    } else if (!paused) {
        wake(r, 0);
    }
}

// ---- the end ----

static void on_timer_closed(uv_handle_t *handle)
{
    LogReader *r = handle->data;
    void (*on_freed)(void *) = r->on_freed;
    void *ctx = r->freed_ctx;
    log_window_end(r->window);
    arena_free(r->arena);
    free(r->batch);
    free(r->stream);
    free(r->filter);
    free(r);
    on_freed(ctx);
}

static void end_if_free(LogReader *r)
{
    if (!r->asking && r->live == NULL) {
        uv_close((uv_handle_t *)&r->timer, on_timer_closed);
    }
}

static void on_live_freed(void *ctx)
{
    LogReader *r = ctx;
    r->live = NULL;
    end_if_free(r);
}

void log_reader_free(LogReader *r, void (*on_freed)(void *ctx), void *ctx)
{
    r->freeing = true;
    r->on_freed = on_freed;
    r->freed_ctx = ctx;
    uv_timer_stop(&r->timer);
    if (r->live != NULL) {
        reader_free(r->live, on_live_freed, r);
    } else {
        end_if_free(r);
    }
}

// ---- for a projector ----

static void *open_one(
    void *ctx, Bus *bus, const ReaderOptions *options, const ReaderHandlers *handlers,
    void *handlers_ctx)
{
    return log_reader_new(ctx, bus, options, handlers, handlers_ctx);
}

static void pause_one(void *reader, bool paused)
{
    log_reader_pause(reader, paused);
}

static int64_t created_of(const void *reader)
{
    const LogReader *r = reader;
    return r->live != NULL ? reader_stream_created_us(r->live) : r->created_us;
}

static uint64_t lag_of(const void *reader)
{
    const LogReader *r = reader;
    return r->live != NULL ? reader_lag(r->live) : 1; // of the past: not known
}

static uint64_t tails_lost_of(const void *reader)
{
    const LogReader *r = reader;
    return r->live != NULL ? reader_tails_lost(r->live) : 0;
}

static bool is_live(const void *reader)
{
    const LogReader *r = reader;
    return r->live != NULL;
}

static void free_one(void *reader, void (*on_freed)(void *ctx), void *ctx)
{
    log_reader_free(reader, on_freed, ctx);
}

const ReaderKind log_readers = {open_one,      pause_one, created_of, lag_of,
                                tails_lost_of, is_live,   free_one};
