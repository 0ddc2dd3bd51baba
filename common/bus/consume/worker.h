// SPDX-License-Identifier: Apache-2.0
// Worker: one of the two ways to read. A durable pull consumer with explicit acks, any number of
// replicas. Batch in, batch out: the handler gets up to batch_max deliveries at once, does its work
// for all of them together, emits what follows from each, and settles each. An input is acked only
// after everything emitted for it is stored.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/bus/topology/topology.h"

typedef struct Worker Worker;

typedef struct Delivery {
    BusMessage message;
    Arena *arena; // the batch's: freed when the last delivery of the batch is settled and acked
    void *user;   // the handler's own
    // A packed stentor.v1.Attempt in `arena`: what a dead letter says besides the attempts that its
    // payload carries; empty: nothing.
    Str last_attempt;
    // The same of the status that ended the notification, when that was emitted.
    Str reason_code;
    int64_t produced_at_us; // the same of a command; 0: none
} Delivery;

typedef struct WorkerOptions {
    const ConsumerSpec *consumer;
    size_t batch_max;     // deliveries handed over at once; 0: 256
    int batch_wait_ms;    // a batch closes after this long even when not full; 0: 2
    size_t in_flight_max; // deliveries not yet settled; pulling pauses there; 0: 1024
    const char *stage;    // the token in ntf.dead.<stage>.<tenant>
    bool slack;           // its outputs let all others go first (BusOut)
    bool yields;          // worker_yield may be called: its pull requests end within seconds
    // Of a poison message, which no handler sees: sets `kept`, what its dead letter keeps. Its
    // bytes are not read. NULL: the payload as it is.
    void (*keep)(void *ctx, BusMessage *message, Arena *arena);
} WorkerOptions;

// Called on the loop with 1..batch_max deliveries. The array itself lives in the batch's arena.
typedef void (*WorkerHandler)(void *ctx, Delivery **deliveries, size_t count);

// Borrows the bus and the consumer's row; never fails: a missing consumer is asked for
// again and again. Nothing is pulled before worker_start, which is called once.
Worker *worker_new(Bus *bus, const WorkerOptions *options, WorkerHandler handler, void *ctx);
void worker_start(Worker *worker);
// No new batches; on_stopped when all handed over are settled. What was pulled and not handed over,
// and what is CANCELLED from now on, goes back when the bus closes: earlier it would only come to
// this process's own open pull requests again (link.h).
void worker_stop(Worker *worker, void (*on_stopped)(void *ctx), void *ctx);
// on_freed once every delivery in hand is settled; the worker is gone before it. Without a stop
// before, what waits is given back at once.
void worker_free(Worker *worker, void (*on_freed)(void *ctx), void *ctx);
void worker_pause(Worker *worker, bool paused); // back-pressure from what the handler feeds
// Paused, and another process reads in its place: what waits here, and what its open requests bring
// still, goes back and comes again when these have ended. Until worker_pause(worker, false).
void worker_yield(Worker *worker);
size_t worker_in_flight(const Worker *worker); // deliveries not yet settled

// An output of this input: published now, awaited before the input's ack. May be called until the
// settle.
void delivery_emit(Delivery *delivery, const BusOut *out);
// An output that is stored by other means (config_store): the input's ack waits for its end, once
// for each hold. err as a publish's; the arena lives until then. CONFLICT counts as TRANSIENT.
void delivery_hold(Delivery *delivery);
void delivery_held(Delivery *delivery, const Error *err);
// The verdict, once per delivery, from the error's kind:
//   NULL or CONFLICT  ack, once all that was emitted is stored (if that fails: redelivery; if an
//                     output can never be published: a dead letter)
//   TRANSIENT         nak with a delay that grows with the deliveries (1 s .. 60 s)
//   PERMANENT         a DeadLetter on ntf.dead.<stage>.<tenant>, then ack
//   CONFIG            as TRANSIENT
//   CANCELLED         nak at once (of a stopping worker: when the bus closes): another replica or
//                     the next process takes it
void delivery_settle(Delivery *delivery, const Error *err);
// Gives it back, to be redelivered after delay_ms (another process's claim is still alive, its
// template is not here yet).
void delivery_redeliver(Delivery *delivery, int delay_ms);

typedef struct WorkerStats {
    uint64_t received, acked, given_back, dead_letters, redelivered, poisoned;
} WorkerStats;
// Counted since worker_new; valid as long as the worker.
const WorkerStats *worker_stats(const Worker *worker);
