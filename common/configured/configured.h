// SPDX-License-Identifier: Apache-2.0
// What is configured, in the memory of a process that answers callers (ingest, gateway): API keys,
// tenants and templates, suppressions, triggers, resolvers, kept live by a copy of CONFIG. Which
// kind of entry goes where is the table in configured.c.
#pragma once

#include "common/api/auth.h"
#include "common/bus/jetstream/bus.h"
#include "common/model/suppressions.h"
#include "common/request/catalog.h"
#include "common/routing/routes.h"
#include "common/service/metrics.h"
#include "common/trigger/named_resolvers.h"
#include "common/trigger/trigger_match.h"

typedef struct Configured {
    Auth *auth;
    Catalog *catalog;
    Suppressions *suppressions;
    TriggerMatch *triggers;
    NamedResolvers *resolvers;
    Routes *routes; // credentials alone: which channels have a vendor
    struct ConfigMirror *mirror;
    // The entry is in use now, all or but for a part. May stay NULL.
    void (*on_taken)(void *ctx, Str kind, Str tenant, Str key, const BusMessage *message);
    void *ctx;
} Configured;

// Begins to read. service: "ingest", for the names of the two gauges.
void configured_init(Configured *configured, Bus *bus, Metrics *metrics, const char *service);
// Why no request is answered yet; NULL: everything there at the start has been read.
const char *configured_unready(const Configured *configured);
// Nothing changes any more; on_stopped comes from the loop.
void configured_stop(Configured *configured, void (*on_stopped)(void *ctx), void *ctx);
void configured_done(Configured *configured); // after it has stopped, or the loop has ended
