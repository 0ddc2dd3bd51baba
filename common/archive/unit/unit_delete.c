// SPDX-License-Identifier: Apache-2.0
// Killed after an object was deleted: its row still names it, and it is deleted again, which is
// done. tests/integration/archive/test_units_crash.py
#include "common/archive/unit/unit_delete.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/archive/database.h"
#include "common/archive/objects.h"
#include "common/archive/owner.h"
#include "common/archive/unit/unit_steps.h"
#include "common/base/clock.h"
#include "common/base/crash.h"

// ---- expired ----

// The hold's check is the move's own, in the database (archive.on_unit_moved); here before the
// manifest says that the unit is gone.
static bool check_holds(Archive *archive, const Unit *unit, Error *err)
{
    const char *params[] = {unit->id};
    AUTO(PGresult)
    rows = archive_ask(archive->pg, "unit.held", "SELECT archive.held($1)", params, 1, err);
    if (rows == NULL) {
        return false;
    }
    const char *hold = archive_text(rows, 0, 0);
    return hold[0] == '\0' ||
           error_set(err, ERROR_PERMANENT, "unit '%s' is kept by %s", unit->id, hold);
}

bool unit_expire(Archive *archive, const Unit *unit, Error *err)
{
    bool ok = check_holds(archive, unit, err) && owner_may_delete(archive, clock_now_us(), err) &&
              unit_store_manifest(archive, unit, true, UNIT_REMOVED, UNIT_EXPIRED, err);
    if (ok) {
        CRASH_POINT("archiver.unit_expired");
    }
    return ok;
}

static bool delete_object(Archive *archive, const ObjectRow *row, Error *err)
{
    if (!objects_delete(archive, row->key, row->version, err)) {
        return false;
    }
    CRASH_POINT("archiver.object_deleted");
    const char *params[] = {row->key, archive->epoch_text};
    if (!archive_change(
            archive->pg, "object.deleted",
            "WITH gone AS (UPDATE archive.objects SET state = 'deleted', deleted_at = now() WHERE "
            "key = $1 AND state <> 'deleted' AND EXISTS (SELECT FROM archive.installation WHERE "
            "owner_epoch = $2::int8) RETURNING *) SELECT archive.record('object deleted', unit, "
            "jsonb_build_object('key', key, 'version', version, 'rows', rows)) FROM gone",
            params, 2, err)) {
        return false;
    }
    CRASH_POINT("archiver.deletion_recorded");
    archive_more(archive, 0, row->bytes);
    return true;
}

static bool delete_late(Archive *archive, const Unit *unit, Error *err)
{
    const char *params[] = {unit->id, archive->epoch_text};
    for (;;) {
        AUTO(PGresult)
        rows = archive_ask(
            archive->pg, "unit.late", "SELECT archive.drop_late($1, $2, 10000)", params, 2, err);
        if (rows == NULL || archive_number(rows, 0, 0) == 0) {
            return rows != NULL;
        }
    }
}

bool unit_delete(Archive *archive, const Unit *unit, Error *err)
{
    ObjectRow *rows = NULL;
    size_t count = 0;
    bool all = unit->facts.state == UNIT_EXPIRED;
    Arena *arena = arena_new(0);
    bool ok = check_holds(archive, unit, err) && owner_may_delete(archive, clock_now_us(), err) &&
              (!all || delete_late(archive, unit, err)) &&
              objects_load(
                  archive, unit->id, all ? "written,verified,replaced" : "replaced", arena, &rows,
                  &count, err);
    for (size_t i = 0; i < count && ok; i++) {
        ok = (!all && !rows[i].due) || delete_object(archive, &rows[i], err);
    }
    arena_free(arena);
    return ok;
}

// ---- a month later ----

typedef struct Look {
    Str key;
    bool found;
} Look;

static void on_entry(void *ctx, Str key, const StorageInfo *info)
{
    (void)info;
    Look *look = ctx;
    look->found = look->found || str_eq(key, look->key);
}

static bool check_gone(Archive *archive, const ObjectRow *row, Error *err)
{
    Look look = {.key = str_from(row->key)};
    if (storage_wait_list(archive->storage, look.key, on_entry, &look, err) != STORAGE_DONE) {
        return error_wrap(err, "looking for object '%s'", row->key);
    }
    return !look.found ||
           error_set(
               err, ERROR_PERMANENT,
               "object '%s' was deleted and is in the bucket (HINT: put there by hand, or a lock "
               "of the bucket; delete it there)",
               row->key);
}

bool unit_confirm(Archive *archive, const Unit *unit, Error *err)
{
    ObjectRow *rows = NULL;
    size_t count = 0;
    Arena *arena = arena_new(0);
    bool ok = delete_late(archive, unit, err) && // what came since
              objects_load(archive, unit->id, "deleted", arena, &rows, &count, err);
    for (size_t i = 0; i < count && ok; i++) {
        ok = check_gone(archive, &rows[i], err);
    }
    arena_free(arena);
    const char *params[] = {unit->id, archive->epoch_text};
    return ok && archive_change(
                     archive->pg, "unit.finished",
                     "UPDATE archive.units SET finished_at = now() WHERE id = $1 AND owner_epoch = "
                     "$2 AND state = 'expired'",
                     params, 2, err);
}

// ---- cold ----

static bool replace(Archive *archive, const char *former, const char *key, Error *err)
{
    const char *params[] = {former};
    return objects_set_verified(archive, key, err) &&
           archive_change(
               archive->pg, "object.replaced",
               "UPDATE archive.objects SET state = 'replaced', delete_after = now() + interval '7 "
               "days' WHERE key = $1 AND state = 'verified'",
               params, 1, err) &&
           archive_commit(archive->pg, err);
}

static bool put_cold(
    Archive *archive, const ObjectRow *row, ObjectRow *cold, const Spool *spool, Error *err)
{
    StorageInfo info = {0};
    ObjectPut put = {
        .key = cold->key,
        .spool = spool,
        .sha256 = row->sha256,
        .storage_class = archive->options->cold_class};
    if (!objects_put(archive, &put, &info, err)) {
        return false;
    }
    CRASH_POINT("archiver.cold_put");
    cold->version = info.version;
    return objects_insert(archive, cold, err);
}

static bool cool_object(
    Archive *archive, const Unit *unit, const ObjectRow *row, const UnitTable *table, Error *err)
{
    char key[ARCHIVE_KEY_SIZE];
    if (table == NULL) {
        return error_set(
            err, ERROR_PERMANENT, "object '%s' is of table %d, which there is not", row->key,
            row->ordinal);
    }
    archive_part_key(
        unit,
        &(PartName){
            .stem = table->stem,
            .tenant = row->tenant,
            .cold = true,
            .late = row->late,
            .part = row->part,
            .sha256 = row->sha256},
        key);
    ObjectRow cold = *row;
    cold.key = key;
    cold.tier = "cold";
    Spool spool;
    if (!spool_open(&spool, &archive->options->spool, err)) {
        return false;
    }
    bool ok =
        objects_fetch(archive, row, &spool, err) && put_cold(archive, row, &cold, &spool, err);
    spool_close(&spool);
    ok = ok && archive_reopen_storage(archive, err) && objects_verify(archive, &cold, table, err) &&
         archive_begin(archive->pg, err) && replace(archive, row->key, key, err);
    archive_rollback(archive->pg);
    if (ok) {
        CRASH_POINT("archiver.cold_recorded");
    }
    return ok;
}

bool unit_cool(Archive *archive, const Unit *unit, Error *err)
{
    UnitTable tables[UNIT_TABLES_MAX];
    size_t table_count = 0;
    ObjectRow *rows = NULL;
    size_t count = 0;
    Arena *arena = arena_new(0);
    bool ok = owner_check(archive, err) &&
              units_tables(archive, unit->kind, arena, tables, &table_count, err) &&
              objects_load(archive, unit->id, "verified", arena, &rows, &count, err);
    for (size_t i = 0; i < count && ok; i++) {
        bool warm = strcmp(rows[i].tier, "warm") == 0;
        ok = !warm ||
             cool_object(
                 archive, unit, &rows[i], units_table(tables, table_count, rows[i].ordinal), err);
    }
    arena_free(arena);
    return ok && unit_store_manifest(archive, unit, false, UNIT_REMOVED, UNIT_REMOVED, err);
}
