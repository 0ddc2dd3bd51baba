// SPDX-License-Identifier: Apache-2.0
#include "services/cli/rebuild/rebuild_rows.h"

#include <stdlib.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/str.h"

enum { DIFFERENCES_SHOWN = 100, SQL_MAX = 16 * 1024 };

struct RebuildRows {
    RebuildPg *pg;
    const RowsTarget *target;
    Buf sql;
};

// Runs what stands in r->sql.
static PGresult *ask(RebuildRows *r, const char *what, Error *err)
{
    PGresult *res = rebuild_pg_ask(r->pg, what, buf_c(&r->sql), NULL, err);
    buf_clear(&r->sql);
    return res;
}

static bool run(RebuildRows *r, const char *what, Error *err)
{
    CLEANUP(rebuild_pg_free) PGresult *res = ask(r, what, err);
    return res != NULL;
}

bool rebuild_rows_open(RebuildRows **ret, const char *url, const RowsTarget *target, Error *err)
{
    RebuildPg *pg = rebuild_pg_open(url, target->schema, target->schema, err);
    if (pg == NULL) {
        return false;
    }
    RebuildRows *r = xcalloc(1, sizeof *r);
    r->target = target;
    r->pg = pg;
    buf_init(&r->sql, SQL_MAX);
    *ret = r;
    return true;
}

void rebuild_rows_close(RebuildRows *r)
{
    if (r != NULL) {
        rebuild_pg_close(r->pg);
        buf_done(&r->sql);
        free(r);
    }
}

bool rebuild_rows_positions(RebuildRows *r, RebuildPositions *ret, Error *err)
{
    int64_t sequence = 0;
    *ret = (RebuildPositions){0};
    buf_printf(
        &r->sql,
        "SELECT sequence, (extract(epoch FROM stream_created_at) * 1000000)::int8,"
        " coalesce((extract(epoch FROM stored_at) * 1000000)::int8, 0)"
        " FROM %s.positions WHERE projection = '%s' AND stream = '%s'",
        r->target->schema, r->target->projection, r->target->stream);
    CLEANUP(rebuild_pg_free) PGresult *res = ask(r, "positions", err);
    if (res != NULL && PQntuples(res) > 0 &&
        str_to_i64(str_from(PQgetvalue(res, 0, 0)), &sequence) &&
        str_to_i64(str_from(PQgetvalue(res, 0, 1)), &ret->stream_created_us[0]) &&
        str_to_i64(str_from(PQgetvalue(res, 0, 2)), &ret->stored_at_us[0])) {
        ret->sequence[0] = (uint64_t)sequence;
    }
    return res != NULL;
}

bool rebuild_rows_make(RebuildRows *r, Error *err)
{
    buf_printf(
        &r->sql, "SELECT stentor.make_rebuild_schema('%s', '%s', '{positions", r->target->schema,
        r->target->copy);
    for (const char *const *table = r->target->names; *table != NULL; table++) {
        buf_printf(&r->sql, ",%s", *table);
    }
    buf_printf(
        &r->sql, "}'); SELECT stentor.copy_partitions('%s', '%s')", r->target->schema,
        r->target->copy);
    return run(r, "create the copy", err);
}

// ---- digests ----

// One line for each table and recipient. updated_at may be when a row was written.
static void add_digests(RebuildRows *r, const char *schema)
{
    for (const char *const *table = r->target->names; *table != NULL; table++) {
        buf_printf(
            &r->sql,
            "%sSELECT '%s'::text AS source, tenant_id, %s AS person, count(*) AS rows,"
            " sum(hashtextextended((to_jsonb(t) - 'updated_at')::text, 0)::numeric) AS digest"
            " FROM %s.%s AS t GROUP BY tenant_id, %s",
            table == r->target->names ? "" : " UNION ALL ", *table, r->target->person, schema,
            *table, r->target->person);
    }
}

static bool carry_rows(RebuildRows *r, int64_t *ret_carried, Error *err)
{
    for (const char *const *table = r->target->names; *table != NULL; table++) {
        int64_t count = 0;
        buf_printf(
            &r->sql, "INSERT INTO %s.%s SELECT * FROM %s.%s", r->target->copy, *table,
            r->target->schema, *table);
        CLEANUP(rebuild_pg_free) PGresult *res = ask(r, "copy the live rows", err);
        if (res == NULL || !str_to_i64(str_from(PQcmdTuples(res)), &count)) {
            return false;
        }
        *ret_carried += count;
    }
    return true;
}

bool rebuild_rows_remember(
    RebuildRows *r, bool carry, RebuildPositions *ret, int64_t *ret_carried, Error *err)
{
    int64_t carried = 0;
    if (!rebuild_pg_run(r->pg, "begin", "BEGIN ISOLATION LEVEL REPEATABLE READ", err) ||
        !rebuild_rows_positions(r, ret, err) || (carry && !carry_rows(r, &carried, err))) {
        return false;
    }
    *ret_carried = carried;
    buf_cstr(&r->sql, "CREATE TEMP TABLE rebuild_live AS ");
    add_digests(r, r->target->schema);
    return run(r, "digest the live rows", err) && rebuild_pg_run(r->pg, "commit", "COMMIT", err);
}

bool rebuild_rows_compare(
    RebuildRows *r, RebuildLine on_difference, void *ctx, int64_t *ret_count, Error *err)
{
    buf_cstr(
        &r->sql, "CREATE TEMP TABLE rebuild_different AS SELECT source, tenant_id, person,"
                 " CASE WHEN l.digest IS NULL THEN 'only in the log' WHEN c.digest IS NULL"
                 " THEN 'only in the live table' ELSE 'differs' END AS how FROM rebuild_live AS l"
                 " FULL JOIN (");
    add_digests(r, r->target->copy);
    buf_cstr(
        &r->sql,
        ") AS c USING (source, tenant_id, person)"
        " WHERE (l.rows, l.digest) IS DISTINCT FROM (c.rows, c.digest); ANALYZE rebuild_different;"
        " SELECT concat_ws(' ', source, person, tenant_id) || ': ' || how,"
        " count(*) OVER () FROM rebuild_different ORDER BY 1 LIMIT 100");
    CLEANUP(rebuild_pg_free) PGresult *res = ask(r, "compare the rows", err);
    if (res == NULL) {
        return false;
    }
    *ret_count = 0;
    for (int i = 0; i < PQntuples(res); i++) {
        on_difference(ctx, PQgetvalue(res, i, 0));
        (void)str_to_i64(str_from(PQgetvalue(res, i, 1)), ret_count);
    }
    return true;
}

bool rebuild_rows_rewind(RebuildRows *r, const RebuildPositions *at, Error *err)
{
    buf_printf(
        &r->sql,
        "UPDATE %s.positions SET sequence = %llu,"
        " stored_at = 'epoch'::timestamptz + nullif(%lld, 0) * interval '1 microsecond'",
        r->target->copy, (unsigned long long)at->sequence[0], (long long)at->stored_at_us[0]);
    return run(r, "go back to the remembered position", err);
}

// ---- replacing ----

bool rebuild_rows_freeze(RebuildRows *r, RebuildPositions *ret, Error *err)
{
    Error ignored;
    Buf tables;
    buf_init(&tables, SQL_MAX);
    for (const char *const *table = r->target->names; *table != NULL; table++) {
        buf_printf(&tables, "%s.%s, ", r->target->schema, *table);
    }
    buf_printf(&tables, "%s.positions", r->target->schema);
    bool frozen = rebuild_pg_freeze(r->pg, buf_c(&tables), err);
    buf_done(&tables);
    return frozen &&
           (rebuild_rows_positions(r, ret, err) || (rebuild_rows_thaw(r, &ignored), false));
}

bool rebuild_rows_thaw(RebuildRows *r, Error *err)
{
    return rebuild_pg_thaw(r->pg, err);
}

static void add_replace(RebuildRows *r, const char *table)
{
    static const char of_different[] = "IN (SELECT tenant_id, person FROM rebuild_different)";
    const char *person = r->target->person;
    buf_printf(
        &r->sql, "DELETE FROM %s.%s AS t WHERE (t.tenant_id, t.%s) %s;", r->target->schema, table,
        person, of_different);
    buf_printf(
        &r->sql, "INSERT INTO %s.%s SELECT t.* FROM %s.%s AS t WHERE (t.tenant_id, t.%s) %s;",
        r->target->schema, table, r->target->copy, table, person, of_different);
}

bool rebuild_rows_replace(RebuildRows *r, bool moves, Error *err)
{
    Error ignored;
    for (const char *const *table = r->target->names; *table != NULL; table++) {
        add_replace(r, *table);
    }
    if (moves) {
        buf_printf(
            &r->sql,
            "DELETE FROM %s.positions WHERE projection = '%s';"
            "INSERT INTO %s.positions SELECT * FROM %s.positions;",
            r->target->schema, r->target->projection, r->target->schema, r->target->copy);
    }
    buf_cstr(&r->sql, "COMMIT");
    return run(r, "replace the rows that differ", err) || (rebuild_rows_thaw(r, &ignored), false);
}

bool rebuild_rows_drop(RebuildRows *r, Error *err)
{
    buf_printf(&r->sql, "DROP SCHEMA IF EXISTS %s CASCADE", r->target->copy);
    return run(r, "drop the copy", err);
}
