// SPDX-License-Identifier: Apache-2.0
// What worker.c (inflow) and delivery.c (verdicts) share.
#pragma once

#include "common/bus/consume/ack_guard.h"
#include "common/bus/consume/worker.h"
#include "common/bus/consume/worker_state.h"
#include "common/bus/jetstream/bus_internal.h"

typedef struct Batch Batch;

typedef enum Verdict { VERDICT_NONE, VERDICT_ACK, VERDICT_DEAD_LETTER, VERDICT_REDELIVER } Verdict;

typedef struct DeliveryState {
    Delivery public; // first: the handler's pointer is ours
    Batch *batch;
    natsMsg *nats; // NULL once answered
    int64_t renewed_ms;
    unsigned breaks; // of the link when it arrived
    uint32_t emits;  // not yet stored
    int delay_ms;
    bool emit_failed;    // for now
    const char *refused; // an output can never be published: why; in the batch's arena
    Verdict verdict;
    bool poison;
    bool marked; // of a group of the guard: its answer waits until a mark without it is stored
} DeliveryState;

struct Batch {
    Worker *worker;
    Arena *arena;
    DeliveryState *deliveries;
    size_t count;
    size_t open;      // not yet answered
    size_t undecided; // without a verdict
    Batch *next, *previous;
};

typedef struct Arrived {
    natsMsg *message;
    AckSubject ack;
    int64_t at_ms;
} Arrived;

typedef struct Waiting {
    Arrived *at; // a ring
    size_t first, count, cap;
} Waiting;

struct Worker {
    Bus *bus;
    WorkerOptions options;
    const ConsumerSpec *spec;
    WorkerHandler handler;
    void *handler_ctx;
    Endpoint endpoint;
    uv_timer_t timer;
    WorkerState state;    // written by worker_state_move() alone
    WorkerConsumer known; // what is known of the consumer; by worker_consumer_move() alone
    // Three facts, each true or false in most states.
    bool paused;         // the handler's owner asks for a pause
    bool yielding;       // and meanwhile another process reads
    bool wait_over;      // batch_wait_ms is, for what waits now
    bool refusal_logged; // of a pull; once until deliveries come again
    Waiting waiting;     // first deliveries
    Waiting suspects;    // what came again: handed over by the guard
    struct Guard *guard; // of the process
    size_t asked;        // requested of the server and not delivered yet
    size_t in_flight;
    int64_t heard_ms;
    int64_t pull_after_ms;
    int64_t ask_after_ms;
    int64_t ack_wait_ms; // 0: not known yet
    int64_t renewed_ms;
    Batch *batches; // with something open
    Batch *done;    // freed in the next turn: the handler may still be looking at them
    WorkerStats stats;
    AckGuard ack_guard;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

static inline Arrived *waiting_at(const Waiting *q, size_t i)
{
    return &q->at[(q->first + i) % q->cap];
}

// ---- for the guard ----

// At most `max` of the queue, and no more than a batch has.
void worker_hand_over(Worker *worker, Waiting *queue, size_t max);
// The first suspects as a batch that is not handed over yet; its answers wait.
Batch *worker_take_group(Worker *worker, size_t count);
void worker_hand_group(Worker *worker, Batch *group);
// Of a group of one: dead-lettered unread, with the end of its notification (quarantine.h).
void delivery_quarantine(Batch *group, uint32_t deaths);
// No mark names the group any more: what has a verdict is answered. all: the rest too, once it has.
void delivery_group_lifted(Batch *group, bool all);
