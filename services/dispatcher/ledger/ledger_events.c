// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/ledger/ledger_events.h"

#include <assert.h>

static const DbStatement noted_statement = {
    "dispatch_note_events",
    "INSERT INTO dispatcher.callback_events (occurred_at, event_id, tenant_id, sequence)"
    " SELECT * FROM unnest($1::timestamptz[], $2::text[], $3::text[], $4::int8[])"
    " ON CONFLICT DO NOTHING",
};

// One snapshot for all of it: `repeated` sees what was there before this statement, never what it
// inserts. The predicate of the look-up is that of its index.
static const DbStatement late_statement = {
    "dispatch_late_events",
    "WITH came AS MATERIALIZED ("
    "  SELECT w.n, w.occurred_at, w.event_id, w.tenant_id, w.sequence, coalesce(w.named, ("
    "    SELECT l.notification_id FROM dispatcher.ledger l"
    "    WHERE l.vendor_message_id = w.message_id AND l.vendor = w.vendor"
    "      AND l.tenant_id = w.tenant_id"
    "      AND NOT starts_with(l.vendor_message_id COLLATE \"C\", l.notification_id || '@')"
    "    ORDER BY l.created_at DESC LIMIT 1)) AS id"
    "  FROM unnest($1::timestamptz[], $2::text[], $3::text[], $4::int8[], $5::text[], $6::text[],"
    "    $7::text[]) WITH ORDINALITY"
    "    AS w(occurred_at, event_id, tenant_id, sequence, named, vendor, message_id, n)),"
    " noted AS ("
    "  INSERT INTO dispatcher.callback_events (occurred_at, event_id, tenant_id, sequence)"
    "  SELECT occurred_at, event_id, tenant_id, sequence FROM came WHERE id IS NOT NULL"
    "  ON CONFLICT DO NOTHING)"
    " SELECT c.n, c.id, EXISTS (SELECT FROM dispatcher.callback_events e"
    "   WHERE e.occurred_at = c.occurred_at AND e.event_id = c.event_id"
    "     AND e.sequence <> c.sequence)"
    " FROM came c",
};

static void push_keys(DbTxn *txn, DbParams *p, const LedgerEvent *events, size_t count)
{
    DbArray *times = db_array(p, DB_TIME);
    DbArray *ids = db_array(p, DB_TEXT);
    DbArray *tenants = db_array(p, DB_TEXT);
    DbArray *sequences = db_array(p, DB_I64);
    for (size_t i = 0; i < count; i++) {
        db_push_time(times, events[i].at_us);
        db_push_text(ids, events[i].event_id);
        db_push_text(tenants, events[i].tenant);
        db_push_int(sequences, (int64_t)events[i].sequence);
        db_txn_tenant(txn, events[i].tenant);
    }
}

void ledger_add_noted(DbTxn *txn, const LedgerEvent *events, size_t count)
{
    assert(count > 0 && count <= LEDGER_BATCH_MAX);
    push_keys(txn, db_txn_add(txn, &noted_statement, NULL), events, count);
}

int ledger_add_late(DbTxn *txn, const LedgerEvent *events, size_t count)
{
    assert(count > 0 && count <= LEDGER_BATCH_MAX);
    int index = 0;
    DbParams *p = db_txn_add(txn, &late_statement, &index);
    push_keys(txn, p, events, count);
    DbArray *named = db_array(p, DB_TEXT);
    DbArray *vendors = db_array(p, DB_TEXT);
    DbArray *messages = db_array(p, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        db_push_optional(named, events[i].notification_id);
        db_push_optional(vendors, events[i].vendor);
        db_push_optional(messages, events[i].message_id);
    }
    return index;
}

LedgerLate ledger_late(const PGresult *res, size_t n)
{
    int at = (int)n;
    return (LedgerLate){
        .index = (size_t)db_get_int(res, at, 0) - 1,
        .notification_id = db_get_text(res, at, 1),
        .repeated = db_get_int(res, at, 2) != 0,
    };
}
