// SPDX-License-Identifier: Apache-2.0
// Retention: archives and deletes old rows in small batches. An event starts a pass: the deferred
// CleanUpOrders, once a period for all replicas, or the management event CleanUpSentEmail, for its
// tenant. The event is acked when nothing is left to do, so a killed pass is continued.
#pragma once

#include "common/bus/consume/worker.h"
#include "common/orders/saga_sql.h"
#include "services/order-saga/saga_metrics.h"

typedef struct Retention Retention;

typedef struct RetentionOptions {
    Bus *bus;
    DbPool *pool;
    SagaMetrics *metrics;
    Ages ages;
    int64_t period_s; // between two periodic passes
} RetentionOptions;

// Requests the next periodic pass, repeatedly: it is one event, however often and by however many
// replicas it is requested.
Retention *retention_new(const RetentionOptions *options);
// Starts a pass and settles its event. Tenant `platform`: for all tenants.
void retention_take(Retention *retention, Delivery *delivery, Str tenant);
// Gives waiting events back; the current pass ends with its statement.
void retention_stop(Retention *retention, void (*on_stopped)(void *ctx), void *ctx);
void retention_free(Retention *retention); // after on_stopped
