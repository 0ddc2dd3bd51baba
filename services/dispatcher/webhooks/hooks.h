// SPDX-License-Identifier: Apache-2.0
// Tenants' webhooks: statuses in, signed posts to tenants' endpoints out (WEBHOOKS.md). Two
// workers: the match turns each status into one event on HOOK for each subscription that wants it;
// the delivery claims, posts and records. It has no vendor's credential and no data key.
//
// Law: one endpoint never delays another. Each has its own queue, its own limit of posts on the way
// and its own pace; what does not fit goes to DEFERRED for a moment, which uses no attempt.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/codec/seal.h"
#include "common/db/db.h"
#include "common/http/client/http_client.h"
#include "common/model/rules/ladder.h"
#include "common/service/metrics.h"

typedef struct Hooks Hooks;

typedef struct HooksParts {
    uv_loop_t *loop;
    Bus *bus;
    DbPool *pool;
    const char *database_url; // for the lock of the one that matches
    MasterKey *master;
    Metrics *metrics;
    const char *instance;
    const char *service;     // "stentor-webhook"
    HttpGuard guard;         // a tenant's
    const char *ca_file;     // NULL: the system's certificates
    const char *dns_servers; // NULL: the system's
    Ladder ladder;
    int64_t calls, call_ms, lease_ms, queue_ms;
    int64_t gone_s; // in order: what does not come for so long is gone from the streams
    size_t in_flight_max;
} HooksParts;

// All parts are borrowed. NULL: the HTTP client could not be made.
Hooks *hooks_new(const HooksParts *parts, Error *err);
bool hooks_ready(const Hooks *hooks, Buf *reason);
// Posts on the way end, what waits is given back, then on_stopped; then hooks_free().
void hooks_stop(Hooks *hooks, void (*on_stopped)(void *ctx), void *ctx);
void hooks_free(Hooks *hooks); // NULL-safe
