// SPDX-License-Identifier: Apache-2.0
// The projection of tenants' own events, evt.platform.TenantCreated and its like, into CONFIG: a
// worker of EVENTS, one event at a time.
//
// Crash window (tests/integration/faults/test_crash_points.py): killed between the stored entry and
// the ack, the event comes again and finds the settings as it makes them. Another writer in
// between: the entry is read again and the event merged into that.
#pragma once

#include "common/bus/consume/worker.h"
#include "common/codec/master_key.h"
#include "common/service/metrics.h"
#include "services/gateway/tenants/tenant_event.h"

typedef struct TenantEvents TenantEvents;

// Copies members, whose slices stay the caller's; borrows the master key, which opens sealed events
// and seals dead letters. It reads at once.
TenantEvents *tenant_events_new(
    Bus *bus, MasterKey *master, const TenantMembers *members, Metrics *metrics);
// No new ones; on_stopped when all in hand are settled and the worker is gone.
void tenant_events_stop(TenantEvents *events, void (*on_stopped)(void *ctx), void *ctx);
void tenant_events_free(TenantEvents *events); // after that
