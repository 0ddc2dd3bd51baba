// SPDX-License-Identifier: Apache-2.0
// The rows of archive.segments and archive.holes, blocking: for the command line.
#pragma once

#include "common/base/error.h"
#include "common/base/str.h"
#include "common/codec/hash.h"

enum { LOG_CLASS_COUNT = 3, LOG_KEY_MAX = 255, LOG_REASON_SIZE = 16 };

typedef struct LogCatalog LogCatalog;

// Connects. TRANSIENT: not now.
LogCatalog *log_catalog_open(const char *url, Error *err);
void log_catalog_close(LogCatalog *catalog); // NULL-safe

typedef struct LogHole {
    char reason[LOG_REASON_SIZE]; // "": none
    uint64_t first, last;
} LogHole;

// A segment of a window. key "": its class's time is over, and it was deleted.
typedef struct LogSegmentRow {
    char class_code;
    uint64_t bytes, events;
    char key[LOG_KEY_MAX + 1];
} LogSegmentRow;

typedef struct LogWindowRow {
    uint64_t number; // 1, 2 ... of the stream
    int64_t created_us;
    uint64_t first, last;
    int64_t min_at_us, max_at_us;
    LogHole hole; // why it does not follow the window before
    LogSegmentRow segments[LOG_CLASS_COUNT];
    size_t count;
} LogWindowRow;

// What is wanted of a stream.
typedef struct LogWanted {
    uint64_t after;         // windows with greater numbers
    uint64_t from_sequence; // that end at or behind it; 0 or 1: any
    int64_t created_us;     // the stream that from_sequence belongs to; 0: the newest of that name
    int64_t from_us;        // and that end at or behind this time; 0: any
} LogWanted;

// The first such window; *ret_found false: there is none.
bool log_catalog_next(
    LogCatalog *catalog, const char *stream, const LogWanted *wanted, LogWindowRow *ret,
    bool *ret_found, Error *err);

// What is missing behind the window of that number, if no other one follows it.
bool log_catalog_hole_behind(
    LogCatalog *catalog, const char *stream, uint64_t number, LogHole *ret, Error *err);

// What segments hold of a stream, without a hole, up to its last window: from first to last, both 0
// for nothing. `before`: why no more; `behind`: what is missing behind last.
typedef struct LogExtent {
    uint64_t first, last;
    int64_t created_us;              // of the stream
    int64_t first_at_us, last_at_us; // when these messages were stored
    LogHole before, behind;
} LogExtent;
bool log_catalog_extent(LogCatalog *catalog, const char *stream, LogExtent *ret, Error *err);
