// SPDX-License-Identifier: Apache-2.0
// Shared by consumer.c and consumer_queue.c: queues of events, and rejecting one.
#pragma once

#include "services/order-saga/consumer.h"

// An event that is not settled yet. Lives in its delivery's arena.
typedef struct Pending Pending;
struct Pending {
    Pending *next;
    Delivery *delivery;
    SagaInput input;
    Entry *entry; // of the current batch
    int losses;
};

typedef struct Queue {
    Pending *first, *last;
} Queue;

typedef struct Batch {
    Consumer *consumer;
    Arena *arena;
    Queue events; // in the stream's order
    size_t count;
    Fold fold;
    KeyWant *wants;
    size_t *want_of; // of an order, by its number - 1; SIZE_MAX: none
    size_t want_count;
    OutRow *rows;
    size_t row_count;
} Batch;

struct Consumer {
    ConsumerOptions options;
    Worker *worker;
    Queue waiting;
    bool busy;
    size_t batch_max; // halved while Postgres rejects one, until that event is isolated
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

void consumer_push_back(Queue *queue, Pending *event);
Pending *consumer_pop(Queue *queue);
// Puts `front` before the events of `queue`, in its own order.
void consumer_put_before(Queue *queue, Queue *front);
void consumer_refuse(const Consumer *consumer, Delivery *delivery, const Error *err);
