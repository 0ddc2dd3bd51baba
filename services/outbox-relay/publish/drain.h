// SPDX-License-Identifier: Apache-2.0
// Drain: when the table is claimed from. At once when somebody says that there is something, and as
// long as there is; when there is not, it looks again after a pause that doubles up to poll_max_ms.
// One claim is in the air at a time, up to batches_max batches are under way. Nothing is claimed
// without a connection to both sides: it would only be held back until its lease ends. What it is
// doing is its state (drain_state.h has the diagram).
#pragma once

#include "services/outbox-relay/publish/batch.h"

typedef struct Drain Drain;

typedef struct DrainOptions {
    int batches_max;
    int64_t poll_max_ms;
} DrainOptions;

typedef struct DrainHandlers {
    void (*claimed)(void *ctx, const BatchClaim *claim);
    void (*ended)(void *ctx, const BatchEnd *end);
    // The claim is refused for what only a person can mend (CONFIG); NULL: it works (again).
    void (*trouble)(void *ctx, const Error *err);
} DrainHandlers;

// `context` is borrowed; its statements must be complete before drain_start.
Drain *drain_new(
    BatchContext *context, const DrainOptions *options, const DrainHandlers *handlers, void *ctx);
void drain_start(Drain *drain);
void drain_wake(Drain *drain); // there may be something
// Batches under way end first, then on_stopped; then it may be freed.
void drain_stop(Drain *drain, void (*on_stopped)(void *ctx), void *ctx);
void drain_free(Drain *drain);
