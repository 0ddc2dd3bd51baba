// SPDX-License-Identifier: Apache-2.0
// The statement that copies a tenant's rows of one of a unit's tables, in the order of their key.
#pragma once

#include "common/archive/columns.h"

typedef struct UnitCopy {
    const UnitTable *table;
    const UnitColumns *columns;
    const char *tenant; // id_is_tenant
    uint64_t offset;    // rows of parts that are there
} UnitCopy;

// Appends it to `sql`. PERMANENT: the unit has no such table attached.
bool unit_copy_sql(Archive *archive, const Unit *unit, const UnitCopy *copy, Buf *sql, Error *err);
