// SPDX-License-Identifier: Apache-2.0
// Retention: what is over for long goes, in small batches. A pass is started by an event: the
// clock's CleanUpOrders, once a period for all replicas, or the management event CleanUpSentEmail,
// for its tenant. The event is acked when there is nothing left to do, so a pass that is killed is
// gone on with.
#pragma once

#include "common/bus/consume/worker.h"
#include "services/order-saga/saga_metrics.h"
#include "services/order-saga/saga_sql.h"

typedef struct Retention Retention;

typedef struct RetentionOptions {
    Bus *bus;
    DbPool *pool;
    SagaMetrics *metrics;
    Ages ages;
    int64_t period_s; // between two passes that the clock starts
} RetentionOptions;

// Asks the clock for the next pass, now and again and again: it is one event, however often and by
// however many replicas it is asked for.
Retention *retention_new(const RetentionOptions *options);
// An event that starts a pass; settles it. Tenant `platform`: of all.
void retention_take(Retention *retention, Delivery *delivery, Str tenant);
// Events in hand go back; what is begun ends with its statement.
void retention_stop(Retention *retention, void (*on_stopped)(void *ctx), void *ctx);
void retention_free(Retention *retention); // when stopped
