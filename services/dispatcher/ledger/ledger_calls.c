// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/ledger/ledger_calls.h"

#include <assert.h>

// The rows by their primary key, as in ledger_settle.c. The claim of the next call may come a
// little before due_at by the clock of Postgres, hence the three seconds. The last part sees the
// table as it was before: a report that comes again finds what the first one did.
static const DbStatement unanswered_statement = {
    "dispatch_unanswered",
    "WITH came AS MATERIALIZED ("
    "  SELECT w.n, w.reason AS said, w.reply AS words, x.*"
    "  FROM unnest($1::timestamptz[], $2::text[], $3::int2[], $4::text[], $5::text[], $6::text[],"
    "    $7::text[]) WITH ORDINALITY"
    "    AS w(created_at, notification_id, attempt, tenant_id, reporter, reason, reply, n)"
    "  CROSS JOIN LATERAL (SELECT l.created_at, l.notification_id, l.attempt, l.tenant_id, l.state,"
    "    l.code, l.claimed_at FROM dispatcher.ledger l"
    "   WHERE l.created_at = w.created_at AND l.notification_id = w.notification_id"
    "     AND l.attempt = w.attempt AND l.tenant_id = w.tenant_id AND l.vendor = w.reporter"
    "   LIMIT 1) x),"
    " changed AS ("
    "  INSERT INTO dispatcher.ledger AS l (created_at, notification_id, attempt, tenant_id, state,"
    "    owner, lease_until, claimed_at, code, reply)"
    "  SELECT DISTINCT ON (created_at, notification_id, attempt) created_at, notification_id,"
    "    attempt, tenant_id, 'deferred', '', now(), claimed_at, said, words"
    "  FROM came WHERE state = 'sent' ORDER BY created_at, notification_id, attempt, n"
    "  ON CONFLICT (created_at, notification_id, attempt) DO UPDATE"
    "  SET state = excluded.state, code = excluded.code, reply = excluded.reply"
    "  WHERE l.state = 'sent' AND l.due_at > now() + interval '3 seconds'"
    "  RETURNING l.notification_id, l.attempt)"
    " SELECT n FROM came c WHERE (state = 'deferred' AND code IN ('busy', 'no_answer'))"
    "  OR EXISTS (SELECT FROM changed d"
    "   WHERE d.notification_id = c.notification_id AND d.attempt = c.attempt)",
};

int ledger_add_unanswered(DbTxn *txn, const LedgerCall *calls, size_t count)
{
    assert(count > 0 && count <= LEDGER_BATCH_MAX);
    int index = 0;
    DbParams *p = db_txn_add(txn, &unanswered_statement, &index);
    DbArray *created = db_array(p, DB_TIME);
    DbArray *ids = db_array(p, DB_TEXT);
    DbArray *attempts = db_array(p, DB_I16);
    DbArray *tenants = db_array(p, DB_TEXT);
    DbArray *vendors = db_array(p, DB_TEXT);
    DbArray *reasons = db_array(p, DB_TEXT);
    DbArray *replies = db_array(p, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        db_push_time(created, calls[i].key.created_at_us);
        db_push_text(ids, calls[i].key.notification_id);
        db_push_int(attempts, calls[i].key.attempt);
        db_push_text(tenants, calls[i].key.tenant);
        db_push_text(vendors, calls[i].vendor);
        db_push_text(reasons, calls[i].reason);
        db_push_text(replies, calls[i].reply);
        db_txn_tenant(txn, calls[i].key.tenant);
    }
    return index;
}

size_t ledger_unanswered(const PGresult *res, size_t n)
{
    return (size_t)db_get_int(res, (int)n, 0) - 1;
}
