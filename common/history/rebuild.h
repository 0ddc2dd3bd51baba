// SPDX-License-Identifier: Apache-2.0
// The history projection once more, into another schema: the same fold, the same statements and the
// same projector as the archiver's, for `stentor rebuild`. Nothing is buried: what cannot be read
// has its dead letter from the first time.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/db/db.h"

enum { HISTORY_STREAM_COUNT = 5 };
extern const char *const history_streams[HISTORY_STREAM_COUNT + 1]; // NULL at the end

typedef struct Refold Refold;

typedef struct RefoldOptions {
    const char *schema;       // "archiver_rebuild"
    const char *database_url; // for the lock's own connection
    DbPool *pool;
    // In the order of history_streams: fold nothing behind these sequences; NULL: everything.
    const uint64_t *until;
    const uint64_t *first; // in the same order: where the streams began when this was planned
} RefoldOptions;

// Borrows all of the options, which must live until refold_free.
Refold *refold_new(Bus *bus, const RefoldOptions *options);
const char *refold_failure(const Refold *refold); // NULL, or why it stands still
bool refold_caught_up(const Refold *refold);
bool refold_reached(const Refold *refold, const uint64_t *sequences); // all of them are committed
uint64_t refold_position(const Refold *refold, int stream);           // committed; 0: nothing yet
uint64_t refold_events(const Refold *refold);                         // folded
uint64_t refold_unreadable(const Refold *refold);                     // passed over
// Events were missing: trimmed or aged before they were read, or lost by the server. All of them
// were stored before this time; 0: none was missing.
int64_t refold_missing_before_us(const Refold *refold);
// Writes what is folded, then stops.
void refold_stop(Refold *refold, void (*on_stopped)(void *ctx), void *ctx);
void refold_free(Refold *refold); // only after on_stopped
