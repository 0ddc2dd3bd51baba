// SPDX-License-Identifier: Apache-2.0
// Drain: decides when to claim. At once after a wake-up, and as long as there are rows; else after
// a pause that doubles up to poll_max_ms. One claim is in flight at a time, up to batches_max
// batches are in progress. Without connections to both Postgres and NATS it claims nothing, since
// the rows would only be held until the lease ends. drain_state.h has its states as a diagram.
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
    // Claims fail and an operator must act (CONFIG); NULL: claims work again.
    void (*trouble)(void *ctx, const Error *err);
} DrainHandlers;

// Borrows `context`, whose statements must be complete before drain_start.
Drain *drain_new(
    BatchContext *context, const DrainOptions *options, const DrainHandlers *handlers, void *ctx);
void drain_start(Drain *drain);
void drain_wake(Drain *drain); // there may be new rows
// Batches in progress end first, then on_stopped is called; then it may be freed.
void drain_stop(Drain *drain, void (*on_stopped)(void *ctx), void *ctx);
void drain_free(Drain *drain);
