// SPDX-License-Identifier: Apache-2.0
// Waits: requests a missing time-out again, under the same id. A deferral may have been lost (a
// purged stream, a restored database), and without its time-out an order would stay Placed. A
// time-out that arrives after all is stale by its token.
#pragma once

#include "common/orders/saga_sql.h"
#include "services/order-saga/saga_metrics.h"

typedef struct Waits Waits;

typedef struct WaitsOptions {
    Bus *bus;
    DbPool *pool;
    SagaMetrics *metrics;
    int64_t lost_after_ms; // after its time
} WaitsOptions;

Waits *waits_new(const WaitsOptions *options); // borrows all
// Calls on_stopped when nothing is in flight.
void waits_stop(Waits *waits, void (*on_stopped)(void *ctx), void *ctx);
void waits_free(Waits *waits); // after on_stopped
