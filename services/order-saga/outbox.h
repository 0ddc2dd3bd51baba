// SPDX-License-Identifier: Apache-2.0
// Outbox: publishes committed rows from memory at once and marks them; a sweep publishes the rows
// that a dead process left or whose publish failed. Any number of replicas sweep: a row is claimed
// for a while, and its message keeps its id.
#pragma once

#include "common/db/keyring.h"
#include "common/domain/event_seal.h"
#include "common/orders/saga_sql.h"
#include "services/order-saga/saga_metrics.h"

typedef struct Outbox Outbox;

typedef struct OutboxOptions {
    Bus *bus;
    DbPool *pool;
    Keyring *keyring;
    EventKeys *event_keys; // that commands are sealed under; NULL: they go in clear
    SagaMetrics *metrics;
    int64_t every_ms;      // between two sweeps
    int64_t older_than_ms; // younger rows are published by the process that wrote them
} OutboxOptions;

Outbox *outbox_new(const OutboxOptions *options); // borrows all
// Publishes a committed row. Copies the message; if it cannot be published now, the sweep does so.
void outbox_send(Outbox *outbox, const OutRow *row, Arena *arena);
// Stops sweeping; calls on_stopped when nothing is in flight or to be marked, after 5 s at most.
void outbox_stop(Outbox *outbox, void (*on_stopped)(void *ctx), void *ctx);
void outbox_free(Outbox *outbox); // after on_stopped
