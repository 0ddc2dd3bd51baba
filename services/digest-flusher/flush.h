// SPDX-License-Identifier: Apache-2.0
// Flush: windows whose time has come. A pass freezes up to 64 of them, fetches the recipients' data
// keys, builds the digests and commits the decision: the digest and its items are due work from
// there on, and emit.h sends them. Any number of replicas: a freeze skips what another holds.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/db/db.h"
#include "common/db/keyring.h"

typedef struct Flush Flush;

typedef struct FlushCounts {
    uint64_t digests;
    uint64_t singles;    // windows whose items go out as themselves
    uint64_t suppressed; // windows that came to nothing
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
// A window is due at due_us: wake then, or at once when that is past.
void flush_wake_at(Flush *flush, int64_t due_us);
// A pass under way is finished, then on_stopped; then it may be freed.
void flush_stop(Flush *flush, void (*on_stopped)(void *ctx), void *ctx);
void flush_free(Flush *flush);
