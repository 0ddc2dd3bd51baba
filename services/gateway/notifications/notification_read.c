// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/notifications/notification_read.h"

#include "common/base/id.h"
#include "common/history/accepted.h"

// clang-format off
static const DbStatement SHOWN_TOGETHER = {"notifications_shown",
    "SELECT status, reason_code, reason, channel, category, priority, template, template_version, recipient_id,"
    " correlation_id, batch_id, scheduled_for, queued_at, scheduled_at, rendered_at, sent_at, delivered_at, opened_at,"
    " clicked_at, ended_at, n FROM stentor.notifications_shown($1::text[], $2::timestamptz[], $3::text[])"};
static const DbStatement ATTEMPTS_TOGETHER = {"notifications_attempts",
    "SELECT attempt_number, vendor, outcome, left(code, 64), left(enhanced_code, 64), started_at, finished_at, segments, cost_micros, currency,"
    " cost_estimated, credential, route, left(vendor_message_id, 256), left(reply, 1024), was_unknown, retry_after_ms, attempts, n"
    " FROM stentor.notifications_attempts($1::text[], $2::timestamptz[], $3::text[], $4::int4)"};
static const DbStatement SHOWN = {"notification_shown",
    "SELECT status, reason_code, reason, channel, category, priority, template, template_version, recipient_id,"
    " correlation_id, batch_id, scheduled_for, queued_at, scheduled_at, rendered_at, sent_at, delivered_at, opened_at,"
    " clicked_at, ended_at FROM stentor.notification_shown($1::text, $2::timestamptz, $3::text)"};
static const DbStatement ATTEMPTS = {"notification_attempts",
    "SELECT attempt_number, vendor, outcome, left(code, 64), left(enhanced_code, 64), started_at, finished_at, segments, cost_micros, currency,"
    " cost_estimated, credential, route, left(vendor_message_id, 256), left(reply, 1024), was_unknown, retry_after_ms, count(*) OVER ()"
    " FROM stentor.notification_attempts($1::text, $2::timestamptz, $3::text) WHERE attempt_number > $4::int4"
    " ORDER BY attempt_number LIMIT $5::int4"};
static const DbStatement ACCEPTED = {"notification_accepted",
    "SELECT accepted_at, events FROM ingest.accepted_events($1::text, $2::timestamptz, $3::text)"};
static const DbStatement ARCHIVED = {"notification_archived",
    "SELECT unit FROM stentor.archived_unit($1::timestamptz, $2::text)"};
// clang-format on
enum { FAR_MS = 86400000 }; // an id from further ahead has no event in history
enum { COLUMN_STATUS, COLUMN_REASON_CODE, COLUMN_REASON, COLUMN_TEXTS };
enum { COLUMN_SHOWN_N = COLUMN_TEXTS + NOTIFICATION_TEXTS + NOTIFICATION_TIMES };
enum { COLUMN_ALL_ATTEMPTS = 17, COLUMN_ATTEMPT_N };
enum {
    QUESTIONS_MAX = 2,  // on their way at once: more take from each what asking together saves
    TOGETHER_MAX = 32, // notifications of one question
};

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

// Those of one notification, `count` rows from `first` on.
static void read_attempts(
    NotificationRead *read, const PGresult *rows, int first, int count, bool newest_first)
{
    NotificationAttempt *attempts =
        arena_array(read->base->http->arena, (size_t)count + 1, sizeof *attempts);
    for (int i = 0; i < count; i++) {
        attempts[newest_first ? count - 1 - i : i] = read_attempt(read, rows, first + i);
    }
    read->attempts = attempts;
    read->attempt_count = (size_t)count;
    read->attempts_before =
        count == 0 ? 0 : db_get_int(rows, first, COLUMN_ALL_ATTEMPTS) - (int64_t)count;
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
    if (accepted_row(
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

static void read_row(NotificationRead *read, const PGresult *rows, int at)
{
    HistoryRow *row = &read->row;
    *row = (HistoryRow){.id = read->id, .created_at_us = read->created_at_us};
    (void)status_from_name(db_get_text(rows, at, COLUMN_STATUS), &row->status);
    row->reason_code = text_of(read, rows, at, COLUMN_REASON_CODE);
    row->reason = text_of(read, rows, at, COLUMN_REASON);
    for (int i = 0; i < NOTIFICATION_TEXTS; i++) {
        row->text[notification_texts[i]] = text_of(read, rows, at, COLUMN_TEXTS + i);
    }
    for (int i = 0; i < NOTIFICATION_TIMES; i++) {
        row->at_us[notification_times[i]] =
            db_get_time(rows, at, COLUMN_TEXTS + NOTIFICATION_TEXTS + i);
    }
    read->in_history = true;
}

static void end_read(NotificationRead *read)
{
    if (read->in_history) {
        read->done(read->ctx, read);
    } else {
        ask_accepted(read);
    }
}

// ---- a page of one's attempts ----

static void on_page(void *ctx, DbTxn *txn, const Error *err)
{
    NotificationRead *read = ctx;
    if (err != NULL) {
        api_answer_failure(read->base, err);
        return;
    }
    if (db_rows(db_txn_result(txn, 0)) > 0) {
        const PGresult *attempts = db_txn_result(txn, 1);
        read_row(read, db_txn_result(txn, 0), 0);
        read_attempts(read, attempts, 0, db_rows(attempts), false);
    }
    end_read(read);
}

static void ask_page(NotificationRead *read, int64_t after, int64_t at_most)
{
    DbTxn *txn = db_txn_new(read->pools->history);
    add_key(read, db_txn_add(txn, &SHOWN, NULL));
    DbParams *p = db_txn_add(txn, &ATTEMPTS, NULL);
    add_key(read, p);
    db_i32(p, (int32_t)after);
    db_i32(p, (int32_t)at_most);
    db_txn_submit(txn, on_page, read);
}

// ---- several, each with its last attempts ----

// In the transaction's arena; the reads are in those of their requests.
typedef struct Question {
    NotificationRead *reads[TOGETHER_MAX];
    size_t count;
} Question;

static NotificationRead *take_first(NotificationQueue *queue)
{
    NotificationRead *read = queue->first;
    queue->first = read->next;
    if (queue->first == NULL) {
        queue->last = NULL;
    }
    return read;
}

// The rows of one notification stand together.
static void share_attempts(const Question *question, const PGresult *rows)
{
    int count = db_rows(rows);
    int end = 0;
    for (int first = 0; first < count; first = end) {
        int64_t n = db_get_int(rows, first, COLUMN_ATTEMPT_N);
        for (end = first + 1; end < count && db_get_int(rows, end, COLUMN_ATTEMPT_N) == n;) {
            end++;
        }
        if (question->reads[n - 1]->in_history) {
            read_attempts(question->reads[n - 1], rows, first, end - first, true);
        }
    }
}

static void ask_together(const NotificationPools *pools);

static void on_shown(void *ctx, DbTxn *txn, const Error *err)
{
    const Question *question = ctx;
    const NotificationPools *pools = question->reads[0]->pools;
    NotificationQueue *queue = pools->queue;
    queue->on_their_way--;
    if (err == NULL) {
        const PGresult *rows = db_txn_result(txn, 0);
        for (int i = 0; i < db_rows(rows); i++) {
            int64_t n = db_get_int(rows, i, COLUMN_SHOWN_N);
            read_row(question->reads[n - 1], rows, i);
        }
        share_attempts(question, db_txn_result(txn, 1));
    }
    // The pool takes no more, or Postgres is away or stands still: who waits would wait once more.
    if (err != NULL && (err->kind == ERROR_CANCELLED || err->kind == ERROR_TRANSIENT)) {
        while (queue->first != NULL) {
            api_answer_failure(take_first(queue)->base, err);
        }
    }
    ask_together(pools); // what waits is on its way while these are answered
    for (size_t i = 0; i < question->count; i++) {
        if (err != NULL) {
            api_answer_failure(question->reads[i]->base, err);
        } else {
            end_read(question->reads[i]);
        }
    }
}

static void ask_together(const NotificationPools *pools)
{
    NotificationQueue *queue = pools->queue;
    if (queue->first == NULL || queue->on_their_way == QUESTIONS_MAX) {
        return;
    }
    DbTxn *txn = db_txn_new(pools->history);
    Question *question = arena_zalloc(db_txn_arena(txn), sizeof *question);
    while (queue->first != NULL && question->count < TOGETHER_MAX) {
        question->reads[question->count++] = take_first(queue);
    }
    const DbStatement *statements[] = {&SHOWN_TOGETHER, &ATTEMPTS_TOGETHER};
    for (size_t s = 0; s < sizeof statements / sizeof *statements; s++) {
        DbParams *p = db_txn_add(txn, statements[s], NULL);
        DbArray *tenants = db_array(p, DB_TEXT);
        DbArray *created = db_array(p, DB_TIME);
        DbArray *ids = db_array(p, DB_TEXT);
        for (size_t i = 0; i < question->count; i++) {
            const NotificationRead *read = question->reads[i];
            db_push_text(tenants, str_from(read->base->tenant));
            db_push_time(created, read->created_at_us);
            db_push_text(ids, read->id);
        }
        if (statements[s] == &ATTEMPTS_TOGETHER) {
            db_i32(p, NOTIFICATION_ATTEMPTS_MAX);
        }
    }
    queue->on_their_way++;
    db_txn_submit(txn, on_shown, question);
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
        NotificationQueue *queue = pools->queue;
        *(queue->last != NULL ? &queue->last->next : &queue->first) = read;
        queue->last = read;
        ask_together(pools);
    }
}

void notification_read_attempts(
    ApiCall *base, const NotificationPools *pools, int64_t after, size_t at_most,
    NotificationReadDone done, void *ctx)
{
    NotificationRead *read = new_read(base, pools, done, ctx);
    if (read != NULL) {
        ask_page(read, after, (int64_t)at_most);
    }
}
