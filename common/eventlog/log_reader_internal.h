// SPDX-License-Identifier: Apache-2.0
// What a log reader is, and whether its parts follow each other.
#pragma once

#include "common/base/arena.h"
#include "common/eventlog/log_reader.h"
#include "common/eventlog/log_window_reader.h"

struct LogReader {
    LogPast *past;
    Bus *bus;
    ReaderOptions options;
    char *stream, *filter;
    ReaderHandlers handlers;
    void *ctx;
    Reader *live; // NULL: still in the past
    LogWindowRow row;
    LogWindowReader *window;
    uint64_t number;    // of the last window begun
    uint64_t next;      // the first sequence not handed over; 0: by time, nothing yet
    int64_t last_at_us; // when message next - 1 was stored; 0: not known
    int64_t created_us;
    uint64_t stream_first; // where the stream begins
    BusMessage *batch;
    Arena *arena;
    uv_timer_t timer;
    bool asking, asked, paused, failed, freeing;
    bool past_read; // no window is left
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

// Does the window follow what was read? CONFIG: no, and what is missing.
bool log_reader_joins_window(LogReader *reader, const LogWindowRow *row, Error *err);
// No window is left: does the stream follow? Moves the reader behind a hole that is passed over.
bool log_reader_joins_stream(LogReader *reader, Error *err);
