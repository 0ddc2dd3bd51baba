// SPDX-License-Identifier: Apache-2.0
#include "common/archive/unit/unit_steps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/archive/database.h"
#include "common/archive/objects.h"
#include "common/archive/owner.h"
#include "common/archive/unit/unit_write.h"
#include "common/base/crash.h"

// A try holds up others for 200 ms at most; the pause after it is at first as long, then longer.
enum { SEAL_TRIES = 8, LOCK_TRIES = 40, LOCK_PAUSE_MS = 200, LOCK_PAUSE_MAX_MS = 5000 };

static void pause_after(int tries)
{
    int ms = tries < 5 ? LOCK_PAUSE_MS << tries : LOCK_PAUSE_MAX_MS;
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = INT64_C(1000000) * (ms % 1000)};
    (void)nanosleep(&pause, NULL);
}

// ---- sealed ----

// The move's trigger waits for the flushes that took the unit for open, for 200 ms at a time.
// Killed before the COMMIT: it is open still; after it: sealed.
bool unit_seal(Archive *archive, const Unit *unit, Error *err)
{
    for (int i = 0; i < SEAL_TRIES; i++) {
        if (units_move(archive, unit, UNIT_OPEN, UNIT_SEALED, err)) {
            CRASH_POINT("archiver.unit_sealed");
            return true;
        }
        if (strstr(err->text, "(55P03)") == NULL) {
            return false;
        }
        pause_after(i);
    }
    return false;
}

// ---- counted ----

static bool count(Archive *archive, const Unit *unit, Error *err)
{
    const char *params[] = {unit->id};
    return archive_do(
               archive->pg, "unit.count",
               "INSERT INTO archive.counts (unit, ordinal, tenant, rows, min_created, max_created, "
               "min_id, max_id, digest, columns) SELECT $1, c.* FROM archive.count_unit($1) c",
               params, 1, err) &&
           units_move(archive, unit, UNIT_SEALED, UNIT_COUNTED, err) &&
           archive_commit(archive->pg, err);
}

bool unit_count(Archive *archive, const Unit *unit, Error *err)
{
    bool ok =
        archive_do(archive->pg, "begin", "BEGIN ISOLATION LEVEL REPEATABLE READ", NULL, 0, err) &&
        count(archive, unit, err);
    archive_rollback(archive->pg);
    if (ok) {
        CRASH_POINT("archiver.unit_counted");
    }
    return ok;
}

// ---- verified ----

// Twice: what came wrong may be the way's fault.
static bool look_twice(Archive *archive, const ObjectRow *row, const UnitTable *table, Error *err)
{
    return objects_verify(archive, row, table, err) ||
           (err->kind == ERROR_PERMANENT && archive_reopen_storage(archive, err) &&
            objects_verify(archive, row, table, err));
}

static bool verify_object(
    Archive *archive, const Unit *unit, const ObjectRow *row, const UnitTable *table, Error *err)
{
    if (!look_twice(archive, row, table, err)) {
        Error found = *err;
        if (found.kind == ERROR_PERMANENT && unit_write_again(archive, unit, row, err)) {
            *err = found; // the next look verifies what was made again
        }
        return false;
    }
    if (!objects_set_verified(archive, row->key, err)) {
        return false;
    }
    CRASH_POINT("archiver.part_verified");
    return true;
}

static bool verify_objects(Archive *archive, const Unit *unit, Arena *arena, Error *err)
{
    ObjectRow *rows = NULL;
    size_t row_count = 0;
    UnitTable tables[UNIT_TABLES_MAX];
    size_t table_count = 0;
    if (!units_tables(archive, unit->kind, arena, tables, &table_count, err) ||
        !objects_load(archive, unit->id, "written", arena, &rows, &row_count, err)) {
        return false;
    }
    for (size_t i = 0; i < row_count; i++) {
        const UnitTable *table = units_table(tables, table_count, rows[i].ordinal);
        if (!archive_reopen_storage(archive, err) ||
            !verify_object(archive, unit, &rows[i], table, err)) {
            return false;
        }
    }
    return true;
}

// What is stored has all that was counted: tenants, rows, bounds, content.
bool unit_compare_stored(Archive *archive, const Unit *unit, Error *err)
{
    const char *params[] = {unit->id};
    AUTO(PGresult)
    rows = archive_ask(
        archive->pg, "unit.stored", "SELECT archive.stored_difference($1)", params, 1, err);
    if (rows == NULL) {
        return false;
    }
    const char *difference = archive_text(rows, 0, 0);
    return difference[0] == '\0' ||
           error_set(err, ERROR_PERMANENT, "unit '%s': %s", unit->id, difference);
}

// Objects as they were sent, of rows that are not those of Postgres: they are made again.
static bool replace_different(Archive *archive, const Unit *unit, Error *err)
{
    const char *params[] = {unit->id, archive->epoch_text};
    return archive_do(
        archive->pg, "unit.different",
        "UPDATE archive.objects o SET state = 'replaced', delete_after = now() + interval '7 days' "
        "FROM archive.stored_differences($1) d WHERE o.unit = $1 AND o.ordinal = d.ordinal AND "
        "o.tenant = d.tenant AND o.kind = 'part' AND o.state = 'verified' AND d.same_rows AND "
        "EXISTS (SELECT FROM archive.installation WHERE owner_epoch = $2::int8)",
        params, 2, err);
}

bool unit_verify(Archive *archive, const Unit *unit, Error *err)
{
    Arena *arena = arena_new(0);
    bool ok = verify_objects(archive, unit, arena, err);
    arena_free(arena);
    if (ok && !unit_compare_stored(archive, unit, err)) {
        Error found = *err;
        if (found.kind == ERROR_PERMANENT && replace_different(archive, unit, err) &&
            unit_write_again(archive, unit, NULL, err)) {
            *err = found;
        }
        return false;
    }
    return ok && units_move(archive, unit, UNIT_WRITTEN, UNIT_VERIFIED, err);
}

// ---- committed ----

static bool keep_piece(void *ctx, const void *bytes, size_t len)
{
    return buf_append(ctx, bytes, len);
}

bool unit_read_manifest(Archive *archive, const char *key, Str body, Error *err)
{
    Buf got;
    buf_init(&got, body.len + 1);
    StorageOutcome outcome =
        storage_wait_get(archive->storage, str_from(key), 0, 0, keep_piece, &got, err);
    bool same = outcome == STORAGE_DONE && str_eq(buf_view(&got), body);
    buf_done(&got);
    return same || (outcome == STORAGE_FAILED
                        ? error_wrap(err, "manifest '%s'", key)
                        : error_set(
                              err, ERROR_PERMANENT, "manifest '%s' %s", key,
                              outcome == STORAGE_ABSENT ? "is gone from the bucket"
                                                        : "has other bytes than were written"));
}

static bool put_manifest(Archive *archive, const char *key, Str body, Error *err)
{
    StoragePut put = {
        .key = str_from(key),
        .fd = -1,
        .bytes = body.ptr,
        .len = body.len,
        .condition = STORAGE_IF_ABSENT,
        .installation = archive->installation};
    sha256(body, put.sha256);
    StorageOutcome outcome = storage_wait_put(archive->storage, &put, NULL, err);
    if (outcome == STORAGE_FAILED) {
        return error_wrap(err, "manifest '%s'", key);
    }
    CRASH_POINT("archiver.manifest_put"); // or it was there already: the same is asked below
    return archive_reopen_storage(archive, err) && unit_read_manifest(archive, key, body, err);
}

static bool finish_manifest(
    Archive *archive, const Unit *unit, const char *number, UnitState from, UnitState to,
    Error *err)
{
    const char *params[] = {unit->id, archive->epoch_text, number};
    return archive_do(
               archive->pg, "unit.store_manifest", "SELECT archive.store_manifest($1, $2, $3)",
               params, 3, err) &&
           (from == to || units_move(archive, unit, from, to, err)) &&
           archive_commit(archive->pg, err);
}

bool unit_store_manifest(
    Archive *archive, const Unit *unit, bool removed, UnitState from, UnitState to, Error *err)
{
    const char *params[] = {unit->id, archive->epoch_text, removed ? "t" : "f"};
    AUTO(PGresult)
    rows = archive_ask(
        archive->pg, "unit.make_manifest", "SELECT * FROM archive.make_manifest($1, $2, $3)",
        params, 3, err);
    if (rows == NULL) {
        return false;
    }
    CRASH_POINT("archiver.manifest_made");
    Str body = str_from(archive_text(rows, 0, 2));
    bool ok = put_manifest(archive, archive_text(rows, 0, 1), body, err) &&
              archive_begin(archive->pg, err) &&
              finish_manifest(archive, unit, archive_text(rows, 0, 0), from, to, err);
    archive_rollback(archive->pg);
    if (ok) {
        CRASH_POINT("archiver.manifest_stored");
    }
    return ok;
}

bool unit_commit(Archive *archive, const Unit *unit, Error *err)
{
    return unit_store_manifest(archive, unit, false, UNIT_VERIFIED, UNIT_COMMITTED, err);
}

// ---- removing ----

bool unit_try_often(Archive *archive, const Unit *unit, const char *sql, Error *err)
{
    const char *params[] = {unit->id, archive->epoch_text};
    for (int i = 0; i < LOCK_TRIES; i++) {
        AUTO(PGresult) rows = archive_ask(archive->pg, "unit.tables", sql, params, 2, err);
        if (rows == NULL) {
            return false;
        }
        if (archive_text(rows, 0, 0)[0] == 't') {
            return true;
        }
        pause_after(i);
    }
    return error_set(
        err, ERROR_TRANSIENT,
        "unit '%s': its tables were read or written at each of %d moments (HINT: long transactions "
        "in pg_stat_activity)",
        unit->id, LOCK_TRIES);
}

bool unit_remove(Archive *archive, const Unit *unit, Error *err)
{
    const char *params[] = {unit->id, archive->epoch_text};
    if (!owner_check(archive, err) ||
        !archive_do(
            archive->pg, "unit.check", "SELECT archive.check_unit($1, $2)", params, 2, err)) {
        return false;
    }
    CRASH_POINT("archiver.unit_checked");
    if (!unit_try_often(archive, unit, "SELECT archive.remove_unit($1, $2)", err)) {
        return false;
    }
    CRASH_POINT("archiver.unit_detached");
    return true;
}

// All objects of the unit, by HEAD.
static bool see_all(Archive *archive, const Unit *unit, Error *err)
{
    ObjectRow *rows = NULL;
    size_t count_of = 0;
    Arena *arena = arena_new(0);
    bool ok = objects_load(archive, unit->id, "written,verified", arena, &rows, &count_of, err);
    for (size_t i = 0; i < count_of && ok; i++) {
        ok = objects_head(archive, &rows[i], err);
    }
    arena_free(arena);
    return ok;
}

bool unit_drop(Archive *archive, const Unit *unit, Error *err)
{
    char grace[24];
    (void)snprintf(grace, sizeof grace, "%" PRId64, archive->options->grace_us);
    const char *params[] = {unit->id, archive->epoch_text, grace};
    if (!owner_check(archive, err) || !see_all(archive, unit, err) ||
        !archive_change(
            archive->pg, "unit.heads",
            "UPDATE archive.units SET heads_at = now() WHERE id = $1 AND owner_epoch = $2 AND "
            "state = 'removing'",
            params, 2, err)) {
        return false;
    }
    CRASH_POINT("archiver.unit_seen");
    if (!archive_do(
            archive->pg, "unit.drop",
            "SELECT archive.drop_unit($1, $2, $3::int8 * interval '1 microsecond')", params, 3,
            err)) {
        return false;
    }
    CRASH_POINT("archiver.unit_dropped");
    return true;
}
