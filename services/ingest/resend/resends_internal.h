// SPDX-License-Identifier: Apache-2.0
// The inside of Resends: a round of events (resends.c), the search for their letters in DEAD
// (resends_find.c), and the chunks in which they are sent again (resends_chunk.c). Law: each step
// ends by beginning the next; an item is settled once and may be gone with its batch then.
#pragma once

#include "common/base/map.h"
#include "common/bus/consume/reader.h"
#include "common/deadletter/resend_group.h"
#include "services/ingest/resend/resend_sql.h"
#include "services/ingest/resend/resends.h"

// One event; lives in its batch's arena, so it is gone once it is settled.
typedef struct ResendItem {
    Resends *resends;
    Delivery *delivery;
    ResendRequest says;
    ResendKnown known;
    uint64_t letter;         // found, or noted earlier; 0: none
    bool noted;              // by an earlier delivery of this event
    bool gone;               // the noted letter is
    uint32_t attempt;        // that is made now
    struct ResendItem *same; // another event about the same notification
    struct ResendItem *next; // that waits
} ResendItem;

struct Resends {
    Bus *bus;
    DbPool *pool;
    const Suppressions *suppressions; // a mirror's
    IngestMetrics *metrics;
    EventKeys *keys;
    ResendItem *first, **last; // waiting
    bool busy;                 // with a round
    bool stopping;
    // the round
    Arena *arena;
    ResendItem **items; // those still to be done
    size_t count;
    Reader *reader;
    Arena *scanned;
    Map *wanted;      // "tenant/ntf_..." -> ResendItem
    Error unreadable; // DEAD itself
    // its chunk: items[0 .. chunk)
    Arena *letters;
    size_t chunk;
    ResendGroup group;
};

enum { RESENDS_LETTER_WAIT_MS = 1000 }; // until a letter is looked for again

// ---- resends.c ----

void resends_settle(ResendItem *item, const Error *err);
// Takes those out of items[0 .. count) that are settled (NULL); returns how many are left.
size_t resends_compact(ResendItem **items, size_t count);
bool resends_cancel_if_stopping(Resends *r); // true: the round is over
void resends_end_round(Resends *r);

// ---- resends_find.c ----

// The letters of the round's items; then the first chunk.
void resends_find_letters(Resends *r);
void resends_stop_scan(Resends *r);
// Its letter would have left DEAD by its age. One that was scheduled far ahead may have failed just
// now.
bool resends_is_too_old(const ResendItem *item);
// Given back when its letter may still come.
void resends_refuse_missing(ResendItem *item);

// ---- resends_chunk.c ----

void resends_begin_chunk(Resends *r); // the next one, or the end of the round
