// SPDX-License-Identifier: Apache-2.0
#include "common/bus/consume/reader.h"

static void *open_reader(
    void *ctx, Bus *bus, const ReaderOptions *options, const ReaderHandlers *handlers,
    void *handlers_ctx)
{
    (void)ctx;
    return reader_new(bus, options, handlers, handlers_ctx);
}

static void pause_reader(void *reader, bool paused)
{
    reader_pause(reader, paused);
}

static int64_t created_of(const void *reader)
{
    return reader_stream_created_us(reader);
}

static uint64_t lag_of(const void *reader)
{
    return reader_lag(reader);
}

static uint64_t tails_lost_of(const void *reader)
{
    return reader_tails_lost(reader);
}

static bool is_live(const void *reader)
{
    (void)reader;
    return true;
}

static void free_reader(void *reader, void (*on_freed)(void *ctx), void *ctx)
{
    reader_free(reader, on_freed, ctx);
}

const ReaderKind stream_readers = {open_reader,   pause_reader, created_of, lag_of,
                                   tails_lost_of, is_live,      free_reader};
