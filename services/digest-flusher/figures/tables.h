// SPDX-License-Identifier: Apache-2.0
// Tables: what the database occupies, table by table, and who waits for a lock in it. Read from
// Postgres's catalogue, so it touches no row and needs no right on a table. Law: a gauge keeps its
// last value while Postgres does not answer.
#pragma once

#include <uv.h>

#include "common/db/db.h"
#include "common/service/metrics.h"

typedef struct Tables Tables;

// The first pass after a second, then one every minute: tables grow slowly.
Tables *tables_new(uv_loop_t *loop, DbPool *pool, Metrics *metrics);
void tables_stop(Tables *tables, void (*on_stopped)(void *ctx), void *ctx);
void tables_free(Tables *tables); // after on_stopped
