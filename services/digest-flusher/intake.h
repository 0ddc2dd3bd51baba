// SPDX-License-Identifier: Apache-2.0
// Intake: the worker that takes DEFERRED into digest_flusher.due_work and the windows of digests,
// one commit a batch, then the acks. Unreadable work becomes a dead letter; a row that Postgres
// rejects is isolated by halving its batch and becomes one too.
#pragma once

#include "common/bus/consume/worker.h"
#include "common/db/db.h"

typedef struct Intake Intake;

typedef struct IntakeHandlers {
    // Rows are committed; these are the earliest due times of their work and windows (INT64_MAX:
    // none). An item may have become work, a cancellation creates work.
    void (*on_stored)(void *ctx, size_t count, int64_t work_due_us, int64_t window_due_us);
} IntakeHandlers;

// ERROR_CONFIG when the topology has no such consumer.
Intake *intake_new(Bus *bus, DbPool *pool, const IntakeHandlers *handlers, void *ctx, Error *err);
// Settles every delivery, then calls on_stopped; then it may be freed.
void intake_stop(Intake *intake, void (*on_stopped)(void *ctx), void *ctx);
void intake_free(Intake *intake);
