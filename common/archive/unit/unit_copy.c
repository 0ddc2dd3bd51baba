// SPDX-License-Identifier: Apache-2.0
#include "common/archive/unit/unit_copy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/archive/database.h"
#include "common/base/clock.h"

static bool leaf_of(Archive *archive, const Unit *unit, int ordinal, char out[24], Error *err)
{
    char number[12];
    (void)snprintf(number, sizeof number, "%d", ordinal);
    const char *params[] = {unit->id, number};
    AUTO(PGresult)
    rows = archive_ask(
        archive->pg, "unit.leaf",
        "SELECT p.leaf FROM archive.units u, archive.partitions(u.kind) p WHERE u.id = $1 AND "
        "p.class = u.class AND p.starts_at = u.starts_at AND p.ends_at = u.ends_at AND p.ordinal = "
        "$2::int2",
        params, 2, err);
    if (rows == NULL) {
        return false;
    }
    if (PQntuples(rows) != 1) {
        return error_set(
            err, ERROR_PERMANENT, "unit '%s' has no table %d attached", unit->id, ordinal);
    }
    (void)snprintf(out, 24, "%s", archive_text(rows, 0, 0));
    return true;
}

// By the parent, whose row-level security applies, and of this table alone.
bool unit_copy_sql(Archive *archive, const Unit *unit, const UnitCopy *copy, Buf *sql, Error *err)
{
    char leaf[24];
    char from[CLOCK_RFC3339_SIZE];
    char until[CLOCK_RFC3339_SIZE];
    const UnitTable *table = copy->table;
    if (!leaf_of(archive, unit, table->ordinal, leaf, err)) {
        return false;
    }
    clock_format(unit->starts_us, from);
    clock_format(unit->ends_us, until);
    buf_printf(
        sql,
        "COPY (SELECT %s FROM %s WHERE tableoid = %s AND %s >= '%s'::timestamptz AND %s < "
        "'%s'::timestamptz AND tenant_id = '%s'",
        copy->columns->list, table->parent, leaf, table->time_column, from, table->time_column,
        until, copy->tenant);
    if (copy->columns->by_class) {
        buf_printf(sql, " AND retention_class = '%c'", retention_class_code(unit->class));
    }
    buf_printf(
        sql, " ORDER BY %s OFFSET %" PRIu64 ") TO STDOUT (FORMAT binary)", table->order,
        copy->offset);
    return !sql->full ||
           error_set(err, ERROR_PERMANENT, "the statement for '%s' is too long", table->parent);
}
