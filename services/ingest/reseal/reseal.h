// SPDX-License-Identifier: Apache-2.0
// Reseal: events that another program published in clear straight into EVENTS are stored again,
// sealed (common/domain/event_seal.h), and their originals are erased, once the durable consumer of
// every reader is past them. The worker that reads EVENTS notes each before it acks it; what is
// noted is worked off by any replica, a claim of rows at a time.
//
// Law: an original is erased only when its copy is stored and every reader is past it. The copy is
// the same event: it carries the original's headers, id, place and time.
//
// Crash windows (tests/integration/faults/test_crash_points.py):
// - reseal.noted, before the ack: the event comes again and is noted as it was.
// - reseal.copied, before its mark: stored once more, under the same id; readers know it.
// - reseal.marked, before the original is erased: the claim ends, and any replica goes on.
// - reseal.erased, before its row is deleted: there is no such message any more, which is enough.
#pragma once

#include "common/bus/consume/worker.h"
#include "common/db/db.h"
#include "common/domain/event_seal.h"
#include "common/request/catalog.h"
#include "services/ingest/ingest_metrics.h"

typedef struct Reseal Reseal;

typedef struct ResealOptions {
    Bus *bus;
    DbPool *pool;
    EventKeys *keys; // NULL: nothing is noted, and nothing done
    const Catalog *catalog;
    IngestMetrics *metrics;
    int64_t every_ms;
} ResealOptions;

Reseal *reseal_new(const ResealOptions *options); // borrows all

// Before a batch is handled: each delivery in clear is held until it is noted.
void reseal_note(Reseal *reseal, Delivery **deliveries, size_t count);

void reseal_stop(Reseal *reseal); // begins nothing more
bool reseal_idle(const Reseal *reseal);
void reseal_free(Reseal *reseal, void (*on_freed)(void *ctx), void *ctx); // only when idle
