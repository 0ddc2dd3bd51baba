// SPDX-License-Identifier: Apache-2.0
// Maintenance: what is done now and then. It counts what waits (never for more than a twentieth of
// the time, however slow the table is), says so once when that crosses the mapping's alert, and
// deletes what retention allows: a few rows at a time with a pause between, so that vacuum keeps up
// and the application never waits for a long transaction.
#pragma once

#include "common/outbox/sql/relay_sql.h"

typedef struct Maintenance Maintenance;

typedef struct MaintenanceBacklog {
    int64_t rows;         // at most MAINTENANCE_COUNT_MAX are counted
    int64_t oldest_at_us; // 0: nothing waits, or the mapping knows no times
    int64_t claims;
    int64_t refused;
} MaintenanceBacklog;

enum { MAINTENANCE_COUNT_MAX = 100000 };

typedef struct MaintenanceOptions {
    DbPool *pool;
    const RelaySql *sql;
    int64_t keep_rows; // deleted at once
    int64_t keep_ms;   // between two looks for what is old
    int64_t count_ms;  // between two counts, at least
} MaintenanceOptions;

typedef struct MaintenanceHandlers {
    void (*counted)(void *ctx, const MaintenanceBacklog *backlog);
    void (*deleted)(void *ctx, size_t rows);
} MaintenanceHandlers;

Maintenance *maintenance_new(
    uv_loop_t *loop, const MaintenanceOptions *options, const MaintenanceHandlers *handlers,
    void *ctx);
void maintenance_start(Maintenance *maintenance); // once the statements are complete
void maintenance_stop(Maintenance *maintenance, void (*on_stopped)(void *ctx), void *ctx);
void maintenance_free(Maintenance *maintenance);
