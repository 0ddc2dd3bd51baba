// SPDX-License-Identifier: Apache-2.0
// The outcome of a batch: mark, give_back, refuse.
#include "common/outbox/sql/sql_text.h"

#define CLAIMS "stentor_outbox.claims"
#define REQUESTS "stentor_outbox.requests"
#define OURS "EXISTS (SELECT FROM " CLAIMS " AS a WHERE a.claim_id = $1::text)"

static const SqlValues NO_VALUES = {0};

// Rows of stentor_outbox are looked up one by one by key, and their ctids are the condition. As a
// join, a new table without statistics would be read whole for each batch. A row that changes at
// the same moment is skipped: a request with feedback is no longer `noted`.
#define REFUSED_OF(keys)                                                                           \
    "f.ctid = ANY (ARRAY(SELECT (SELECT x.ctid FROM stentor_outbox.rejected_rows AS x"             \
    " WHERE x.mapping = %s AND x.row_key = k.row_key) FROM " keys " AS k))"
#define NOTED_OF(keys)                                                                             \
    "l.ctid = ANY (ARRAY(SELECT (SELECT x.ctid FROM " REQUESTS " AS x WHERE x.mapping = %s"        \
    " AND x.row_key = k.row_key AND x.attempt = k.attempt) FROM " keys " AS k))"                   \
    " AND l.state = 'noted'"

const char *sql_moment_update(
    const SqlParts *p, MappingMoment moment, const SqlValues *values, const char *source,
    const char *where)
{
    const Assigns *assigns = &p->sql->mapping->moments[moment];
    return assigns->count == 0 ? ""
                               : arena_printf(
                                     p->arena,
                                     "UPDATE %s AS t SET %s FROM %s AS n WHERE t.%s ="
                                     " n.row_key::%s%s RETURNING 1",
                                     p->table, sql_assigns(p->sql, assigns, values), source, p->id,
                                     p->id_type, where);
}

// ---- mark ----

static const char *state_update(const SqlParts *p, int index)
{
    const MappingState *s = &p->sql->mapping->states[index];
    const char *columns = "";
    const char *on = "";
    const char *group = "";
    const char *given = "";
    for (int i = 0; i < s->key_count; i++) {
        const char *row = sql_name(p->arena, s->rows[i]);
        const char *and = i == 0 ? "" : " AND ";
        columns = arena_printf(p->arena, "%st.%s AS k%d, ", columns, row, i);
        on = arena_printf(p->arena, "%s%ss.%s = m.k%d", on, and, sql_name(p->arena, s->keys[i]), i);
        group = arena_printf(p->arena, "%s%st.%s", group, i == 0 ? "" : ", ", row);
        given = arena_printf(p->arena, "%s%st.%s IS NOT NULL", given, and, row);
    }
    const char *position = sql_name(p->arena, s->position);
    const char *delivered =
        s->delivered.len == 0
            ? ""
            : arena_printf(p->arena, ", %s = now()", sql_name(p->arena, s->delivered));
    return arena_printf(
        p->arena,
        ", state%d AS (UPDATE %s AS s SET %s = greatest(coalesce(s.%s, m.position), m.position)%s"
        " FROM (SELECT %smax(%s) AS position FROM k JOIN %s AS t ON t.%s = k.row_key::%s WHERE %s"
        " GROUP BY %s) AS m WHERE %s)",
        index, sql_table(p->arena, s->table), position, position, delivered, columns, p->position,
        p->table, p->id, p->id_type, given, group, on);
}

// rows: those that this transaction has locked, in the order of their ids, without waiting; held:
// those that another session has locked, to be marked in another pass.
static const char *locked_rows(const SqlParts *p)
{
    return arena_printf(
        p->arena,
        ", rows AS MATERIALIZED (SELECT k.* FROM k JOIN %s AS t ON t.%s = k.row_key::%s"
        " ORDER BY t.%s FOR NO KEY UPDATE OF t SKIP LOCKED),"
        " held AS MATERIALIZED (SELECT k.row_key FROM k WHERE k.row_key NOT IN"
        " (SELECT r.row_key FROM rows AS r) AND EXISTS (SELECT FROM %s AS t WHERE t.%s ="
        " k.row_key::%s OFFSET 0)), free AS MATERIALIZED (SELECT k.* FROM k"
        " WHERE k.row_key NOT IN (SELECT h.row_key FROM held AS h))",
        p->table, p->id, p->id_type, p->id, p->table, p->id, p->id_type);
}

// `release` reads the setting later in the same transaction.
static const char *count_and_held(const SqlParts *p, const char *counted)
{
    return arena_printf(
        p->arena,
        " SELECT (SELECT count(*) FROM %s), h.row_key, CASE WHEN h.row_key IS NOT NULL THEN"
        " set_config('" SQL_HELD "', '1', true) END FROM (SELECT) AS one LEFT JOIN held AS h"
        " ON true",
        counted);
}

static const char *mark_event(const SqlParts *p)
{
    const Mapping *m = p->sql->mapping;
    const char *states = "";
    const char *moment = sql_moment_update(p, MOMENT_PUBLISHED, &NO_VALUES, "rows", "");
    bool writes = moment[0] != '\0';
    for (int i = 0; i < m->state_count; i++) {
        states = arena_printf(p->arena, "%s%s", states, state_update(p, i));
    }
    if (m->state_count > 0) {
        // Of mappings with states: records each published row.
        states = arena_printf(
            p->arena,
            "%s, kept AS (INSERT INTO stentor_outbox.published (mapping, row_key, published_at)"
            " SELECT %s, k.row_key, now() FROM k ON CONFLICT DO NOTHING)",
            states, p->mapping);
    }
    return arena_printf(
        p->arena,
        "WITH k AS MATERIALIZED (SELECT k.row_key FROM unnest($1::text[], $2::int4[])"
        " AS k (row_key, attempt))%s%s%s%s%s,"
        " asked AS (DELETE FROM stentor_outbox.rejected_rows AS f WHERE " REFUSED_OF("k") ")%s",
        states, writes ? locked_rows(p) : "", writes ? ", moment AS (" : "", moment,
        writes ? ")" : "", p->mapping,
        writes ? count_and_held(p, "moment") : " SELECT count(*), NULL::text FROM k");
}

// A request that already has feedback is not marked: the feedback is newer.
static const char *mark_request(const SqlParts *p)
{
    const char *moment = sql_moment_update(p, MOMENT_PUBLISHED, &NO_VALUES, "moved", "");
    bool writes = moment[0] != '\0';
    const char *requests = writes ? arena_printf(p->arena, NOTED_OF("free"), p->mapping)
                                  : arena_printf(p->arena, NOTED_OF("k"), p->mapping);
    return arena_printf(
        p->arena,
        "WITH k AS MATERIALIZED (SELECT k.* FROM unnest($1::text[], $2::int4[])"
        " AS k (row_key, attempt))%s, moved AS (UPDATE " REQUESTS " AS l SET state = 'published'"
        " WHERE %s RETURNING l.row_key)%s%s%s,"
        " asked AS (DELETE FROM stentor_outbox.rejected_rows AS f WHERE " REFUSED_OF("moved") ")%s",
        writes ? locked_rows(p) : "", requests, writes ? ", moment AS (" : "", moment,
        writes ? ")" : "", p->mapping,
        writes ? count_and_held(p, "moved") : " SELECT count(*), NULL::text FROM moved");
}

// ---- give back ----

// Undoes `claimed`: the pending columns that it changed, and `unpublished` on top.
static const char *give_back_sets(const SqlParts *p)
{
    const Mapping *m = p->sql->mapping;
    const Assigns *unpublished = &m->moments[MOMENT_UNPUBLISHED];
    const SqlValues values = {.reason = "n.reason"};
    const char *text = sql_assigns(p->sql, unpublished, &values);
    for (size_t i = 0; i < m->pending.count; i++) {
        Assigns one = {&m->pending.items[i], 1};
        Str column = one.items->column;
        if (assigns_find(&m->moments[MOMENT_CLAIMED], column) != NULL &&
            assigns_find(unpublished, column) == NULL) {
            text = arena_printf(
                p->arena, "%s%s%s", text, text[0] == '\0' ? "" : ", ",
                sql_assigns(p->sql, &one, &values));
        }
    }
    return text;
}

// Only a row that is still as `claimed` has left it, and that has no feedback. IS TRUE: a condition
// on rows found by key, not a way to find rows.
static const char *still_claimed(const SqlParts *p)
{
    const Mapping *m = p->sql->mapping;
    const char *text = "";
    for (size_t i = 0; i < m->pending.count; i++) {
        const Assign *a = assigns_find(&m->moments[MOMENT_CLAIMED], m->pending.items[i].column);
        if (a != NULL && (a->kind == ASSIGN_LITERAL || a->kind == ASSIGN_NULL)) {
            Assigns one = {a, 1};
            text = arena_printf(
                p->arena, "%s AND (%s) IS TRUE", text, sql_conditions(p->sql, &one, false));
        }
    }
    return !mapping_is_request(m)
               ? text
               : arena_printf(
                     p->arena,
                     "%s AND NOT EXISTS (SELECT FROM " REQUESTS " AS l WHERE l.mapping = %s"
                     " AND l.row_key = n.row_key AND l.state IN ('published', 'retrying') OFFSET "
                     "0)",
                     text, p->mapping);
}

static const char *give_back_text(const SqlParts *p)
{
    const char *sets = give_back_sets(p);
    if (sets[0] == '\0') { // a row without a claim is pending
        return "SELECT count(*) FROM unnest($2::text[], $3::text[]) AS n (row_key, reason)"
               " WHERE " OURS;
    }
    return arena_printf(
        p->arena,
        "WITH given AS (UPDATE %s AS t SET %s FROM unnest($2::text[], $3::text[])"
        " AS n (row_key, reason) WHERE t.%s = n.row_key::%s AND " OURS "%s RETURNING 1)"
        " SELECT count(*) FROM given",
        p->table, sets, p->id, p->id_type, still_claimed(p));
}

// ---- refuse ----

static const char *refuse_text(const SqlParts *p)
{
    const Mapping *m = p->sql->mapping;
    const SqlValues values = {.reason = "n.reason"};
    const char *moment = sql_moment_update(p, mapping_refusal(m), &values, "n", "");
    const char *kept =
        mapping_takes_out(m, mapping_refusal(m))
            ? ""
            : arena_printf(
                  p->arena,
                  ", kept AS (INSERT INTO stentor_outbox.rejected_rows AS f (mapping,"
                  " row_key, reason, rejected_at) SELECT %s, n.row_key, n.reason,"
                  " now() FROM n ON CONFLICT (mapping, row_key) DO UPDATE SET"
                  " reason = excluded.reason, rejected_at = now(), again = false)",
                  p->mapping);
    return arena_printf(
        p->arena,
        "WITH n AS MATERIALIZED (SELECT n.* FROM unnest($2::text[], $3::int4[], $4::text[])"
        " AS n (row_key, attempt, reason) WHERE " OURS "),"
        " gone AS (DELETE FROM " REQUESTS " AS l WHERE " NOTED_OF("n") ")%s%s%s%s"
                                                                       " SELECT count(*) FROM n",
        p->mapping, kept, moment[0] == '\0' ? "" : ", moment AS (", moment,
        moment[0] == '\0' ? "" : ")");
}

void relay_mark_sql(RelaySql *sql, const SqlParts *p)
{
    bool request = mapping_is_request(sql->mapping);
    sql->mark = (DbStatement){"outbox_mark", request ? mark_request(p) : mark_event(p)};
    sql->give_back = (DbStatement){"outbox_give_back", give_back_text(p)};
    sql->refuse = (DbStatement){"outbox_refuse", refuse_text(p)};
}
