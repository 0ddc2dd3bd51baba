// SPDX-License-Identifier: Apache-2.0
// Intake: the way of applications' events into EVENTS. What an application's account publishes on
// evt.<tenant>.<type> arrives on in.evt.<tenant>.<type>, at one of all replicas; it is stored under
// an id of tenant, type and the publisher's id (intake_event.h), and then answered as JetStream
// would. Law: a positive answer means that EVENTS has the event. What was not answered is published
// again by the application, and with an id of its own it is the same event.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "services/ingest/ingest_metrics.h"

typedef struct EventIntake EventIntake;

EventIntake *event_intake_new(Bus *bus, IngestMetrics *metrics); // takes at once; borrows both
// Nothing new is taken; on_stopped when all that was taken is answered.
void event_intake_stop(EventIntake *intake, void (*on_stopped)(void *ctx), void *ctx);
void event_intake_free(EventIntake *intake);
