// SPDX-License-Identifier: Apache-2.0
// The statements on ingest.resends: one each for a whole round.
#pragma once

#include "common/db/db.h"
#include "services/ingest/resend/resend_event.h"

// What is known of an item before anything is looked for.
typedef struct ResendKnown {
    uint64_t letter;    // in DEAD, as it was noted for this event; 0: not yet
    bool published;     // its event is stored
    bool done;          // nothing is left to do
    const char *status; // the notification's, of history; "": none there
    int64_t seen_us;    // of its last event in history; 0: none
} ResendKnown;

// Each its own transaction's first statement; the items are in the order of the results.
void resend_sql_look_up(DbTxn *txn, const ResendRequest *const *items, size_t count);
// All of `ret` are filled; texts live in `arena`.
void resend_sql_read(const DbTxn *txn, ResendKnown *ret, size_t count, Arena *arena);
// Noted twice is noted once.
void resend_sql_note(
    DbTxn *txn, const ResendRequest *const *items, const uint64_t *letters, size_t count);

// How far one has come; each time is written once.
typedef enum ResendMark {
    RESEND_PUBLISHED, // its event is stored
    RESEND_DONE,      // ... and its letter deleted
    RESEND_GONE,      // nothing was published: the letter was gone before
} ResendMark;
void resend_sql_mark(
    DbTxn *txn, const ResendRequest *const *items, const ResendMark *marks, size_t count);
