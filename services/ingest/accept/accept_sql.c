// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/accept/accept_sql.h"

// A key that is there and younger than a day keeps its row, is not among `fresh`, and so shuts its
// part out. IN under OR stays a hashed sub-plan whatever the planner believes about the size of the
// arrays. The parts' frames are joined behind one head ($10): a row has its price (index entries,
// WAL, its mark), so single requests with keys share it as those without do.
static const DbStatement ACCEPT = {
    .name = "ingest_accept",
    .sql = "WITH input AS (SELECT * FROM unnest($2::text[], $3::text[], $4::bytea[], $5::text[],"
           " $6::text[], $7::bytea[], $8::text[], $9::int4[]) WITH ORDINALITY"
           " AS i (tenant_id, ids, events, scope, key, hash, answer, row_number, n)),"
           " fresh AS (INSERT INTO ingest.idempotency_keys AS k (tenant_id, scope, idempotency_key,"
           " request_hash, response_status, response_body, created_at)"
           " SELECT tenant_id, scope, key, hash, 202, answer, $1::timestamptz FROM input"
           " WHERE key IS NOT NULL"
           " ON CONFLICT (tenant_id, scope, idempotency_key) DO UPDATE SET"
           " request_hash = excluded.request_hash, response_status = excluded.response_status,"
           " response_body = excluded.response_body, created_at = excluded.created_at"
           " WHERE k.created_at < now() - interval '24 hours'"
           " RETURNING tenant_id, scope, idempotency_key)"
           " INSERT INTO ingest.accept_log (tenant_id, accepted_at, notification_ids, events)"
           " SELECT tenant_id, $1::timestamptz, string_to_array(string_agg(ids, ',' ORDER BY n),"
           " ','), $10::bytea || string_agg(events, ''::bytea ORDER BY n) FROM input"
           " WHERE key IS NULL OR (tenant_id, scope, key) IN"
           " (SELECT tenant_id, scope, idempotency_key FROM fresh)"
           " GROUP BY tenant_id, row_number ORDER BY min(n)"
           " RETURNING accept_id, array_to_string(notification_ids, ',')",
};

// Asked after the commit and for the keys that it refused alone: planned and begun with every
// commit it was 320 us of Postgres for a request by itself. Its snapshot is younger than the
// insert's, so it sees a key that another replica committed meanwhile.
static const DbStatement STORED = {
    .name = "ingest_stored_answers",
    .sql = "SELECT i.n, k.request_hash, k.response_status, k.response_body "
           "FROM unnest($1::int4[], $2::text[], $3::text[], $4::text[]) AS i (n, tenant_id, scope, "
           "key) "
           "CROSS JOIN LATERAL (SELECT * FROM ingest.idempotency_keys s WHERE s.tenant_id = "
           "i.tenant_id "
           "AND s.scope = i.scope AND s.idempotency_key = i.key LIMIT 1) k",
};

// A plan from when the table had a few pages would read it from end to end.
static const DbStatement BY_INDEX = {
    .name = "ingest_by_index", .sql = "SELECT set_config('enable_seqscan', 'off', true)"};

static void push_optional(DbArray *array, bool given, Str value)
{
    if (given) {
        db_push_text(array, value);
    } else {
        db_push_null(array);
    }
}

static void add_accept(
    DbTxn *txn, const AcceptPart *parts, size_t count, Str head, int64_t accepted_at_us)
{
    DbParams *p = db_txn_add(txn, &ACCEPT, NULL);
    db_time(p, accepted_at_us);
    DbArray *tenants = db_array(p, DB_TEXT);
    DbArray *ids = db_array(p, DB_TEXT);
    DbArray *events = db_array(p, DB_BYTES);
    DbArray *scopes = db_array(p, DB_TEXT);
    DbArray *keys = db_array(p, DB_TEXT);
    DbArray *hashes = db_array(p, DB_BYTES);
    DbArray *answers = db_array(p, DB_TEXT);
    DbArray *rows = db_array(p, DB_I32);
    for (size_t i = 0; i < count; i++) {
        const AcceptPart *part = &parts[i];
        bool keyed = part->key.len > 0;
        db_push_text(tenants, part->tenant);
        db_push_text(ids, part->ids);
        db_push_text(events, part->events);
        push_optional(scopes, keyed, part->scope);
        push_optional(keys, keyed, part->key);
        push_optional(hashes, keyed, str_of(part->hash, keyed ? SHA256_LEN : 0));
        push_optional(answers, keyed, part->answer);
        db_push_int(rows, (int64_t)part->row);
    }
    db_bytes(p, head);
}

void accept_sql_add(
    DbTxn *txn, const AcceptPart *parts, size_t count, Str head, int64_t accepted_at_us)
{
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || !str_eq(parts[i].tenant, parts[i - 1].tenant)) {
            db_txn_tenant(txn, parts[i].tenant);
        }
    }
    add_accept(txn, parts, count, head, accepted_at_us);
}

// Rows come back in the order of their first parts; Postgres does not promise it, hence the search.
static AcceptPart *find_first(AcceptPart *parts, size_t count, size_t *cursor, Str ids)
{
    for (size_t tried = 0; tried < count; tried++) {
        AcceptPart *part = &parts[*cursor];
        *cursor = *cursor + 1 == count ? 0 : *cursor + 1;
        if (str_starts(ids, part->ids)) {
            return part;
        }
    }
    return NULL;
}

// The parts of a row that are in it, in their order: those shut out are passed over.
static bool read_row(AcceptPart *first, Str ids, int64_t accept_id, Error *err)
{
    for (AcceptPart *part = first; part != NULL && ids.len > 0; part = part->next) {
        if (str_starts(ids, part->ids)) {
            part->accept_id = accept_id;
            ids = str_slice(ids, part->ids.len, ids.len);
            ids = str_slice(ids, ids.len > 0 ? 1 : 0, ids.len); // the comma
        }
    }
    return ids.len == 0 || error_set(
                               err, ERROR_PERMANENT,
                               "Postgres returned a notification id that this process did not send "
                               "to ingest.accept_log");
}

bool accept_sql_read(const DbTxn *txn, AcceptPart *parts, size_t count, Error *err)
{
    const PGresult *res = db_txn_result(txn, 0);
    size_t cursor = 0;
    for (int i = 0; i < db_rows(res); i++) {
        Str ids = db_get_text(res, i, 1);
        AcceptPart *first = find_first(parts, count, &cursor, ids);
        if (!read_row(first, ids, db_get_int(res, i, 0), err)) {
            return false;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (parts[i].accept_id == 0 && parts[i].key.len == 0) {
            return error_set(
                err, ERROR_TRANSIENT,
                "Postgres did not store a request without a key in ingest.accept_log");
        }
    }
    return true;
}

// ---- keys that were there ----

void accept_sql_by_index(DbTxn *txn)
{
    db_txn_add(txn, &BY_INDEX, NULL);
}

void accept_sql_find(DbTxn *txn, const AcceptPart *parts, size_t count)
{
    accept_sql_by_index(txn);
    DbParams *p = db_txn_add(txn, &STORED, NULL);
    DbArray *numbers = db_array(p, DB_I32);
    DbArray *tenants = db_array(p, DB_TEXT);
    DbArray *scopes = db_array(p, DB_TEXT);
    DbArray *keys = db_array(p, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        if (parts[i].accept_id == 0) {
            db_txn_tenant(txn, parts[i].tenant);
            db_push_int(numbers, (int64_t)i);
            db_push_text(tenants, parts[i].tenant);
            db_push_text(scopes, parts[i].scope);
            db_push_text(keys, parts[i].key);
        }
    }
}

void accept_sql_found(const DbTxn *txn, AcceptPart *parts, size_t count, Arena *arena)
{
    const PGresult *res = db_txn_result(txn, 1);
    for (int i = 0; i < db_rows(res); i++) {
        int64_t n = db_get_int(res, i, 0);
        if (n >= 0 && (size_t)n < count && parts[n].accept_id == 0) {
            parts[n].stored_hash = arena_str(arena, db_get_text(res, i, 1));
            parts[n].stored_status = (int)db_get_int(res, i, 2);
            parts[n].stored_answer = arena_str(arena, db_get_text(res, i, 3));
        }
    }
}
