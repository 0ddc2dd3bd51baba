// SPDX-License-Identifier: Apache-2.0
// Emit: publishes due work. A pass claims up to 500 due rows under a lease, publishes each under
// its stored id, awaits the acks, and deletes the rows that are stored in their stream. One pass at
// a time; between passes it sleeps until the next row is due, at most a second. Any number of
// replicas: the claim skips what another holds.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/db/db.h"

typedef struct Emit Emit;

typedef struct EmitHandlers {
    // Called at the end of a pass with due rows: the number stored in their streams, and the delay
    // of the latest one.
    void (*on_emitted)(void *ctx, size_t count, int64_t late_max_us);
} EmitHandlers;

// share_per_s: common/model/rules/fair_share.h; a million notifications scheduled for one minute
// are a flood as well.
Emit *emit_new(
    Bus *bus, DbPool *pool, int64_t lease_ms, int64_t share_per_s, const EmitHandlers *handlers,
    void *ctx);
// Work is due at due_us: wake then, or at once if that is past.
void emit_wake_at(Emit *emit, int64_t due_us);
// Finishes a pass in progress, then calls on_stopped; then it may be freed.
void emit_stop(Emit *emit, void (*on_stopped)(void *ctx), void *ctx);
void emit_free(Emit *emit);
