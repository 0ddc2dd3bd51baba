// SPDX-License-Identifier: Apache-2.0
// Counting pending rows, and deleting old ones.
#include <assert.h>
#include <inttypes.h>

#include "common/outbox/sql/sql_text.h"

#define REQUESTS_KEPT "interval '30 days'"

static const char *backlog_text(const SqlParts *p)
{
    const char *after = p->sql->mapping->position.len == 0
                            ? "true"
                            : arena_printf(p->arena, "%s > $2::int8", p->position);
    return arena_printf(
        p->arena,
        "WITH p AS MATERIALIZED (SELECT %s AS created FROM %s AS t WHERE %s%s"
        " AND ($2::int8 IS NULL OR %s) ORDER BY %s LIMIT $1::int8)"
        " SELECT count(*), min(p.created), (SELECT count(*) FROM stentor_outbox.claims AS a"
        " WHERE a.mapping = %s), (SELECT count(*) FROM (SELECT FROM stentor_outbox.rejected_rows "
        "AS f"
        " WHERE f.mapping = %s AND NOT f.again LIMIT $1::int8) AS r) FROM p",
        p->created, p->table, p->pending, p->untaken, after, p->order, p->mapping, p->mapping);
}

static const char *keep_text(const SqlParts *p, const MappingKeep *keep)
{
    const Mapping *m = p->sql->mapping;
    const char *pending =
        m->state_count == 0 ? "" : arena_printf(p->arena, " AND NOT (%s)", p->pending);
    return arena_printf(
        p->arena,
        "WITH old AS MATERIALIZED (SELECT t.%s AS id FROM %s AS t WHERE %s AND t.%s < now()"
        " - %" PRId64 " * interval '1 second'%s LIMIT $1::int4 FOR UPDATE OF t SKIP LOCKED),"
        " requests AS (DELETE FROM stentor_outbox.requests AS l USING old WHERE l.mapping = %s"
        " AND l.row_key = old.id::text),"
        " published AS (DELETE FROM stentor_outbox.published AS u USING old WHERE u.mapping = %s"
        " AND u.row_key = old.id::text),"
        " gone AS (DELETE FROM %s AS t USING old WHERE t.%s = old.id RETURNING 1)"
        " SELECT count(*) FROM gone",
        p->id, p->table, sql_conditions(p->sql, &m->moments[keep->moment], true),
        sql_name(p->arena, keep->column), keep->age_s, pending, p->mapping, p->mapping, p->table,
        p->id);
}

// A request is deleted when no feedback can arrive for it and its row does not need it, or is
// deleted.
static const char *keep_requests_text(const SqlParts *p)
{
    return arena_printf(
        p->arena,
        "WITH old AS MATERIALIZED (SELECT l.notification_id FROM stentor_outbox.requests AS l"
        " WHERE l.mapping = %s AND l.made_at < now() - " REQUESTS_KEPT
        " AND CASE WHEN l.ended_at < now() - " REQUESTS_KEPT
        " THEN NOT EXISTS (SELECT FROM %s AS t WHERE t.%s = l.row_key::%s AND %s)"
        " WHEN l.ended_at IS NULL"
        " THEN NOT EXISTS (SELECT FROM %s AS t WHERE t.%s = l.row_key::%s) END LIMIT $1::int4),"
        " gone AS (DELETE FROM stentor_outbox.requests AS l USING old"
        " WHERE l.notification_id = old.notification_id RETURNING 1) SELECT count(*) FROM gone",
        p->mapping, p->table, p->id, p->id_type, p->plain, p->table, p->id, p->id_type);
}

// Rows of stentor_outbox about rows that the application has deleted.
static const char *keep_gone_text(const SqlParts *p, const char *table)
{
    return arena_printf(
        p->arena,
        "WITH old AS MATERIALIZED (SELECT f.row_key FROM stentor_outbox.%s AS f"
        " WHERE f.mapping = %s AND NOT EXISTS (SELECT FROM %s AS t WHERE t.%s = f.row_key::%s)"
        " LIMIT $1::int4),"
        " gone AS (DELETE FROM stentor_outbox.%s AS f USING old WHERE f.mapping = %s"
        " AND f.row_key = old.row_key RETURNING 1) SELECT count(*) FROM gone",
        table, p->mapping, p->table, p->id, p->id_type, table, p->mapping);
}

static void add_keep(RelaySql *sql, const char *name, const char *text)
{
    assert(sql->keep_count < RELAY_KEEP_MAX);
    sql->keep[sql->keep_count++] = (DbStatement){name, text};
}

void relay_keep_sql(RelaySql *sql, const SqlParts *p)
{
    const Mapping *m = sql->mapping;
    sql->backlog = (DbStatement){"outbox_backlog", backlog_text(p)};
    sql->keep_count = 0;
    for (int i = 0; i < m->keep_count; i++) {
        const char *name = arena_printf(p->arena, "outbox_keep_%s", moment_name(m->keep[i].moment));
        add_keep(sql, name, keep_text(p, &m->keep[i]));
    }
    add_keep(sql, "outbox_keep_rejected", keep_gone_text(p, "rejected_rows"));
    if (m->state_count > 0) {
        add_keep(sql, "outbox_keep_gone", keep_gone_text(p, "published"));
    }
    if (mapping_is_request(m)) {
        add_keep(sql, "outbox_keep_requests", keep_requests_text(p));
    }
}
