// SPDX-License-Identifier: Apache-2.0
// The log into object storage: each stream that holds it (common/eventlog/log_streams.h) is read
// in order into a window; a window that is large or old enough becomes segments, which are stored,
// read back, and then named by rows in one transaction with the stream's position
// (migrations/archive). One active process by advisory lock. What is missing in a stream gets a row
// in archive.holes and is counted: never a silent jump. Killed at any moment it reads again from
// the last window.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/db/db.h"
#include "common/service/metrics.h"
#include "common/storage/storage.h"
#include "services/archiver/log/log_end.h"

typedef struct LogWriter LogWriter;

typedef struct LogWriterOptions {
    Bus *bus;
    DbPool *pool;
    const char *database_url; // for the lock's own connection
    Metrics *metrics;
    StorageOptions storage; // no URL: archiving is off; the writer only says so to the database
    LogEndRules ends;
    const char *spool_folder;
    uint64_t segment_bytes; // a window ends when so much is packed
    int64_t segment_age_us; // and when it is so old
} LogWriterOptions;

// Borrows all until log_writer_free. NULL: CONFIG, the storage cannot be used.
LogWriter *log_writer_new(const LogWriterOptions *options, Error *err);
// What is not stored yet is dropped: it is read again.
void log_writer_stop(LogWriter *writer, void (*on_stopped)(void *ctx), void *ctx);
void log_writer_free(LogWriter *writer); // only after on_stopped
