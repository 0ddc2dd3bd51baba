// SPDX-License-Identifier: Apache-2.0
// A projection of one stream once more, into a copy of its schema: the same fold, statements and
// projector as the live one's, for `stentor rebuild`. Two services project PEOPLE: ingest all of it
// (people.*), digest-flusher what its waiting work needs; gateway projects FEED. No dead letter is
// written, and no status goes out again.
#pragma once

#include "common/bus/consume/reader.h"
#include "common/bus/jetstream/bus.h"
#include "common/db/db.h"

typedef struct PeopleRebuild PeopleRebuild;

typedef enum PeopleKind { PEOPLE_RECORDS, PEOPLE_DIGESTS, PEOPLE_FEED } PeopleKind;

typedef struct PeopleRebuildOptions {
    PeopleKind kind;
    const char *projection;   // as its position is called
    const char *schema;       // the live one, which statements name
    const char *copy;         // where they write
    const char *database_url; // for the lock's own connection
    DbPool *pool;
    bool bounded; // fold nothing behind `until`
    uint64_t until;
    int64_t until_at_us; // when that message was stored; 0: not known
    uint64_t first;      // from here on each message is followed by the next one
    const ReaderKind *readers;
    void *readers_ctx;
} PeopleRebuildOptions;

// Borrows bus, pool and strings until people_rebuild_free.
PeopleRebuild *people_rebuild_new(Bus *bus, const PeopleRebuildOptions *options);
const char *people_rebuild_failure(const PeopleRebuild *rebuild); // NULL, or why it has stopped
bool people_rebuild_caught_up(const PeopleRebuild *rebuild);
uint64_t people_rebuild_position(const PeopleRebuild *rebuild);   // committed; 0: nothing yet
uint64_t people_rebuild_events(const PeopleRebuild *rebuild);     // folded
uint64_t people_rebuild_unreadable(const PeopleRebuild *rebuild); // skipped
// Messages were missing, all of them stored before this time; 0: none.
int64_t people_rebuild_missing_before_us(const PeopleRebuild *rebuild);
// Writes the folded rows, then stops.
void people_rebuild_stop(PeopleRebuild *rebuild, void (*on_stopped)(void *ctx), void *ctx);
void people_rebuild_free(PeopleRebuild *rebuild); // only after on_stopped, the pool being closed
