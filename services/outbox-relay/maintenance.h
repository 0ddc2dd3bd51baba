// SPDX-License-Identifier: Apache-2.0
// Maintenance: periodic work. It counts the pending rows (for at most a twentieth of the time,
// however slow the table is), logs once when the count crosses the mapping's alert, and deletes
// rows as the mapping's `keep` allows: a few at a time with a pause between, so that vacuum keeps
// up and the application never waits for a long transaction.
#pragma once

#include "common/outbox/sql/relay_sql.h"

typedef struct Maintenance Maintenance;

typedef struct MaintenanceBacklog {
    int64_t rows;         // at most MAINTENANCE_COUNT_MAX are counted
    int64_t oldest_at_us; // 0: no row is pending, or the mapping has no time column
    int64_t claims;
    int64_t refused;
} MaintenanceBacklog;

enum { MAINTENANCE_COUNT_MAX = 100000 };

typedef struct MaintenanceOptions {
    DbPool *pool;
    const RelaySql *sql;
    int64_t keep_rows; // deleted at once
    int64_t keep_ms;   // between two searches for old rows
    int64_t count_ms;  // between two counts, at least
} MaintenanceOptions;

// Of a mapping of requests, seldom.
typedef struct MaintenanceTally {
    int64_t failed;                         // rows, counted up to MAINTENANCE_COUNT_MAX
    int64_t retried[RELAY_RETRIES_MAX + 1]; // requests by failed attempts; [0] is not used
} MaintenanceTally;

typedef struct MaintenanceHandlers {
    void (*counted)(void *ctx, const MaintenanceBacklog *backlog);
    void (*tallied)(void *ctx, const MaintenanceTally *tally);
    void (*deleted)(void *ctx, size_t rows);
} MaintenanceHandlers;

Maintenance *maintenance_new(
    uv_loop_t *loop, const MaintenanceOptions *options, const MaintenanceHandlers *handlers,
    void *ctx);
void maintenance_start(Maintenance *maintenance); // once the statements are complete
void maintenance_stop(Maintenance *maintenance, void (*on_stopped)(void *ctx), void *ctx);
void maintenance_free(Maintenance *maintenance);
