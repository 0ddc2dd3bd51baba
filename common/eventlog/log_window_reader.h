// SPDX-License-Identifier: Apache-2.0
// A stored window read: its segments merged, so that messages come in the order of their sequences.
// Blocking.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/eventlog/log_catalog.h"
#include "common/storage/storage_wait.h"

typedef struct LogWindowReader LogWindowReader;

// Begins at from_sequence and from_us (0: the window's beginning); filter as a reader's, or NULL.
// Borrows all. NULL: an object is missing or damaged; PERMANENT, with its name.
LogWindowReader *log_window_open(
    StorageWait *storage, const LogWindowRow *row, const char *stream, uint64_t from_sequence,
    int64_t from_us, const char *filter, Error *err);
void log_window_end(LogWindowReader *reader); // NULL-safe
// The next message, copied to `arena`. *ret_more false: none is left.
bool log_window_next(
    LogWindowReader *reader, Arena *arena, BusMessage *ret, bool *ret_more, Error *err);
