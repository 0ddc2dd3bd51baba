// SPDX-License-Identifier: Apache-2.0
// Rows of a projection by recipient, rebuilt in a copy of their tables and compared with the live
// ones; those of recipients that differ are replaced. Blocking, as the schema's owner. For tables
// whose schema holds others too, or is large beside what differs: nothing is renamed, and the live
// tables are locked against writing for as long as the replacing takes.
//
// Killed at any moment: before the commit the live tables are untouched, and the next rebuild drops
// the copy. (tests/integration/archive/test_rebuild_people.py)
#pragma once

#include "common/base/error.h"
#include "common/history/rebuild_schema.h"

// Every table has the columns tenant_id and `person`, and no generated one.
typedef struct RowsTarget {
    const char *schema, *copy;
    const char *const *names; // of the tables; NULL at the end
    const char *projection;   // as its position is called
    const char *stream;       // which it is made of
    const char *person;       // column of whose row it is: "recipient_id"
} RowsTarget;

typedef struct RebuildRows RebuildRows;

// ERROR_CONFLICT: another rebuild of it is running.
bool rebuild_rows_open(RebuildRows **ret, const char *url, const RowsTarget *target, Error *err);
void rebuild_rows_close(RebuildRows *rows); // NULL-safe
// Of the live projection; in the first place of `ret`.
bool rebuild_rows_positions(RebuildRows *rows, RebuildPositions *ret, Error *err);
bool rebuild_rows_make(RebuildRows *rows, Error *err); // the copy, empty
// In one snapshot: the live rows are copied (`carry`) and digested, and the position that belongs
// to them is read.
bool rebuild_rows_remember(
    RebuildRows *rows, bool carry, RebuildPositions *ret, int64_t *ret_carried, Error *err);
// on_difference gets "<table> <recipient> <tenant>: <how>", at most 100 times; *ret_count: all.
bool rebuild_rows_compare(
    RebuildRows *rows, RebuildLine on_difference, void *ctx, int64_t *ret_count, Error *err);
// The copy goes on from the remembered position.
bool rebuild_rows_rewind(RebuildRows *rows, const RebuildPositions *at, Error *err);
bool rebuild_rows_freeze(RebuildRows *rows, RebuildPositions *ret, Error *err);
bool rebuild_rows_thaw(RebuildRows *rows, Error *err);
// Frozen: replaces the rows of every recipient that differed. `moves`: the copy's position, too.
bool rebuild_rows_replace(RebuildRows *rows, bool moves, Error *err);
bool rebuild_rows_drop(RebuildRows *rows, Error *err); // the copy
