// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/webhooks/hook_ledger.h"

#include <assert.h>

#include "common/codec/event.h"

typedef Stentor__V1__WebhookDelivery WebhookDelivery;

// $1 .. $13 of a statement that may make a row.
#define ROWS                                                                                       \
    " FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[],"         \
    "  $7::int8[], $8::text[], $9::text[], $10::bool[], $11::timestamptz[], $12::int4[],"          \
    "  $13::int2[]) WITH ORDINALITY AS w(id, tenant_id, subscription_id, event_id, event_type,"    \
    "  notification_id, sequence, previous, payload, ordered, created_at, turn, attempt, nr)"

// What shows that a delivery's event is on its way, also until when it says so.
#define SIGN "greatest(e.created_at, e.lease_until, e.finished_at, e.next_attempt_at, e.seen_at)"

// An event of the notification before this one has not ended at the subscription.
#define EARLIER                                                                                    \
    " FROM webhooks.deliveries e WHERE e.ordered AND e.subscription_id = w.subscription_id"        \
    "  AND e.notification_id = w.notification_id AND e.sequence < w.sequence"                      \
    "  AND e.tenant_id = w.tenant_id AND e.state IN ('queued', 'claimed', 'waiting')"

// Rows in the order of their ids: two processes that meet on some do not wait for each other.
static const DbStatement queued_statement = {
    "webhook_queued",
    "WITH made AS (INSERT INTO webhooks.deliveries (id, tenant_id, subscription_id, event_id,"
    "  event_type, notification_id, sequence, payload, ordered, created_at, state, turn, attempt)"
    " SELECT w.id, w.tenant_id, w.subscription_id, w.event_id, w.event_type, w.notification_id,"
    "  w.sequence, w.payload, w.ordered, w.created_at, 'queued', w.turn, w.attempt" ROWS
    " ORDER BY w.id ON CONFLICT (id) DO NOTHING)"
    " SELECT w.nr, p.event_id" ROWS
    " CROSS JOIN LATERAL (SELECT e.event_id FROM webhooks.deliveries e WHERE e.ordered"
    "  AND e.subscription_id = w.subscription_id AND e.notification_id = w.notification_id"
    "  AND e.sequence < w.sequence AND e.tenant_id = w.tenant_id"
    "  ORDER BY e.sequence DESC LIMIT 1) AS p",
};

// Statuses of one notification follow each other in seconds: its row is written again when it was
// not for a day, so that it goes so long after the last one.
static const DbStatement keep_statement = {
    "webhook_keep_categories",
    "INSERT INTO webhooks.categories AS c (tenant_id, notification_id, category, seen_at)"
    " SELECT DISTINCT ON (n.tenant_id, n.id) n.tenant_id, n.id, n.category, now()"
    " FROM unnest($1::text[], $2::text[], $3::text[]) AS n(tenant_id, id, category)"
    " ORDER BY n.tenant_id, n.id ON CONFLICT (tenant_id, notification_id) DO UPDATE"
    " SET seen_at = excluded.seen_at WHERE c.seen_at < excluded.seen_at - interval '1 day'",
};

static const DbStatement find_statement = {
    "webhook_find_categories",
    "SELECT (SELECT c.category FROM webhooks.categories c WHERE c.tenant_id = n.tenant_id"
    "  AND c.notification_id = n.id) FROM unnest($1::text[], $2::text[])"
    " WITH ORDINALITY AS n(tenant_id, id, nr) ORDER BY n.nr",
};

static const DbStatement claim_statement = {
    "webhook_claim",
    "WITH w AS (SELECT *" ROWS "),"
    " mine AS (INSERT INTO webhooks.deliveries AS d (id, tenant_id, subscription_id, event_id,"
    "  event_type, notification_id, sequence, previous_event_id, payload, ordered, created_at,"
    "  state, turn, attempt, owner, lease_until, claimed_at)"
    " SELECT w.id, w.tenant_id, w.subscription_id, w.event_id, w.event_type, w.notification_id,"
    "  w.sequence, w.previous, w.payload, w.ordered, w.created_at, 'claimed', w.turn,"
    "  w.attempt, $14::text, now() + $15::int8 * interval '1 millisecond', now()"
    " FROM w WHERE NOT w.ordered OR NOT EXISTS (SELECT" EARLIER ") ORDER BY w.id"
    " ON CONFLICT (id) DO UPDATE SET state = 'claimed', turn = excluded.turn,"
    "  attempt = excluded.attempt, owner = excluded.owner, lease_until = excluded.lease_until,"
    "  claimed_at = excluded.claimed_at, next_attempt_at = NULL, payload = excluded.payload,"
    "  previous_event_id = excluded.previous_event_id"
    " WHERE d.tenant_id = excluded.tenant_id AND (d.turn < excluded.turn"
    "  OR (d.turn = excluded.turn AND (d.state = 'queued'"
    "   OR (d.state = 'claimed' AND d.lease_until <= now())"
    "   OR (d.state = 'failed' AND d.error = '" WEBHOOK_GONE "'))))" // it came after all
    " RETURNING d.id)"
    " SELECT w.nr, d.state, d.turn, d.attempt,"
    "  CASE WHEN d.state = 'claimed' AND d.lease_until > now()"
    "   THEN (extract(epoch FROM d.lease_until - now()) * 1000)::int8 ELSE 0 END,"
    "  d.finished_at, d.next_attempt_at, d.status_code, d.error, coalesce(p.failures, 0),"
    "  b.sequence, b.sign, (extract(epoch FROM now() - b.sign) * 1000)::int8, b.state,"
    "  b.next_attempt_at, b.event_id, b.event_type, b.previous_event_id,"
    "  CASE WHEN now() - b.sign > $16::int8 * interval '1 millisecond' THEN b.payload END,"
    "  b.created_at, b.turn, b.attempt"
    " FROM w LEFT JOIN webhooks.deliveries d ON d.id = w.id"
    " LEFT JOIN webhooks.endpoints p ON p.tenant_id = w.tenant_id"
    "  AND p.subscription_id = w.subscription_id"
    " LEFT JOIN LATERAL (SELECT e.*, " SIGN " AS sign" EARLIER
    "  AND w.ordered ORDER BY e.sequence LIMIT 1) AS b ON true"
    " WHERE NOT EXISTS (SELECT FROM mine WHERE mine.id = w.id)",
};

static const DbStatement seen_statement = {
    "webhook_seen",
    "UPDATE webhooks.deliveries d SET seen_at = now() WHERE d.id = ANY($1::text[])",
};

// The endpoint's failures in a row: those behind its last success in this batch, and what it had
// before when the batch has none. Those of before its subscription's state changed do not count.
static const DbStatement outcome_statement = {
    "webhook_outcome",
    "WITH o AS (SELECT * FROM unnest($1::text[], $2::int4[], $3::text[], $4::timestamptz[],"
    "  $5::timestamptz[], $6::int2[], $7::text[], $8::text[], $9::int4[], $10::bool[],"
    "  $11::timestamptz[])"
    "  WITH ORDINALITY AS o(id, turn, state, finished_at, next_at, code, error, response, ms,"
    "   counts, since, nr)),"
    " ended AS (UPDATE webhooks.deliveries d SET state = o.state, finished_at = o.finished_at,"
    "  next_attempt_at = o.next_at, status_code = o.code, error = o.error, response = o.response,"
    "  duration_ms = o.ms, lease_until = '-infinity'"
    " FROM o WHERE d.id = o.id AND d.turn = o.turn AND d.owner = $12::text AND d.state = 'claimed'"
    " RETURNING o.nr, o.state, o.counts, o.code, o.error, o.finished_at, o.since,"
    "  d.tenant_id, d.subscription_id),"
    " last AS (SELECT tenant_id, subscription_id, max(nr) FILTER (WHERE state = 'delivered') AS "
    "good,"
    "  max(finished_at) FILTER (WHERE state = 'delivered') AS delivered_at,"
    "  max(finished_at) FILTER (WHERE counts) AS failed_at, max(since) AS since,"
    "  (array_agg(error ORDER BY nr DESC) FILTER (WHERE counts))[1] AS error,"
    "  (array_agg(code ORDER BY nr DESC) FILTER (WHERE counts))[1] AS code"
    "  FROM ended GROUP BY tenant_id, subscription_id),"
    " heard AS (INSERT INTO webhooks.endpoints AS p (tenant_id, subscription_id, failures,"
    "  delivered_at, failed_at, error, status_code)"
    " SELECT l.tenant_id, l.subscription_id, (SELECT count(*) FROM ended e WHERE e.counts"
    "   AND e.tenant_id = l.tenant_id AND e.subscription_id = l.subscription_id"
    "   AND e.nr > coalesce(l.good, 0) AND e.finished_at >= coalesce(l.since, '-infinity')),"
    "  l.delivered_at, l.failed_at, l.error, l.code"
    " FROM last l ORDER BY l.tenant_id, l.subscription_id"
    " ON CONFLICT (tenant_id, subscription_id) DO UPDATE SET"
    "  failures = CASE WHEN excluded.delivered_at IS NULL AND p.failed_at >="
    "    coalesce((SELECT l.since FROM last l WHERE l.tenant_id = p.tenant_id"
    "     AND l.subscription_id = p.subscription_id), '-infinity')"
    "   THEN p.failures ELSE 0 END + excluded.failures,"
    "  delivered_at = coalesce(excluded.delivered_at, p.delivered_at),"
    "  failed_at = greatest(excluded.failed_at, p.failed_at),"
    "  error = coalesce(excluded.error, p.error),"
    "  status_code = CASE WHEN excluded.failed_at IS NULL THEN p.status_code"
    "   ELSE excluded.status_code END, updated_at = now()"
    " RETURNING p.tenant_id, p.subscription_id, p.failures)"
    " SELECT e.nr, h.failures FROM ended e JOIN heard h ON h.tenant_id = e.tenant_id"
    "  AND h.subscription_id = e.subscription_id",
};

// $1 .. $13
static DbParams *add_rows(
    DbTxn *txn, const DbStatement *statement, WebhookDelivery *const *deliveries, size_t count,
    bool begins, int *ret_index)
{
    assert(count > 0 && count <= HOOK_BATCH_MAX);
    DbParams *p = db_txn_add(txn, statement, ret_index);
    DbArray *ids = db_array(p, DB_TEXT), *tenants = db_array(p, DB_TEXT);
    DbArray *subscriptions = db_array(p, DB_TEXT), *events = db_array(p, DB_TEXT);
    DbArray *types = db_array(p, DB_TEXT), *notifications = db_array(p, DB_TEXT);
    DbArray *sequences = db_array(p, DB_I64), *previous = db_array(p, DB_TEXT);
    DbArray *payloads = db_array(p, DB_TEXT), *ordered = db_array(p, DB_BOOL);
    DbArray *times = db_array(p, DB_TIME), *turns = db_array(p, DB_I32);
    DbArray *attempts = db_array(p, DB_I16);
    for (size_t i = 0; i < count; i++) {
        const WebhookDelivery *at = deliveries[i];
        db_push_text(ids, str_from(at->delivery_id));
        db_push_text(tenants, str_from(at->meta->tenant));
        db_push_text(subscriptions, str_from(at->subscription_id));
        db_push_text(events, str_from(at->webhook_id));
        db_push_text(types, str_from(at->type));
        db_push_text(notifications, str_from(at->meta->notification_id));
        db_push_int(sequences, (int64_t)at->sequence);
        db_push_optional(previous, str_from(at->previous_webhook_id));
        db_push_text(payloads, pb_bytes(at->payload));
        db_push_int(ordered, at->in_order ? 1 : 0);
        db_push_time(times, at->matched_at_us);
        db_push_int(turns, (int64_t)at->turn);
        db_push_int(attempts, (int64_t)at->attempt + (begins && !at->gone ? 1 : 0));
        db_txn_tenant(txn, str_from(at->meta->tenant));
    }
    return p;
}

int hook_ledger_add_queued(DbTxn *txn, WebhookDelivery *const *deliveries, size_t count)
{
    int index = 0;
    (void)add_rows(txn, &queued_statement, deliveries, count, false, &index);
    return index;
}

bool hook_ledger_previous(const PGresult *res, size_t n, size_t *ret_index, Str *ret_previous)
{
    if ((int)n >= db_rows(res)) {
        return false;
    }
    *ret_index = (size_t)db_get_int(res, (int)n, 0) - 1;
    *ret_previous = db_get_text(res, (int)n, 1);
    return true;
}

static DbParams *add_notifications(
    DbTxn *txn, const DbStatement *statement, const HookCategory *of, size_t count, int *ret_index)
{
    assert(count > 0 && count <= HOOK_BATCH_MAX);
    DbParams *p = db_txn_add(txn, statement, ret_index);
    DbArray *tenants = db_array(p, DB_TEXT), *ids = db_array(p, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        db_push_text(tenants, of[i].tenant);
        db_push_text(ids, of[i].notification_id);
        db_txn_tenant(txn, of[i].tenant);
    }
    return p;
}

void hook_ledger_keep_categories(DbTxn *txn, const HookCategory *categories, size_t count)
{
    DbParams *p = add_notifications(txn, &keep_statement, categories, count, NULL);
    DbArray *names = db_array(p, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        db_push_text(names, str_from(category_name(categories[i].category)));
    }
}

int hook_ledger_find_categories(DbTxn *txn, const HookCategory *wanted, size_t count)
{
    int index = 0;
    (void)add_notifications(txn, &find_statement, wanted, count, &index);
    return index;
}

Category hook_ledger_category(const PGresult *res, size_t n)
{
    Category category = CATEGORY_NONE;
    bool known = !db_is_null(res, (int)n, 0);
    return known && category_from_name(db_get_text(res, (int)n, 0), &category) ? category
                                                                               : CATEGORY_NONE;
}

int hook_ledger_add_claim(
    DbTxn *txn, WebhookDelivery *const *deliveries, size_t count, Str owner, int64_t lease_ms,
    int64_t silent_ms)
{
    int index = 0;
    DbParams *p = add_rows(txn, &claim_statement, deliveries, count, true, &index);
    db_text(p, owner);
    db_i64(p, lease_ms);
    db_i64(p, silent_ms);
    return index;
}

void hook_ledger_add_seen(DbTxn *txn, WebhookDelivery *const *deliveries, size_t count)
{
    DbParams *p = db_txn_add(txn, &seen_statement, NULL);
    DbArray *ids = db_array(p, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        db_push_text(ids, str_from(deliveries[i]->delivery_id));
        db_txn_tenant(txn, str_from(deliveries[i]->meta->tenant));
    }
}

size_t hook_ledger_conflicts(const PGresult *res)
{
    return (size_t)db_rows(res);
}

static Str text_or_empty(const PGresult *res, int row, int column)
{
    return db_is_null(res, row, column) ? STR_EMPTY : db_get_text(res, row, column);
}

static HookBlocker read_blocker(const PGresult *res, int row)
{
    if (db_is_null(res, row, 10)) {
        return (HookBlocker){0};
    }
    return (HookBlocker){
        .sequence = (uint64_t)db_get_int(res, row, 10),
        .sign_us = db_get_time(res, row, 11),
        .silent_ms = db_get_int(res, row, 12),
        .state = webhook_state_from_name(db_get_text(res, row, 13)),
        .next_attempt_at_us = db_get_time(res, row, 14),
        .event_id = db_get_text(res, row, 15),
        .type = db_get_text(res, row, 16),
        .previous = text_or_empty(res, row, 17),
        .payload = text_or_empty(res, row, 18),
        .created_at_us = db_get_time(res, row, 19),
        .turn = (uint32_t)db_get_int(res, row, 20),
        .attempt = (uint32_t)db_get_int(res, row, 21),
    };
}

HookConflict hook_ledger_conflict(const PGresult *res, size_t n)
{
    int at = (int)n;
    bool there = !db_is_null(res, at, 1);
    return (HookConflict){
        .index = (size_t)db_get_int(res, at, 0) - 1,
        .state = there ? webhook_state_from_name(db_get_text(res, at, 1)) : WEBHOOK_NONE,
        .turn = there ? (uint32_t)db_get_int(res, at, 2) : 0,
        .attempt = there ? (int32_t)db_get_int(res, at, 3) : 0,
        .wait_ms = there ? db_get_int(res, at, 4) : 0,
        .finished_at_us = db_get_time(res, at, 5),
        .next_attempt_at_us = db_get_time(res, at, 6),
        .status_code = db_is_null(res, at, 7) ? 0 : (int)db_get_int(res, at, 7),
        .error = text_or_empty(res, at, 8),
        .failures = db_get_int(res, at, 9),
        .first = read_blocker(res, at),
    };
}

int hook_ledger_add_outcomes(
    DbTxn *txn, WebhookDelivery *const *deliveries, const HookOutcome *const *outcomes,
    size_t count, Str owner)
{
    assert(count > 0 && count <= HOOK_BATCH_MAX);
    int index = 0;
    DbParams *p = db_txn_add(txn, &outcome_statement, &index);
    DbArray *ids = db_array(p, DB_TEXT), *turns = db_array(p, DB_I32);
    DbArray *states = db_array(p, DB_TEXT), *finished = db_array(p, DB_TIME);
    DbArray *next = db_array(p, DB_TIME), *codes = db_array(p, DB_I16);
    DbArray *errors = db_array(p, DB_TEXT), *responses = db_array(p, DB_TEXT);
    DbArray *durations = db_array(p, DB_I32), *counts = db_array(p, DB_BOOL);
    DbArray *since = db_array(p, DB_TIME);
    for (size_t i = 0; i < count; i++) {
        const HookOutcome *outcome = outcomes[i];
        db_push_text(ids, str_from(deliveries[i]->delivery_id));
        db_push_int(turns, (int64_t)deliveries[i]->turn);
        db_push_text(states, str_from(webhook_state_name(outcome->state)));
        db_push_time(finished, outcome->finished_at_us);
        db_push_time(next, outcome->next_attempt_at_us);
        if (outcome->status_code > 0) {
            db_push_int(codes, outcome->status_code);
        } else {
            db_push_null(codes);
        }
        db_push_optional(errors, str_from(outcome->error));
        db_push_optional(responses, outcome->response);
        db_push_int(durations, outcome->duration_ms);
        db_push_int(counts, outcome->counts ? 1 : 0);
        db_push_time(since, outcome->since_us);
        db_txn_tenant(txn, str_from(deliveries[i]->meta->tenant));
    }
    db_text(p, owner);
    return index;
}

size_t hook_ledger_recorded_count(const PGresult *res)
{
    return (size_t)db_rows(res);
}

HookRecorded hook_ledger_recorded(const PGresult *res, size_t n)
{
    return (HookRecorded){
        .index = (size_t)db_get_int(res, (int)n, 0) - 1,
        .failures = db_get_int(res, (int)n, 1),
    };
}
