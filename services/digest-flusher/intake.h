// SPDX-License-Identifier: Apache-2.0
// Intake: the worker that takes DEFERRED into digest_flusher.due_work and the windows of digests,
// one commit a batch, then the acks. What cannot be read is buried; a row that Postgres refuses is
// found by halving its batch and buried alone.
#pragma once

#include "common/bus/consume/worker.h"
#include "common/db/db.h"

typedef struct Intake Intake;

typedef struct IntakeHandlers {
    // Rows are committed; the earliest work and the earliest window of them are due then
    // (INT64_MAX: there are none). An item may have become work, a cancellation makes some.
    void (*on_stored)(void *ctx, size_t count, int64_t work_due_us, int64_t window_due_us);
} IntakeHandlers;

// ERROR_CONFIG when the topology has no such consumer.
Intake *intake_new(Bus *bus, DbPool *pool, const IntakeHandlers *handlers, void *ctx, Error *err);
// Every delivery is settled, then on_stopped; then it may be freed.
void intake_stop(Intake *intake, void (*on_stopped)(void *ctx), void *ctx);
void intake_free(Intake *intake);
