// SPDX-License-Identifier: Apache-2.0
// Sweep: publishes accept rows that were not published: their process died, NATS was away, or there
// was no room. Any number of replicas may sweep: a row is claimed for a while, and its events keep
// their ids. It also forgets idempotency keys older than a day.
#pragma once

#include "services/ingest/accept/row_publisher.h"

typedef struct Sweep Sweep;

typedef struct SweepOptions {
    uv_loop_t *loop;
    DbPool *pool;
    RowPublisher *publisher;
    IngestMetrics *metrics;
    int64_t every_ms;
    int64_t older_than_ms; // younger rows are on their way from their own process's memory
} SweepOptions;

Sweep *sweep_new(const SweepOptions *options);
// Rows were left on purpose (NATS was away, or there was no room): they are looked for soon,
// although young.
void sweep_now(Sweep *sweep);
void sweep_stop(Sweep *sweep); // begins nothing more
bool sweep_idle(const Sweep *sweep);
void sweep_free(Sweep *sweep, void (*on_freed)(void *ctx), void *ctx); // only when idle
