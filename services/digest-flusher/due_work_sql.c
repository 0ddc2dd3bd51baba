// SPDX-License-Identifier: Apache-2.0
#include "services/digest-flusher/due_work_sql.h"

#include "services/digest-flusher/digest_sql.h"

// clang-format off
static const DbStatement insert_work = {
    .name = "due_work_insert",
    .sql =
    "INSERT INTO digest_flusher.due_work (work_id, tenant_id, notification_id, reason, due_at, subject, event_id, payload,"
    " cancel_key, caused_at, recipient_id, category, channel, event_at, source_event_id, to_recipient, attempt, status, reason_code, detail)"
    " SELECT i.work_id, i.tenant_id, i.notification_id, i.reason,"
    "  CASE WHEN v.stopped IS NULL THEN i.due_at ELSE now() END, i.subject, i.event_id, i.payload, i.cancel_key, i.caused_at,"
    "  i.recipient_id, i.category, i.channel, i.event_at, i.source_event_id, i.to_recipient, nullif(i.attempt, 0),"
    "  CASE WHEN v.stopped IS NOT NULL THEN 'suppressed' END, v.stopped,"
    "  CASE v.stopped WHEN 'obsolete' THEN x.reason WHEN 'rescheduled' THEN x.newest_reason END"
    " FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::text[], $7::text[],"
    "  $8::bytea[], $9::text[], $10::timestamptz[], $11::text[], $12::text[], $13::text[], $14::timestamptz[], $15::text[], $16::text[], $17::int2[])"
    "  AS i(work_id, tenant_id, notification_id, reason, due_at, subject, event_id, payload, cancel_key, caused_at,"
    "   recipient_id, category, channel, event_at, source_event_id, to_recipient, attempt)"
    " LEFT JOIN digest_flusher.cancellations x ON x.tenant_id = i.tenant_id AND x.cancel_key = i.cancel_key"
    " CROSS JOIN LATERAL (SELECT digest_flusher.stop_verdict(i.caused_at, i.event_at, i.source_event_id, x.before_at,"
    "  x.newest_at, x.newest_id) AS stopped) AS v"
    " WHERE ((i.cancel_key IS NULL AND i.recipient_id IS NULL) OR NOT EXISTS (SELECT FROM digest_flusher.emitted e WHERE e.work_id = i.work_id))"
    "  AND NOT EXISTS (SELECT FROM digest_flusher.cancelled c WHERE c.tenant_id = i.tenant_id AND c.notification_id = i.notification_id"
    "   AND c.work_id = i.work_id)"
    " ON CONFLICT DO NOTHING",
};
static const DbStatement claim_work = {
    .name = "due_work_claim",
    .sql =
    "SELECT work_id, due_at, subject, event_id, payload, status, reason_code, detail, window_id"
    " FROM digest_flusher.claim_work($1::int8 * interval '1 millisecond', $2::int4)",
};
static const DbStatement next_due = {.name = "due_work_next", .sql = "SELECT digest_flusher.next_due()"};
static const DbStatement delete_done = {.name = "due_work_done", .sql = "SELECT digest_flusher.done($1::text[])"};
static const DbStatement backlog = {.name = "due_work_backlog", .sql = "SELECT waiting, next_due_at FROM digest_flusher.backlog()"};
static const DbStatement projected = {.name = "due_work_projected", .sql = "SELECT stream, sequence FROM digest_flusher.projected()"};
// clang-format on

static size_t pick(
    const DueWork *const *work, size_t count, WorkKind kind, const DueWork **ret_picked)
{
    size_t picked = 0;
    for (size_t i = 0; i < count; i++) {
        if (work[i]->kind == kind) {
            ret_picked[picked++] = work[i];
        }
    }
    return picked;
}

static void insert_sends(DbTxn *txn, const DueWork *const *work, size_t count)
{
    DbParams *params = db_txn_add(txn, &insert_work, NULL);
    DbArray *work_id = db_array(params, DB_TEXT);
    DbArray *tenant = db_array(params, DB_TEXT);
    DbArray *notification = db_array(params, DB_TEXT);
    DbArray *reason = db_array(params, DB_TEXT);
    DbArray *due_at = db_array(params, DB_TIME);
    DbArray *subject = db_array(params, DB_TEXT);
    DbArray *event_id = db_array(params, DB_TEXT);
    DbArray *payload = db_array(params, DB_BYTES);
    DbArray *cancel_key = db_array(params, DB_TEXT);
    DbArray *caused_at = db_array(params, DB_TIME);
    DbArray *recipient = db_array(params, DB_TEXT);
    DbArray *category = db_array(params, DB_TEXT);
    DbArray *channel = db_array(params, DB_TEXT);
    DbArray *event_at = db_array(params, DB_TIME);
    DbArray *source = db_array(params, DB_TEXT);
    DbArray *addressee = db_array(params, DB_TEXT);
    DbArray *attempt = db_array(params, DB_I16);
    for (size_t i = 0; i < count; i++) {
        db_push_text(work_id, work[i]->work_id);
        db_push_text(tenant, work[i]->tenant);
        db_push_text(notification, work[i]->notification_id);
        db_push_text(reason, work[i]->reason);
        db_push_time(due_at, work[i]->due_at_us);
        db_push_text(subject, str_from(work[i]->subject));
        db_push_text(event_id, str_from(work[i]->event_id));
        db_push_text(payload, work[i]->payload);
        digest_push_key(cancel_key, work[i]->cancel_key);
        db_push_time(caused_at, work[i]->caused_at_us);
        digest_push_key(recipient, work[i]->recipient_id);
        db_push_text(category, str_from(category_name(work[i]->category)));
        db_push_text(channel, str_from(channel_name(work[i]->channel)));
        db_push_time(event_at, work[i]->event_at_us);
        digest_push_key(source, work[i]->source_event_id);
        digest_push_key(addressee, work[i]->to_recipient);
        db_push_int(attempt, work[i]->attempt <= INT16_MAX ? work[i]->attempt : INT16_MAX);
    }
}

void due_work_insert(DbTxn *txn, const DueWork *const *work, size_t count)
{
    const DueWork **picked = arena_array(db_txn_arena(txn), count, sizeof(DueWork *));
    for (size_t i = 0; i < count; i++) {
        db_txn_tenant(txn, work[i]->tenant);
    }
    size_t cancels = pick(work, count, WORK_CANCEL, picked);
    if (cancels > 0) {
        digest_cancel(txn, picked, cancels);
    }
    size_t items = pick(work, count, WORK_GATHER, picked);
    if (items > 0) {
        digest_insert(txn, picked, items);
    }
    size_t sends = pick(work, count, WORK_SEND, picked);
    if (sends > 0) {
        insert_sends(txn, picked, sends);
    }
}

void due_work_claim(DbTxn *txn, int64_t lease_ms)
{
    DbParams *params = db_txn_add(txn, &claim_work, NULL);
    db_i64(params, lease_ms);
    db_i32(params, DUE_WORK_CLAIM_MAX);
    db_txn_add(txn, &next_due, NULL);
}

void due_work_delete(DbTxn *txn, const Str *work_ids, size_t count)
{
    DbArray *ids = db_array(db_txn_add(txn, &delete_done, NULL), DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        db_push_text(ids, work_ids[i]);
    }
}

void due_work_backlog(DbTxn *txn)
{
    db_txn_add(txn, &backlog, NULL);
}

void due_work_projected(DbTxn *txn)
{
    db_txn_add(txn, &projected, NULL);
}
