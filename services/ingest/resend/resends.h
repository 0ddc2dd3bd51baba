// SPDX-License-Identifier: Apache-2.0
// Resends: ResendErrorEmail events. A failed mail goes out again, past its retries, as
// `stentor dlq resend` sends its dead letter (common/deadletter). The worker that reads EVENTS
// hands the events over (commands.h).
//
// A round takes all events that wait: what is known of each (one statement), one read of DEAD for
// all whose letter is not known, then up to 32 letters at a time: fetched, noted in ingest.resends
// (one statement), published, deleted, marked (one statement), acked.
//
// Law: which letter an event is about is decided once, and committed before anything of it is
// published. So the same event never takes a second letter: a mail that fails again is sent again
// by a new event only. Nothing of another tenant is ever touched.
//
// What cannot be sent again (no letter, sent since, a suppressed address, an unknown outcome
// without may_double, expired
// ...) is a dead letter of the event itself, with the reason: `stentor dlq list` shows it, and
// sending that letter again repeats the request.
//
// Crash windows (tests/integration/faults/test_crash_points.py, test_resend_events.py), in each of
// which the event comes again:
// - resend.noted, before the publish: the note names the letter, it is published.
// - resend.published, before the letter is deleted: published again under the same id and as the
//   same attempt; JetStream drops that, or the dispatcher's ledger refuses it.
// - resend.deleted, before the mark: the noted letter is gone, so it was done; the mark is made.
#pragma once

#include "common/bus/consume/worker.h"
#include "common/db/db.h"
#include "common/domain/event_seal.h"
#include "common/model/suppressions.h"
#include "services/ingest/ingest_metrics.h"

typedef struct Resends Resends;

typedef struct ResendsOptions {
    Bus *bus;
    DbPool *pool;
    const Suppressions *suppressions;
    IngestMetrics *metrics;
    EventKeys *keys; // of dead letters
} ResendsOptions;

// Borrows all. Free it when every delivery that it took is settled.
Resends *resends_new(const ResendsOptions *options);
void resends_free(Resends *resends);

// Takes over one ResendErrorEmail and settles it, now or later. Tenant and type are its subject's.
void resends_take(Resends *resends, Delivery *delivery, Str tenant, Str type);
void resends_go(Resends *resends); // after those of a batch
// Gives back what waits and begins nothing more; what is on its way ends and is settled.
void resends_stop(Resends *resends);
