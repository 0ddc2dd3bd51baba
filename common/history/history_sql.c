// SPDX-License-Identifier: Apache-2.0
#include "common/history/history_sql.h"

#include <assert.h>
#include <stdio.h>

#include "common/base/clock.h"

// clang-format off
// Columns in the order of write_head(), FoldText and FoldTime. Each merges by a maximum or a minimum; NULL loses.
// The tenant is part of the key: an event with another tenant's notification id makes a row of its own tenant, where a
// conflict with a row that row-level security hides would fail this flush for ever.
// Each statement is INSERT INTO <schema> and one of these.
static const char upsert_notifications[] =
    ".notifications AS n ("
    " created_at, id, tenant_id, status, status_rank, reason_code, reason,"
    " channel, category, priority, template, template_version, locale, recipient_id, correlation_id, source_event_id,"
    " batch_id, address_hash, address, content_checksum,"
    " scheduled_for, expires_at, queued_at, scheduled_at, rendered_at, sent_at, delivered_at, opened_at, clicked_at,"
    " ended_at, updated_at)"
    " SELECT u.*, clock_timestamp() FROM unnest("
    " $1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::int2[], $6::text[], $7::text[],"
    " $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[],"
    " $17::text[], $18::bytea[], $19::bytea[], $20::bytea[],"
    " $21::timestamptz[], $22::timestamptz[], $23::timestamptz[], $24::timestamptz[], $25::timestamptz[],"
    " $26::timestamptz[], $27::timestamptz[], $28::timestamptz[], $29::timestamptz[], $30::timestamptz[]) AS u"
    " ON CONFLICT (created_at, id, tenant_id) DO UPDATE SET"
    " status = CASE WHEN excluded.status_rank > n.status_rank THEN excluded.status ELSE n.status END,"
    " status_rank = GREATEST(n.status_rank, excluded.status_rank),"
    " reason_code = CASE WHEN"
    "  (excluded.status_rank, COALESCE(excluded.reason_code, '') COLLATE \"C\", COALESCE(excluded.reason, '') COLLATE \"C\")"
    "  > (n.status_rank, COALESCE(n.reason_code, ''), COALESCE(n.reason, ''))"
    "  THEN excluded.reason_code ELSE n.reason_code END,"
    " reason = CASE WHEN"
    "  (excluded.status_rank, COALESCE(excluded.reason_code, '') COLLATE \"C\", COALESCE(excluded.reason, '') COLLATE \"C\")"
    "  > (n.status_rank, COALESCE(n.reason_code, ''), COALESCE(n.reason, ''))"
    "  THEN excluded.reason ELSE n.reason END,"
    " channel = GREATEST(n.channel, excluded.channel),"
    " category = GREATEST(n.category, excluded.category),"
    " priority = GREATEST(n.priority, excluded.priority),"
    " template = GREATEST(n.template COLLATE \"C\", excluded.template COLLATE \"C\"),"
    " template_version = GREATEST(n.template_version COLLATE \"C\", excluded.template_version COLLATE \"C\"),"
    " locale = GREATEST(n.locale COLLATE \"C\", excluded.locale COLLATE \"C\"),"
    " recipient_id = GREATEST(n.recipient_id, excluded.recipient_id),"
    " correlation_id = GREATEST(n.correlation_id COLLATE \"C\", excluded.correlation_id COLLATE \"C\"),"
    " source_event_id = GREATEST(n.source_event_id COLLATE \"C\", excluded.source_event_id COLLATE \"C\"),"
    " batch_id = GREATEST(n.batch_id, excluded.batch_id),"
    " address_hash = GREATEST(n.address_hash, excluded.address_hash),"
    " address = GREATEST(n.address, excluded.address),"
    " content_checksum = GREATEST(n.content_checksum, excluded.content_checksum),"
    " scheduled_for = LEAST(n.scheduled_for, excluded.scheduled_for),"
    " expires_at = LEAST(n.expires_at, excluded.expires_at),"
    " queued_at = LEAST(n.queued_at, excluded.queued_at),"
    " scheduled_at = LEAST(n.scheduled_at, excluded.scheduled_at),"
    " rendered_at = LEAST(n.rendered_at, excluded.rendered_at),"
    " sent_at = LEAST(n.sent_at, excluded.sent_at),"
    " delivered_at = LEAST(n.delivered_at, excluded.delivered_at),"
    " opened_at = LEAST(n.opened_at, excluded.opened_at),"
    " clicked_at = LEAST(n.clicked_at, excluded.clicked_at),"
    " ended_at = LEAST(n.ended_at, excluded.ended_at),"
    " updated_at = clock_timestamp()";

// The greater row stays whole, in the order of compare_attempts() in fold.c; a repeat writes nothing.
#define OUTCOME_RANK(row)                                                                                              \
    "array_position('{accepted,rejected_retryable,rejected_terminal,timeout,delivered,bounce,complaint,opened,"        \
    "clicked,failed}'::text[], " row ".outcome)"
#define ATTEMPT_ORDER(row)                                                                                             \
    "(" OUTCOME_RANK(row) ", " row ".was_unknown, COALESCE(" row ".finished_at, '-infinity'),"                         \
    " COALESCE(" row ".started_at, '-infinity'), " row ".id, " row ".vendor COLLATE \"C\","                            \
    " COALESCE(" row ".vendor_message_id, '') COLLATE \"C\", COALESCE(" row ".code, '') COLLATE \"C\","                \
    " COALESCE(" row ".enhanced_code, '') COLLATE \"C\", COALESCE(" row ".reply, '') COLLATE \"C\")"

static const char upsert_attempts[] =
    ".delivery_attempts AS a ("
    " created_at, notification_id, attempt_number, id, tenant_id, channel, vendor, vendor_message_id, outcome, code,"
    " enhanced_code, reply, started_at, finished_at, was_unknown)"
    " SELECT u.* FROM unnest("
    " $1::timestamptz[], $2::text[], $3::int2[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],"
    " $10::text[], $11::text[], $12::text[], $13::timestamptz[], $14::timestamptz[], $15::boolean[]) AS u"
    " ON CONFLICT (created_at, notification_id, attempt_number, tenant_id) DO UPDATE SET"
    " id = excluded.id, vendor = excluded.vendor, vendor_message_id = excluded.vendor_message_id,"
    " outcome = excluded.outcome, code = excluded.code, enhanced_code = excluded.enhanced_code,"
    " reply = excluded.reply, started_at = excluded.started_at, finished_at = excluded.finished_at,"
    " was_unknown = excluded.was_unknown"
    " WHERE " ATTEMPT_ORDER("excluded") " > " ATTEMPT_ORDER("a");
// clang-format on

static void name_statement(
    HistorySql *out, int slot, DbStatement *ret, const char *schema, const char *what)
{
    snprintf(out->names[slot], sizeof out->names[slot], "%.32s_%s", schema, what);
    *ret = (DbStatement){.name = out->names[slot], .sql = out->text[slot]};
}

void history_sql_init(HistorySql *out, const char *schema)
{
    int lengths[] = {
        snprintf(out->text[0], HISTORY_SQL_MAX, "INSERT INTO %s%s", schema, upsert_notifications),
        snprintf(out->text[1], HISTORY_SQL_MAX, "INSERT INTO %s%s", schema, upsert_attempts),
        snprintf(
            out->text[2], HISTORY_SQL_MAX,
            "SELECT stentor.ensure_partitions('%s.notifications', $1::timestamptz, "
            "$2::timestamptz),"
            " stentor.ensure_partitions('%s.delivery_attempts', $1::timestamptz, $2::timestamptz)",
            schema, schema)};
    for (int i = 0; i < 3; i++) {
        assert(lengths[i] > 0 && lengths[i] < HISTORY_SQL_MAX);
    }
    name_statement(out, 0, &out->notifications, schema, "notifications");
    name_statement(out, 1, &out->attempts, schema, "attempts");
    name_statement(out, 2, &out->months, schema, "months");
}

// ---- notifications ----

static void write_head(DbParams *params, HistoryRow *const *rows, size_t count)
{
    DbArray *created_at = db_array(params, DB_TIME);
    DbArray *id = db_array(params, DB_TEXT);
    DbArray *tenant = db_array(params, DB_TEXT);
    DbArray *status = db_array(params, DB_TEXT);
    DbArray *rank = db_array(params, DB_I16);
    DbArray *reason_code = db_array(params, DB_TEXT);
    DbArray *reason = db_array(params, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        db_push_time(created_at, rows[i]->created_at_us);
        db_push_text(id, rows[i]->id);
        db_push_text(tenant, rows[i]->tenant);
        db_push_text(status, str_from(status_name(rows[i]->status)));
        db_push_int(rank, rows[i]->rank);
        db_push_optional(reason_code, rows[i]->reason_code);
        db_push_optional(reason, rows[i]->reason);
    }
}

static void write_rows(const HistorySql *sql, DbTxn *txn, HistoryRow *const *rows, size_t count)
{
    DbParams *params = db_txn_add(txn, &sql->notifications, NULL);
    write_head(params, rows, count);
    for (int field = 0; field < FOLD_TEXT_COUNT; field++) {
        DbArray *column = db_array(params, field >= FOLD_ADDRESS_HASH ? DB_BYTES : DB_TEXT);
        for (size_t i = 0; i < count; i++) {
            db_push_optional(column, rows[i]->text[field]);
        }
    }
    for (int field = 0; field < FOLD_TIME_COUNT; field++) {
        DbArray *column = db_array(params, DB_TIME);
        for (size_t i = 0; i < count; i++) {
            db_push_time(column, rows[i]->at_us[field]);
        }
    }
}

// ---- attempts ----

static void write_attempt_keys(DbParams *params, AttemptRow *const *attempts, size_t count)
{
    DbArray *created_at = db_array(params, DB_TIME);
    DbArray *notification = db_array(params, DB_TEXT);
    DbArray *number = db_array(params, DB_I16);
    DbArray *id = db_array(params, DB_TEXT);
    DbArray *tenant = db_array(params, DB_TEXT);
    DbArray *channel = db_array(params, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        const HistoryRow *row = attempts[i]->row;
        db_push_time(created_at, row->created_at_us);
        db_push_text(notification, row->id);
        db_push_int(number, attempts[i]->number);
        db_push_text(id, attempts[i]->id);
        db_push_text(tenant, row->tenant);
        db_push_text(channel, row->text[FOLD_CHANNEL]);
    }
}

static void write_attempts(
    const HistorySql *sql, DbTxn *txn, AttemptRow *const *attempts, size_t count)
{
    DbParams *params = db_txn_add(txn, &sql->attempts, NULL);
    write_attempt_keys(params, attempts, count);
    DbArray *vendor = db_array(params, DB_TEXT);
    DbArray *vendor_message_id = db_array(params, DB_TEXT);
    DbArray *outcome = db_array(params, DB_TEXT);
    DbArray *code = db_array(params, DB_TEXT);
    DbArray *enhanced_code = db_array(params, DB_TEXT);
    DbArray *reply = db_array(params, DB_TEXT);
    DbArray *started_at = db_array(params, DB_TIME);
    DbArray *finished_at = db_array(params, DB_TIME);
    DbArray *was_unknown = db_array(params, DB_BOOL);
    for (size_t i = 0; i < count; i++) {
        const AttemptRow *attempt = attempts[i];
        db_push_text(vendor, attempt->vendor);
        db_push_optional(vendor_message_id, attempt->vendor_message_id);
        db_push_text(outcome, str_from(outcome_name(attempt->outcome)));
        db_push_optional(code, attempt->code);
        db_push_optional(enhanced_code, attempt->enhanced_code);
        db_push_optional(reply, attempt->reply);
        db_push_time(started_at, attempt->started_at_us);
        db_push_time(finished_at, attempt->finished_at_us);
        db_push_int(was_unknown, attempt->was_unknown);
    }
}

void history_write(const HistorySql *sql, const Fold *fold, DbTxn *txn)
{
    size_t count = 0;
    HistoryRow *const *rows = fold_rows(fold, &count);
    if (count == 0) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || !str_eq(rows[i]->tenant, rows[i - 1]->tenant)) {
            db_txn_tenant(txn, rows[i]->tenant);
        }
    }
    write_rows(sql, txn, rows, count);
    AttemptRow *const *attempts = fold_attempts(fold, &count);
    if (count > 0) {
        write_attempts(sql, txn, attempts, count);
    }
}

// ---- months ----

void history_ensure_months(const HistorySql *sql, DbTxn *txn, int64_t since_us, int64_t until_us)
{
    DbParams *params = db_txn_add(txn, &sql->months, NULL);
    db_time(params, since_us);
    db_time(params, until_us);
}

static bool has_month(const HistoryMonths *months, int64_t start_us)
{
    for (size_t i = 0; i < months->asked; i++) {
        if (months->start_us[i] == start_us) {
            return true;
        }
    }
    return false;
}

void history_months_write(
    const HistorySql *sql, HistoryMonths *months, const Fold *fold, DbTxn *txn)
{
    months->asked = months->known;
    size_t count = 0;
    HistoryRow *const *rows = fold_rows(fold, &count);
    int64_t start_us = 0;
    int64_t end_us = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t at_us = rows[i]->created_at_us;
        if (at_us >= start_us && at_us < end_us) {
            continue;
        }
        clock_month(at_us, &start_us, &end_us);
        if (has_month(months, start_us)) {
            continue;
        }
        history_ensure_months(sql, txn, start_us, start_us);
        // A full table forgets: the statement is then asked again with each flush, which is slow
        // and right.
        if (months->asked < HISTORY_MONTHS_MAX) {
            months->start_us[months->asked++] = start_us;
        }
    }
}

void history_months_committed(HistoryMonths *months)
{
    months->known = months->asked;
}

void history_months_forget(HistoryMonths *months)
{
    months->known = 0;
    months->asked = 0;
}
