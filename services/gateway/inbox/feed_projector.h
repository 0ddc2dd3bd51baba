// SPDX-License-Identifier: Apache-2.0
// The projection of FEED into feed.*, one active among all replicas of gateway.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/db/db.h"
#include "common/service/metrics.h"

typedef struct FeedProjector FeedProjector;

typedef struct FeedProjectorOptions {
    Bus *bus;
    DbPool *pool;
    const char *database_url; // for the lock's own connection
    Metrics *metrics;
    void (*on_committed)(void *ctx); // rows may have something to tell
    void *ctx;
} FeedProjectorOptions;

// Borrows everything. Never fails for an absent server.
FeedProjector *feed_projector_new(const FeedProjectorOptions *options);
bool feed_projector_active(const FeedProjector *feed); // false: it stands by
void feed_projector_stop(FeedProjector *feed, void (*on_stopped)(void *ctx), void *ctx);
void feed_projector_free(FeedProjector *feed); // only after on_stopped
