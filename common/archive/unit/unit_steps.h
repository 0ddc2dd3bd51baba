// SPDX-License-Identifier: Apache-2.0
// A unit's steps but for writing, restoring and deleting: each is done as a whole or not at all,
// and done again it has the same effect. services/archiver/ARCHIVE.md has the table of states.
#pragma once

#include "common/archive/unit/units.h"

// open -> sealed: no flush of history is in the air, and the next one sends the unit's rows to the
// late tables.
bool unit_seal(Archive *archive, const Unit *unit, Error *err);
// sealed -> counted, in one snapshot.
bool unit_count(Archive *archive, const Unit *unit, Error *err);
// written -> verified: each object by a new connection; then its rows are those that were counted.
bool unit_verify(Archive *archive, const Unit *unit, Error *err);
// verified -> committed: the manifest is stored and read back.
bool unit_commit(Archive *archive, const Unit *unit, Error *err);
// committed -> removing: rows counted once more, then detached. TRANSIENT: readers were in the way
// at every try.
bool unit_remove(Archive *archive, const Unit *unit, Error *err);
// removing -> removed: every object is there, then the detached tables are dropped.
bool unit_drop(Archive *archive, const Unit *unit, Error *err);

// What is stored has all that was counted: tenants, rows, bounds, content. PERMANENT names the
// first difference.
bool unit_compare_stored(Archive *archive, const Unit *unit, Error *err);
// Stores the unit's next manifest and moves it in the same transaction. `from` = `to`: no move.
bool unit_store_manifest(
    Archive *archive, const Unit *unit, bool removed, UnitState from, UnitState to, Error *err);
// The bucket's manifest has these bytes. PERMANENT: gone, or others.
bool unit_read_manifest(Archive *archive, const char *key, Str body, Error *err);
// Calls a function of the catalogue that returns false when a lock was not to be had, until it
// returns true. TRANSIENT: never.
bool unit_try_often(Archive *archive, const Unit *unit, const char *sql, Error *err);
