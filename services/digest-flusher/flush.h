// SPDX-License-Identifier: Apache-2.0
// Flush: turns due windows into digests. A pass freezes up to 64 of them, fetches the recipients'
// data keys, builds the digests and commits the decision: from then on the digest and its items are
// due work, and emit.h publishes them. Any number of replicas: a freeze skips windows that another
// holds.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/db/db.h"
#include "common/db/keyring.h"

typedef struct Flush Flush;

typedef struct FlushCounts {
    uint64_t digests;
    uint64_t singles;    // windows whose items are sent one by one
    uint64_t suppressed; // windows whose items were suppressed
} FlushCounts;

typedef struct FlushHandlers {
    void (*on_flushed)(void *ctx, const FlushCounts *counts); // there is due work now
} FlushHandlers;

typedef struct FlushOptions {
    uv_loop_t *loop;
    DbPool *pool;
    Keyring *keyring;
    int64_t lease_ms;
    FlushHandlers handlers;
    void *ctx;
} FlushOptions;

Flush *flush_new(const FlushOptions *options); // borrows all parts
// A window is due at due_us: wake then, or at once if that is past.
void flush_wake_at(Flush *flush, int64_t due_us);
// Finishes a pass in progress, then calls on_stopped; then it may be freed.
void flush_stop(Flush *flush, void (*on_stopped)(void *ctx), void *ctx);
void flush_free(Flush *flush);
