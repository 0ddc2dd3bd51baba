// SPDX-License-Identifier: Apache-2.0
// Where a worker is: two small machines, each with one writer and one table of moves
// (worker_state.c; worker_state_test.c walks all pairs).
//
//   new --+--> running --> stopping --> stopped
//         '-----------------^
//   any of these --> freeing --> leaving (and freed)
//
// stopping: nothing is handed over any more, what was is waited for. freeing: likewise, then the
// worker goes. leaving: nothing comes to it any more, only the guard's leave is still to come.
//
// What is known of its consumer, whose ack_wait says when a delivery in hand must be renewed:
//
//   unknown <--> asked --+--> known
//                        '--> missing <--> asked again --> known
//
// missing is logged once; asked goes back to unknown when the bus closes.
#pragma once

#include <stdbool.h>

typedef enum WorkerState {
    WORKER_NEW,
    WORKER_RUNNING,
    WORKER_STOPPING,
    WORKER_STOPPED,
    WORKER_FREEING,
    WORKER_LEAVING,
    WORKER_STATE_COUNT,
} WorkerState;

typedef enum WorkerConsumer {
    CONSUMER_UNKNOWN,
    CONSUMER_ASKED,
    CONSUMER_MISSING,
    CONSUMER_ASKED_AGAIN,
    CONSUMER_KNOWN,
    CONSUMER_STATE_COUNT,
} WorkerConsumer;

// false: refused, nothing changed (common/base/states/states.h). `consumer` is its durable's name.
bool worker_state_move(WorkerState *state, WorkerState next, const char *consumer);
bool worker_consumer_move(WorkerConsumer *state, WorkerConsumer next, const char *consumer);
