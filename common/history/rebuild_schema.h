// SPDX-License-Identifier: Apache-2.0
// The schema that `stentor rebuild` fills: made empty next to the live one, filled
// by rebuild.h, swapped in with two renames in one transaction, or only compared. Blocking, like
// migrations: for the command line, as the role that runs them. The SQL is
// migrations/stentor/0003_rebuild.sql.
//
// Killed at any moment: before the swap's commit the live schema is untouched and the next rebuild
// drops the rebuilt one; after it the new one is live, complete, and `archiver_old` is dropped by
// the next rebuild. (tests/integration/operating/test_rebuild.py kills in both windows.)
#pragma once

#include "common/base/error.h"
#include "common/history/rebuild.h"
#include "common/history/rebuild_pg.h"

#define REBUILD_SCHEMA "archiver_rebuild"

typedef struct RebuildSchema RebuildSchema;

// In the order of history_streams.
typedef struct RebuildPositions {
    uint64_t sequence[HISTORY_STREAM_COUNT];
    int64_t stream_created_us[HISTORY_STREAM_COUNT]; // 0: nothing folded yet
    int64_t stored_at_us[HISTORY_STREAM_COUNT];      // when that message was stored; 0: not known
} RebuildPositions;

// Connects and takes the rebuild's lock, which a crash frees: ERROR_CONFLICT when another rebuild
// has it.
bool rebuild_schema_open(RebuildSchema **ret, const char *url, Error *err);
void rebuild_schema_close(RebuildSchema *schema); // what is not committed is rolled back; NULL-safe
bool rebuild_schema_positions(
    RebuildSchema *schema, RebuildPositions *ret, Error *err); // of the live schema
// Makes it, empty. on_difference is called for each thing that a swap would lose or change:
// ERROR_CONFIG then.
bool rebuild_schema_make(RebuildSchema *schema, RebuildLine on_difference, void *ctx, Error *err);
// In one snapshot of the live schema: copies the rows of notifications made before that time (0:
// none; ret_copied counts them) and those of sealed periods, remembers a digest of every row when
// `remember`, and reads the positions that belong to them.
bool rebuild_schema_copy(
    RebuildSchema *schema, int64_t before_us, bool remember, RebuildPositions *ret,
    int64_t *ret_copied, Error *err);
// Takes out what retention has removed from the live tables: segments hold its events longer. Once
// the log is folded, before it is compared or the live tables are held.
bool rebuild_schema_prune(RebuildSchema *schema, Error *err);
// Compares with what rebuild_schema_copy remembered, but for the notifications of `passed`
// (history_rebuild_passed): on_difference gets "<table> <key>: <how>", at most 100 times; ret_count
// counts all.
bool rebuild_schema_compare(
    RebuildSchema *schema, const char *passed, RebuildLine on_difference, void *ctx,
    int64_t *ret_count, Error *err);
// From here to rebuild_schema_thaw or rebuild_schema_swap no process writes the live tables: a
// flush in flight has ended, the next one waits before its first statement. Readers go on.
bool rebuild_schema_freeze(RebuildSchema *schema, RebuildPositions *ret, Error *err);
bool rebuild_schema_thaw(RebuildSchema *schema, Error *err);
// Frozen: the rebuilt schema becomes the live one, and the former one `archiver_old`.
bool rebuild_schema_swap(RebuildSchema *schema, Error *err);
bool rebuild_schema_drop(RebuildSchema *schema, Error *err); // the rebuilt one
bool rebuild_schema_drop_old(
    RebuildSchema *schema, Error *err); // `archiver_old`, where there is one
