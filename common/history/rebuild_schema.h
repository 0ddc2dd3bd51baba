// SPDX-License-Identifier: Apache-2.0
// The shadow of the history schema, for `stentor rebuild`: made empty beside the live one, filled
// by rebuild.h, swapped in with two renames in one transaction, or only compared. Blocking, like
// migrations: for the command line, as the role that runs them. The SQL is
// migrations/archiver/0002_rebuild.sql.
//
// Killed at any moment: before the swap's commit the live schema is untouched and the next rebuild
// drops the shadow; after it the new one is live, complete, and `archiver_old` is dropped by the
// next rebuild. (tests/integration/operating/test_rebuild.py kills in both windows.)
#pragma once

#include "common/base/error.h"
#include "common/history/rebuild.h"

#define SHADOW_SCHEMA "archiver_rebuild"

typedef struct Shadow Shadow;

// In the order of history_streams.
typedef struct ShadowPositions {
    uint64_t sequence[HISTORY_STREAM_COUNT];
    int64_t stream_created_us[HISTORY_STREAM_COUNT]; // 0: nothing folded yet
    int64_t stored_at_us[HISTORY_STREAM_COUNT];      // when that message was stored; 0: not known
} ShadowPositions;

typedef void (*ShadowLine)(void *ctx, const char *line);

// Connects and takes the rebuild's lock, which a crash frees: ERROR_CONFLICT when another rebuild
// has it.
bool shadow_open(Shadow **ret, const char *url, Error *err);
void shadow_close(Shadow *shadow); // what is not committed is rolled back; NULL-safe
bool shadow_positions(Shadow *shadow, ShadowPositions *ret, Error *err); // of the live schema
// Makes it, empty. on_difference is called for each thing that a swap would lose or change:
// ERROR_CONFIG then.
bool shadow_make(Shadow *shadow, ShadowLine on_difference, void *ctx, Error *err);
// In one snapshot of the live schema: copies the rows of notifications made before that time (0:
// none), remembers a digest of every row when `remember`, and reads the positions that belong to
// them.
bool shadow_copy(
    Shadow *shadow, int64_t before_us, bool remember, ShadowPositions *ret, int64_t *ret_copied,
    Error *err);
// Compares with what shadow_copy remembered: on_difference gets "<table> <key>: <how>", at most 100
// times; ret_count counts all.
bool shadow_compare(
    Shadow *shadow, ShadowLine on_difference, void *ctx, int64_t *ret_count, Error *err);
// From here to shadow_thaw or shadow_swap nobody writes the live tables: a flush in the air has
// ended, the next one waits before its first statement. Readers go on.
bool shadow_freeze(Shadow *shadow, ShadowPositions *ret, Error *err);
bool shadow_thaw(Shadow *shadow, Error *err);
// Frozen: the shadow becomes the live schema, and the former one `archiver_old`.
bool shadow_swap(Shadow *shadow, Error *err);
bool shadow_drop(Shadow *shadow, Error *err);     // the shadow
bool shadow_drop_old(Shadow *shadow, Error *err); // `archiver_old`, where there is one
