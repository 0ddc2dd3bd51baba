// SPDX-License-Identifier: Apache-2.0
// What consumer.c and consumer_queue.c share: events that wait, and one that is refused.
#pragma once

#include "services/order-saga/consumer.h"

// Whom a dead letter of ours is for when it is sent again: no trigger can have such a key.
#define LETTER_FOR ":order-saga"

// An event of the saga that is not settled yet. Lives in its delivery's arena.
typedef struct Pending Pending;
struct Pending {
    Pending *next;
    Delivery *delivery;
    SagaInput input;
    Entry *entry; // of the batch under way
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
    size_t batch_max; // halved while Postgres refuses one, so that the culprit stands alone
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

void consumer_push_back(Queue *queue, Pending *event);
Pending *consumer_pop(Queue *queue);
// `front` goes before what is in `queue`; in its own order.
void consumer_put_before(Queue *queue, Queue *front);
void consumer_refuse(Delivery *delivery, const Error *err);
