// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/scheduled/scheduled_api.h"

#include <inttypes.h>

#include "common/api/page.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/codec/hash.h"
#include "common/model/enums.h"
#include "services/gateway/scheduled/scheduled_view.h"

// One call on its way; lives in the request's arena.
typedef struct Call {
    ApiCall *base;
    DbPool *pool;
    Page page;
    Str id; // of a cancellation
} Call;

// clang-format off
static const DbStatement SCHEDULED = {"scheduled_list",
    "SELECT work_id, notification_id, reason, due_at, cancellable, recipient_id, channel, category, window_id, attempt, request"
    " FROM digest_flusher.scheduled($1::text, $2::text, $3::text, $4::text, $5::timestamptz, $6::timestamptz, $7::text, $8::int4)"};
static const DbStatement CANCEL = {"scheduled_cancel",
    "SELECT outcome, due_at FROM digest_flusher.cancel_notification($1::text, $2::text, $3::text[], $4::text)"};
// What became of one that waits nowhere, and whether it was accepted a moment ago.
static const DbStatement STATUS_OF = {"scheduled_status",
    "SELECT status FROM stentor.notification_shown($1::text, $2::timestamptz, $3::text)"};
static const DbStatement ACCEPTED = {"scheduled_accepted",
    "SELECT 1 FROM ingest.accepted_events($1::text, $2::timestamptz, $3::text)"};
// clang-format on
enum {
    COLUMN_WORK_ID,
    COLUMN_ID,
    COLUMN_REASON,
    COLUMN_DUE_AT,
    COLUMN_CANCELLABLE,
    COLUMN_RECIPIENT,
    COLUMN_CHANNEL,
    COLUMN_CATEGORY,
    COLUMN_WINDOW,
    COLUMN_ATTEMPT,
    COLUMN_REQUEST,
};
enum { KEY_MAX = 256, FIRST_US = 1 };

static const char *const REASONS[] = {"schedule", "quiet", "limit", "digest", "retry"};
enum { REASON_COUNT = sizeof REASONS / sizeof REASONS[0], DEFERRING_COUNT = REASON_COUNT - 1 };

static Call *new_call(ApiCall *base)
{
    const ScheduledApi *api = base->ctx;
    Call *call = arena_zalloc(base->http->arena, sizeof *call);
    *call = (Call){.base = base, .pool = api->pool};
    return call;
}

// ---- GET /v1/scheduled ----

static ScheduledRow read_row(const PGresult *rows, int row)
{
    return (ScheduledRow){
        .id = db_get_text(rows, row, COLUMN_ID),
        .reason = db_get_text(rows, row, COLUMN_REASON),
        .due_at_us = db_get_time(rows, row, COLUMN_DUE_AT),
        .cancellable = db_get_int(rows, row, COLUMN_CANCELLABLE) != 0,
        .recipient_id = db_get_text(rows, row, COLUMN_RECIPIENT),
        .channel = db_get_text(rows, row, COLUMN_CHANNEL),
        .category = db_get_text(rows, row, COLUMN_CATEGORY),
        .window_id = db_get_text(rows, row, COLUMN_WINDOW),
        .attempt =
            db_is_null(rows, row, COLUMN_ATTEMPT) ? 0 : db_get_int(rows, row, COLUMN_ATTEMPT),
        .request = db_get_text(rows, row, COLUMN_REQUEST),
    };
}

// One row more than fits was asked for.
static void on_listed(void *ctx, DbTxn *txn, const Error *err)
{
    const Call *call = ctx;
    Arena *arena = call->base->http->arena;
    if (err != NULL) {
        api_answer_failure(call->base, err);
        return;
    }
    const PGresult *rows = db_txn_result(txn, 0);
    size_t count = (size_t)db_rows(rows);
    size_t shown = count < call->page.limit ? count : call->page.limit;
    Str last = STR_EMPTY;
    json_t *list = json_array();
    for (int i = 0; i < (int)shown; i++) {
        ScheduledRow row = read_row(rows, i);
        (void)json_array_append_new(list, scheduled_view(&row, arena));
        last = str_from(arena_printf(
            arena, "%" PRId64 "/" STR_FMT, row.due_at_us,
            STR_ARG(db_get_text(rows, i, COLUMN_WORK_ID))));
    }
    page_answer(call->base, list, count > shown ? last : STR_EMPTY);
}

// "<due, us>/<work id>", as a cursor holds it; nothing of it comes from the caller.
static bool read_position(Str position, int64_t *ret_due_us, Str *ret_id)
{
    Str due = STR_EMPTY;
    *ret_due_us = FIRST_US;
    *ret_id = position;
    return position.len == 0 || (str_split(ret_id, '/', &due) && str_to_i64(due, ret_due_us));
}

static bool is_reason(Str text)
{
    for (size_t i = 0; i < REASON_COUNT; i++) {
        if (str_eq(text, str_from(REASONS[i]))) {
            return true;
        }
    }
    return false;
}

typedef struct Filter {
    Str reason;
    Str recipient;
    Str key; // "<trigger>/<subject>"
    int64_t before_us;
} Filter;

static bool read_key(Call *call, Filter *filter)
{
    const HttpRequest *http = call->base->http;
    Str trigger = http_query(http, "trigger");
    Str subject = http_query(http, "subject");
    if (trigger.len == 0 && subject.len == 0) {
        return true;
    }
    if (trigger.len == 0 || subject.len == 0 || trigger.len + subject.len >= KEY_MAX) {
        return api_refuse_field(
            call->base, trigger.len == 0 ? "trigger" : "subject",
            "'trigger' and 'subject' go together, the key and what the trigger's subject_path "
            "found");
    }
    filter->key = str_from(
        arena_printf(http->arena, STR_FMT "/" STR_FMT, STR_ARG(trigger), STR_ARG(subject)));
    return true;
}

static bool read_filter(Call *call, Filter *filter)
{
    const HttpRequest *http = call->base->http;
    Str before = http_query(http, "due_before");
    *filter = (Filter){
        .reason = http_query(http, "reason"),
        .recipient = http_query(http, "recipient_id"),
    };
    if (filter->reason.len > 0 && !is_reason(filter->reason)) {
        return api_refuse_field(
            call->base, "reason", "not one of schedule, quiet, limit, digest, retry");
    }
    if (filter->recipient.len > 0 && !id_parse(filter->recipient, "rcp_", NULL)) {
        return api_refuse_field(call->base, "recipient_id", "not 'rcp_' and a ULID");
    }
    if (before.len > 0 && !clock_parse(before, &filter->before_us)) {
        return api_refuse_field(
            call->base, "due_before", "not a time such as '2026-12-24T15:00:00Z'");
    }
    return read_key(call, filter);
}

static void optional_text(DbParams *p, Str value)
{
    if (value.len > 0) {
        db_text(p, value);
    } else {
        db_null(p);
    }
}

static void get_scheduled(ApiCall *base)
{
    Call *call = new_call(base);
    Filter filter;
    int64_t due_us = 0;
    Str work_id = STR_EMPTY;
    if (!read_filter(call, &filter) || !page_read(base, PAGE_LIMIT, PAGE_LIMIT_MAX, &call->page)) {
        return;
    }
    if (!read_position(call->page.after, &due_us, &work_id)) {
        api_answer_parameter(base, "cursor", "not a cursor of this list");
        return;
    }
    DbTxn *txn = db_txn_new(call->pool);
    DbParams *p = db_txn_add(txn, &SCHEDULED, NULL);
    db_text(p, str_from(base->tenant));
    optional_text(p, filter.reason);
    optional_text(p, filter.recipient);
    optional_text(p, filter.key);
    db_time(p, filter.before_us);
    db_time(p, due_us);
    db_text(p, work_id);
    db_i32(p, (int32_t)call->page.limit + 1);
    db_txn_submit(txn, on_listed, call);
}

// ---- POST /v1/notifications/{}/cancel ----

static void answer_unknown(const Call *call)
{
    api_answer_missing(
        call->base, arena_printf(
                        call->base->http->arena, "notification '" STR_FMT "'",
                        STR_ARG(str_slice(call->id, 0, 64))));
}

static void answer_not_waiting(const Call *call, const char *why)
{
    metric_add(call->base->metrics->refused[REFUSED_CONFLICT], 1);
    http_problem(
        call->base->http, 409, "not-waiting", "The notification does not wait for a time", NULL,
        "%s", why);
}

static void on_looked(void *ctx, DbTxn *txn, const Error *err)
{
    const Call *call = ctx;
    if (err != NULL) {
        api_answer_failure(call->base, err);
        return;
    }
    const PGresult *shown = db_txn_result(txn, 0);
    bool known = db_rows(shown) > 0;
    if (!known && db_rows(db_txn_result(txn, 1)) == 0) {
        answer_unknown(call);
        return;
    }
    Str status = known ? db_get_text(shown, 0, 0) : STR("scheduled");
    if (str_eq(status, STR("scheduled"))) {
        answer_not_waiting(
            call, "it was accepted and is on its way, to the scheduler or from it; in a second it "
                  "is listed under /v1/scheduled, or it is due");
    } else {
        answer_not_waiting(
            call, arena_printf(
                      call->base->http->arena,
                      "it is '" STR_FMT "'; only what waits for its time "
                      "can be cancelled, as /v1/scheduled lists it",
                      STR_ARG(status)));
    }
}

static void look(Call *call)
{
    static const DbStatement *const QUESTIONS[] = {&STATUS_OF, &ACCEPTED};
    int64_t created_ms = 0;
    (void)id_parse(call->id, "ntf_", &created_ms);
    DbTxn *txn = db_txn_new(call->pool);
    for (size_t i = 0; i < 2; i++) {
        DbParams *p = db_txn_add(txn, QUESTIONS[i], NULL);
        db_text(p, str_from(call->base->tenant));
        db_time(p, created_ms * 1000);
        db_text(p, call->id);
    }
    db_txn_submit(txn, on_looked, call);
}

static void answer_cancelled(const Call *call)
{
    json_t *object = json_object();
    (void)json_object_set_new(object, "id", json_stringn(call->id.ptr, call->id.len));
    (void)json_object_set_new(object, "status", json_string(status_name(STATUS_SUPPRESSED)));
    (void)json_object_set_new(object, "reason_code", json_string("cancelled"));
    api_answer_json(call->base, 200, object);
}

// Killed behind the commit: the caller repeats, and what was cancelled is answered in the same way
// (tests/integration/sending/test_scheduled.py). The scheduler reports the end, once.
static void on_cancelled(void *ctx, DbTxn *txn, const Error *err)
{
    Call *call = ctx;
    if (err != NULL) {
        api_answer_failure(call->base, err);
        return;
    }
    const PGresult *rows = db_txn_result(txn, 0);
    Str outcome = db_get_text(rows, 0, 0);
    char due_at[CLOCK_RFC3339_SIZE] = "";
    if (!db_is_null(rows, 0, 1)) {
        clock_format(db_get_time(rows, 0, 1), due_at);
    }
    Arena *arena = call->base->http->arena;
    if (str_eq(outcome, STR("cancelled"))) {
        answer_cancelled(call);
    } else if (str_eq(outcome, STR("due"))) {
        answer_not_waiting(
            call, arena_printf(arena, "it was due at %s and goes out, or has gone out", due_at));
    } else if (str_eq(outcome, STR("ended"))) {
        answer_not_waiting(call, "it has ended already and does not go out");
    } else {
        look(call);
    }
}

// A deferral's id is derived from its notification and its reason (services/ingest/accept).
static void add_work_ids(DbParams *p, Str id)
{
    DbArray *ids = db_array(p, DB_TEXT);
    for (size_t i = 0; i < DEFERRING_COUNT; i++) {
        char work_id[EVENT_ID_SIZE];
        event_id_derive("deferred", id, str_from(REASONS[i]), work_id);
        db_push_text(ids, str_from(work_id));
    }
}

static void post_cancel(ApiCall *base)
{
    Call *call = new_call(base);
    int64_t created_ms = 0;
    call->id = base->params[0];
    if (!id_parse(call->id, "ntf_", &created_ms) || created_ms == 0) {
        answer_unknown(call);
        return;
    }
    DbTxn *txn = db_txn_new(call->pool);
    DbParams *p = db_txn_add(txn, &CANCEL, NULL);
    db_text(p, str_from(base->tenant));
    db_text(p, call->id);
    add_work_ids(p, call->id);
    db_text(p, str_from(arena_printf(base->http->arena, "by %s", api_caller_name(base))));
    db_txn_submit(txn, on_cancelled, call);
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/scheduled", SCOPE_NOTIFICATIONS_READ, get_scheduled,
     "limit cursor reason recipient_id trigger subject due_before", false},
    {"POST", "/v1/notifications/{}/cancel", SCOPE_NOTIFICATIONS_SEND, post_cancel, NULL, false},
};

void scheduled_api_add(Api *api, ScheduledApi *scheduled)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], scheduled);
}
