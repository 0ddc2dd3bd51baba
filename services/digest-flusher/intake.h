// SPDX-License-Identifier: Apache-2.0
// Intake: the worker that takes DEFERRED into clock.due_work, one insert and one commit a batch,
// then the acks. What cannot be read is buried; a row that Postgres refuses is found by halving its
// batch and buried alone.
#pragma once

#include "common/bus/worker.h"
#include "common/db/db.h"

typedef struct Intake Intake;

typedef struct IntakeHandlers {
    // Rows are committed; the earliest of them is due at earliest_due_us.
    void (*on_stored)(void *ctx, size_t count, int64_t earliest_due_us);
} IntakeHandlers;

// ERROR_CONFIG when the topology has no such consumer.
Intake *intake_new(Bus *bus, DbPool *pool, const IntakeHandlers *handlers, void *ctx, Error *err);
// Every delivery is settled, then on_stopped; then it may be freed.
void intake_stop(Intake *intake, void (*on_stopped)(void *ctx), void *ctx);
void intake_free(Intake *intake);
