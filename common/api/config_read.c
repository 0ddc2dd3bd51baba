// SPDX-License-Identifier: Apache-2.0
#include "common/api/config_read.h"

#include <stdlib.h>

#include "common/bus/consume/reader.h"

enum { PATIENCE_MS = 5000 };

typedef struct ConfigRead {
    Reader *reader;
    uv_timer_t timer;
    Arena *arena;
    Str payload;
    uint64_t sequence;
    Error err;
    bool ended; // what comes of the timer is the end, not the patience
    int open;   // reader and timer
    ConfigReadDone done;
    void *ctx;
} ConfigRead;

static void part_closed(ConfigRead *read)
{
    if (--read->open > 0) {
        return;
    }
    const Error *err = read->err.kind == ERROR_NONE ? NULL : &read->err;
    read->done(read->ctx, read->payload, read->sequence, err);
    free(read);
}

static void on_reader_freed(void *ctx)
{
    part_closed(ctx);
}

static void on_timer_closed(uv_handle_t *handle)
{
    part_closed(handle->data);
}

static void on_timer_end(uv_timer_t *timer)
{
    ConfigRead *read = timer->data;
    if (!read->ended) {
        error_set(&read->err, ERROR_TRANSIENT, "NATS did not answer within %d ms", PATIENCE_MS);
    }
    reader_free(read->reader, on_reader_freed, read);
    uv_close((uv_handle_t *)&read->timer, on_timer_closed);
}

// Not from within the reader's own call.
static void end_soon(ConfigRead *read)
{
    read->ended = true;
    (void)uv_timer_start(&read->timer, on_timer_end, 0, 0);
}

static void on_reader_messages(void *ctx, const BusMessage *messages, size_t count)
{
    ConfigRead *read = ctx;
    read->payload = arena_str(read->arena, messages[count - 1].payload);
    read->sequence = messages[count - 1].sequence;
}

static void on_reader_caught_up(void *ctx)
{
    end_soon(ctx);
}

static void on_reader_failed(void *ctx, const Error *err)
{
    ConfigRead *read = ctx;
    read->err = *err;
    end_soon(read);
}

void config_read(Bus *bus, const char *subject, Arena *arena, ConfigReadDone done, void *ctx)
{
    ConfigRead *read = xcalloc(1, sizeof *read);
    ReaderOptions options = {.stream = "CONFIG", .filter = subject, .last_per_subject = true};
    ReaderHandlers handlers = {on_reader_messages, on_reader_caught_up, on_reader_failed};
    read->arena = arena;
    read->payload = STR_EMPTY;
    read->done = done;
    read->ctx = ctx;
    read->open = 2;
    read->timer.data = read;
    (void)uv_timer_init(bus_loop(bus), &read->timer);
    (void)uv_timer_start(&read->timer, on_timer_end, PATIENCE_MS, 0);
    read->reader = reader_new(bus, &options, &handlers, read);
}
