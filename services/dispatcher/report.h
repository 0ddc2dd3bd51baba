// SPDX-License-Identifier: Apache-2.0
// What the dispatcher publishes: the status of a notification, and the work of its next attempt.
// Made from the event and the ledger's row alone, so that a redelivery after a crash publishes the
// same with the same ids.
#pragma once

#include "services/dispatcher/job.h"

// Emits what job->row says (sent, failed, deferred) and fills *ret_verdict for delivery_settle():
// NONE, or PERMANENT when a dead letter goes with it (retries used up, unreadable content, parked).
// false: the event cannot be made (err PERMANENT).
bool report(Job *job, Error *ret_verdict, Error *err);

// "sent", "rejected", "retries_exhausted" ...: for metrics and events.
const char *report_reason_code(const LedgerRow *row);
