// SPDX-License-Identifier: Apache-2.0
// Keeper: what is done now and then. It counts what waits (never for more than a twentieth of the
// time, however slow the table is), says so once when that crosses the mapping's alert, and deletes
// what retention allows: a few rows at a time with a pause between, so that vacuum keeps up and the
// application never waits for a long transaction.
#pragma once

#include "common/outbox/sql/relay_sql.h"

typedef struct Keeper Keeper;

typedef struct KeeperBacklog {
    int64_t rows;         // at most KEEPER_COUNT_MAX are counted
    int64_t oldest_at_us; // 0: nothing waits, or the mapping knows no times
    int64_t claims;
    int64_t refused;
} KeeperBacklog;

enum { KEEPER_COUNT_MAX = 100000 };

typedef struct KeeperOptions {
    DbPool *pool;
    const RelaySql *sql;
    int64_t keep_rows; // deleted at once
    int64_t keep_ms;   // between two looks for what is old
    int64_t count_ms;  // between two counts, at least
} KeeperOptions;

typedef struct KeeperHandlers {
    void (*counted)(void *ctx, const KeeperBacklog *backlog);
    void (*deleted)(void *ctx, size_t rows);
} KeeperHandlers;

Keeper *keeper_new(
    uv_loop_t *loop, const KeeperOptions *options, const KeeperHandlers *handlers, void *ctx);
void keeper_start(Keeper *keeper); // once the statements are complete
void keeper_stop(Keeper *keeper, void (*on_stopped)(void *ctx), void *ctx);
void keeper_free(Keeper *keeper);
