// SPDX-License-Identifier: Apache-2.0
// Canary: a notification every few seconds that goes the whole way, of tenant `platform` to its
// in-app inbox `canary`: accepted, committed, rendered, dispatched, written into the history. Each
// replica hands it in, under one idempotency key for each span of time, so that the first one's
// commit is the lock and there is one canary. It needs the template `canary`
// (deploy/local/platform); without it nothing is sent, and one line of the log says so.
#pragma once

#include "common/service/metrics.h"
#include "services/ingest/accept/accept.h"

#define CANARY_TENANT "platform"
#define CANARY_TEMPLATE "canary"

typedef struct Canary Canary;

// Borrows all. period_s 0: none is sent, and the metrics say so.
Canary *canary_new(Accept *accept, const Catalog *catalog, Metrics *metrics, int64_t period_s);
// When CONFIG is read and the service does not stop; hands one in when it is due.
void canary_tick(Canary *canary, int64_t now_us);
void canary_free(Canary *canary); // when accept is idle
