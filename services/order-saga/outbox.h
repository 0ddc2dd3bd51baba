// SPDX-License-Identifier: Apache-2.0
// Outbox: publishes what is committed, from memory at once, and marks the rows; a sweep publishes
// what a dead process left, or what could not go. Any number of replicas sweep: a row is claimed
// for a while, and its message keeps its id.
#pragma once

#include "common/db/keyring.h"
#include "services/order-saga/saga_metrics.h"
#include "services/order-saga/saga_sql.h"

typedef struct Outbox Outbox;

typedef struct OutboxOptions {
    Bus *bus;
    DbPool *pool;
    Keyring *keyring;
    SagaMetrics *metrics;
    int64_t every_ms;      // between two looks of the sweep
    int64_t older_than_ms; // younger rows are on their way from their own process's memory
} OutboxOptions;

Outbox *outbox_new(const OutboxOptions *options); // borrows all
// A row that is committed. The message is copied; what cannot go now is left to the sweep.
void outbox_send(Outbox *outbox, const OutRow *row, Arena *arena);
// No more sweeps; on_stopped when nothing is on its way or to be marked, at the latest after 5 s.
void outbox_stop(Outbox *outbox, void (*on_stopped)(void *ctx), void *ctx);
void outbox_free(Outbox *outbox); // when stopped
