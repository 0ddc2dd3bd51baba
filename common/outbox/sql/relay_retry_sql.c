// SPDX-License-Identifier: Apache-2.0
// The statements of an operator's commands: index check, failed rows, retry.
#include "common/outbox/sql/sql_text.h"

#define REQUESTS "stentor_outbox.requests"

static const char *index_hint(const SqlParts *p)
{
    const Mapping *m = p->sql->mapping;
    const char *columns = "";
    const char *where = "";
    for (int i = 0; i < m->order_count; i++) {
        columns = arena_printf(
            p->arena, "%s%s%s", columns, i == 0 ? "" : ", ", sql_name(p->arena, m->order_by[i]));
    }
    for (size_t i = 0; i < m->pending.count; i++) {
        const Assign *a = &m->pending.items[i];
        where = arena_printf(
            p->arena, "%s%s%s%s", where, i == 0 ? " WHERE " : " AND ",
            sql_name(p->arena, a->column),
            a->kind == ASSIGN_NULL
                ? " IS NULL"
                : arena_printf(p->arena, " = %s", sql_literal(p->arena, a->text)));
    }
    return arena_printf(p->arena, "CREATE INDEX ON %s (%s)%s", p->table, columns, where);
}

// The row itself shows that it failed.
static bool row_says_failed(const Mapping *m)
{
    return mapping_takes_out(m, MOMENT_FAILED);
}

static const char *reason_column(const SqlParts *p)
{
    const Assigns *failed = &p->sql->mapping->moments[MOMENT_FAILED];
    for (size_t i = 0; i < failed->count; i++) {
        if (failed->items[i].kind == ASSIGN_REASON) {
            return arena_printf(
                p->arena, "t.%s::text", sql_name(p->arena, failed->items[i].column));
        }
    }
    return "NULL::text";
}

static const char *failed_rows_text(const SqlParts *p)
{
    return arena_printf(
        p->arena,
        "SELECT t.%s::text, coalesce(%s, l.reason), l.ended_at FROM %s AS t LEFT JOIN LATERAL"
        " (SELECT l.reason, l.ended_at FROM " REQUESTS " AS l WHERE l.mapping = %s AND l.row_key ="
        " t.%s::text ORDER BY l.attempt DESC LIMIT 1) AS l ON true WHERE %s LIMIT $1::int4",
        p->id, reason_column(p), p->table, p->mapping, p->id,
        sql_conditions(p->sql, &p->sql->mapping->moments[MOMENT_FAILED], true));
}

// Failed rows count by the columns that also make a row pending: the index of the claim may serve.
static const char *tally_text(const SqlParts *p)
{
    const Mapping *m = p->sql->mapping;
    const char *failed =
        row_says_failed(m)
            ? arena_printf(
                  p->arena, "SELECT FROM %s AS t WHERE %s LIMIT $1::int8", p->table,
                  sql_conditions(p->sql, &m->moments[MOMENT_FAILED], true))
            : arena_printf(
                  p->arena,
                  "SELECT FROM " REQUESTS " AS l WHERE l.mapping = %s AND l.state = 'failed'"
                  " AND NOT EXISTS (SELECT FROM " REQUESTS " AS x WHERE x.mapping = l.mapping"
                  " AND x.row_key = l.row_key AND x.attempt > l.attempt) LIMIT $1::int8",
                  p->mapping);
    return arena_printf(
        p->arena,
        "SELECT 0 AS retries, (SELECT count(*) FROM (%s) AS f) UNION ALL"
        " SELECT least(l.attempts, %d), count(*) FROM " REQUESTS " AS l WHERE l.mapping = %s"
        " AND l.state = 'retrying' AND l.attempts > 0 GROUP BY 1",
        failed, (int)RELAY_RETRIES_MAX, p->mapping);
}

static const char *failed_requests_text(const SqlParts *p)
{
    return arena_printf(
        p->arena,
        "SELECT l.row_key, l.reason, l.ended_at FROM " REQUESTS " AS l WHERE l.mapping = %s"
        " AND l.state = 'failed' AND NOT EXISTS (SELECT FROM " REQUESTS " AS x WHERE x.mapping ="
        " l.mapping AND x.row_key = l.row_key AND x.attempt > l.attempt) ORDER BY l.ended_at DESC"
        " LIMIT $1::int4",
        p->mapping);
}

// With states a retried row stays in rejected_rows until it is published: only so is it found
// behind its state's position.
static const char *retry_refused(const SqlParts *p)
{
    const char *where = arena_printf(
        p->arena, "f.mapping = %s AND f.row_key = k.row_key RETURNING f.row_key", p->mapping);
    return p->sql->mapping->state_count > 0
               ? arena_printf(
                     p->arena,
                     "UPDATE stentor_outbox.rejected_rows AS f SET again = true FROM k WHERE %s",
                     where)
               : arena_printf(
                     p->arena, "DELETE FROM stentor_outbox.rejected_rows AS f USING k WHERE %s",
                     where);
}

static const char *retry_requests(const SqlParts *p)
{
    return arena_printf(
        p->arena,
        ", last AS MATERIALIZED (SELECT DISTINCT ON (l.row_key) l.row_key, l.attempt, l.state"
        " FROM k JOIN " REQUESTS " AS l ON l.mapping = %s AND l.row_key = k.row_key"
        " ORDER BY l.row_key, l.attempt DESC),"
        " requests AS (UPDATE " REQUESTS " AS l SET state = 'again' FROM last AS x"
        " WHERE l.mapping = %s AND l.row_key = x.row_key AND l.attempt = x.attempt"
        " AND (l.state = 'failed' OR ($2::bool AND l.state <> 'noted')) RETURNING l.row_key)",
        p->mapping, p->mapping);
}

// The row shows that it failed. A sent row may look the same; its request tells them apart.
static const char *retry_rows(const SqlParts *p)
{
    const Mapping *m = p->sql->mapping;
    SqlValues none = {0};
    const char *failed =
        row_says_failed(m) ? sql_conditions(p->sql, &m->moments[MOMENT_FAILED], true) : "false";
    return arena_printf(
        p->arena,
        ", rows AS (UPDATE %s AS t SET %s FROM k WHERE t.%s = k.row_key::%s AND NOT (%s)"
        " AND ($2::bool OR ((%s) AND NOT EXISTS (SELECT FROM last AS x WHERE x.row_key = k.row_key"
        " AND x.state NOT IN ('failed', 'again')))) RETURNING k.row_key)",
        p->table, sql_assigns(p->sql, &m->pending, &none), p->id, p->id_type, p->plain, failed);
}

// The column's value in a row that was pending, was claimed and reached this moment; NULL:
// unchanged.
static const Assign *left_by(const Mapping *m, MappingMoment moment, Str column)
{
    const Assign *a = assigns_find(&m->moments[moment], column);
    a = a != NULL ? a : assigns_find(&m->moments[MOMENT_CLAIMED], column);
    return a != NULL ? a : assigns_find(&m->pending, column);
}

// The condition that the column is as the moment leaves it.
static const char *left_text(const SqlParts *p, const Assign *a)
{
    Assigns one = {a, 1};
    if (a->kind == ASSIGN_LITERAL || a->kind == ASSIGN_NULL) {
        return arena_printf(p->arena, " AND %s", sql_conditions(p->sql, &one, false));
    }
    return arena_printf(p->arena, " AND t.%s IS NOT NULL", sql_name(p->arena, a->column));
}

// The condition that a row is as `claimed` and then a rejection leave it; NULL: it stays pending.
static const char *as_refused(const SqlParts *p, MappingMoment refusal, bool by_all)
{
    const Mapping *m = p->sql->mapping;
    const Assigns *writes = &m->moments[refusal];
    const char *text = "true";
    bool differs = false;
    for (size_t i = 0; i < m->pending.count; i++) {
        const Assign *wanted = &m->pending.items[i];
        const Assign *a = left_by(m, refusal, wanted->column);
        differs = differs || a != wanted;
        text = arena_printf(p->arena, "%s%s", text, left_text(p, a));
    }
    for (size_t i = 0; by_all && i < writes->count; i++) {
        if (assigns_find(&m->pending, writes->items[i].column) == NULL) {
            text = arena_printf(p->arena, "%s%s", text, left_text(p, &writes->items[i]));
        }
    }
    return differs ? text : NULL;
}

static bool surely_differs(const Assign *refused, const Assign *other)
{
    if (refused->kind == ASSIGN_NULL || other->kind == ASSIGN_NULL) {
        return refused->kind != other->kind && other->kind != ASSIGN_REASON;
    }
    return refused->kind == ASSIGN_LITERAL && other->kind == ASSIGN_LITERAL &&
           !str_eq(refused->text, other->text);
}

static bool is_apart_by(
    const Mapping *m, const Assigns *columns, MappingMoment refusal, MappingMoment other)
{
    for (size_t i = 0; i < columns->count; i++) {
        const Assign *a = left_by(m, refusal, columns->items[i].column);
        const Assign *b = left_by(m, other, a->column);
        if (b != NULL && surely_differs(a, b)) {
            return true;
        }
    }
    return false;
}

// A rejected row differs from rows in progress and published rows: in its `pending` columns or,
// by_all, in any column that the rejection writes.
static bool is_apart(const Mapping *m, MappingMoment refusal, bool by_all)
{
    static const MappingMoment others[] = {
        MOMENT_CLAIMED, MOMENT_PUBLISHED, MOMENT_RETRYING, MOMENT_SENT};
    for (size_t i = 0; i < (mapping_is_request(m) ? 4 : 2); i++) {
        if (!is_apart_by(m, &m->pending, refusal, others[i]) &&
            !(by_all && is_apart_by(m, &m->moments[refusal], refusal, others[i]))) {
            return false;
        }
    }
    return true;
}

// Rows that a rejection made no longer pending. If the moment may leave a row pending, the row is
// recorded in stentor_outbox.rejected_rows; if not, the row itself must show it.
static const char *retry_turned_away(const SqlParts *p)
{
    const Mapping *m = p->sql->mapping;
    MappingMoment refusal = mapping_refusal(m);
    bool sure = mapping_takes_out(m, refusal);
    bool by_all = sure && !is_apart(m, refusal, false);
    const char *refused = as_refused(p, refusal, by_all);
    SqlValues none = {0};
    bool is_visible = !sure || (refusal != MOMENT_FAILED && is_apart(m, refusal, true));
    if (refused == NULL || !is_visible) { // failed rows are in `rows`
        return NULL;
    }
    return arena_printf(
        p->arena,
        ", turned AS (UPDATE %s AS t SET %s FROM %s AS k WHERE t.%s = k.row_key::%s AND NOT (%s)"
        " AND %s%s RETURNING k.row_key)",
        p->table, sql_assigns(p->sql, &m->pending, &none), sure ? "k" : "refused", p->id,
        p->id_type, p->plain, refused, mapping_is_request(m) ? " AND NOT $2::bool" : "");
}

static const char *retry_text(const SqlParts *p)
{
    bool request = mapping_is_request(p->sql->mapping);
    const char *turned = retry_turned_away(p);
    return arena_printf(
        p->arena,
        "WITH k AS MATERIALIZED (SELECT k.row_key FROM unnest($1::text[]) AS k (row_key)),"
        " refused AS (%s)%s%s%s SELECT row_key FROM refused WHERE $2::bool IS NOT NULL%s%s",
        retry_refused(p), request ? retry_requests(p) : "", request ? retry_rows(p) : "",
        turned == NULL ? "" : turned,
        request ? " UNION SELECT row_key FROM requests UNION SELECT row_key FROM rows" : "",
        turned == NULL ? "" : " UNION SELECT row_key FROM turned");
}

void relay_retry_sql(RelaySql *sql, const SqlParts *p)
{
    sql->scan = arena_printf(
        p->arena, "SELECT t.%s FROM %s AS t WHERE %s ORDER BY %s LIMIT 1000", p->id, p->table,
        p->plain, p->order);
    sql->index_hint = index_hint(p);
    sql->retry = (DbStatement){"outbox_retry", retry_text(p)};
    if (mapping_is_request(sql->mapping)) {
        bool says = row_says_failed(sql->mapping);
        sql->tally = (DbStatement){"outbox_tally", tally_text(p)};
        sql->failed =
            (DbStatement){"outbox_failed", says ? failed_rows_text(p) : failed_requests_text(p)};
    }
}
