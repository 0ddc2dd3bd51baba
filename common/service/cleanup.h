// SPDX-License-Identifier: Apache-2.0
// Cleanup: drops what is past its retention, in small batches: all tenants' once a day, and at once
// what an event asks for (CleanUpSentEmail on evt.<tenant>.CleanUpSentEmail: that tenant's; of
// tenant platform: all). What may go is decided by definer functions of Postgres alone
// (migrations/*/
// *_retention.sql), one for each rule.
//
// Any number of replicas: each reads every event, and the function lets one of them work at a
// time; the others find nothing left. The event is read in order, without acks and without a stored
// position: dropping is harmless to repeat, and the pass soon after the start makes up for events
// of before. So nothing is lost when a process is killed at any moment, and nothing has to be
// remembered.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/db/db.h"
#include "common/service/metrics.h"

typedef struct Cleanup Cleanup;

#define CLEANUP_EVENT_TYPE "CleanUpSentEmail"

enum { CLEANUP_RULES_MAX = 16, CLEANUP_EVERY_S = 24 * 3600 };

// A statement takes $1 the tenant (null: all), $2 `keep`, $3 the cursor ("" at first), $4 how many
// rows to look at, and answers with one row: how many were dropped (-1: another process is at it),
// the next cursor (null: that was all), and of some a third column: how many notifications of what
// was dropped have no known end, which is worth a warning.
typedef struct CleanupRule {
    const char *what; // "accept_log": label of the metric and in the log; several may share it
    const DbStatement *statement;
    const char *keep; // "35 days", or what else the function takes
    int32_t at_most;
} CleanupRule;

typedef struct CleanupOptions {
    Bus *bus;
    DbPool *pool;
    Metrics *metrics;
    const CleanupRule *rules; // copied; their strings are borrowed
    size_t rule_count;
    int64_t every_s;
} CleanupOptions;

// Never fails: a function that cannot be called is an error in the log, once a pass.
Cleanup *cleanup_new(const CleanupOptions *options);
// Ends after the batch in flight.
void cleanup_stop(Cleanup *cleanup, void (*on_stopped)(void *ctx), void *ctx);
void cleanup_free(Cleanup *cleanup); // after on_stopped, when no metrics are printed any more

// CleanUpSentEmail as its publisher wrote it: who asked for it (empty: not given). ERROR_PERMANENT
// names what does not fit. Lives in `arena`.
bool cleanup_event_read(
    const BusMessage *message, Arena *arena, Str *ret_tenant, Str *ret_requested_by, Error *err);
