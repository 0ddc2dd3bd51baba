// SPDX-License-Identifier: Apache-2.0
// The statements that make a batch of rows: claim, adopt, note, renew, release.
//
// A claim chooses in materialized steps: joined directly, the planner may run a choice (LIMIT, SKIP
// LOCKED) once per row. Held rows are excluded by NOT IN over a sub-select, which is one hash; as a
// join it may become a loop over thousands of keys per row.
#include "common/outbox/sql/sql_text.h"

// With ordering keys a claim reads this many times its limit, so that one busy key does not make it
// read the whole backlog.
#define WINDOW "4"

// A claim takes at most this many bytes of stored values (JSON may be compressed), but at least one
// row.
#define BYTES_MAX "8388608"

#define CLAIMS "stentor_outbox.claims"
#define REQUESTS "stentor_outbox.requests"

// ingest accepts a NotifyCommand's time for 7 days (NotifyCommand.produced_at_us), so none older
// than this is published: a request that was recorded but not published gets a new time, and a row
// that is set back while its request is still open gets a new request.
#define STALE "interval '6 days'"

typedef struct Request {
    const char *join;    // of the row's last request
    const char *attempt; // int4
    const char *made_at; // timestamptz
} Request;

static Request request_of(const SqlParts *p)
{
    if (!mapping_is_request(p->sql->mapping)) {
        return (Request){"", "0", "now()"};
    }
    return (Request){
        arena_printf(
            p->arena,
            " LEFT JOIN LATERAL (SELECT l.attempt, l.made_at, l.state IN ('sent', 'failed',"
            " 'again') OR (l.state <> 'noted' AND l.made_at < now() - " STALE
            ") AS ended FROM " REQUESTS " AS l WHERE l.mapping = %s AND l.row_key ="
            " c.row_key ORDER BY l.attempt DESC LIMIT 1) AS l ON true",
            p->mapping),
        "coalesce(l.attempt + l.ended::int4, 1)",
        "coalesce(CASE WHEN NOT l.ended THEN l.made_at END, now())"};
}

static bool has_edge(const Mapping *m)
{
    return m->position.len > 0 && m->order_count > 0 && str_eq(m->order_by[0], m->position);
}

// The edge is passed on within the transaction, so that both statements read the same rows.
#define EDGE "coalesce(nullif(current_setting('stentor_outbox.edge', true), '')::int8, %s)"
#define POSITION_MAX "9223372036854775807"

static const char *edge_text(const SqlParts *p)
{
    return arena_printf(
        p->arena,
        "SELECT e.top, e.n, set_config('stentor_outbox.edge', coalesce(e.top::text, ''), true)"
        " FROM (SELECT max(x.p) AS top, count(*) AS n FROM (SELECT %s AS p FROM %s AS t"
        " WHERE $1::int8 IS NULL OR %s > $1::int8 ORDER BY t.%s LIMIT $2::int8) AS x) AS e",
        p->position, p->table, p->position, sql_name(p->arena, p->sql->mapping->position));
}

// The rows that a claim may take; $1 claim_id, $5 position.
static const char *free_rows(const SqlParts *p)
{
    const char *after = p->sql->mapping->position.len == 0
                            ? "true"
                            : arena_printf(p->arena, "%s > $5::int8", p->position);
    if (has_edge(p->sql->mapping)) {
        after = arena_printf(p->arena, "%s) AND (%s <= " EDGE, after, p->position, POSITION_MAX);
    }
    return arena_printf(
        p->arena,
        "FROM %s AS t WHERE %s%s AND ($5::int8 IS NULL OR %s)"
        " AND NOT EXISTS (SELECT FROM " CLAIMS " AS a WHERE a.claim_id = $1::text)"
        " AND t.%s::text NOT IN (SELECT unnest(h.row_keys) FROM " CLAIMS " AS h"
        " WHERE h.mapping = %s) ORDER BY %s",
        p->table, p->pending, p->untaken, after, p->id, p->mapping, p->order);
}

static const char *row_columns(const SqlParts *p, const char *key)
{
    return arena_printf(
        p->arena,
        "t.%s AS id, t.%s::text AS row_key, %s AS okey, %s AS position, %s AS created,"
        " %s AS size%s",
        p->id, p->id, key, p->position, p->created, p->size, p->fields);
}

#define CUT                                                                                        \
    "chosen AS MATERIALIZED (SELECT k.* FROM (SELECT w.*, sum(w.size) OVER (ORDER BY w.ord)"       \
    " - w.size AS before FROM whole AS w) AS k WHERE k.before < " BYTES_MAX ")"

// No lock is waited for: lock in the order of the table.
static const char *choose_plainly(const SqlParts *p)
{
    return arena_printf(
        p->arena,
        "locked AS MATERIALIZED (SELECT %s %s LIMIT $4::int4 FOR UPDATE OF t SKIP LOCKED),"
        " whole AS MATERIALIZED (SELECT k.*, row_number() OVER () AS ord FROM locked AS k), " CUT,
        row_columns(p, "NULL::text"), free_rows(p));
}

// Of one key only rows before which no row was skipped as held or locked. IS TRUE: the condition is
// checked again on the locked row, without an index.
static const char *choose_by_key(const SqlParts *p)
{
    return arena_printf(
        p->arena,
        "near AS MATERIALIZED (SELECT t.%s AS id, %s AS okey %s LIMIT " WINDOW " * $4::int4),"
        " free AS MATERIALIZED (SELECT n.id, n.okey, row_number() OVER () AS ord FROM near AS n"
        " WHERE n.okey IS NULL OR n.okey NOT IN (SELECT unnest(h.ordering_keys) FROM " CLAIMS
        " AS h WHERE h.mapping = %s) LIMIT $4::int4),"
        " locked AS MATERIALIZED (SELECT f.ord, %s FROM free AS f JOIN %s AS t ON t.%s = f.id"
        " WHERE (%s) IS TRUE FOR UPDATE OF t SKIP LOCKED),"
        " skipped AS MATERIALIZED (SELECT f.okey, min(f.ord) AS ord FROM free AS f"
        " WHERE f.okey IS NOT NULL AND f.ord NOT IN (SELECT k.ord FROM locked AS k)"
        " GROUP BY f.okey),"
        " whole AS MATERIALIZED (SELECT k.* FROM locked AS k LEFT JOIN skipped AS s"
        " ON s.okey = k.okey WHERE s.ord IS NULL OR k.ord < s.ord), " CUT,
        p->id, p->key, free_rows(p), p->mapping, row_columns(p, "f.okey"), p->table, p->id,
        p->plain);
}

static const char *claimed_moment(const SqlParts *p)
{
    const Assigns *claimed = &p->sql->mapping->moments[MOMENT_CLAIMED];
    SqlValues none = {0};
    return claimed->count == 0
               ? ""
               : arena_printf(
                     p->arena,
                     ", moment AS (UPDATE %s AS t SET %s FROM numbered AS c WHERE t.%s = c.id)",
                     p->table, sql_assigns(p->sql, claimed, &none), p->id);
}

static const char *answer(const SqlParts *p)
{
    return arena_printf(
        p->arena,
        " SELECT c.row_key, c.attempt, c.made_at, c.okey, c.position, c.created,"
        " (SELECT o.id::text FROM stentor_outbox.source AS o)%s"
        " FROM numbered AS c%s ORDER BY c.ord",
        p->names, p->members);
}

static const char *claim_text(const SqlParts *p)
{
    Request l = request_of(p);
    return arena_printf(
        p->arena,
        "WITH %s, numbered AS MATERIALIZED (SELECT c.*, %s AS attempt, %s AS made_at"
        " FROM chosen AS c%s),"
        " claimed AS (INSERT INTO " CLAIMS " (claim_id, mapping, relay, claimed_at, claimed_until,"
        " row_keys, attempts, ordering_keys) SELECT $1::text, %s, $2::text, clock_timestamp(),"
        " clock_timestamp() + $3::int8 * interval '1 millisecond',"
        " array_agg(c.row_key ORDER BY c.ord), array_agg(c.attempt ORDER BY c.ord),"
        " coalesce(array_agg(DISTINCT c.okey) FILTER (WHERE c.okey IS NOT NULL), '{}')"
        " FROM numbered AS c HAVING count(*) > 0)%s%s",
        p->key == NULL ? choose_plainly(p) : choose_by_key(p), l.attempt, l.made_at, l.join,
        p->mapping, claimed_moment(p), answer(p));
}

// A row that cannot be claimed: its table rejects the moment `claimed`.
static const char *aside_text(const SqlParts *p)
{
    return arena_printf(
        p->arena,
        "WITH %s INSERT INTO stentor_outbox.rejected_rows AS f (mapping, row_key, reason, "
        "rejected_at)"
        " SELECT %s, c.row_key, $2::text, now() FROM chosen AS c WHERE $3::int8 IS NULL"
        " ON CONFLICT (mapping, row_key) DO UPDATE SET reason = excluded.reason,"
        " rejected_at = now(), again = false RETURNING f.row_key",
        p->key == NULL ? choose_plainly(p) : choose_by_key(p), p->mapping);
}

// Rows whose requests the dead relay has already published are skipped: feedback settles them. A
// claim without any row left (deleted rows) ends here, or it would be adopted again and again.
static const char *adopt_text(const SqlParts *p)
{
    const char *request = "";
    const char *made_at = "now()";
    const char *unsent = "true";
    if (mapping_is_request(p->sql->mapping)) {
        request = arena_printf(
            p->arena,
            " LEFT JOIN " REQUESTS " AS l ON l.mapping = %s AND l.row_key = k.row_key"
            " AND l.attempt = k.attempt",
            p->mapping);
        made_at = "coalesce(l.made_at, now())";
        unsent = "(l.state IS NULL OR l.state = 'noted')";
    }
    return arena_printf(
        p->arena,
        "WITH taken AS MATERIALIZED (SELECT a.claim_id, a.row_keys, a.attempts FROM " CLAIMS
        " AS a WHERE a.mapping = %s AND a.claimed_until < clock_timestamp()"
        " ORDER BY a.claimed_until LIMIT 1 FOR UPDATE SKIP LOCKED),"
        " numbered AS MATERIALIZED (SELECT k.ord, k.attempt, %s AS made_at, %s FROM taken AS x,"
        " unnest(x.row_keys, x.attempts) WITH ORDINALITY AS k (row_key, attempt, ord)"
        " JOIN %s AS t ON t.%s = k.row_key::%s%s WHERE %s),"
        " ended AS (DELETE FROM " CLAIMS " AS a USING taken AS x WHERE a.claim_id = x.claim_id"
        " AND NOT EXISTS (SELECT FROM numbered)),"
        " kept AS (UPDATE " CLAIMS " AS a SET claim_id = $1::text, relay = $2::text,"
        " claimed_at = clock_timestamp(), claimed_until = clock_timestamp()"
        " + $3::int8 * interval '1 millisecond' FROM taken AS x WHERE a.claim_id = x.claim_id"
        " AND EXISTS (SELECT FROM numbered))%s",
        p->mapping, made_at, row_columns(p, p->key == NULL ? "NULL::text" : p->key), p->table,
        p->id, p->id_type, request, unsent, answer(p));
}

static const char *note_text(const SqlParts *p)
{
    return arena_printf(
        p->arena,
        "INSERT INTO " REQUESTS " AS l (mapping, row_key, attempt, notification_id, state, made_at)"
        " SELECT %s, n.row_key, n.attempt, n.notification_id, 'noted', n.made_at"
        " FROM unnest($2::text[], $3::int4[], $4::text[], $5::timestamptz[])"
        " AS n (row_key, attempt, notification_id, made_at)"
        " WHERE EXISTS (SELECT FROM " CLAIMS " AS a WHERE a.claim_id = $1::text)"
        " ON CONFLICT (mapping, row_key, attempt) DO UPDATE SET"
        " notification_id = CASE WHEN l.state = 'noted' AND l.made_at < now() - " STALE
        " THEN excluded.notification_id ELSE l.notification_id END,"
        " made_at = CASE WHEN l.state = 'noted' AND l.made_at < now() - " STALE
        " THEN excluded.made_at ELSE l.made_at END"
        " RETURNING l.row_key, l.attempt, l.notification_id, l.made_at",
        p->mapping);
}

// ---- first start of a mapping with states ----

static const char *state_join(const SqlParts *p, int index)
{
    const MappingState *s = &p->sql->mapping->states[index];
    const char *on = "";
    for (int i = 0; i < s->key_count; i++) {
        on = arena_printf(
            p->arena, "%s%ss%d.%s = t.%s", on, i == 0 ? "" : " AND ", index,
            sql_name(p->arena, s->keys[i]), sql_name(p->arena, s->rows[i]));
    }
    return arena_printf(
        p->arena, " LEFT JOIN %s AS s%d ON %s", sql_table(p->arena, s->table), index, on);
}

// Rows that the application's own delivery published before the first relay started.
static const char *begin_text(const SqlParts *p)
{
    const Mapping *m = p->sql->mapping;
    const char *joins = "";
    const char *done = "false";
    for (int i = 0; i < m->state_count; i++) {
        joins = arena_printf(p->arena, "%s%s", joins, state_join(p, i));
        done = arena_printf(
            p->arena, "%s OR %s <= s%d.%s", done, p->position, i,
            sql_name(p->arena, m->states[i].position));
    }
    return arena_printf(
        p->arena,
        "WITH first AS (INSERT INTO stentor_outbox.initialised_mappings (mapping, initialised_at) "
        "VALUES (%s, now())"
        " ON CONFLICT DO NOTHING RETURNING 1)"
        " INSERT INTO stentor_outbox.published (mapping, row_key, published_at)"
        " SELECT %s, t.%s::text, now() FROM %s AS t%s WHERE EXISTS (SELECT FROM first) AND (%s)"
        " ON CONFLICT DO NOTHING",
        p->mapping, p->mapping, p->id, p->table, joins, done);
}

void relay_claim_sql(RelaySql *sql, const SqlParts *p)
{
    sql->adopt = (DbStatement){"outbox_adopt", adopt_text(p)};
    sql->claim = (DbStatement){"outbox_claim", claim_text(p)};
    sql->aside = (DbStatement){"outbox_claim_aside", aside_text(p)};
    if (has_edge(sql->mapping)) {
        sql->edge = (DbStatement){"outbox_edge", edge_text(p)};
    }
    if (sql->mapping->state_count > 0) {
        sql->begin = (DbStatement){"outbox_begin", begin_text(p)};
    }
    if (mapping_is_request(sql->mapping)) {
        sql->note = (DbStatement){"outbox_note", note_text(p)};
    }
    sql->renew = (DbStatement){
        "outbox_renew", "UPDATE " CLAIMS " SET claimed_until = clock_timestamp()"
                        " + $2::int8 * interval '1 millisecond' WHERE claim_id = $1::text"
                        " RETURNING claim_id"};
    sql->release = (DbStatement){
        "outbox_release", "DELETE FROM " CLAIMS " WHERE claim_id = $1::text"
                          " AND coalesce(current_setting('" SQL_HELD "', true), '') <> '1'"
                          " RETURNING claim_id"};
}
