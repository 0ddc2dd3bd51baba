// SPDX-License-Identifier: Apache-2.0
#include "common/history/rebuild_schema.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/str.h"

DEFINE_CLEANUP(free_result, PGresult *, PQclear)

enum { DIFFERENCES_SHOWN = 100 };

struct RebuildSchema {
    PGconn *pg;
};

// ---- talking to Postgres, blocking ----

static PGresult *run(
    RebuildSchema *schema, const char *what, const char *sql, const char *param, Error *err)
{
    const char *params[] = {param};
    PGresult *res = param != NULL ? PQexecParams(schema->pg, sql, 1, NULL, params, NULL, NULL, 0)
                                  : PQexec(schema->pg, sql);
    ExecStatusType status = PQresultStatus(res);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
        return res;
    }
    const char *text = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
    Str line = str_from(text != NULL ? text : PQerrorMessage(schema->pg));
    error_set(err, ERROR_PERMANENT, "%s: " STR_FMT, what, STR_ARG(str_trim(line)));
    PQclear(res);
    return NULL;
}

static bool execute(RebuildSchema *schema, const char *what, const char *sql, Error *err)
{
    CLEANUP(free_result) PGresult *res = run(schema, what, sql, NULL, err);
    return res != NULL;
}

static void ignore_notice(void *ctx, const char *message)
{
    (void)ctx;
    (void)message;
}

bool rebuild_schema_open(RebuildSchema **ret, const char *url, Error *err)
{
    const char *keywords[] = {"dbname", "application_name", "client_encoding", NULL};
    const char *values[] = {url, "stentor-rebuild", "UTF8", NULL};
    RebuildSchema *schema = xcalloc(1, sizeof(*schema));
    schema->pg = PQconnectdbParams(keywords, values, 1);
    if (PQstatus(schema->pg) != CONNECTION_OK) {
        Str text = str_trim(str_from(PQerrorMessage(schema->pg)));
        error_set(err, ERROR_TRANSIENT, "postgres: " STR_FMT, STR_ARG(text));
        rebuild_schema_close(schema);
        return false;
    }
    PQsetNoticeProcessor(schema->pg, ignore_notice, NULL);
    // A superuser too makes a schema that the owner of history owns, or it could not take its
    // place.
    if (!execute(
            schema, "become the owner of history",
            "SELECT set_config('role', pg_get_userbyid(nspowner), false) FROM pg_namespace"
            " WHERE nspname = 'archiver'",
            err)) {
        rebuild_schema_close(schema);
        return false;
    }
    CLEANUP(free_result)
    PGresult *res = run(
        schema, "rebuild lock",
        "SELECT pg_try_advisory_lock(hashtextextended('stentor.rebuild.history', 0))", NULL, err);
    if (res == NULL || strcmp(PQgetvalue(res, 0, 0), "t") != 0) {
        if (res != NULL) {
            error_set(err, ERROR_CONFLICT, "another rebuild of history is running");
        }
        rebuild_schema_close(schema);
        return false;
    }
    *ret = schema;
    return true;
}

void rebuild_schema_close(RebuildSchema *schema)
{
    if (schema != NULL) {
        PQfinish(schema->pg);
        free(schema);
    }
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
    CLEANUP(free_result)
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
            "', '{notifications,delivery_attempts,positions}')",
            err)) {
        return false;
    }
    CLEANUP(free_result)
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

static bool copy_table(
    RebuildSchema *schema, const char *table, const char *before, int64_t *ret_copied, Error *err)
{
    char sql[256];
    snprintf(
        sql, sizeof(sql),
        "INSERT INTO " REBUILD_SCHEMA
        ".%s SELECT * FROM archiver.%s WHERE created_at < $1::timestamptz",
        table, table);
    CLEANUP(free_result) PGresult *res = run(schema, "copy older rows", sql, before, err);
    int64_t count = 0;
    if (res != NULL && str_to_i64(str_from(PQcmdTuples(res)), &count)) {
        *ret_copied += count;
    }
    return res != NULL;
}

static bool copy_older(RebuildSchema *schema, int64_t before_us, int64_t *ret_copied, Error *err)
{
    char before[CLOCK_RFC3339_SIZE];
    clock_format(before_us, before);
    return copy_table(schema, "notifications", before, ret_copied, err) &&
           copy_table(schema, "delivery_attempts", before, ret_copied, err);
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
              (before_us == 0 || copy_older(schema, before_us, &copied, err)) &&
              (!remember || remember_rows(schema, err)) &&
              execute(schema, "commit the copy", "COMMIT", err);
    *ret_copied = copied;
    return ok;
}

// ---- comparing ----

bool rebuild_schema_compare(
    RebuildSchema *schema, RebuildLine on_difference, void *ctx, int64_t *ret_count, Error *err)
{
    CLEANUP(free_result)
    PGresult *rows = run(
        schema, "compare the rows",
        "SELECT source || ' ' || key || ': ' || CASE WHEN l.digest IS NULL THEN 'only in the log'"
        " WHEN r.digest IS NULL THEN 'only in the live table' ELSE 'differs' END"
        " FROM rebuild_live AS l FULL JOIN ("
        "  SELECT 'notifications' AS source, d.* FROM"
        "  stentor.digest_rows('" REBUILD_SCHEMA ".notifications', '{updated_at}') AS d"
        "  UNION ALL SELECT 'delivery_attempts', d.* FROM"
        "  stentor.digest_rows('" REBUILD_SCHEMA ".delivery_attempts', '{updated_at}') AS d"
        " ) AS r USING (source, key) WHERE l.digest IS DISTINCT FROM r.digest ORDER BY 1",
        NULL, err);
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
    if (execute(
            schema, "lock the live tables",
            "BEGIN; SET LOCAL lock_timeout = '5s';"
            "LOCK TABLE archiver.notifications, archiver.delivery_attempts, archiver.positions"
            " IN EXCLUSIVE MODE",
            err) &&
        rebuild_schema_positions(schema, ret, err)) {
        return true;
    }
    rebuild_schema_thaw(schema, &ignored);
    return false;
}

bool rebuild_schema_thaw(RebuildSchema *schema, Error *err)
{
    return execute(schema, "unlock the live tables", "ROLLBACK", err);
}

bool rebuild_schema_swap(RebuildSchema *schema, Error *err)
{
    Error ignored;
    if (execute(
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
    return execute(
        schema, "drop the schema archiver_old", "DROP SCHEMA IF EXISTS archiver_old CASCADE", err);
}
