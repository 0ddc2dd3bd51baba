// SPDX-License-Identifier: Apache-2.0
// Pending: how many messages wait for each service, and how many mails that were accepted are
// neither sent nor over, with the age of the oldest. It is asked here because this service runs
// when the others do not. Nothing on the way of a mail counts anything: JetStream and one index
// know it. Law: a gauge keeps its last value while a server does not answer; every replica shows
// the same, so a rule takes the maximum.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/db/db.h"
#include "common/service/metrics.h"

typedef struct Pending Pending;

// A pass every `period_ms`, the first after a second.
Pending *pending_new(Bus *bus, DbPool *pool, Metrics *metrics, int64_t period_ms);
void pending_stop(Pending *pending, void (*on_stopped)(void *ctx), void *ctx);
void pending_free(Pending *pending); // after on_stopped
