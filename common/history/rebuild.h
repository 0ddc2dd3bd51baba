// SPDX-License-Identifier: Apache-2.0
// The history projection once more, into another schema: the same fold, the same statements and the
// same projector as the archiver's, for `stentor rebuild`. No dead letter is written: an event that
// cannot be read has one from the first time.
#pragma once

#include "common/bus/consume/reader.h"
#include "common/bus/jetstream/bus.h"
#include "common/db/db.h"

enum { HISTORY_STREAM_COUNT = 5, STATUS_STREAM = 4 };
extern const char *const history_streams[HISTORY_STREAM_COUNT + 1]; // NULL at the end

typedef struct HistoryRebuild HistoryRebuild;

// The last message that counts. Its time too, because a stream that was recreated begins with 1
// again.
typedef struct HistoryUntil {
    uint64_t sequence;
    int64_t stored_at_us; // 0: not known
} HistoryUntil;

typedef struct HistoryRebuildOptions {
    const char *schema;       // "archiver_rebuild"
    const char *database_url; // for the lock's own connection
    DbPool *pool;
    // In the order of history_streams: fold nothing behind these messages; NULL: everything.
    const HistoryUntil *until;
    // In the same order, with `until`: where the streams ended after the live rows were read; NULL:
    // not known.
    const uint64_t *last;
    // In the same order: from here on each message is followed by the next one. Before it the log
    // may lack some rightly: those of a class whose time is over.
    const uint64_t *first;
    const ReaderKind *readers; // NULL: of the streams alone
    void *readers_ctx;
} HistoryRebuildOptions;

// Borrows all of the options, which must live until history_rebuild_free.
HistoryRebuild *history_rebuild_new(Bus *bus, const HistoryRebuildOptions *options);
const char *history_rebuild_failure(const HistoryRebuild *rebuild); // NULL, or why it has stopped
bool history_rebuild_caught_up(const HistoryRebuild *rebuild);
bool history_rebuild_reached(
    const HistoryRebuild *rebuild, const uint64_t *sequences); // all of them are committed
uint64_t history_rebuild_position(
    const HistoryRebuild *rebuild, int stream);                 // committed; 0: nothing yet
uint64_t history_rebuild_events(const HistoryRebuild *rebuild); // folded
// With `until`: the ids of notifications with a request between it and `last`, "ntf_...,ntf_..."
// (passed.h).
Str history_rebuild_passed(const HistoryRebuild *rebuild);
bool history_rebuild_passed_cut(const HistoryRebuild *rebuild);     // 256 MiB of ids are not all
uint64_t history_rebuild_unreadable(const HistoryRebuild *rebuild); // skipped
// Events were missing: trimmed or aged before they were read, or lost by the server. All of them
// were stored before this time; 0: none was missing.
int64_t history_rebuild_missing_before_us(const HistoryRebuild *rebuild);
// Writes the folded rows, then stops.
void history_rebuild_stop(HistoryRebuild *rebuild, void (*on_stopped)(void *ctx), void *ctx);
void history_rebuild_free(HistoryRebuild *rebuild); // only after on_stopped
