// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/ledger/ledger_settle.h"

#include <assert.h>

// `proof`: for each proof the row that it is about, by a range of the primary key; those without an
// open row are left out. A row that this very event settled is returned, so that a redelivery
// publishes what the first delivery may have missed. One proof for each notification: the same row
// cannot be changed twice by one statement. The conditions are checked again on the locked row.
static const DbStatement settle_statement = {
    "dispatch_settle",
    "WITH proof AS MATERIALIZED ("
    "  SELECT DISTINCT ON (o.created_at, o.notification_id) w.n, w.event_id, w.reported_at,"
    "    w.message_id, o.*"
    "  FROM unnest($1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::timestamptz[],"
    "    $8::text[], $9::int2[], $10::text[]) WITH ORDINALITY"
    "    AS w(created_at, notification_id, tenant_id, event_id, reported_at, reporter, "
    "reported_attempt,"
    "      message_id, n)"
    "  CROSS JOIN LATERAL (SELECT * FROM dispatcher.ledger x"
    "   WHERE x.created_at = w.created_at AND x.notification_id = w.notification_id"
    "     AND x.tenant_id = w.tenant_id AND (x.state IN ('sent', 'claimed') OR x.unknown_count > 0)"
    "     AND coalesce(x.vendor, 'smtp') IN ('smtp', w.reporter)"
    // A parked row stands for every attempt before it.
    "     AND (w.reported_attempt IN (0, x.attempt)"
    "       OR (x.state = 'parked' AND x.attempt > w.reported_attempt))"
    "   ORDER BY (x.settled_by = w.event_id) IS TRUE DESC, (x.state = 'sent') DESC, x.attempt DESC"
    "   LIMIT 1) o"
    "  WHERE o.settled_by = w.event_id OR (o.state <> 'sent' AND o.settled_by IS NULL)"
    "  ORDER BY o.created_at, o.notification_id, w.n),"
    " settled AS ("
    "  INSERT INTO dispatcher.ledger AS l (created_at, notification_id, attempt, tenant_id, state,"
    "    owner, lease_until, claimed_at, finished_at, vendor, vendor_message_id, settled_at,"
    "    settled_by)"
    "  SELECT created_at, notification_id, attempt, tenant_id, 'sent', '', now(), claimed_at,"
    "    greatest(claimed_at, least(finished_at, reported_at)), coalesce(vendor, $6::text),"
    "    coalesce(vendor_message_id, CASE WHEN coalesce(vendor, 'smtp') = 'smtp'"
    "      THEN notification_id || '@' || $7::text ELSE message_id END), now(), event_id"
    "  FROM proof WHERE settled_by IS NULL"
    "  ON CONFLICT (created_at, notification_id, attempt) DO UPDATE"
    "  SET settled_at = excluded.settled_at, settled_by = excluded.settled_by,"
    "    state = CASE WHEN l.state = 'claimed' AND l.lease_until > now() THEN 'claimed'"
    "      ELSE 'sent' END,"
    "    unknown_count = CASE WHEN l.state <> 'claimed' OR l.owner = '' THEN"
    "      greatest(l.unknown_count, 1::int2)"
    "      WHEN l.lease_until > now() THEN l.unknown_count ELSE l.unknown_count + 1 END,"
    "    finished_at = excluded.finished_at, vendor = excluded.vendor,"
    "    vendor_message_id = excluded.vendor_message_id,"
    // Decided here (vendor NULL), and yet it had been sent: our reason is not the vendor's reply.
    "    code = CASE WHEN l.vendor IS NULL THEN NULL ELSE l.code END,"
    "    reply = CASE WHEN l.vendor IS NULL THEN NULL ELSE l.reply END"
    "  WHERE l.settled_at IS NULL AND l.state <> 'sent'"
    "    AND (l.state = 'claimed' OR l.unknown_count > 0)"
    "  RETURNING l.*)"
    " SELECT d.n, d.repeated, d.attempt, d.state, d.claimed_at, d.finished_at, d.unknown_count,"
    "  d.vendor, d.vendor_message_id, d.code, d.enhanced_code, d.reply, d.credential,"
    "  EXISTS (SELECT FROM dispatcher.ledger y WHERE y.created_at = d.created_at"
    "   AND y.notification_id = d.notification_id AND y.attempt <> d.attempt AND y.state = 'sent')"
    " FROM (SELECT p.n, false AS repeated, s.created_at, s.notification_id, s.attempt, s.state,"
    "   s.claimed_at, s.finished_at, s.unknown_count, s.vendor, s.vendor_message_id, s.code,"
    "   s.enhanced_code, s.reply, s.credential"
    "  FROM settled s JOIN proof p USING (created_at, notification_id)"
    "  UNION ALL SELECT n, true, created_at, notification_id, attempt, state, claimed_at,"
    "   finished_at, unknown_count, vendor, vendor_message_id, code, enhanced_code, reply,"
    "   credential FROM proof WHERE settled_by IS NOT NULL) d",
};

static const DbStatement open_statement = {
    "dispatch_unknown_open",
    "SELECT claimed, parked FROM dispatcher.unknown_open()",
};

int ledger_add_settle(
    DbTxn *txn, const LedgerProof *const *proofs, size_t count, const LedgerVendor *vendor)
{
    assert(count > 0 && count <= LEDGER_BATCH_MAX);
    int index = 0;
    DbParams *p = db_txn_add(txn, &settle_statement, &index);
    DbArray *created = db_array(p, DB_TIME);
    DbArray *ids = db_array(p, DB_TEXT);
    DbArray *tenants = db_array(p, DB_TEXT);
    DbArray *events = db_array(p, DB_TEXT);
    DbArray *times = db_array(p, DB_TIME);
    db_text(p, str_from(vendor->name));
    db_text(p, vendor->mail_domain);
    DbArray *reporters = db_array(p, DB_TEXT);
    DbArray *attempts = db_array(p, DB_I16);
    DbArray *message_ids = db_array(p, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        db_push_time(created, proofs[i]->created_at_us);
        db_push_text(ids, proofs[i]->notification_id);
        db_push_text(tenants, proofs[i]->tenant);
        db_push_text(events, proofs[i]->event_id);
        db_push_time(times, proofs[i]->at_us);
        db_push_text(reporters, proofs[i]->vendor);
        db_push_int(attempts, proofs[i]->attempt);
        if (proofs[i]->message_id.len > 0) {
            db_push_text(message_ids, proofs[i]->message_id);
        } else {
            db_push_null(message_ids);
        }
        db_txn_tenant(txn, proofs[i]->tenant);
    }
    return index;
}

LedgerSettled ledger_settled(const PGresult *res, size_t n)
{
    int at = (int)n;
    return (LedgerSettled){
        .index = (size_t)db_get_int(res, at, 0) - 1,
        .repeated = db_get_int(res, at, 1) != 0,
        .attempt = (int32_t)db_get_int(res, at, 2),
        .second = db_get_int(res, at, 13) != 0,
        .row =
            {
                .state =
                    str_eq(db_get_text(res, at, 3), STR("sent")) ? LEDGER_SENT : LEDGER_CLAIMED,
                .claimed_at_us = db_get_time(res, at, 4),
                .finished_at_us = db_get_time(res, at, 5),
                .rung = -1,
                .unknown_count = (int32_t)db_get_int(res, at, 6),
                .vendor = db_get_text(res, at, 7),
                .vendor_message_id = db_get_text(res, at, 8),
                .code = db_get_text(res, at, 9),
                .enhanced = db_get_text(res, at, 10),
                .reply = db_get_text(res, at, 11),
                .credential = db_get_text(res, at, 12),
            },
    };
}

int ledger_add_unknown_open(DbTxn *txn)
{
    int index = 0;
    db_txn_add(txn, &open_statement, &index);
    return index;
}

LedgerOpen ledger_unknown_open(const PGresult *res)
{
    return (LedgerOpen){db_get_int(res, 0, 0), db_get_int(res, 0, 1)};
}
