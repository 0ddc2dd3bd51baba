// SPDX-License-Identifier: Apache-2.0
#include "services/digest-flusher/intake.h"

#include <stdlib.h>

#include "common/base/crash.h"
#include "common/base/log.h"
#include "services/digest-flusher/due_work_sql.h"

enum { BATCH_MAX = 256, IN_FLIGHT_MAX = 1024 };

struct Intake {
    Worker *worker;
    DbPool *pool;
    IntakeHandlers handlers;
    void *ctx;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

// Readable deliveries of one batch (delivery->user is its DueWork), or a part of one; in the
// batch's arena.
typedef struct IntakeBatch {
    Intake *intake;
    Arena *arena;
    Delivery **deliveries;
    const DueWork **work;
    size_t count;
} IntakeBatch;

static void submit_batch(IntakeBatch *batch);

// One row that Postgres rejects must not make dead letters of the others: halve until it is
// isolated.
static void submit_halves(const IntakeBatch *batch)
{
    size_t half = batch->count / 2;
    for (int i = 0; i < 2; i++) {
        IntakeBatch *part = arena_copy(batch->arena, batch, sizeof(*batch));
        part->deliveries += i == 0 ? 0 : half;
        part->work += i == 0 ? 0 : half;
        part->count = i == 0 ? half : batch->count - half;
        submit_batch(part);
    }
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void report_stored(const IntakeBatch *batch)
{
    int64_t work_us = INT64_MAX;
    int64_t window_us = INT64_MAX;
    for (size_t i = 0; i < batch->count; i++) {
        const DueWork *work = batch->work[i];
        switch (work->kind) {
        case WORK_SEND:
            work_us = earlier(work_us, work->due_at_us);
            break;
        case WORK_GATHER: // a late item is due work
            window_us = earlier(window_us, work->window->flush_at_us);
            work_us = earlier(work_us, work->due_at_us);
            break;
        case WORK_CANCEL:
            work_us = 0;
            break;
        }
    }
    batch->intake->handlers.on_stored(batch->intake->ctx, batch->count, work_us, window_us);
}

// Killed between the commit and the ack: the deliveries come again and ON CONFLICT drops them; if
// the work was published and deleted meanwhile, it is published again under the same id, and the
// ledger rejects the second. tests/integration/faults/test_kill.py kills the flusher with work in
// flight.
static void finish_batch(IntakeBatch *batch, const Error *err)
{
    if (err != NULL && err->kind == ERROR_PERMANENT && batch->count > 1) {
        submit_halves(batch);
        return;
    }
    size_t count = batch->count;
    CRASH_POINT_IF("flusher.inserted", err == NULL);
    Delivery **deliveries = batch->deliveries;
    if (err != NULL) {
        LOG(LOG_WARN, "deferred work could not be stored", log_int("count", (int64_t)count),
            log_error(err));
    } else {
        report_stored(batch);
    }
    for (size_t i = 0; i < count; i++) {
        delivery_settle(deliveries[i], err); // the last one frees the arena, and the batch with it
    }
}

static void on_insert_done(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    finish_batch(ctx, err);
}

static void submit_batch(IntakeBatch *batch)
{
    DbTxn *txn = db_txn_new(batch->intake->pool);
    due_work_insert(txn, batch->work, batch->count);
    db_txn_submit(txn, on_insert_done, batch);
}

static IntakeBatch *new_batch(Intake *intake, Arena *arena, size_t count)
{
    IntakeBatch *batch = arena_zalloc(arena, sizeof(*batch));
    batch->intake = intake;
    batch->arena = arena;
    batch->deliveries = arena_array(arena, count, sizeof(Delivery *));
    batch->work = arena_array(arena, count, sizeof(DueWork *));
    return batch;
}

static void take_batch(Intake *intake, Delivery **deliveries, size_t count)
{
    Arena *arena = deliveries[0]->arena;
    IntakeBatch *batch = new_batch(intake, arena, count);
    Delivery **refused = arena_array(arena, count, sizeof(Delivery *));
    Error *errors = arena_array(arena, count, sizeof(Error));
    size_t refused_count = 0;
    for (size_t i = 0; i < count; i++) {
        DueWork *work = arena_alloc(arena, sizeof(*work));
        if (due_work_read(deliveries[i]->message.payload, arena, work, &errors[refused_count])) {
            batch->deliveries[batch->count] = deliveries[i];
            batch->work[batch->count++] = work;
        } else {
            refused[refused_count++] = deliveries[i];
        }
    }
    if (batch->count > 0) {
        submit_batch(batch);
    }
    for (size_t i = 0; i < refused_count; i++) {
        delivery_settle(
            refused[i], &errors[i]); // if all are rejected, the last one frees the arena
    }
}

static void on_worker_batch(void *ctx, Delivery **deliveries, size_t count)
{
    take_batch(ctx, deliveries, count);
}

Intake *intake_new(Bus *bus, DbPool *pool, const IntakeHandlers *handlers, void *ctx, Error *err)
{
    const ConsumerSpec *consumer = topology_consumer("stentor-digest-flusher", "DEFERRED");
    if (consumer == NULL) {
        error_set(err, ERROR_CONFIG, "the topology has no consumer of 'DEFERRED' for this service");
        return NULL;
    }
    Intake *intake = xcalloc(1, sizeof(*intake));
    intake->pool = pool;
    intake->handlers = *handlers;
    intake->ctx = ctx;
    WorkerOptions options = {
        .consumer = consumer,
        .batch_max = BATCH_MAX,
        .in_flight_max = IN_FLIGHT_MAX,
        .stage = "digest-flusher"};
    intake->worker = worker_new(bus, &options, on_worker_batch, intake);
    worker_start(intake->worker);
    return intake;
}

static void on_worker_freed(void *ctx)
{
    Intake *intake = ctx;
    intake->worker = NULL;
    intake->on_stopped(intake->stopped_ctx);
}

static void on_worker_stopped(void *ctx)
{
    Intake *intake = ctx;
    worker_free(intake->worker, on_worker_freed, intake);
}

void intake_stop(Intake *intake, void (*on_stopped)(void *ctx), void *ctx)
{
    intake->on_stopped = on_stopped;
    intake->stopped_ctx = ctx;
    worker_stop(intake->worker, on_worker_stopped, intake);
}

void intake_free(Intake *intake)
{
    free(intake);
}
