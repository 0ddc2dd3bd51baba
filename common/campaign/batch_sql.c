// SPDX-License-Identifier: Apache-2.0
#include "common/campaign/batch_sql.h"

#define COLUMNS                                                                                    \
    "id, tenant_id, name, category, channel, priority, template, template_version, locale, "       \
    "variables, scheduled_for, rate_per_second, step, status, paused, reason, total, broken, "     \
    "chunks, next_chunk, next_offset, accepted, created_by, created_at, started_at, ended_at, "    \
    "create_hash, consent_source, consent_at, recipient_query::text, chosen_after, is_chosen"

// ---- a batch as its row ----

static const DbStatement GET = {
    .name = "batch_get",
    .sql = "SELECT " COLUMNS " FROM ingest.batches WHERE id = $1::text",
};

static const DbStatement LIST = {
    .name = "batch_list",
    .sql = "SELECT " COLUMNS " FROM ingest.batches WHERE tenant_id = $1::text "
           "AND ($2::text = '' OR status = $2::text) AND ($3::text = '' OR id < $3::text) "
           "ORDER BY id DESC LIMIT $4::int4",
};

static const DbStatement CLAIM = {
    .name = "batch_claim",
    .sql = "SELECT " COLUMNS " FROM ingest.claim_batches($1::text, $2::int8 * interval "
           "'1 millisecond', $3::int4)",
};

static const DbStatement CREATE = {
    .name = "batch_create",
    .sql =
        "INSERT INTO ingest.batches (id, tenant_id, name, category, channel, priority, "
        "template, template_version, locale, variables, scheduled_for, rate_per_second, step, "
        "status, created_by, created_at, create_key, create_hash, consent_source, consent_at, "
        "recipient_query) "
        "VALUES ($1::text, $2::text, "
        "$3::text, $4::text, $5::text, $6::text, $7::text, $8::text, $9::text, $10::bytea, "
        "$11::timestamptz, $12::int4, $13::int4, 'draft', $14::text, $15::timestamptz, "
        "$16::text, $17::bytea, $18::text, $19::timestamptz, $20::jsonb) ON CONFLICT (tenant_id, "
        "create_key) DO NOTHING",
};

static const DbStatement CREATED = {
    .name = "batch_created",
    .sql = "SELECT " COLUMNS " FROM ingest.batches WHERE id = $1::text "
           "OR (tenant_id = $2::text AND create_key = $3::text)",
};

static void push_optional(DbParams *p, Str value)
{
    if (value.len > 0) {
        db_text(p, value);
    } else {
        db_null(p);
    }
}

static void push_optional_bytes(DbParams *p, Str value)
{
    if (value.len > 0) {
        db_bytes(p, value);
    } else {
        db_null(p);
    }
}

void batch_sql_get(DbTxn *txn, Str id)
{
    db_text(db_txn_add(txn, &GET, NULL), id);
}

void batch_sql_list(DbTxn *txn, Str tenant, Str status, Str before, int32_t limit)
{
    DbParams *p = db_txn_add(txn, &LIST, NULL);
    db_text(p, tenant);
    db_text(p, status);
    db_text(p, before);
    db_i32(p, limit);
}

void batch_sql_claim(DbTxn *txn, Str holder, int64_t lease_ms, int32_t at_most)
{
    DbParams *p = db_txn_add(txn, &CLAIM, NULL);
    db_text(p, holder);
    db_i64(p, lease_ms);
    db_i32(p, at_most);
}

void batch_sql_create(DbTxn *txn, const BatchRow *row, Str create_key)
{
    DbParams *p = db_txn_add(txn, &CREATE, NULL);
    db_text(p, row->id);
    db_text(p, row->tenant);
    db_text(p, row->name);
    db_text(p, str_from(category_name(row->category)));
    db_text(p, str_from(channel_name(row->channel)));
    db_text(p, str_from(priority_name(row->priority)));
    db_text(p, row->template_key);
    db_text(p, row->template_version);
    db_text(p, row->locale);
    push_optional_bytes(p, row->variables);
    db_time(p, row->scheduled_for_us);
    db_i32(p, (int32_t)row->rate_per_s);
    db_i32(p, (int32_t)row->step);
    db_text(p, row->created_by);
    db_time(p, row->created_at_us);
    push_optional(p, create_key);
    push_optional_bytes(p, row->create_hash);
    push_optional(p, row->consent_source);
    db_time(p, row->consent_at_us);
    push_optional(p, row->query);
    p = db_txn_add(txn, &CREATED, NULL);
    db_text(p, row->id);
    db_text(p, row->tenant);
    push_optional(p, create_key);
}

static bool read_kinds(const PGresult *res, int i, BatchRow *row, Error *err)
{
    if (category_from_name(db_get_text(res, i, 3), &row->category) &&
        channel_from_name(db_get_text(res, i, 4), &row->channel) &&
        priority_from_name(db_get_text(res, i, 5), &row->priority) &&
        batch_status_from_name(db_get_text(res, i, 13), &row->status)) {
        return true;
    }
    return error_set(err, ERROR_PERMANENT, "a batch has an unknown kind");
}

bool batch_sql_read(const PGresult *res, int i, Arena *arena, BatchRow *ret, Error *err)
{
    BatchRow row = {
        .id = arena_str(arena, db_get_text(res, i, 0)),
        .tenant = arena_str(arena, db_get_text(res, i, 1)),
        .name = arena_str(arena, db_get_text(res, i, 2)),
        .template_key = arena_str(arena, db_get_text(res, i, 6)),
        .template_version = arena_str(arena, db_get_text(res, i, 7)),
        .locale = arena_str(arena, db_get_text(res, i, 8)),
        .variables = arena_str(arena, db_get_text(res, i, 9)),
        .scheduled_for_us = db_get_time(res, i, 10),
        .rate_per_s = db_get_int(res, i, 11),
        .step = db_get_int(res, i, 12),
        .paused = db_get_int(res, i, 14) != 0,
        .reason = arena_str(arena, db_get_text(res, i, 15)),
        .total = db_get_int(res, i, 16),
        .broken = db_get_int(res, i, 17),
        .chunks = db_get_int(res, i, 18),
        .next_chunk = db_get_int(res, i, 19),
        .next_offset = db_get_int(res, i, 20),
        .accepted = db_get_int(res, i, 21),
        .created_by = arena_str(arena, db_get_text(res, i, 22)),
        .created_at_us = db_get_time(res, i, 23),
        .started_at_us = db_get_time(res, i, 24),
        .ended_at_us = db_get_time(res, i, 25),
        .create_hash = arena_str(arena, db_get_text(res, i, 26)),
        .consent_source = arena_str(arena, db_get_text(res, i, 27)),
        .consent_at_us = db_get_time(res, i, 28),
        .query = arena_str(arena, db_get_text(res, i, 29)),
        .chosen_after = arena_str(arena, db_get_text(res, i, 30)),
        .chosen = db_get_int(res, i, 31) != 0,
    };
    if (!read_kinds(res, i, &row, err)) {
        return false;
    }
    *ret = row;
    return true;
}

// ---- members ----

static const DbStatement ADD_PART = {
    .name = "batch_add_part",
    .sql = "SELECT outcome, members, status FROM ingest.add_batch_part($1::text, $2::int4, "
           "$3::bytea, $4::int4, $5::int4[], $6::bytea[], $7::int8)",
};

static const DbStatement DROP_MEMBERS = {
    .name = "batch_drop_members",
    .sql = "UPDATE ingest.batch_chunks SET data = NULL WHERE batch_id = $1::text AND data IS NOT "
           "NULL AND EXISTS (SELECT FROM ingest.batches b WHERE b.id = $1::text AND b.status IN "
           "('completed', 'cancelled', 'failed'))",
};

void batch_sql_add_part(DbTxn *txn, const BatchPart *part)
{
    DbParams *p = db_txn_add(txn, &ADD_PART, NULL);
    db_text(p, part->batch_id);
    db_i32(p, (int32_t)part->part);
    db_bytes(p, part->hash);
    db_i32(p, (int32_t)part->broken);
    DbArray *counts = db_array(p, DB_I32);
    DbArray *blobs = db_array(p, DB_BYTES);
    for (size_t i = 0; i < part->chunks; i++) {
        db_push_int(counts, part->counts[i]);
        db_push_text(blobs, part->blobs[i]);
    }
    db_i64(p, BATCH_MEMBERS_MAX);
}

void batch_sql_drop_members(DbTxn *txn, Str id)
{
    db_text(db_txn_add(txn, &DROP_MEMBERS, NULL), id);
}

// ---- commands, totals ----

static const DbStatement MOVE = {
    .name = "batch_move",
    .sql = "UPDATE ingest.batches SET status = $4::text, paused = $5::bool, "
           "scheduled_for = coalesce($6::timestamptz, scheduled_for), "
           "started_at = CASE WHEN $4::text = 'running' THEN coalesce(started_at, now()) ELSE "
           "started_at END, "
           "ended_at = CASE WHEN $4::text = 'cancelled' THEN coalesce(ended_at, now()) END "
           "WHERE id = $1::text AND status = $2::text AND paused = $3::bool RETURNING " COLUMNS,
};

static const DbStatement TOTALS = {
    .name = "batch_totals",
    .sql = "SELECT status, notifications FROM stentor.batch_totals($1::text, $2::text, "
           "(SELECT b.created_at FROM ingest.batches b WHERE b.id = $2::text))",
};

void batch_sql_move(DbTxn *txn, Str id, BatchState from, BatchState to, int64_t scheduled_for_us)
{
    DbParams *p = db_txn_add(txn, &MOVE, NULL);
    db_text(p, id);
    db_text(p, str_from(batch_status_name(from.status)));
    db_bool(p, from.paused);
    db_text(p, str_from(batch_status_name(to.status)));
    db_bool(p, to.paused);
    db_time(p, scheduled_for_us);
}

void batch_sql_totals(DbTxn *txn, Str tenant, Str id)
{
    DbParams *p = db_txn_add(txn, &TOTALS, NULL);
    db_text(p, tenant);
    db_text(p, id);
}

// ---- the runner's ----

// started_at is set once: it is the time in the ids of the chunk's notifications, and a repeat
// after a crash must make the same ids.
static const DbStatement LOAD = {
    .name = "batch_load_chunk",
    .sql = "UPDATE ingest.batch_chunks c SET started_at = coalesce(c.started_at, "
           "date_trunc('milliseconds', now())) FROM ingest.batches b "
           "WHERE b.id = $1::text AND b.holder = $2::text AND b.status = 'running' AND NOT "
           "b.paused AND c.batch_id = b.id AND c.number = $3::int4 "
           "RETURNING c.part, c.ordinal, c.first_index, c.started_at, c.data",
};

static const DbStatement CHECKPOINT = {
    .name = "batch_checkpoint",
    .sql = "WITH moved AS (UPDATE ingest.batches SET next_chunk = $5::int4, next_offset = "
           "$6::int4, accepted = accepted + $7::int8, lease_until = now() + $9::int8 * interval "
           "'1 millisecond', "
           "status = CASE WHEN $8::bool AND status = 'running' THEN 'completed' ELSE status END, "
           "ended_at = CASE WHEN $8::bool AND status = 'running' THEN now() ELSE ended_at END "
           "WHERE id = $1::text AND holder = $2::text AND next_chunk = $3::int4 AND next_offset = "
           "$4::int4 RETURNING status, paused), "
           "dropped AS (UPDATE ingest.batch_chunks SET data = NULL WHERE batch_id = $1::text AND "
           "number = $3::int4 AND $5::int4 > $3::int4 AND EXISTS (SELECT FROM moved)) "
           "SELECT status, paused FROM moved",
};

static const DbStatement RENEW = {
    .name = "batch_renew",
    .sql = "UPDATE ingest.batches SET lease_until = now() + $3::int8 * interval '1 millisecond' "
           "WHERE id = $1::text AND holder = $2::text RETURNING status, paused",
};

static const DbStatement RELEASE = {
    .name = "batch_release",
    .sql = "UPDATE ingest.batches SET holder = NULL, lease_until = NULL "
           "WHERE id = $1::text AND holder = $2::text",
};

static const DbStatement FAIL = {
    .name = "batch_fail",
    .sql = "UPDATE ingest.batches SET status = 'failed', paused = false, reason = $3::text, "
           "ended_at = now(), holder = NULL, lease_until = NULL "
           "WHERE id = $1::text AND holder = $2::text AND status = 'running'",
};

void batch_sql_load_chunk(DbTxn *txn, Str id, Str holder, int64_t chunk)
{
    DbParams *p = db_txn_add(txn, &LOAD, NULL);
    db_text(p, id);
    db_text(p, holder);
    db_i32(p, (int32_t)chunk);
}

void batch_sql_checkpoint(DbTxn *txn, const BatchMove *move)
{
    DbParams *p = db_txn_add(txn, &CHECKPOINT, NULL);
    db_text(p, move->id);
    db_text(p, move->holder);
    db_i32(p, (int32_t)move->chunk);
    db_i32(p, (int32_t)move->offset);
    db_i32(p, (int32_t)move->next_chunk);
    db_i32(p, (int32_t)move->next_offset);
    db_i64(p, move->members);
    db_bool(p, move->done);
    db_i64(p, move->lease_ms);
}

void batch_sql_renew(DbTxn *txn, Str id, Str holder, int64_t lease_ms)
{
    DbParams *p = db_txn_add(txn, &RENEW, NULL);
    db_text(p, id);
    db_text(p, holder);
    db_i64(p, lease_ms);
}

void batch_sql_release(DbTxn *txn, Str id, Str holder)
{
    DbParams *p = db_txn_add(txn, &RELEASE, NULL);
    db_text(p, id);
    db_text(p, holder);
}

void batch_sql_fail(DbTxn *txn, Str id, Str holder, Str reason)
{
    DbParams *p = db_txn_add(txn, &FAIL, NULL);
    db_text(p, id);
    db_text(p, holder);
    db_text(p, reason);
}
