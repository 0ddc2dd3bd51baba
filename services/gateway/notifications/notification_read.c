// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/notifications/notification_read.h"

#include "common/base/id.h"

// clang-format off
static const DbStatement SHOWN = {"notification_shown",
    "SELECT status, reason_code, reason, channel, category, priority, template, template_version, recipient_id,"
    " correlation_id, batch_id, scheduled_for, queued_at, scheduled_at, rendered_at, sent_at, delivered_at, opened_at,"
    " clicked_at, ended_at FROM stentor.notification_shown($1::text, $2::timestamptz, $3::text)"};
static const DbStatement ATTEMPTS = {"notification_attempts",
    "SELECT attempt_number, vendor, outcome, left(code, 64), left(enhanced_code, 64), started_at, finished_at, segments, cost_micros, currency,"
    " cost_estimated, credential, route, left(vendor_message_id, 256), left(reply, 1024), was_unknown, retry_after_ms, count(*) OVER ()"
    " FROM stentor.notification_attempts($1::text, $2::timestamptz, $3::text) WHERE attempt_number > $4::int4"
    " ORDER BY attempt_number * $5::int4 LIMIT $6::int4"};
static const DbStatement ACCEPTED = {"notification_accepted",
    "SELECT accepted_at, events FROM ingest.accepted_events($1::text, $2::timestamptz, $3::text)"};
static const DbStatement ARCHIVED = {"notification_archived",
    "SELECT unit FROM stentor.archived_unit($1::timestamptz, $2::text)"};
// clang-format on
enum { FAR_MS = 86400000 }; // an id from further ahead has no event in history
enum { COLUMN_STATUS, COLUMN_REASON_CODE, COLUMN_REASON, COLUMN_TEXTS };
enum { COLUMN_ALL_ATTEMPTS = 17 };

static Str text_of(const NotificationRead *read, const PGresult *rows, int row, int column)
{
    return arena_str(read->base->http->arena, db_get_text(rows, row, column));
}

// ---- attempts ----

static NotificationAttempt read_attempt(const NotificationRead *read, const PGresult *rows, int row)
{
    return (NotificationAttempt){
        .number = db_get_int(rows, row, 0),
        .vendor = text_of(read, rows, row, 1),
        .outcome = text_of(read, rows, row, 2),
        .code = text_of(read, rows, row, 3),
        .enhanced_code = text_of(read, rows, row, 4),
        .started_us = db_get_time(rows, row, 5),
        .finished_us = db_get_time(rows, row, 6),
        .segments = db_get_int(rows, row, 7),
        .cost_micros = db_is_null(rows, row, 8) ? -1 : db_get_int(rows, row, 8),
        .currency = text_of(read, rows, row, 9),
        .estimated = db_get_int(rows, row, 10) != 0,
        .credential = text_of(read, rows, row, 11),
        .route = text_of(read, rows, row, 12),
        .vendor_message_id = text_of(read, rows, row, 13),
        .reply = text_of(read, rows, row, 14),
        .was_unknown = db_get_int(rows, row, 15) != 0,
        .retry_after_ms = db_get_int(rows, row, 16),
    };
}

// Those of a page come in their order, the last ones newest first.
static void read_attempts(NotificationRead *read, const PGresult *rows)
{
    size_t count = (size_t)db_rows(rows);
    NotificationAttempt *attempts =
        arena_array(read->base->http->arena, count + 1, sizeof *attempts);
    for (size_t i = 0; i < count; i++) {
        attempts[i] = read_attempt(read, rows, (int)(read->newest_first ? count - 1 - i : i));
    }
    read->attempts = attempts;
    read->attempt_count = count;
    read->attempts_before =
        count == 0 ? 0 : db_get_int(rows, 0, COLUMN_ALL_ATTEMPTS) - (int64_t)count;
}

// ---- from the accept log ----

static void answer_missing(ApiCall *base, Str id)
{
    api_answer_missing(
        base, arena_printf(base->http->arena, "notification '" STR_FMT "'", STR_ARG(id)));
}

static void answer_absent(const NotificationRead *read, const PGresult *units)
{
    if (db_rows(units) == 0) {
        answer_missing(read->base, read->id);
        return;
    }
    Str unit = db_get_text(units, 0, 0);
    http_problem(
        read->base->http, 404, "archived", "What is from that time is archived", NULL,
        "notifications of the time and class of '" STR_FMT "' are in unit '" STR_FMT
        "' of the archive; an operator brings them back with 'stentor archive restore " STR_FMT "'",
        STR_ARG(read->id), STR_ARG(unit), STR_ARG(unit));
}

static void on_accepted(void *ctx, DbTxn *txn, const Error *err)
{
    NotificationRead *read = ctx;
    if (err != NULL) {
        api_answer_failure(read->base, err);
        return;
    }
    const PGresult *accepted = db_txn_result(txn, 0);
    if (db_rows(accepted) == 0) {
        answer_absent(read, db_txn_result(txn, 1));
        return;
    }
    Error bad = {0};
    Str events = arena_str(read->base->http->arena, db_get_text(accepted, 0, 1));
    if (notification_of_events(
            events, db_get_time(accepted, 0, 0), str_from(read->base->tenant), read->id,
            read->base->http->arena, &read->row, &bad)) {
        read->done(read->ctx, read);
    } else {
        api_answer_failure(read->base, &bad);
    }
}

static void add_key(const NotificationRead *read, DbParams *p)
{
    db_text(p, str_from(read->base->tenant));
    db_time(p, read->created_at_us);
    db_text(p, read->id);
}

static void ask_accepted(NotificationRead *read)
{
    DbTxn *txn = db_txn_new(read->pools->primary);
    add_key(read, db_txn_add(txn, &ACCEPTED, NULL));
    DbParams *p = db_txn_add(txn, &ARCHIVED, NULL);
    db_time(p, read->created_at_us);
    db_text(p, read->id);
    db_txn_submit(txn, on_accepted, read);
}

// ---- from history ----

static void read_row(NotificationRead *read, const PGresult *rows)
{
    HistoryRow *row = &read->row;
    *row = (HistoryRow){.id = read->id, .created_at_us = read->created_at_us};
    (void)status_from_name(db_get_text(rows, 0, COLUMN_STATUS), &row->status);
    row->reason_code = text_of(read, rows, 0, COLUMN_REASON_CODE);
    row->reason = text_of(read, rows, 0, COLUMN_REASON);
    for (int i = 0; i < NOTIFICATION_TEXTS; i++) {
        row->text[notification_texts[i]] = text_of(read, rows, 0, COLUMN_TEXTS + i);
    }
    for (int i = 0; i < NOTIFICATION_TIMES; i++) {
        row->at_us[notification_times[i]] =
            db_get_time(rows, 0, COLUMN_TEXTS + NOTIFICATION_TEXTS + i);
    }
}

static void on_shown(void *ctx, DbTxn *txn, const Error *err)
{
    NotificationRead *read = ctx;
    if (err != NULL) {
        api_answer_failure(read->base, err);
        return;
    }
    const PGresult *rows = db_txn_result(txn, 0);
    if (db_rows(rows) == 0) {
        ask_accepted(read);
        return;
    }
    read->in_history = true;
    read_row(read, rows);
    read_attempts(read, db_txn_result(txn, 1));
    read->done(read->ctx, read);
}

static void begin(NotificationRead *read, int64_t after, int64_t at_most)
{
    DbTxn *txn = db_txn_new(read->pools->history);
    add_key(read, db_txn_add(txn, &SHOWN, NULL));
    DbParams *p = db_txn_add(txn, &ATTEMPTS, NULL);
    add_key(read, p);
    db_i32(p, (int32_t)after);
    db_i32(p, read->newest_first ? -1 : 1);
    db_i32(p, (int32_t)at_most);
    db_txn_submit(txn, on_shown, read);
}

// NULL: answered. Also a well-formed id of a year that no table has leads to no question.
static NotificationRead *new_read(
    ApiCall *base, const NotificationPools *pools, NotificationReadDone done, void *ctx)
{
    int64_t created_ms = 0;
    if (!id_parse(base->params[0], "ntf_", &created_ms) ||
        created_ms > base->http->received_at_us / 1000 + FAR_MS || created_ms == 0) {
        answer_missing(base, base->params[0]);
        return NULL;
    }
    NotificationRead *read = arena_zalloc(base->http->arena, sizeof *read);
    *read = (NotificationRead){
        .base = base,
        .pools = pools,
        .id = base->params[0],
        .created_at_us = created_ms * 1000,
        .done = done,
        .ctx = ctx,
    };
    return read;
}

void notification_read(
    ApiCall *base, const NotificationPools *pools, NotificationReadDone done, void *ctx)
{
    NotificationRead *read = new_read(base, pools, done, ctx);
    if (read != NULL) {
        read->newest_first = true;
        begin(read, 0, NOTIFICATION_ATTEMPTS_MAX);
    }
}

void notification_read_attempts(
    ApiCall *base, const NotificationPools *pools, int64_t after, size_t at_most,
    NotificationReadDone done, void *ctx)
{
    NotificationRead *read = new_read(base, pools, done, ctx);
    if (read != NULL) {
        begin(read, after, (int64_t)at_most);
    }
}
