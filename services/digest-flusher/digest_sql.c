// SPDX-License-Identifier: Apache-2.0
#include "services/digest-flusher/digest_sql.h"

// clang-format off
static const DbStatement open_windows = {
    .name = "digest_open",
    .sql =
    "INSERT INTO digest_flusher.digest_windows (tenant_id, window_id, recipient_id, category, channel, flush_at, due_at, template,"
    " template_version, locale, opened_at)"
    " SELECT DISTINCT ON (i.tenant_id, i.window_id) i.tenant_id, i.window_id, i.recipient_id, i.category, i.channel,"
    "  i.flush_at, i.flush_at, i.template, i.template_version, i.locale, i.accepted_at"
    " FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::text[], $8::text[],"
    "  $9::text[], $10::timestamptz[])"
    "  AS i(tenant_id, window_id, recipient_id, category, channel, flush_at, template, template_version, locale, accepted_at)"
    " ORDER BY i.tenant_id, i.window_id, i.accepted_at"
    " ON CONFLICT DO NOTHING",
};
// Serialises with a freeze and a cancellation.
static const DbStatement lock_windows = {
    .name = "digest_lock",
    .sql =
    "SELECT 1 FROM digest_flusher.digest_windows w"
    " WHERE (w.tenant_id, w.window_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))"
    " ORDER BY w.tenant_id, w.window_id FOR SHARE",
};
static const DbStatement insert_items = {
    .name = "digest_insert",
    .sql =
    "WITH given AS MATERIALIZED ("
    " SELECT DISTINCT ON (i.tenant_id, i.window_id, i.notification_id) i.*, v.stopped,"
    "  CASE v.stopped WHEN 'obsolete' THEN x.reason WHEN 'rescheduled' THEN x.newest_reason END AS stop_reason, w.state,"
    "  CASE WHEN w.state <> 'open' AND i.accepted_at <= w.frozen_at THEN w.verdict END AS verdict"
    " FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[],"
    "  $8::timestamptz[], $9::text[], $10::timestamptz[], $11::timestamptz[], $12::bytea[], $13::timestamptz[], $14::text[])"
    "  AS i(tenant_id, window_id, notification_id, work_id, subject, event_id, accepted_at, expires_at, cancel_key,"
    "   caused_at, due_at, payload, event_at, source_event_id)"
    " JOIN digest_flusher.digest_windows w ON w.tenant_id = i.tenant_id AND w.window_id = i.window_id"
    " LEFT JOIN digest_flusher.cancellations x ON x.tenant_id = i.tenant_id AND x.cancel_key = i.cancel_key"
    " CROSS JOIN LATERAL (SELECT digest_flusher.stop_verdict(i.caused_at, i.event_at, i.source_event_id, x.before_at,"
    "  x.newest_at, x.newest_id) AS stopped) AS v"
    " ORDER BY i.tenant_id, i.window_id, i.notification_id),"
    " fresh AS ("
    " INSERT INTO digest_flusher.digest_items (tenant_id, window_id, notification_id, work_id, subject, event_id, accepted_at,"
    "  expires_at, cancel_key, caused_at, event_at, source_event_id, payload)"
    " SELECT g.tenant_id, g.window_id, g.notification_id, g.work_id, g.subject, g.event_id, g.accepted_at,"
    "  g.expires_at, g.cancel_key, g.caused_at, g.event_at, g.source_event_id,"
    "  CASE WHEN g.state = 'open' AND g.stopped IS NULL THEN g.payload END FROM given g"
    " ON CONFLICT DO NOTHING RETURNING tenant_id, window_id, notification_id)"
    " INSERT INTO digest_flusher.due_work (work_id, tenant_id, notification_id, reason, due_at, subject, event_id, payload,"
    "  cancel_key, caused_at, event_at, source_event_id, status, reason_code, detail)"
    " SELECT g.work_id, g.tenant_id, g.notification_id, 'digest',"
    "  CASE WHEN coalesce(g.stopped, g.verdict) IS NULL THEN g.due_at ELSE now() END, g.subject, g.event_id, g.payload,"
    "  g.cancel_key, g.caused_at, g.event_at, g.source_event_id,"
    "  CASE WHEN coalesce(g.stopped, g.verdict) IS NOT NULL THEN 'suppressed' END,"
    "  coalesce(g.stopped, g.verdict), g.stop_reason"
    " FROM given g JOIN fresh f USING (tenant_id, window_id, notification_id)"
    " WHERE g.state <> 'open' OR g.stopped IS NOT NULL"
    " ON CONFLICT DO NOTHING",
};
// Of a batch's cancellations of a key the latest, and of its newer events the newest.
static const DbStatement record_cancels = {
    .name = "cancel_record",
    .sql =
    "WITH given AS MATERIALIZED (SELECT * FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[], $5::text[])"
    "  AS i(tenant_id, cancel_key, before_at, reason, newer_id)),"
    " plain AS (SELECT DISTINCT ON (tenant_id, cancel_key) * FROM given WHERE newer_id IS NULL"
    "  ORDER BY tenant_id, cancel_key, before_at DESC),"
    " newest AS (SELECT DISTINCT ON (tenant_id, cancel_key) * FROM given WHERE newer_id IS NOT NULL"
    "  ORDER BY tenant_id, cancel_key, before_at DESC, newer_id COLLATE \"C\" DESC)"
    " INSERT INTO digest_flusher.cancellations AS c (tenant_id, cancel_key, before_at, reason, newest_at, newest_id, newest_reason)"
    " SELECT tenant_id, cancel_key, p.before_at, p.reason, n.before_at, n.newer_id, n.reason"
    " FROM plain p FULL JOIN newest n USING (tenant_id, cancel_key) ORDER BY tenant_id, cancel_key"
    " ON CONFLICT (tenant_id, cancel_key) DO UPDATE SET recorded_at = now(),"
    "  (before_at, reason) = (SELECT b.* FROM (VALUES (c.before_at, c.reason), (excluded.before_at, excluded.reason)) AS b(at, why)"
    "   ORDER BY b.at DESC NULLS LAST LIMIT 1),"
    "  (newest_at, newest_id, newest_reason) = (SELECT b.* FROM (VALUES (c.newest_at, c.newest_id, c.newest_reason),"
    "   (excluded.newest_at, excluded.newest_id, excluded.newest_reason)) AS b(at, id, why)"
    "   ORDER BY b.at DESC NULLS LAST, b.id DESC LIMIT 1)"
    " WHERE excluded.before_at > coalesce(c.before_at, '-infinity')"
    "  OR (excluded.newest_at, excluded.newest_id) > (coalesce(c.newest_at, '-infinity'), coalesce(c.newest_id, ''))",
};
// Claimed work is not cancelled: its claimer may have published it and died.
static const DbStatement cancel_work = {
    .name = "cancel_work",
    .sql =
    "UPDATE digest_flusher.due_work w SET status = 'suppressed', due_at = now(), detail = i.reason,"
    "  reason_code = CASE WHEN i.newer_id IS NULL THEN 'obsolete' ELSE 'rescheduled' END"
    " FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[], $5::text[])"
    "  AS i(tenant_id, cancel_key, before_at, reason, newer_id)"
    " WHERE w.tenant_id = i.tenant_id AND w.cancel_key = i.cancel_key AND w.claimed_until IS NULL AND w.status IS NULL"
    "  AND digest_flusher.stop_verdict(w.caused_at, w.event_at, w.source_event_id, CASE WHEN i.newer_id IS NULL THEN i.before_at END,"
    "   CASE WHEN i.newer_id IS NOT NULL THEN i.before_at END, i.newer_id) IS NOT NULL",
};
static const DbStatement cancel_items = {
    .name = "cancel_items",
    .sql =
    "WITH hit AS MATERIALIZED ("
    " SELECT d.tenant_id, d.window_id, d.notification_id, g.reason, v.stopped"
    " FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[], $5::text[])"
    "  AS g(tenant_id, cancel_key, before_at, reason, newer_id)"
    " JOIN digest_flusher.digest_items d ON d.tenant_id = g.tenant_id AND d.cancel_key = g.cancel_key AND d.payload IS NOT NULL"
    " CROSS JOIN LATERAL (SELECT digest_flusher.stop_verdict(d.caused_at, d.event_at, d.source_event_id,"
    "  CASE WHEN g.newer_id IS NULL THEN g.before_at END, CASE WHEN g.newer_id IS NOT NULL THEN g.before_at END, g.newer_id)"
    "  AS stopped) AS v"
    " WHERE v.stopped IS NOT NULL),"
    " locked AS MATERIALIZED ("
    " SELECT w.tenant_id, w.window_id FROM digest_flusher.digest_windows w"
    " WHERE w.state = 'open' AND (w.tenant_id, w.window_id) IN (SELECT h.tenant_id, h.window_id FROM hit h)"
    " ORDER BY w.tenant_id, w.window_id FOR UPDATE),"
    " gone AS MATERIALIZED ("
    " SELECT DISTINCT ON (d.work_id) d.*, h.reason, h.stopped FROM hit h"
    " JOIN locked l ON l.tenant_id = h.tenant_id AND l.window_id = h.window_id"
    " JOIN digest_flusher.digest_items d ON d.tenant_id = h.tenant_id AND d.window_id = h.window_id"
    "  AND d.notification_id = h.notification_id AND d.payload IS NOT NULL ORDER BY d.work_id),"
    " emptied AS ("
    " UPDATE digest_flusher.digest_items d SET payload = NULL FROM gone"
    " WHERE d.tenant_id = gone.tenant_id AND d.window_id = gone.window_id AND d.notification_id = gone.notification_id)"
    " INSERT INTO digest_flusher.due_work (work_id, tenant_id, notification_id, reason, due_at, subject, event_id, payload, status,"
    "  reason_code, detail)"
    " SELECT work_id, tenant_id, notification_id, 'digest', now(), subject, event_id, payload, 'suppressed', stopped,"
    "  reason FROM gone"
    " ON CONFLICT DO NOTHING",
};
static const DbStatement absorb = {.name = "digest_absorb", .sql = "SELECT digest_flusher.digest_absorb($1::int4)"};
static const DbStatement freeze = {
    .name = "digest_freeze",
    .sql =
    "SELECT tenant_id, window_id, flush_at, frozen_at, template, template_version, locale, verdict, live, listed, payload"
    " FROM digest_flusher.digest_freeze($1::int8 * interval '1 millisecond', $2::int4, $3::int4, $4::int8)",
};
static const DbStatement next_due = {.name = "digest_next", .sql = "SELECT digest_flusher.digest_next()"};
// Only one decision counts: of two replicas that froze the window one after the other, the first.
static const DbStatement make = {
    .name = "digest_make",
    .sql =
    "WITH made AS MATERIALIZED ("
    " UPDATE digest_flusher.digest_windows w SET state = 'absorbing', digest_id = i.digest_id, claimed_until = NULL"
    " FROM unnest($1::text[], $2::text[], $3::text[]) AS i(tenant_id, window_id, digest_id)"
    " WHERE w.tenant_id = i.tenant_id AND w.window_id = i.window_id AND w.state = 'flushing'"
    " RETURNING w.tenant_id, w.window_id)"
    " INSERT INTO digest_flusher.due_work (work_id, tenant_id, notification_id, reason, due_at, subject, event_id, payload, status,"
    "  window_id)"
    " SELECT r.event_id, r.tenant_id, r.notification_id, 'digest', now(), r.subject, r.event_id, r.payload, r.status,"
    "  r.window_id"
    " FROM unnest($4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bytea[], $10::text[])"
    "  AS r(tenant_id, window_id, notification_id, subject, event_id, payload, status)"
    " JOIN made USING (tenant_id, window_id)"
    " ON CONFLICT DO NOTHING",
};
static const DbStatement forget = {
    .name = "digest_forget",
    .sql = "SELECT digest_flusher.forget($1::int4 * interval '1 day', $2::int4)",
};
static const DbStatement backlog = {
    .name = "digest_backlog",
    .sql = "SELECT waiting, next_due_at FROM digest_flusher.digest_backlog()",
};
// clang-format on

void digest_push_key(DbArray *array, Str key)
{
    if (key.len > 0) {
        db_push_text(array, key);
    } else {
        db_push_null(array);
    }
}

// ---- arriving items and cancellations ----

static void add_open(DbTxn *txn, const DueWork *const *items, size_t count)
{
    DbParams *params = db_txn_add(txn, &open_windows, NULL);
    DbArray *tenant = db_array(params, DB_TEXT);
    DbArray *window_id = db_array(params, DB_TEXT);
    DbArray *recipient = db_array(params, DB_TEXT);
    DbArray *category = db_array(params, DB_TEXT);
    DbArray *channel = db_array(params, DB_TEXT);
    DbArray *flush_at = db_array(params, DB_TIME);
    DbArray *template = db_array(params, DB_TEXT);
    DbArray *version = db_array(params, DB_TEXT);
    DbArray *locale = db_array(params, DB_TEXT);
    DbArray *accepted_at = db_array(params, DB_TIME);
    for (size_t i = 0; i < count; i++) {
        const Stentor__V1__DigestWindow *window = items[i]->window;
        db_push_text(tenant, items[i]->tenant);
        db_push_text(window_id, str_from(window->window_id));
        db_push_text(recipient, str_from(window->recipient_id));
        db_push_text(category, str_from(category_name((Category)window->category)));
        db_push_text(channel, str_from(channel_name((Channel)window->channel)));
        db_push_time(flush_at, window->flush_at_us);
        db_push_text(template, str_from(window->template_));
        db_push_text(version, str_from(window->template_version));
        db_push_text(locale, str_from(window->locale));
        db_push_time(accepted_at, items[i]->accepted_at_us);
    }
}

static void add_lock(DbTxn *txn, const DueWork *const *items, size_t count)
{
    DbParams *params = db_txn_add(txn, &lock_windows, NULL);
    DbArray *tenant = db_array(params, DB_TEXT);
    DbArray *window_id = db_array(params, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        db_push_text(tenant, items[i]->tenant);
        db_push_text(window_id, str_from(items[i]->window->window_id));
    }
}

static void add_items(DbTxn *txn, const DueWork *const *items, size_t count)
{
    DbParams *params = db_txn_add(txn, &insert_items, NULL);
    DbArray *tenant = db_array(params, DB_TEXT);
    DbArray *window_id = db_array(params, DB_TEXT);
    DbArray *notification = db_array(params, DB_TEXT);
    DbArray *work_id = db_array(params, DB_TEXT);
    DbArray *subject = db_array(params, DB_TEXT);
    DbArray *event_id = db_array(params, DB_TEXT);
    DbArray *accepted_at = db_array(params, DB_TIME);
    DbArray *expires_at = db_array(params, DB_TIME);
    DbArray *cancel_key = db_array(params, DB_TEXT);
    DbArray *caused_at = db_array(params, DB_TIME);
    DbArray *due_at = db_array(params, DB_TIME);
    DbArray *payload = db_array(params, DB_BYTES);
    DbArray *event_at = db_array(params, DB_TIME);
    DbArray *source = db_array(params, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        const DueWork *item = items[i];
        db_push_text(tenant, item->tenant);
        db_push_text(window_id, str_from(item->window->window_id));
        db_push_text(notification, item->notification_id);
        db_push_text(work_id, item->work_id);
        db_push_text(subject, str_from(item->subject));
        db_push_text(event_id, str_from(item->event_id));
        db_push_time(accepted_at, item->accepted_at_us);
        db_push_time(expires_at, item->expires_at_us);
        digest_push_key(cancel_key, item->cancel_key);
        db_push_time(caused_at, item->caused_at_us);
        db_push_time(due_at, item->due_at_us);
        db_push_text(payload, item->payload);
        db_push_time(event_at, item->event_at_us);
        db_push_text(source, item->source_event_id);
    }
}

void digest_insert(DbTxn *txn, const DueWork *const *items, size_t count)
{
    add_open(txn, items, count);
    add_lock(txn, items, count);
    add_items(txn, items, count);
}

static void add_cancels(
    DbTxn *txn, const DbStatement *statement, const DueWork *const *cancels, size_t count)
{
    DbParams *params = db_txn_add(txn, statement, NULL);
    DbArray *tenant = db_array(params, DB_TEXT);
    DbArray *key = db_array(params, DB_TEXT);
    DbArray *before = db_array(params, DB_TIME);
    DbArray *reason = db_array(params, DB_TEXT);
    DbArray *newer = db_array(params, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        const Stentor__V1__Cancel *cancel = cancels[i]->cancel;
        digest_push_key(newer, str_from(cancel->newer_event_id));
        db_push_text(tenant, cancels[i]->tenant);
        db_push_text(key, cancels[i]->cancel_key);
        db_push_time(before, cancel->newer_at_us > 0 ? cancel->newer_at_us : cancel->before_us);
        db_push_text(reason, str_from(cancels[i]->cancel->reason));
    }
}

void digest_cancel(DbTxn *txn, const DueWork *const *cancels, size_t count)
{
    add_cancels(txn, &record_cancels, cancels, count);
    add_cancels(txn, &cancel_work, cancels, count);
    add_cancels(txn, &cancel_items, cancels, count);
}

// ---- due windows ----

static void add_absorb(DbTxn *txn)
{
    db_i32(db_txn_add(txn, &absorb, NULL), DIGEST_ABSORB_MAX);
}

void digest_freeze(DbTxn *txn, int64_t lease_ms)
{
    add_absorb(txn);
    DbParams *params = db_txn_add(txn, &freeze, NULL);
    db_i64(params, lease_ms);
    db_i32(params, DIGEST_FREEZE_MAX);
    db_i32(params, DIGEST_LIST_MAX);
    db_i64(params, DIGEST_LIST_BYTES);
    db_txn_add(txn, &next_due, NULL);
}

static void add_decisions(DbTxn *txn, DbParams *params, const Digest *digests, size_t count)
{
    DbArray *tenant = db_array(params, DB_TEXT);
    DbArray *window_id = db_array(params, DB_TEXT);
    DbArray *digest_id = db_array(params, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        db_txn_tenant(txn, digests[i].tenant);
        db_push_text(tenant, digests[i].tenant);
        db_push_text(window_id, digests[i].window_id);
        digest_push_key(digest_id, str_from(digests[i].id));
    }
}

void digest_make(DbTxn *txn, const Digest *digests, size_t count)
{
    DbParams *params = db_txn_add(txn, &make, NULL);
    add_decisions(txn, params, digests, count);
    DbArray *tenant = db_array(params, DB_TEXT);
    DbArray *window_id = db_array(params, DB_TEXT);
    DbArray *notification = db_array(params, DB_TEXT);
    DbArray *subject = db_array(params, DB_TEXT);
    DbArray *event_id = db_array(params, DB_TEXT);
    DbArray *payload = db_array(params, DB_BYTES);
    DbArray *status = db_array(params, DB_TEXT);
    for (size_t i = 0; i < 2 * count; i++) {
        const Digest *digest = &digests[i / 2];
        if (digest->id[0] == '\0') {
            continue;
        }
        bool is_status = i % 2 == 1;
        db_push_text(tenant, digest->tenant);
        db_push_text(window_id, digest->window_id);
        db_push_text(notification, str_from(digest->id));
        db_push_text(subject, str_from(digest->subject));
        db_push_text(event_id, str_from(is_status ? digest->status_id : digest->event_id));
        db_push_text(payload, is_status ? digest->head : digest->payload);
        digest_push_key(status, is_status ? STR("queued") : STR_EMPTY);
    }
    add_absorb(txn);
}

void digest_forget(DbTxn *txn)
{
    DbParams *params = db_txn_add(txn, &forget, NULL);
    db_i32(params, DIGEST_KEPT_DAYS);
    db_i32(params, DIGEST_FORGET_MAX);
}

void digest_backlog(DbTxn *txn)
{
    db_txn_add(txn, &backlog, NULL);
}
