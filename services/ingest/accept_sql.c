// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/accept_sql.h"

// A key that is there and younger than a day keeps its row, is not among `fresh`, and so shuts its
// accept row out. IN under OR stays a hashed sub-plan whatever the planner believes about the size
// of the arrays.
static const DbStatement ACCEPT = {
    .name = "ingest_accept",
    .sql = "WITH input AS (SELECT * FROM unnest($2::text[], $3::text[], $4::bytea[], $5::text[], "
           "$6::text[], "
           "$7::bytea[], $8::text[]) AS i (tenant_id, ids, events, scope, key, hash, answer)), "
           "fresh AS (INSERT INTO ingest.idempotency_keys AS k (tenant_id, scope, idempotency_key, "
           "request_hash, response_status, response_body, created_at) "
           "SELECT tenant_id, scope, key, hash, 202, answer, $1::timestamptz FROM input WHERE key "
           "IS NOT NULL "
           "ON CONFLICT (tenant_id, scope, idempotency_key) DO UPDATE SET "
           "request_hash = excluded.request_hash, response_status = excluded.response_status, "
           "response_body = excluded.response_body, created_at = excluded.created_at "
           "WHERE k.created_at < now() - interval '24 hours' "
           "RETURNING tenant_id, scope, idempotency_key) "
           "INSERT INTO ingest.accept_log (tenant_id, accepted_at, notification_ids, events) "
           "SELECT tenant_id, $1::timestamptz, string_to_array(ids, ','), events FROM input "
           "WHERE key IS NULL OR (tenant_id, scope, key) IN (SELECT tenant_id, scope, "
           "idempotency_key FROM fresh) "
           "RETURNING accept_id, notification_ids[1]",
};

// A statement of its own, for its snapshot is younger: it sees a key that another replica committed
// meanwhile.
static const DbStatement STORED = {
    .name = "ingest_stored_answers",
    .sql = "SELECT i.n, k.request_hash, k.response_status, k.response_body "
           "FROM unnest($1::int4[], $2::text[], $3::text[], $4::text[]) AS i (n, tenant_id, scope, "
           "key) "
           "CROSS JOIN LATERAL (SELECT * FROM ingest.idempotency_keys s WHERE s.tenant_id = "
           "i.tenant_id "
           "AND s.scope = i.scope AND s.idempotency_key = i.key LIMIT 1) k",
};

static void push_optional(DbArray *array, bool given, Str value)
{
    if (given) {
        db_push_text(array, value);
    } else {
        db_push_null(array);
    }
}

static void add_accept(DbTxn *txn, const AcceptRow *rows, size_t count, int64_t accepted_at_us)
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
    for (size_t i = 0; i < count; i++) {
        const AcceptRow *row = &rows[i];
        bool keyed = row->key.len > 0;
        db_push_text(tenants, row->tenant);
        db_push_text(ids, row->ids);
        db_push_text(events, row->events);
        push_optional(scopes, keyed, row->scope);
        push_optional(keys, keyed, row->key);
        push_optional(hashes, keyed, str_of(row->hash, keyed ? SHA256_LEN : 0));
        push_optional(answers, keyed, row->answer);
    }
}

static void add_stored(DbTxn *txn, const AcceptRow *rows, size_t count)
{
    DbParams *p = db_txn_add(txn, &STORED, NULL);
    DbArray *numbers = db_array(p, DB_I32);
    DbArray *tenants = db_array(p, DB_TEXT);
    DbArray *scopes = db_array(p, DB_TEXT);
    DbArray *keys = db_array(p, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].key.len > 0) {
            db_push_int(numbers, (int64_t)i);
            db_push_text(tenants, rows[i].tenant);
            db_push_text(scopes, rows[i].scope);
            db_push_text(keys, rows[i].key);
        }
    }
}

static bool any_key(const AcceptRow *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (rows[i].key.len > 0) {
            return true;
        }
    }
    return false;
}

void accept_sql_add(DbTxn *txn, const AcceptRow *rows, size_t count, int64_t accepted_at_us)
{
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || !str_eq(rows[i].tenant, rows[i - 1].tenant)) {
            db_txn_tenant(txn, rows[i].tenant);
        }
    }
    add_accept(txn, rows, count, accepted_at_us);
    if (any_key(rows, count)) {
        add_stored(txn, rows, count);
    }
}

// Rows come back in the order they went in, but for those shut out; nobody promises it, hence the
// search around.
static AcceptRow *find_row(AcceptRow *rows, size_t count, size_t *cursor, Str first_id)
{
    for (size_t tried = 0; tried < count; tried++) {
        AcceptRow *row = &rows[*cursor];
        *cursor = *cursor + 1 == count ? 0 : *cursor + 1;
        if (str_eq(row->first_id, first_id)) {
            return row;
        }
    }
    return NULL;
}

static bool read_accepted(const PGresult *res, AcceptRow *rows, size_t count, Error *err)
{
    size_t cursor = 0;
    for (int i = 0; i < db_rows(res); i++) {
        AcceptRow *row = find_row(rows, count, &cursor, db_get_text(res, i, 1));
        if (row == NULL) {
            return error_set(
                err, ERROR_PERMANENT, "the accept log returned a row that was not sent");
        }
        row->accept_id = db_get_int(res, i, 0);
    }
    return true;
}

static void read_stored(const PGresult *res, AcceptRow *rows, size_t count, Arena *arena)
{
    for (int i = 0; i < db_rows(res); i++) {
        int64_t n = db_get_int(res, i, 0);
        if (n >= 0 && (size_t)n < count && rows[n].accept_id == 0) {
            rows[n].stored_hash = arena_str(arena, db_get_text(res, i, 1));
            rows[n].stored_status = (int)db_get_int(res, i, 2);
            rows[n].stored_answer = arena_str(arena, db_get_text(res, i, 3));
        }
    }
}

bool accept_sql_read(const DbTxn *txn, AcceptRow *rows, size_t count, Arena *arena, Error *err)
{
    if (!read_accepted(db_txn_result(txn, 0), rows, count, err)) {
        return false;
    }
    if (any_key(rows, count)) {
        read_stored(db_txn_result(txn, 1), rows, count, arena);
    }
    for (size_t i = 0; i < count; i++) {
        if (rows[i].accept_id == 0 && rows[i].stored_status == 0) {
            return error_set(
                err, ERROR_TRANSIENT, "the accept log took a row neither as new nor as known");
        }
    }
    return true;
}
