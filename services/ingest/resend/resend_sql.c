// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/resend/resend_sql.h"

// LATERAL with a LIMIT keeps each a look-up by key, whatever the planner thinks of the tables.
static const DbStatement LOOK_UP = {
    .name = "ingest_resend_look_up",
    .sql = "SELECT i.n, r.letter_sequence, r.published_at IS NOT NULL, "
           "r.resent_at IS NOT NULL OR r.gone_at IS NOT NULL, s.status, s.seen_at "
           "FROM unnest($1::int4[], $2::text[], $3::text[], $4::timestamptz[], $5::text[]) "
           "AS i (n, tenant_id, event_identity, created_at, notification_id) "
           "LEFT JOIN LATERAL (SELECT x.* FROM ingest.resends x "
           "WHERE x.tenant_id = i.tenant_id AND x.event_identity = i.event_identity LIMIT 1) r "
           "ON true "
           "LEFT JOIN LATERAL (SELECT h.* FROM stentor.notification_seen(i.tenant_id, "
           "i.created_at, i.notification_id) h LIMIT 1) s ON true",
};

static const DbStatement NOTE = {
    .name = "ingest_resend_note",
    .sql = "INSERT INTO ingest.resends "
           "(tenant_id, event_identity, notification_id, letter_sequence, requested_by) "
           "SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::int8[], $5::text[]) "
           "ON CONFLICT (tenant_id, event_identity) DO NOTHING",
};

static const DbStatement MARK = {
    .name = "ingest_resend_mark",
    .sql = "UPDATE ingest.resends r SET "
           "published_at = CASE WHEN i.mark < 2 THEN coalesce(r.published_at, now()) "
           "ELSE r.published_at END, "
           "resent_at = CASE WHEN i.mark = 1 THEN coalesce(r.resent_at, now()) "
           "ELSE r.resent_at END, "
           "gone_at = CASE WHEN i.mark = 2 AND r.published_at IS NULL "
           "THEN coalesce(r.gone_at, now()) ELSE r.gone_at END "
           "FROM unnest($1::text[], $2::text[], $3::int4[]) AS i (tenant_id, event_identity, mark) "
           "WHERE r.tenant_id = i.tenant_id AND r.event_identity = i.event_identity",
};

void resend_sql_look_up(DbTxn *txn, const ResendRequest *const *items, size_t count)
{
    DbParams *p = db_txn_add(txn, &LOOK_UP, NULL);
    DbArray *numbers = db_array(p, DB_I32);
    DbArray *tenants = db_array(p, DB_TEXT);
    DbArray *identities = db_array(p, DB_TEXT);
    DbArray *created = db_array(p, DB_TIME);
    DbArray *ids = db_array(p, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        db_txn_tenant(txn, items[i]->tenant);
        db_push_int(numbers, (int64_t)i);
        db_push_text(tenants, items[i]->tenant);
        db_push_text(identities, items[i]->identity);
        db_push_time(created, items[i]->created_us);
        db_push_text(ids, items[i]->notification_id);
    }
}

void resend_sql_read(const DbTxn *txn, ResendKnown *ret, size_t count, Arena *arena)
{
    const PGresult *res = db_txn_result(txn, 0);
    for (size_t i = 0; i < count; i++) {
        ret[i] = (ResendKnown){.status = ""};
    }
    for (int row = 0; row < db_rows(res); row++) {
        int64_t n = db_get_int(res, row, 0);
        if (n < 0 || (size_t)n >= count) {
            continue;
        }
        bool noted = !db_is_null(res, row, 1);
        ret[n] = (ResendKnown){
            .letter = noted ? (uint64_t)db_get_int(res, row, 1) : 0,
            .published = noted && db_get_int(res, row, 2) != 0,
            .done = noted && db_get_int(res, row, 3) != 0,
            .status = db_is_null(res, row, 4) ? "" : arena_cstr(arena, db_get_text(res, row, 4)),
            .seen_us = db_get_time(res, row, 5),
        };
    }
}

void resend_sql_note(
    DbTxn *txn, const ResendRequest *const *items, const uint64_t *letters, size_t count)
{
    DbParams *p = db_txn_add(txn, &NOTE, NULL);
    DbArray *tenants = db_array(p, DB_TEXT);
    DbArray *identities = db_array(p, DB_TEXT);
    DbArray *ids = db_array(p, DB_TEXT);
    DbArray *sequences = db_array(p, DB_I64);
    DbArray *requested_by = db_array(p, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        db_txn_tenant(txn, items[i]->tenant);
        db_push_text(tenants, items[i]->tenant);
        db_push_text(identities, items[i]->identity);
        db_push_text(ids, items[i]->notification_id);
        db_push_int(sequences, (int64_t)letters[i]);
        db_push_text(requested_by, items[i]->requested_by);
    }
}

void resend_sql_mark(
    DbTxn *txn, const ResendRequest *const *items, const ResendMark *marks, size_t count)
{
    DbParams *p = db_txn_add(txn, &MARK, NULL);
    DbArray *tenants = db_array(p, DB_TEXT);
    DbArray *identities = db_array(p, DB_TEXT);
    DbArray *numbers = db_array(p, DB_I32);
    for (size_t i = 0; i < count; i++) {
        db_txn_tenant(txn, items[i]->tenant);
        db_push_text(tenants, items[i]->tenant);
        db_push_text(identities, items[i]->identity);
        db_push_int(numbers, marks[i]);
    }
}
