// SPDX-License-Identifier: Apache-2.0
// The projection of STATUS into find.*, one active among all replicas of gateway, behind a lock of
// its own: it may lag, and nothing waits for it. The active one also says how fresh the index is,
// every 5 s while nothing comes, and drops the days that are over.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/codec/master_key.h"
#include "common/db/db.h"
#include "common/service/metrics.h"

typedef struct FindProjector FindProjector;

typedef struct FindProjectorOptions {
    Bus *bus;
    DbPool *pool;
    const char *database_url; // for the lock's own connection
    const MasterKey *master;
    Metrics *metrics;
    int64_t days; // that are kept
} FindProjectorOptions;

// Borrows everything. Never fails for an absent server.
FindProjector *find_projector_new(const FindProjectorOptions *options);
void find_projector_stop(FindProjector *find, void (*on_stopped)(void *ctx), void *ctx);
void find_projector_free(FindProjector *find); // only after on_stopped; NULL-safe
// The index has all that STATUS has, as this process knows without asking: now; else 0. NULL-safe.
int64_t find_projector_current_us(const FindProjector *find);
