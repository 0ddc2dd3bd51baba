// SPDX-License-Identifier: Apache-2.0
#include "common/archive/archive_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/archive/database.h"
#include "common/archive/objects.h"
#include "common/archive/unit/unit_steps.h"

// A fault of the archive is a line; what keeps from looking ends the work.
static bool note(Buf *faults, Error *err)
{
    if (err->kind != ERROR_PERMANENT) {
        return false;
    }
    buf_printf(faults, "%s\n", err->text); // full: the count of lines is enough then
    error_clear(err);
    return true;
}

static bool verify_objects(
    Archive *archive, const Unit *unit, Arena *arena, Buf *faults, int64_t *count_of, Error *err)
{
    UnitTable tables[UNIT_TABLES_MAX];
    size_t table_count = 0;
    ObjectRow *rows = NULL;
    size_t count = 0;
    if (!units_tables(archive, unit->kind, arena, tables, &table_count, err) ||
        !objects_load(archive, unit->id, "verified", arena, &rows, &count, err)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const UnitTable *table = units_table(tables, table_count, rows[i].ordinal);
        bool ok = objects_verify(archive, &rows[i], table, err) &&
                  objects_set_verified(archive, rows[i].key, err);
        if (!ok && !note(faults, err)) {
            return false;
        }
        *count_of += 1;
    }
    bool stored = unit->facts.state >= UNIT_VERIFIED && unit->facts.state <= UNIT_RESTORED;
    return !stored || unit_compare_stored(archive, unit, err) || note(faults, err);
}

static bool verify_manifests(Archive *archive, const char *unit, Buf *faults, Error *err)
{
    const char *params[] = {unit};
    AUTO(PGresult)
    rows = archive_ask(
        archive->pg, "manifests.load",
        "SELECT key, body FROM archive.manifests WHERE stored_at IS NOT NULL AND ($1::text IS NULL "
        "OR unit = $1) ORDER BY number",
        params, 1, err);
    for (int i = 0; rows != NULL && i < PQntuples(rows); i++) {
        Str body = str_from(archive_text(rows, i, 1));
        if (!unit_read_manifest(archive, archive_text(rows, i, 0), body, err) &&
            !note(faults, err)) {
            return false;
        }
    }
    return rows != NULL;
}

static bool verify_chains(Archive *archive, Buf *faults, Error *err)
{
    AUTO(PGresult)
    rows = archive_ask(
        archive->pg, "chains", "SELECT archive.manifest_fault(), archive.journal_fault()", NULL, 0,
        err);
    if (rows == NULL) {
        return false;
    }
    static const char *const names[] = {"manifests", "journal"};
    for (int i = 0; i < 2; i++) {
        if (!PQgetisnull(rows, 0, i)) {
            buf_printf(
                faults, "archive.%s: row %s does not follow from the one before\n", names[i],
                archive_text(rows, 0, i));
        }
    }
    return true;
}

bool archive_verify(
    Archive *archive, const char *unit, Buf *faults, int64_t *ret_objects, Error *err)
{
    Unit *units = NULL;
    size_t count = 0;
    Arena *arena = arena_new(0);
    *ret_objects = 0;
    bool ok = archive_reopen_storage(archive, err) &&
              units_load(archive, unit, arena, &units, &count, err);
    if (ok && unit != NULL && count == 0) {
        ok = error_set(
            err, ERROR_CONFIG, "there is no unit '%s' (HINT: stentor archive list)", unit);
    }
    for (size_t i = 0; i < count && ok; i++) {
        archive_step(archive, "verifying", units[i].id);
        ok = verify_objects(archive, &units[i], arena, faults, ret_objects, err);
    }
    arena_free(arena);
    return ok && verify_manifests(archive, unit, faults, err) &&
           verify_chains(archive, faults, err);
}
