// SPDX-License-Identifier: Apache-2.0
// A window of a stream: the messages from first to last, in one part for each class that occurs.
// Windows of a stream follow each other without a gap; each becomes 1 to 3 segments, stored
// together.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/eventlog/log_streams.h"
#include "services/archiver/log/log_part.h"

enum { LOG_CLASSES = 3 };

typedef struct LogWindow {
    const LogStream *stream;
    SegmentPacker *packer;
    const char *folder;
    Arena *scratch; // the owner's
    int64_t created_us;
    uint64_t first, last;            // last 0: nothing is in it
    int64_t first_at_us, last_at_us; // when these were stored
    uint64_t events, raw_bytes;
    int64_t opened_us;           // monotonic
    LogPart *parts[LOG_CLASSES]; // of 'R', 'S', 'B'; NULL: none yet
    LogFile files[LOG_CLASSES];
    size_t file_count; // once closed
    bool closed;
} LogWindow;

// Empties it; what was spooled is gone.
void log_window_clear(LogWindow *window);
// `first` is the first sequence that it covers, at most the message's; counts for an empty window.
// PERMANENT: this message fits no segment. TRANSIENT: the spool failed, and the window is of no
// use.
bool log_window_add(
    LogWindow *window, uint64_t first, const BusMessage *message, int64_t now_us, Error *err);
uint64_t log_window_bytes(const LogWindow *window); // spooled
bool log_window_full(const LogWindow *window);
// Fills files and file_count.
bool log_window_close(LogWindow *window, Error *err);
