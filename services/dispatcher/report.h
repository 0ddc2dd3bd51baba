// SPDX-License-Identifier: Apache-2.0
// What the dispatcher publishes: the status of a notification, and the work of its next attempt.
// Made from the event and the ledger's row alone, so that a redelivery after a crash publishes the
// same with the same ids.
#pragma once

#include "services/dispatcher/job.h"
#include "stentor/v1/status.pb-c.h"

// Publishes job->row (sent, failed, deferred; a deferred mail carries its attempts so far) and
// fills *ret_verdict for delivery_settle(): NONE, or PERMANENT when a dead letter goes with it
// (retries used up, unreadable content, parked). false: the event cannot be made (err PERMANENT).
bool report(Job *job, Error *ret_verdict, Error *err);

// Emits "sent" for a row that a callback's status settled: the same event id as report() would
// give it, with what the callback and the row know of it.
bool report_settled(
    Delivery *delivery, const Stentor__V1__NotificationStatus *proof, const LedgerKey *key,
    const LedgerRow *row, Error *err);

// A row that failed because its address is suppressed or its tenant suspended: published as
// suppressed, which is no failure.
bool report_is_barred(const LedgerRow *row);
