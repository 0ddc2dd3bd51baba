// SPDX-License-Identifier: Apache-2.0
// Consumer: the worker that reads EVENTS for the saga. One batch at a time: read its orders, fold
// (order.h), seal, write everything in one transaction, ack, publish. Events that arrive meanwhile
// are the next batch, so batches grow with the load.
//
// Law: an event is acked when its consequences are committed. An order that another process wrote
// in the meantime is decided again.
#pragma once

#include "common/bus/consume/worker.h"
#include "common/trace/tracer.h"
#include "services/order-saga/outbox.h"

typedef struct Consumer Consumer;

typedef struct ConsumerOptions {
    Bus *bus;
    DbPool *pool;
    Keyring *keyring;
    EventKeys *event_keys; // that events are opened with, and kept
    bool seals;            // what is kept of one is sealed
    Str hash_key;
    Outbox *outbox;
    SagaMetrics *metrics;
    Tracer *tracer; // NULL: no traces
    int64_t retry_timeout_ms;
    int64_t max_attempts;
    // An event that starts the retention (of `tenant`): the callee settles it.
    void (*on_clean_up)(void *ctx, Delivery *delivery, Str tenant);
    void *ctx;
} ConsumerOptions;

Consumer *consumer_new(const ConsumerOptions *options); // borrows all
// Calls on_stopped when every delivery is settled.
void consumer_stop(Consumer *consumer, void (*on_stopped)(void *ctx), void *ctx);
void consumer_free(Consumer *consumer); // after on_stopped
