// SPDX-License-Identifier: Apache-2.0
// BatchRunner: makes the notifications of running batches. It claims batches that no process holds,
// reads one chunk after the other, hands steps of it to accept, and moves the checkpoint when a
// step was accepted.
//
// Killed anywhere (tests/integration/sending/test_batches.py):
// - before the accept's commit: nothing happened; the step goes again after the lease
// - accepted, checkpoint not moved: the step goes again with the same ids and the same idempotency
//   key, and accept answers as it did: no second notification
// - checkpoint moved: the next step is next
// - a page of chosen members stored: the next page is next; not stored: the same page is looked for
// again (run_choose.h)
//
// Law: the checkpoint moves only after accept's `done`. Of accept's room, and of what waits for
// NATS, batches use a share only; the rest is for whoever asks for one notification.
#pragma once

#include "common/request/catalog.h"
#include "services/ingest/accept/accept.h"

typedef struct BatchRunner BatchRunner;

enum {
    BATCH_ROOM = ACCEPT_WAITING_MAX / 10,           // members of all batches that wait in accept
    BATCH_BUS_ROOM = ROW_PUBLISHER_PENDING_MAX / 4, // beyond it batches wait for NATS
    BATCH_RUNS_MAX = 32,                            // batches of one process at a time
};

typedef struct BatchRunnerOptions {
    DbPool *pool;
    Bus *bus;
    MasterKey *master;
    Accept *accept;
    const Catalog *catalog;
    Metrics *metrics;
    const char *holder;                // of this process start
    int64_t lease_ms;                  // a batch whose process died goes on elsewhere after this
    const char *(*unready)(void *ctx); // NULL: notifications may be made; else why not
    void *unready_ctx;
} BatchRunnerOptions;

BatchRunner *batch_runner_new(const BatchRunnerOptions *options); // borrows all parts
void batch_runner_tick(BatchRunner *runner);                      // every 50 ms
void batch_runner_wake(BatchRunner *runner);                      // a batch was started: look now
// Lets what is in flight end, moves its checkpoints and gives the batches up, so that another
// replica goes on at once.
void batch_runner_stop(BatchRunner *runner);
bool batch_runner_idle(const BatchRunner *runner);
void batch_runner_free(BatchRunner *runner); // only when idle
