// SPDX-License-Identifier: Apache-2.0
#include "common/history/rebuild_schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/base/str.h"

enum { DIFFERENCES_SHOWN = 100, DROP_TRIES = 5 };

struct RebuildSchema {
    RebuildPg *pg;
};

bool rebuild_schema_open(RebuildSchema **ret, const char *url, Error *err)
{
    RebuildPg *pg = rebuild_pg_open(url, "archiver", "history", err);
    if (pg == NULL) {
        return false;
    }
    *ret = xcalloc(1, sizeof **ret);
    (*ret)->pg = pg;
    return true;
}

void rebuild_schema_close(RebuildSchema *schema)
{
    if (schema != NULL) {
        rebuild_pg_close(schema->pg);
        free(schema);
    }
}

static PGresult *run(
    RebuildSchema *schema, const char *what, const char *sql, const char *param, Error *err)
{
    return rebuild_pg_ask(schema->pg, what, sql, param, err);
}

static bool execute(RebuildSchema *schema, const char *what, const char *sql, Error *err)
{
    return rebuild_pg_run(schema->pg, what, sql, err);
}

// ---- positions ----

static void read_positions(const PGresult *rows, RebuildPositions *ret)
{
    *ret = (RebuildPositions){0};
    for (int row = 0; row < PQntuples(rows); row++) {
        for (int i = 0; i < HISTORY_STREAM_COUNT; i++) {
            int64_t sequence = 0;
            if (strcmp(PQgetvalue(rows, row, 0), history_streams[i]) == 0 &&
                str_to_i64(str_from(PQgetvalue(rows, row, 1)), &sequence) &&
                str_to_i64(str_from(PQgetvalue(rows, row, 2)), &ret->stream_created_us[i]) &&
                str_to_i64(str_from(PQgetvalue(rows, row, 3)), &ret->stored_at_us[i])) {
                ret->sequence[i] = (uint64_t)sequence;
            }
        }
    }
}

bool rebuild_schema_positions(RebuildSchema *schema, RebuildPositions *ret, Error *err)
{
    CLEANUP(rebuild_pg_free)
    PGresult *rows =
        run(schema, "positions",
            "SELECT stream, sequence, (extract(epoch FROM stream_created_at) * 1000000)::int8,"
            " coalesce((extract(epoch FROM stored_at) * 1000000)::int8, 0)"
            " FROM archiver.positions WHERE projection = 'history'",
            NULL, err);
    if (rows != NULL) {
        read_positions(rows, ret);
    }
    return rows != NULL;
}

// ---- making ----

bool rebuild_schema_make(RebuildSchema *schema, RebuildLine on_difference, void *ctx, Error *err)
{
    if (!execute(
            schema, "create the schema " REBUILD_SCHEMA,
            "SELECT stentor.make_rebuild_schema('archiver', '" REBUILD_SCHEMA
            "', '{notifications,delivery_attempts,late_notifications,late_attempts,positions}')",
            err)) {
        return false;
    }
    CLEANUP(rebuild_pg_free)
    PGresult *rows =
        run(schema, "compare the schemas",
            "SELECT d FROM stentor.rebuild_differences('archiver', '" REBUILD_SCHEMA
            "') AS d ORDER BY d",
            NULL, err);
    if (rows == NULL) {
        return false;
    }
    for (int i = 0; i < PQntuples(rows); i++) {
        on_difference(ctx, PQgetvalue(rows, i, 0));
    }
    return PQntuples(rows) == 0 ||
           error_set(
               err, ERROR_CONFIG,
               "the schema archiver has %d things that a rebuild does not know how to carry over",
               PQntuples(rows));
}

// ---- copying and remembering ----

static bool copy_history(RebuildSchema *schema, int64_t before_us, int64_t *ret_copied, Error *err)
{
    char before[CLOCK_RFC3339_SIZE] = "-infinity";
    if (before_us != 0) {
        clock_format(before_us, before);
    }
    CLEANUP(rebuild_pg_free)
    PGresult *res =
        run(schema, "copy older and sealed rows",
            "SELECT stentor.copy_history('" REBUILD_SCHEMA "', $1::timestamptz)", before, err);
    return res != NULL && str_to_i64(str_from(PQgetvalue(res, 0, 0)), ret_copied);
}

// updated_at is when a row was written: no part of the projection's value.
static bool remember_rows(RebuildSchema *schema, Error *err)
{
    return execute(
        schema, "digest the live rows",
        "CREATE TEMP TABLE rebuild_live AS"
        " SELECT 'notifications' AS source, d.* FROM stentor.digest_rows('archiver.notifications',"
        " '{updated_at}') AS d UNION ALL SELECT 'delivery_attempts', d.* FROM"
        " stentor.digest_rows('archiver.delivery_attempts', '{updated_at}') AS d",
        err);
}

bool rebuild_schema_copy(
    RebuildSchema *schema, int64_t before_us, bool remember, RebuildPositions *ret,
    int64_t *ret_copied, Error *err)
{
    int64_t copied = 0;
    bool ok = execute(schema, "begin", "BEGIN ISOLATION LEVEL REPEATABLE READ", err) &&
              rebuild_schema_positions(schema, ret, err) &&
              copy_history(schema, before_us, &copied, err) &&
              (!remember || remember_rows(schema, err)) &&
              execute(schema, "commit the copy", "COMMIT", err);
    *ret_copied = copied;
    return ok;
}

// ---- what retention has removed ----

#define GONE(table, id)                                                                            \
    "DELETE FROM " REBUILD_SCHEMA "." table " AS n USING stentor.history_removed r"                \
    " WHERE n.retention_class = r.class AND n.created_at < r.until AND NOT EXISTS ("               \
    "SELECT FROM archiver.notifications l WHERE l.retention_class = n.retention_class"             \
    " AND l.created_at = n.created_at AND l.id = n." id " AND l.tenant_id = n.tenant_id);"

bool rebuild_schema_prune(RebuildSchema *schema, Error *err)
{
    return execute(
        schema, "take out what retention has removed",
        GONE("delivery_attempts", "notification_id") GONE("notifications", "id"), err);
}

// ---- comparing ----

bool rebuild_schema_compare(
    RebuildSchema *schema, const char *passed, RebuildLine on_difference, void *ctx,
    int64_t *ret_count, Error *err)
{
    CLEANUP(rebuild_pg_free)
    PGresult *rows = run(
        schema, "compare the rows",
        "SELECT source || ' ' || key || ': ' || CASE WHEN l.digest IS NULL THEN 'only in the log'"
        " WHEN r.digest IS NULL THEN 'only in the live table' ELSE 'differs' END"
        " FROM rebuild_live AS l FULL JOIN ("
        "  SELECT 'notifications' AS source, d.* FROM"
        "  stentor.digest_rows('" REBUILD_SCHEMA ".notifications', '{updated_at}') AS d"
        "  UNION ALL SELECT 'delivery_attempts', d.* FROM"
        "  stentor.digest_rows('" REBUILD_SCHEMA ".delivery_attempts', '{updated_at}') AS d"
        " ) AS r USING (source, key) WHERE l.digest IS DISTINCT FROM r.digest"
        " AND NOT (source = 'notifications'"
        " AND split_part(key, ' ', 1) = ANY (string_to_array($1, ','))) ORDER BY 1",
        passed, err);
    if (rows == NULL) {
        return false;
    }
    *ret_count = PQntuples(rows);
    for (int i = 0; i < PQntuples(rows) && i < DIFFERENCES_SHOWN; i++) {
        on_difference(ctx, PQgetvalue(rows, i, 0));
    }
    return true;
}

// ---- swapping ----

// The tables in the order in which a flush touches them, so that neither waits for the other's
// last. All three: a flush that had written its rows into the old tables could pass the fence of
// new positions that stand at the same sequences.
bool rebuild_schema_freeze(RebuildSchema *schema, RebuildPositions *ret, Error *err)
{
    Error ignored;
    if (!rebuild_pg_freeze(
            schema->pg, "archiver.notifications, archiver.delivery_attempts, archiver.positions",
            err)) {
        return false;
    }
    return rebuild_schema_positions(schema, ret, err) ||
           (rebuild_schema_thaw(schema, &ignored), false);
}

bool rebuild_schema_thaw(RebuildSchema *schema, Error *err)
{
    return rebuild_pg_thaw(schema->pg, err);
}

bool rebuild_schema_swap(RebuildSchema *schema, Error *err)
{
    Error ignored;
    if (execute(
            schema, "carry over the late rows",
            "INSERT INTO " REBUILD_SCHEMA ".late_notifications"
            " SELECT * FROM archiver.late_notifications;"
            "INSERT INTO " REBUILD_SCHEMA ".late_attempts SELECT * FROM archiver.late_attempts",
            err) &&
        execute(
            schema, "swap",
            "SELECT stentor.swap_rebuild_schema('archiver', '" REBUILD_SCHEMA "', 'archiver_old')",
            err) &&
        execute(schema, "commit the swap", "COMMIT", err)) {
        return true;
    }
    rebuild_schema_thaw(schema, &ignored);
    return false;
}

bool rebuild_schema_drop(RebuildSchema *schema, Error *err)
{
    return execute(
        schema, "drop the schema " REBUILD_SCHEMA,
        "DROP SCHEMA IF EXISTS " REBUILD_SCHEMA " CASCADE", err);
}

bool rebuild_schema_drop_old(RebuildSchema *schema, Error *err)
{
    // Readers and writers that began before the swap still hold locks there, in their own order:
    // the one that Postgres ends to part a deadlock may be this one.
    for (int left = DROP_TRIES - 1;; left--) {
        if (execute(
                schema, "drop the schema archiver_old",
                "DROP SCHEMA IF EXISTS archiver_old CASCADE", err)) {
            return true;
        }
        if (err->kind != ERROR_TRANSIENT || left == 0) {
            return false;
        }
        error_clear(err);
        (void)nanosleep(&(struct timespec){.tv_nsec = 200 * 1000 * 1000}, NULL);
    }
}
