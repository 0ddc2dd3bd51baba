// SPDX-License-Identifier: Apache-2.0
// The log from its beginning: a reader (common/bus/consume/reader.h) that begins in object storage
// where the stream begins later, and goes over to the stream without a gap: the first message that
// it asks the stream for is the one behind the last window, and a stream that does not hold it is
// an error, as is a hole between two windows. It blocks while it reads an object: for the command
// line. `log_readers` gives it to a projector, so that any projection is rebuilt from segments and
// stream.
#pragma once

#include "common/bus/consume/reader.h"
#include "common/eventlog/log_catalog.h"
#include "common/storage/storage_wait.h"

// Where the past is. Borrowed by all readers, which take turns.
typedef struct LogPast {
    LogCatalog *catalog;
    StorageWait *storage;
    bool passes_holes; // the caller has what is missing, or does not need it
} LogPast;

typedef struct LogReader LogReader;

// As reader_new; last_per_subject, only_new and reads_once are of a stream alone and not for this.
LogReader *log_reader_new(
    LogPast *past, Bus *bus, const ReaderOptions *options, const ReaderHandlers *handlers,
    void *ctx);
void log_reader_pause(LogReader *reader, bool paused);
void log_reader_free(LogReader *reader, void (*on_freed)(void *ctx), void *ctx);

// For ProjectorOptions.readers, with the LogPast as its context.
extern const ReaderKind log_readers;
