// SPDX-License-Identifier: Apache-2.0
// Triggers: the domain events of a batch become notifications, through the same group commit as
// every other request. The worker that reads EVENTS hands them over (commands.h).
//
// Law: an event is acked when every notification that follows from it is committed, every
// cancellation and every dead letter of it is stored. One trigger that fails does not hold up the
// others: it has a dead letter of its own, which sent again does that trigger's work alone.
//
// Crash windows (tests/integration/sending/test_triggers.py: kill -9 in the middle of some thousand
// events):
// - Killed after some of its notifications are committed, before its ack: the event comes again,
//   each of them meets its idempotency key, the others are made.
// - Killed after a cancellation or a dead letter is stored, before the ack: published again under
//   the same id. digest-flusher takes a cancellation twice as once; JetStream drops the letter,
//   within its window.
// - An ack that is withheld, beyond JetStream's window: as the first; its dead letter may be stored
// twice.
#pragma once

#include "common/bus/consume/worker.h"
#include "common/db/db.h"
#include "common/domain/event_seal.h"
#include "common/request/catalog.h"
#include "common/trigger/named_resolvers.h"
#include "common/trigger/trigger_match.h"
#include "services/ingest/accept/accept.h"

typedef struct Triggers Triggers;

typedef struct TriggersOptions {
    DbPool *pool;
    Accept *accept;
    const Catalog *catalog;
    const TriggerMatch *map;
    const NamedResolvers *resolvers;
    IngestMetrics *metrics;
    const char *stage; // of dead letters
    EventKeys *keys;   // that events are opened with
} TriggersOptions;

// Borrows all. Free it when every delivery that it took is settled.
Triggers *triggers_new(const TriggersOptions *options);
void triggers_free(Triggers *triggers);

typedef struct EventDelivery {
    Delivery *delivery;
    Str tenant, type; // of its subject
} EventDelivery;

// Takes over the deliveries of one batch (which share an arena) and settles each, now or later.
void triggers_take(Triggers *triggers, const EventDelivery *events, size_t count, int64_t now_us);
