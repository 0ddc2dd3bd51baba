// SPDX-License-Identifier: Apache-2.0
// Intake: the way of applications' events into EVENTS. What an application's account publishes on
// evt.<tenant>.<type> arrives on in.evt.<tenant>.<type>, at one of all replicas; it is stored under
// an id of tenant, type and the publisher's id (intake_event.h), sealed
// (common/domain/event_seal.h), and then answered as JetStream would. So does an outbox relay's.
// Law: a positive answer means that EVENTS has the event. What was not answered is published again
// by the application, and with an id of its own it is the same event.
#pragma once

#include "common/domain/event_seal.h"
#include "common/request/catalog.h"
#include "services/ingest/ingest_metrics.h"

typedef struct EventIntake EventIntake;

typedef struct EventIntakeOptions {
    Bus *bus;
    IngestMetrics *metrics;
    const Catalog *catalog; // which tenants' events stay in clear
    EventKeys *keys;        // NULL: all do
} EventIntakeOptions;

EventIntake *event_intake_new(const EventIntakeOptions *options); // takes at once; borrows all
// Nothing new is taken; on_stopped when all that was taken is answered.
void event_intake_stop(EventIntake *intake, void (*on_stopped)(void *ctx), void *ctx);
void event_intake_free(EventIntake *intake);
