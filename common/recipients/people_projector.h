// SPDX-License-Identifier: Apache-2.0
// People: the projection of PEOPLE into people.*, one active among all replicas of ingest. A writer
// in another process waits for it with people_wait.h.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/db/db.h"
#include "common/service/metrics.h"

typedef struct People People;

typedef struct PeopleOptions {
    Bus *bus;
    DbPool *pool;
    const char *database_url; // for the lock's own connection
    Metrics *metrics;
} PeopleOptions;

// Borrows everything. Never fails for an absent server.
People *people_new(const PeopleOptions *options);
bool people_active(const People *people); // this process folds; false: it stands by
// What is folded is written first.
void people_stop(People *people, void (*on_stopped)(void *ctx), void *ctx);
void people_free(People *people); // only after on_stopped, when no metrics are printed any more
