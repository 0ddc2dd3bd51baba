// SPDX-License-Identifier: Apache-2.0
// Writes feedback into rows: feedback, feedback_aside, and for rows that they left:
// pending_feedback, feedback_retry, feedback_later.
//
// No lock on the application's rows is waited for, so that one held there does not block the
// others: rows are locked in the order of their ids, locked ones are skipped and left in
// `pending_feedback`. feedback_retry also updates `requests`, which feedback holds while it writes
// its entry: of two that meet on one request Postgres may end one, which is tried again. A request
// and its entry there are one commit, so a claim never takes a row for a new one because the row
// does not show yet that it is sent.
#include "common/outbox/sql/sql_text.h"

#define REQUESTS "stentor_outbox.requests"
#define PENDING "stentor_outbox.pending_feedback"

// A row is put aside after this many further tries, 1, 2, 4 ... seconds apart.
#define TRIES "4"

typedef struct Written {
    const char *updates; // ", row_sent AS (UPDATE ...)" of the rows in `rows`
    const char *count;
    const char *states; // 'sent', 'failed': moments that write a column; "": none does
} Written;

static Written write_moments(const SqlParts *p)
{
    static const MappingMoment moments[] = {MOMENT_RETRYING, MOMENT_SENT, MOMENT_FAILED};
    const SqlValues values = {.at = "n.at", .reason = "n.reason", .attempts = "n.attempts"};
    Written w = {"", "0", ""};
    for (size_t i = 0; i < sizeof moments / sizeof moments[0]; i++) {
        const char *name = moment_name(moments[i]);
        const char *where = arena_printf(p->arena, " AND n.state = '%s'", name);
        const char *update = sql_moment_update(p, moments[i], &values, "rows", where);
        if (update[0] != '\0') {
            w.updates = arena_printf(p->arena, "%s, row_%s AS (%s)", w.updates, name, update);
            w.count = arena_printf(p->arena, "%s + (SELECT count(*) FROM row_%s)", w.count, name);
            w.states =
                arena_printf(p->arena, "%s%s'%s'", w.states, w.states[0] == '\0' ? "" : ", ", name);
        }
    }
    return w;
}

// A row that is shown as pending while its request is retried is known by its xmin, which is the
// transaction that wrote it: as long as nothing else changes the row, no claim takes it. A row that
// this statement finds locked has another xmin, and cannot be claimed for it is in
// `pending_feedback`.
static bool keeps_xmin(const SqlParts *p)
{
    return mapping_retries_as_pending(p->sql->mapping);
}

// Not by ctid: a request that is marked at the same moment must still get its feedback (found by
// ctid, it would be skipped). IS TRUE: the mapping alone must not be used to find requests.
static const char *changed_requests(const SqlParts *p)
{
    return arena_printf(
        p->arena,
        "WITH changed AS (UPDATE " REQUESTS " AS l SET state = n.state, rank = n.rank,"
        " attempts = n.attempts, reason = n.reason,"
        " ended_at = CASE WHEN n.state IN ('sent', 'failed') THEN n.at END%s"
        " FROM unnest($1::text[], $2::text[], $3::int4[], $4::int4[], $5::text[],"
        " $6::timestamptz[]) AS n (notification_id, state, rank, attempts, reason, at)"
        " WHERE l.notification_id = n.notification_id AND (l.mapping = %s) IS TRUE"
        " AND l.rank < n.rank"
        " RETURNING l.row_key, l.attempt AS request, n.state, n.attempts, n.reason, n.at),"
        " latest AS MATERIALIZED (SELECT c.* FROM changed AS c WHERE NOT EXISTS (SELECT "
        "FROM " REQUESTS
        " AS x WHERE x.mapping = %s AND x.row_key = c.row_key AND x.attempt > c.request OFFSET 0))",
        keeps_xmin(p)
            ? ", row_xmin = CASE WHEN n.state = 'retrying' THEN pg_current_xact_id()::xid END"
            : "",
        p->mapping, p->mapping);
}

// rows: those of `source` that this transaction has locked; held: those that another session has.
static const char *locked_rows(const SqlParts *p, const char *source, const char *states)
{
    return arena_printf(
        p->arena,
        ", rows AS MATERIALIZED (SELECT n.* FROM %s AS n JOIN %s AS t ON t.%s = n.row_key::%s"
        " WHERE n.state IN (%s) ORDER BY t.%s FOR NO KEY UPDATE OF t SKIP LOCKED),"
        " held AS MATERIALIZED (SELECT n.row_key, n.request, n.at FROM %s AS n"
        " WHERE n.state IN (%s) AND n.row_key NOT IN (SELECT r.row_key FROM rows AS r)"
        " AND EXISTS (SELECT FROM %s AS t WHERE t.%s = n.row_key::%s OFFSET 0))",
        source, p->table, p->id, p->id_type, states, p->id, source, states, p->table, p->id,
        p->id_type);
}

// In the order of the key, like every writer of the table.
static const char *pending_feedback(const SqlParts *p, const char *source, const char *where)
{
    return arena_printf(
        p->arena,
        ", pending AS (INSERT INTO " PENDING " AS u (mapping, row_key, attempt, at) SELECT %s,"
        " n.row_key, n.request, n.at FROM %s AS n%s ORDER BY n.row_key"
        " ON CONFLICT (mapping, row_key, attempt) DO UPDATE SET at = excluded.at)",
        p->mapping, source, where);
}

static const char *feedback_text(const SqlParts *p, const Written *w)
{
    const char *text = changed_requests(p);
    if (w->states[0] == '\0') {
        return arena_printf(p->arena, "%s SELECT count(*), 0::int8 FROM changed", text);
    }
    return arena_printf(
        p->arena,
        "%s%s%s%s, done AS (DELETE FROM " PENDING " AS u WHERE u.mapping = %s"
        " AND u.row_key = ANY (ARRAY(SELECT r.row_key FROM rows AS r)))"
        " SELECT (SELECT count(*) FROM changed), %s",
        text, locked_rows(p, "latest", w->states), w->updates, pending_feedback(p, "held", ""),
        p->mapping, w->count);
}

static const char *feedback_aside_text(const SqlParts *p, const Written *w)
{
    const char *text = changed_requests(p);
    const char *where = arena_printf(p->arena, " WHERE n.state IN (%s)", w->states);
    return arena_printf(
        p->arena, "%s%s SELECT count(*), 0::int8 FROM changed", text,
        w->states[0] == '\0' ? "" : pending_feedback(p, "latest", where));
}

static const char *pending_feedback_text(const SqlParts *p)
{
    return arena_printf(
        p->arena,
        "SELECT u.row_key, u.attempt FROM " PENDING " AS u WHERE u.mapping = %s"
        " AND u.next_at <= now() ORDER BY u.row_key, u.attempt LIMIT $1::int4",
        p->mapping);
}

// Writes the request's current state, which may be newer. A row that is deleted, or whose request
// is not its latest, gets no feedback.
static const char *feedback_retry_text(const SqlParts *p, const Written *w)
{
    const char *xmin =
        !keeps_xmin(p)
            ? ""
            : arena_printf(
                  p->arena,
                  ", shown AS (UPDATE " REQUESTS " AS l SET row_xmin = pg_current_xact_id()::xid"
                  " FROM rows AS r WHERE l.mapping = %s AND l.row_key = r.row_key"
                  " AND l.attempt = r.request AND r.state = 'retrying')",
                  p->mapping);
    const char *held = w->states[0] == '\0'
                           ? ", rows AS (SELECT WHERE false), held AS (SELECT ''::text AS row_key,"
                             " 0 AS request WHERE false)"
                           : locked_rows(p, "n", w->states);
    return arena_printf(
        p->arena,
        "WITH due AS MATERIALIZED (SELECT u.row_key, u.attempt AS request, u.at FROM " PENDING
        " AS u, unnest($1::text[], $2::int4[]) AS k (row_key, attempt) WHERE u.mapping = %s"
        " AND u.row_key = k.row_key AND u.attempt = k.attempt ORDER BY u.row_key"
        " FOR UPDATE OF u SKIP LOCKED),"
        " n AS MATERIALIZED (SELECT d.*, l.state, l.attempts, l.reason FROM due AS d JOIN " REQUESTS
        " AS l ON l.mapping = %s AND l.row_key = d.row_key AND l.attempt = d.request"
        " WHERE NOT EXISTS (SELECT FROM " REQUESTS " AS x WHERE x.mapping = %s"
        " AND x.row_key = d.row_key AND x.attempt > d.request OFFSET 0))%s%s%s,"
        " later AS (UPDATE " PENDING " AS u SET next_at = now() + interval '1 s' FROM held AS h"
        " WHERE u.mapping = %s AND u.row_key = h.row_key AND u.attempt = h.request),"
        " gone AS (DELETE FROM " PENDING " AS u USING due AS d WHERE u.mapping = %s"
        " AND u.row_key = d.row_key AND u.attempt = d.request"
        " AND d.row_key NOT IN (SELECT h.row_key FROM held AS h))"
        " SELECT %s, (SELECT count(*) FROM held)",
        p->mapping, p->mapping, p->mapping, held, w->updates, xmin, p->mapping, p->mapping,
        w->count);
}

static const char *feedback_later_text(const SqlParts *p)
{
    return arena_printf(
        p->arena,
        "WITH later AS (UPDATE " PENDING " AS u SET tries = u.tries + 1, next_at = now()"
        " + interval '1 s' * (2 ^ u.tries) WHERE u.mapping = %s AND u.row_key = $1::text"
        " AND u.attempt = $2::int4 AND u.tries < " TRIES "),"
        " given_up AS (DELETE FROM " PENDING " AS u WHERE u.mapping = %s AND u.row_key = $1::text"
        " AND u.attempt = $2::int4 AND u.tries >= " TRIES " RETURNING u.row_key),"
        " aside AS (INSERT INTO stentor_outbox.rejected_rows AS f (mapping, row_key, reason, "
        "rejected_at)"
        " SELECT %s, g.row_key, $3::text, now() FROM given_up AS g ON CONFLICT (mapping, row_key)"
        " DO UPDATE SET reason = excluded.reason, rejected_at = now(), again = false)"
        " SELECT EXISTS (SELECT FROM given_up)",
        p->mapping, p->mapping, p->mapping);
}

void relay_feedback_sql(RelaySql *sql, const SqlParts *p)
{
    Written w = write_moments(p);
    sql->feedback = (DbStatement){"outbox_feedback", feedback_text(p, &w)};
    sql->feedback_aside = (DbStatement){"outbox_feedback_aside", feedback_aside_text(p, &w)};
    sql->pending_feedback = (DbStatement){"outbox_pending_feedback", pending_feedback_text(p)};
    sql->feedback_retry = (DbStatement){"outbox_feedback_retry", feedback_retry_text(p, &w)};
    sql->feedback_later = (DbStatement){"outbox_feedback_later", feedback_later_text(p)};
}
