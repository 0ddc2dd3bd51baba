// SPDX-License-Identifier: Apache-2.0
#include "services/digest-flusher/clock_sql.h"

// clang-format off
static const DbStatement insert_work = {
    .name = "clock_insert",
    .sql =
    "INSERT INTO clock.due_work (work_id, tenant_id, notification_id, reason, due_at, subject, event_id, payload)"
    " SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::text[], $7::text[],"
    " $8::bytea[])"
    " ON CONFLICT DO NOTHING",
};
static const DbStatement claim_due = {
    .name = "clock_claim",
    .sql =
    "SELECT work_id, due_at, subject, event_id, payload"
    " FROM clock.claim_due($1::int8 * interval '1 millisecond', $2::int4)",
};
static const DbStatement next_due = {.name = "clock_next", .sql = "SELECT clock.next_due()"};
static const DbStatement delete_done = {.name = "clock_done", .sql = "SELECT clock.done($1::text[])"};
static const DbStatement backlog = {.name = "clock_backlog", .sql = "SELECT waiting, next_due_at FROM clock.backlog()"};
static const DbStatement projected = {.name = "clock_projected", .sql = "SELECT stream, sequence FROM clock.projected()"};
// clang-format on

void clock_insert(DbTxn *txn, const DueWork *const *work, size_t count)
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
    for (size_t i = 0; i < count; i++) {
        db_txn_tenant(txn, work[i]->tenant);
        db_push_text(work_id, work[i]->work_id);
        db_push_text(tenant, work[i]->tenant);
        db_push_text(notification, work[i]->notification_id);
        db_push_text(reason, work[i]->reason);
        db_push_time(due_at, work[i]->due_at_us);
        db_push_text(subject, str_from(work[i]->subject));
        db_push_text(event_id, str_from(work[i]->event_id));
        db_push_text(payload, work[i]->payload);
    }
}

void clock_claim(DbTxn *txn, int64_t lease_ms)
{
    DbParams *params = db_txn_add(txn, &claim_due, NULL);
    db_i64(params, lease_ms);
    db_i32(params, CLOCK_CLAIM_MAX);
    db_txn_add(txn, &next_due, NULL);
}

void clock_delete(DbTxn *txn, const Str *work_ids, size_t count)
{
    DbArray *ids = db_array(db_txn_add(txn, &delete_done, NULL), DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        db_push_text(ids, work_ids[i]);
    }
}

void clock_backlog(DbTxn *txn)
{
    db_txn_add(txn, &backlog, NULL);
}

void clock_projected(DbTxn *txn)
{
    db_txn_add(txn, &projected, NULL);
}
