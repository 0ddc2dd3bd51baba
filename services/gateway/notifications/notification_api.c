// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/notifications/notification_api.h"

#include "common/base/id.h"
#include "common/codec/event.h"
#include "common/config/channel_health.h"

// One call on its way; lives in the request's arena.
typedef struct Call {
    ApiCall *base;
    const NotificationApi *api;
    Str id;
    int64_t created_at_us;
} Call;

// clang-format off
static const DbStatement SHOWN = {"notification_shown",
    "SELECT status, reason_code, reason, channel, category, priority, template, template_version, recipient_id,"
    " correlation_id, batch_id, scheduled_for, queued_at, scheduled_at, rendered_at, sent_at, delivered_at, opened_at,"
    " clicked_at, ended_at FROM stentor.notification_shown($1::text, $2::timestamptz, $3::text)"};
static const DbStatement ATTEMPTS = {"notification_attempts",
    "SELECT attempt_number, vendor, outcome, left(code, 64), left(enhanced_code, 64), started_at, finished_at, segments, cost_micros, currency,"
    " cost_estimated FROM stentor.notification_attempts($1::text, $2::timestamptz, $3::text) ORDER BY attempt_number DESC LIMIT $4::int4"};
static const DbStatement ACCEPTED = {"notification_accepted",
    "SELECT accepted_at, events FROM ingest.accepted_events($1::text, $2::timestamptz, $3::text)"};
static const DbStatement ARCHIVED = {"notification_archived",
    "SELECT unit FROM stentor.archived_unit($1::timestamptz, $2::text)"};
// clang-format on
enum { FAR_MS = 86400000 }; // an id from further ahead has no event in history
enum { COLUMN_STATUS, COLUMN_REASON_CODE, COLUMN_REASON, COLUMN_TEXTS };

// They come newest first. Slices point into the result.
static const NotificationAttempt *read_attempts(
    const Call *call, const PGresult *rows, size_t *ret_count)
{
    size_t count = (size_t)db_rows(rows);
    NotificationAttempt *attempts =
        arena_array(call->base->http->arena, count + 1, sizeof *attempts);
    for (size_t i = 0; i < count; i++) {
        int row = (int)(count - 1 - i);
        attempts[i] = (NotificationAttempt){
            .number = db_get_int(rows, row, 0),
            .vendor = db_get_text(rows, row, 1),
            .outcome = db_get_text(rows, row, 2),
            .code = db_get_text(rows, row, 3),
            .enhanced_code = db_get_text(rows, row, 4),
            .started_us = db_get_time(rows, row, 5),
            .finished_us = db_get_time(rows, row, 6),
            .segments = db_get_int(rows, row, 7),
            .cost_micros = db_is_null(rows, row, 8) ? -1 : db_get_int(rows, row, 8),
            .currency = db_get_text(rows, row, 9),
            .estimated = db_get_int(rows, row, 10) != 0};
    }
    *ret_count = count;
    return attempts;
}

// attempts: NULL when history does not have it yet.
static void answer_row(const Call *call, const HistoryRow *row, const PGresult *attempts)
{
    size_t count = 0;
    const NotificationAttempt *list =
        attempts != NULL ? read_attempts(call, attempts, &count) : NULL;
    Buf out;
    buf_init(&out, NOTIFICATION_JSON_MAX);
    Channel channel = CHANNEL_NONE;
    bool known = channel_from_name(row->text[FOLD_CHANNEL], &channel);
    notification_print(&out, row, list, count, known ? &call->api->waits[channel] : NULL);
    http_respond(call->base->http, 200, "application/json", buf_view(&out));
    buf_done(&out);
}

// ---- from the accept log ----

static void answer_absent(const Call *call, const PGresult *units)
{
    Arena *arena = call->base->http->arena;
    if (db_rows(units) == 0) {
        api_answer_missing(
            call->base, arena_printf(arena, "notification '" STR_FMT "'", STR_ARG(call->id)));
        return;
    }
    Str unit = db_get_text(units, 0, 0);
    http_problem(
        call->base->http, 404, "archived", "What is from that time is archived", NULL,
        "notifications of the time and class of '" STR_FMT "' are in unit '" STR_FMT
        "' of the archive; an operator brings them back with 'stentor archive restore " STR_FMT "'",
        STR_ARG(call->id), STR_ARG(unit), STR_ARG(unit));
}

static void on_accepted(void *ctx, DbTxn *txn, const Error *err)
{
    const Call *call = ctx;
    if (err != NULL) {
        api_answer_failure(call->base, err);
        return;
    }
    const PGresult *accepted = db_txn_result(txn, 0);
    if (db_rows(accepted) == 0) {
        answer_absent(call, db_txn_result(txn, 1));
        return;
    }
    HistoryRow row;
    Error bad = {0};
    if (notification_of_events(
            db_get_text(accepted, 0, 1), db_get_time(accepted, 0, 0), str_from(call->base->tenant),
            call->id, call->base->http->arena, &row, &bad)) {
        answer_row(call, &row, NULL);
    } else {
        api_answer_failure(call->base, &bad);
    }
}

static void ask_accepted(Call *call)
{
    DbTxn *txn = db_txn_new(call->api->pool);
    DbParams *p = db_txn_add(txn, &ACCEPTED, NULL);
    db_text(p, str_from(call->base->tenant));
    db_time(p, call->created_at_us);
    db_text(p, call->id);
    p = db_txn_add(txn, &ARCHIVED, NULL);
    db_time(p, call->created_at_us);
    db_text(p, call->id);
    db_txn_submit(txn, on_accepted, call);
}

// ---- from history ----

// Slices point into the result.
static HistoryRow read_row(const Call *call, const PGresult *rows)
{
    HistoryRow row = {.id = call->id, .created_at_us = call->created_at_us};
    (void)status_from_name(db_get_text(rows, 0, COLUMN_STATUS), &row.status);
    row.reason_code = db_get_text(rows, 0, COLUMN_REASON_CODE);
    row.reason = db_get_text(rows, 0, COLUMN_REASON);
    for (int i = 0; i < NOTIFICATION_TEXTS; i++) {
        row.text[notification_texts[i]] = db_get_text(rows, 0, COLUMN_TEXTS + i);
    }
    for (int i = 0; i < NOTIFICATION_TIMES; i++) {
        row.at_us[notification_times[i]] =
            db_get_time(rows, 0, COLUMN_TEXTS + NOTIFICATION_TEXTS + i);
    }
    return row;
}

static void on_shown(void *ctx, DbTxn *txn, const Error *err)
{
    Call *call = ctx;
    if (err != NULL) {
        api_answer_failure(call->base, err);
        return;
    }
    const PGresult *rows = db_txn_result(txn, 0);
    if (db_rows(rows) == 0) {
        ask_accepted(call);
        return;
    }
    HistoryRow row = read_row(call, rows);
    answer_row(call, &row, db_txn_result(txn, 1));
}

static void get_notification(ApiCall *base)
{
    Call *call = arena_zalloc(base->http->arena, sizeof *call);
    const NotificationApi *api = base->ctx;
    int64_t created_ms = 0;
    *call = (Call){.base = base, .api = api, .id = base->params[0]};
    // Also a well-formed id of a year that no table has leads to no question.
    if (!id_parse(call->id, "ntf_", &created_ms) ||
        created_ms > base->http->received_at_us / 1000 + FAR_MS || created_ms == 0) {
        api_answer_missing(
            base, arena_printf(base->http->arena, "notification '" STR_FMT "'", STR_ARG(call->id)));
        return;
    }
    call->created_at_us = created_ms * 1000;
    DbTxn *txn = db_txn_new(api->pool);
    DbParams *p = db_txn_add(txn, &SHOWN, NULL);
    db_text(p, str_from(base->tenant));
    db_time(p, call->created_at_us);
    db_text(p, call->id);
    p = db_txn_add(txn, &ATTEMPTS, NULL);
    db_text(p, str_from(base->tenant));
    db_time(p, call->created_at_us);
    db_text(p, call->id);
    db_i32(p, NOTIFICATION_ATTEMPTS_MAX);
    db_txn_submit(txn, on_shown, call);
}

void notification_api_changed(NotificationApi *notifications, Str key, Str payload)
{
    Arena *arena = arena_new(0);
    Str name = STR_EMPTY;
    Channel channel = CHANNEL_NONE;
    NotificationWait wait = {.since_us = 0};
    // Where another vendor is away, the next one of its route takes over.
    if (str_split(&key, '_', &name) && channel_from_name(name, &channel) &&
        str_eq(key, STR("smtp"))) {
        const Stentor__V1__ChannelHealth *entry = (const Stentor__V1__ChannelHealth *)event_unpack(
            &stentor__v1__channel_health__descriptor, payload, arena, NULL);
        if (entry != NULL && str_to_c(str_from(entry->vendor), wait.vendor, sizeof wait.vendor)) {
            wait.since_us = entry->down_since_us;
        }
        notifications->waits[channel] = wait;
    }
    arena_free(arena);
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/notifications/{}", SCOPE_NOTIFICATIONS_READ, get_notification, NULL, false},
};

void notification_api_add(Api *api, NotificationApi *notifications)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], notifications);
}
