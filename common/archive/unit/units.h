// SPDX-License-Identifier: Apache-2.0
// The catalogue's rows of units: which there are, what they hold, and their moves.
#pragma once

#include "common/archive/archive.h"
#include "common/archive/unit/unit_state.h"
#include "common/base/arena.h"

enum { UNIT_TABLES_MAX = 4 };

typedef struct Unit { // texts are the arena's
    const char *id;   // notifications/record/2026-10
    const char *kind;
    RetentionClass class;
    char period[UNIT_PERIOD_SIZE];
    int64_t starts_us, ends_us;
    int generation;
    UnitFacts facts;
} Unit;

typedef struct UnitTable { // one of a unit's tables; ordinal is its index in archive.kinds
    int ordinal;
    const char *parent; // archiver.notifications
    const char *stem;   // notifications: the folder of its objects
    const char *late;   // archiver.late_notifications
    const char *time_column;
    const char *id_column;
    const char *order; // columns in the order of the export: time, id, then the rest of the key
} UnitTable;

// A row for each period that is over and has tables attached. Returns how many are new in *ret_new.
bool units_discover(Archive *archive, int64_t now_us, int64_t *ret_new, Error *err);
// By age, oldest first; `only` NULL: all that are not finished.
bool units_load(
    Archive *archive, const char *only, Arena *arena, Unit **ret, size_t *ret_count, Error *err);
// One; CONFIG when there is none of that name.
bool units_find(Archive *archive, const char *id, Arena *arena, Unit *ret, Error *err);
bool units_tables(
    Archive *archive, const char *kind, Arena *arena, UnitTable *ret, size_t *ret_count,
    Error *err);
const UnitTable *units_table(const UnitTable *tables, size_t count, int ordinal); // NULL: none

// The one place that moves a unit without a function of the catalogue's owner: false with CONFLICT
// when it is not in `from` or belongs to another epoch. In the caller's transaction, or its own.
bool units_move(Archive *archive, const Unit *unit, UnitState from, UnitState to, Error *err);
// What the last step's failure was; NULL: it went well.
bool units_note(Archive *archive, const char *id, const Error *failure, Error *err);
