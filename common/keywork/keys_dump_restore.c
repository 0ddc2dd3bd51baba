// SPDX-License-Identifier: Apache-2.0
// Read into temporary tables, then merged: each statement below only ever moves a row forward, so
// the order in which a database and a dump were taken does not matter.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/db/db.h"
#include "common/db/errors.h"
#include "common/db/lock.h"
#include "common/keywork/keys_dump.h"

DEFINE_CLEANUP(free_result, PGresult *, PQclear)

static const char MASTER_KEYS[] =
    "INSERT INTO keys.master_keys AS k (kind, key_id, check_value, registered_at, current_at, "
    "retired_at)"
    " SELECT kind, key_id, check_value, registered_at, current_at, retired_at FROM dump_master_keys"
    " ON CONFLICT (kind, key_id) DO UPDATE SET current_at = greatest(k.current_at, "
    "excluded.current_at),"
    " retired_at = coalesce(k.retired_at, excluded.retired_at)";
static const char OLD_EPOCHS[] =
    "UPDATE keys.epochs e SET closed_at = coalesce(e.closed_at, d.closed_at),"
    " emptied_at = coalesce(e.emptied_at, d.emptied_at), destroyed_at = coalesce(e.destroyed_at, "
    "d.destroyed_at)"
    " FROM dump_epochs d WHERE d.key_id = e.key_id";
static const char NEW_EPOCHS[] =
    "INSERT INTO keys.epochs (number, key_id, opened_at, closed_at, emptied_at, destroyed_at)"
    " SELECT number, key_id, opened_at, closed_at, emptied_at, destroyed_at FROM dump_epochs d"
    " WHERE NOT EXISTS (SELECT FROM keys.epochs e WHERE e.key_id = d.key_id)";

// Later epochs rank higher; below them what a master key has wrapped.
#define RANK(wrapped)                                                                              \
    "coalesce((SELECT e.number FROM keys.epochs e WHERE substr(" wrapped                           \
    ", 1, 6) = '\\x0102'::bytea || e.key_id AND length(" wrapped ") = 66), 0)"
// One row: added, changed.
static const char DATA_KEYS[] =
    "WITH merged AS (INSERT INTO keys.data_keys AS k"
    " (tenant_id, subject, generation, wrapped, created_at, destroyed_at, restricted_by)"
    " SELECT tenant_id, subject, generation, wrapped, created_at, destroyed_at, restricted_by FROM "
    "dump_data_keys"
    " ON CONFLICT (subject, generation) DO UPDATE SET"
    " wrapped = CASE WHEN k.destroyed_at IS NULL AND excluded.destroyed_at IS NULL THEN"
    "  CASE WHEN " RANK("excluded.wrapped") " >= " RANK(
        "k.wrapped") " THEN excluded.wrapped ELSE k.wrapped END END,"
                     " destroyed_at = coalesce(k.destroyed_at, excluded.destroyed_at),"
                     " restricted_by = coalesce(k.restricted_by, excluded.restricted_by)"
                     " WHERE k.destroyed_at IS NULL AND (k.wrapped, k.restricted_by) IS DISTINCT "
                     "FROM (excluded.wrapped, excluded.restricted_by)"
                     " RETURNING xmax = 0 AS added)"
                     " SELECT count(*) FILTER (WHERE added), count(*) FILTER (WHERE NOT added) "
                     "FROM merged";
// A dump that is older than the database may bring back forms that were wrapped again since.
static const char NOT_EMPTY[] =
    "UPDATE keys.epochs e SET emptied_at = NULL WHERE emptied_at IS NOT NULL AND destroyed_at IS "
    "NULL"
    " AND EXISTS (SELECT FROM keys.data_keys d WHERE d.wrapped IS NOT NULL"
    "  AND (CASE WHEN length(d.wrapped) <> 60 THEN substr(d.wrapped, 1, 6) END) = '\\x0102'::bytea "
    "|| e.key_id)";

static PGresult *ask(PGconn *pg, const char *sql, Error *err)
{
    PGresult *rows = PQexecParams(pg, sql, 0, NULL, NULL, NULL, NULL, 1);
    ExecStatusType status = PQresultStatus(rows);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK || status == PGRES_COPY_IN) {
        return rows;
    }
    (void)db_error_result(rows, "keys", err);
    PQclear(rows);
    return NULL;
}

static bool tell(PGconn *pg, const char *sql, Error *err)
{
    PGresult *done = ask(pg, sql, err);
    PQclear(done);
    return done != NULL;
}

// ---- into temporary tables ----

static bool on_table(void *ctx, Str name, Str columns, Error *err)
{
    char sql[700];
    (void)snprintf(
        sql, sizeof sql, "CREATE TEMPORARY TABLE dump_%.*s (LIKE keys.%.*s) ON COMMIT DROP",
        STR_ARG(name), STR_ARG(name));
    if (!tell(ctx, sql, err)) {
        return false;
    }
    PGresult *copy = NULL;
    (void)snprintf(
        sql, sizeof sql, "COPY dump_%.*s (%.*s) FROM STDIN (FORMAT binary)", STR_ARG(name),
        STR_ARG(columns));
    copy = PQexec(ctx, sql);
    bool ok = PQresultStatus(copy) == PGRES_COPY_IN || db_error_result(copy, "keys", err);
    PQclear(copy);
    return ok;
}

static bool on_piece(void *ctx, Str bytes, Error *err)
{
    return PQputCopyData(ctx, bytes.ptr, (int)bytes.len) == 1 ||
           db_error_connection(ctx, "Postgres", err);
}

static bool on_end(void *ctx, Error *err)
{
    if (PQputCopyEnd(ctx, NULL) != 1) {
        return db_error_connection(ctx, "Postgres", err);
    }
    bool ok = true;
    for (PGresult *done; (done = PQgetResult(ctx)) != NULL;) {
        ok = ok && (PQresultStatus(done) == PGRES_COMMAND_OK || db_error_result(done, "keys", err));
        PQclear(done);
    }
    return ok;
}

static bool load(PGconn *pg, const char *path, KeysDump *ret, Error *err)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        return error_set(err, ERROR_CONFIG, "cannot read '%s': %s", path, strerror(errno));
    }
    const KeysDumpReader reader = {.table = on_table, .piece = on_piece, .end = on_end, .ctx = pg};
    bool ok = keys_dump_read(file, &reader, ret, err);
    (void)fclose(file);
    return ok;
}

// ---- merged ----

static bool take_lock(PGconn *pg, Error *err)
{
    char sql[80];
    (void)snprintf(
        sql, sizeof sql, "SELECT pg_try_advisory_xact_lock(%lld)", (long long)db_lock_key("keys"));
    CLEANUP(free_result) PGresult *got = ask(pg, sql, err);
    return got != NULL &&
           (db_get_int(got, 0, 0) != 0 || error_set(
                                              err, ERROR_PERMANENT,
                                              "an ingest does the work on keys (HINT: stop the "
                                              "services, restore, then start them)"));
}

static bool merge(PGconn *pg, KeysRestored *ret, Error *err)
{
    if (!tell(pg, MASTER_KEYS, err) || !tell(pg, OLD_EPOCHS, err) || !tell(pg, NEW_EPOCHS, err)) {
        return false;
    }
    CLEANUP(free_result) PGresult *keys = ask(pg, DATA_KEYS, err);
    if (keys == NULL || !tell(pg, NOT_EMPTY, err)) {
        return false;
    }
    *ret = (KeysRestored){
        .added = (uint64_t)db_get_int(keys, 0, 0), .changed = (uint64_t)db_get_int(keys, 0, 1)};
    return true;
}

bool keys_dump_restore(
    PGconn *pg, const char *path, KeysDump *ret, KeysRestored *ret_restored, Error *err)
{
    bool ok = keys_dump_check(path, ret, err) && tell(pg, "BEGIN", err) && take_lock(pg, err) &&
              tell(pg, "SELECT keys.abandon_bulk()", err) && load(pg, path, ret, err) &&
              merge(pg, ret_restored, err);
    return tell(pg, ok ? "COMMIT" : "ROLLBACK", ok ? err : NULL) && ok;
}
