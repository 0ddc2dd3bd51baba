// SPDX-License-Identifier: Apache-2.0
// People: the projection of PEOPLE into people.*, one active among all replicas of ingest; and
// waiting until it, here or in another process, has what a writer has just said.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/db/db.h"
#include "common/service/metrics.h"

enum { PEOPLE_PATIENCE_MS = 2000 };

typedef struct People People;

typedef struct PeopleOptions {
    Bus *bus;
    DbPool *pool;
    const char *database_url; // for the lock's own connection
    Metrics *metrics;
} PeopleOptions;

// Borrows everything. Never fails for an absent server.
People *people_new(const PeopleOptions *options);
// Calls `done` once, never from inside the call: seen when the tables hold the event of PEOPLE with
// that sequence, not seen after PEOPLE_PATIENCE_MS. `ctx` must live until then.
typedef void (*PeopleSeen)(void *ctx, bool seen);
void people_wait(People *people, uint64_t sequence, PeopleSeen done, void *ctx);
bool people_active(const People *people); // this process folds; false: it stands by
// What waits is answered as not seen; what is folded is written first.
void people_stop(People *people, void (*on_stopped)(void *ctx), void *ctx);
void people_free(People *people); // only after on_stopped, when nobody reads the metrics any more
