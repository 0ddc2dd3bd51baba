// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/find/find_list.h"

#include <inttypes.h>

#include "common/api/page.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "services/gateway/recipients/recipients_read.h"

enum {
    ROUNDS_MAX = 11,
    CANDIDATES = 1000, // of a round after the first, where some do not fit
    LOOKED_AT = 20000, // rows of history, where no index serves
    LIST_JSON_MAX = 64 * 1024 * 1024,
};

static const int64_t ahead_us = INT64_C(86400000000); // ids may be a day ahead of the clock

// clang-format off
static const DbStatement SEARCH = {"find_search",
    "SELECT created_at, notification_id FROM find.search($1::int8[], $2::timestamptz, $3::timestamptz, $4::text, $5::int4)"};
static const DbStatement AS_OF = {"find_as_of", "SELECT as_of FROM find.progress WHERE projection = 'find'"};
static const DbStatement STANDS = {"find_batch_stands",
    "SELECT status, paused::int4, accepted, ended_at FROM ingest.batch_stands($1::text, $2::text)"};
static const DbStatement WITHIN = {"find_within",
    "SELECT created_at, id, seen_until FROM stentor.notifications_within($1::text, $2::timestamptz, $3::timestamptz, $4::text,"
    " $5::text, $6::text, $7::text, $8::int4, $9::int4)"};
static const DbStatement ROWS = {"find_rows",
    "SELECT n, status, reason_code, reason, channel, category, priority, template, template_version, recipient_id,"
    " correlation_id, batch_id, scheduled_for, queued_at, scheduled_at, rendered_at, sent_at, delivered_at, opened_at,"
    " clicked_at, ended_at, source_event_id, address_hash"
    " FROM stentor.notifications_found($1::text, $2::timestamptz[], $3::text[])"};
// clang-format on
enum { STANDS_STATUS, STANDS_PAUSED, STANDS_ACCEPTED, STANDS_ENDED_AT };
enum {
    ROW_N,
    ROW_STATUS,
    ROW_REASON_CODE,
    ROW_REASON,
    ROW_TEXTS,
    ROW_TIMES = ROW_TEXTS + NOTIFICATION_TEXTS,
    ROW_SOURCE_EVENT = ROW_TIMES + NOTIFICATION_TIMES,
    ROW_ADDRESS_HASH,
};

typedef struct Candidate {
    int64_t created_us;
    Str id;
} Candidate;

// One page on its way; lives in the request's arena, until it is answered.
typedef struct FindList {
    ApiCall *call;
    const FindContext *context;
    FindQuery query;
    Page page;
    Candidate after; // behind this one the next round begins; its id empty: behind all of its time
    Candidate *candidates;
    size_t count;
    bool more; // there may be candidates behind these
    int rounds;
    int64_t as_of_us;   // of the index; 0: not known
    int64_t current_us; // when it was asked and had everything; 0: another process knows
    bool indexed;
    bool any;              // candidate was found
    FindFilter fixed;      // what the path names; FIND_FILTERS: nothing
    const char *waits_for; // of an empty page of a batch; "null", or JSON's text. NULL: not said
    Str before;            // the object that the page is a member of; empty: it is the answer
    Buf out;
} FindList;

static void ask_candidates(FindList *list);

// ---- the answer ----

static void print_page(FindList *list)
{
    Arena *arena = list->call->http->arena;
    Buf *out = &list->out;
    buf_cstr(out, "],\"next\":");
    if (list->more) {
        const char *last = arena_printf(
            arena, "%" PRId64 "/" STR_FMT, list->after.created_us, STR_ARG(list->after.id));
        buf_printf(out, "\"%s\"", page_cursor(list->call, str_from(last)));
    } else {
        buf_cstr(out, "null");
    }
    if (list->indexed && list->as_of_us > 0) {
        int64_t lag_us = clock_now_us() - list->as_of_us;
        buf_printf(out, ",\"lag_seconds\":%.3f", lag_us > 0 ? (double)lag_us / 1e6 : 0.0);
    } else if (list->indexed) {
        buf_cstr(out, ",\"lag_seconds\":null");
    }
    if (list->waits_for != NULL) {
        buf_printf(out, ",\"waits_for\":%s", list->waits_for);
    }
    buf_cstr(out, list->before.len > 0 ? "}}" : "}");
    if (out->full) {
        Error err = {0};
        error_set(&err, ERROR_PERMANENT, "a page of more than %d bytes", LIST_JSON_MAX);
        api_answer_failure(list->call, &err);
    } else {
        http_respond(list->call->http, 200, "application/json", buf_view(out));
    }
    buf_done(out);
}

static void answer_missing(FindList *list)
{
    buf_done(&list->out);
    Str name = str_slice(list->query.value[list->fixed], 0, 64);
    api_answer_missing(
        list->call, arena_printf(
                        list->call->http->arena, "%s '" STR_FMT "'",
                        list->fixed == FIND_BY_RECIPIENT ? "recipient with notifications" : "batch",
                        STR_ARG(name)));
}

static void on_recipient_known(void *ctx, DbTxn *txn, const Error *err)
{
    FindList *list = ctx;
    if (err != NULL) {
        buf_done(&list->out);
        api_answer_failure(list->call, err);
    } else if (db_rows(db_txn_result(txn, 0)) == 0) {
        answer_missing(list);
    } else {
        print_page(list);
    }
}

static void ask_recipient(FindList *list)
{
    DbTxn *txn = db_txn_new(list->context->people);
    db_txn_tenant(txn, str_from(list->call->tenant));
    DbParams *p = db_txn_add(txn, &people_known_sql, NULL);
    db_text(p, str_from(list->call->tenant));
    db_text(p, list->query.value[FIND_BY_RECIPIENT]);
    db_txn_submit(txn, on_recipient_known, list);
}

// What an empty page of a batch waits for.
static const char *waits_for(const FindList *list, const PGresult *rows)
{
    Str status = db_get_text(rows, 0, STANDS_STATUS);
    bool ended = !db_is_null(rows, 0, STANDS_ENDED_AT);
    bool seen = ended && list->as_of_us > db_get_time(rows, 0, STANDS_ENDED_AT);
    if (str_eq(status, STR("draft"))) {
        return "\"start\"";
    }
    if (str_eq(status, STR("scheduled"))) {
        return "\"scheduled_for\"";
    }
    if (db_get_int(rows, 0, STANDS_ACCEPTED) > 0) {
        return seen ? "null" : "\"index\""; // or all of them are older than the index
    }
    return ended                                     ? "null"
           : db_get_int(rows, 0, STANDS_PAUSED) != 0 ? "\"resume\""
                                                     : "\"acceptance\"";
}

static void on_batch_known(void *ctx, DbTxn *txn, const Error *err)
{
    FindList *list = ctx;
    const PGresult *rows = err == NULL ? db_txn_result(txn, 0) : NULL;
    if (err != NULL) {
        buf_done(&list->out);
        api_answer_failure(list->call, err);
    } else if (db_rows(rows) == 0) {
        answer_missing(list);
    } else {
        list->waits_for = waits_for(list, rows);
        print_page(list);
    }
}

static void ask_batch(FindList *list)
{
    DbTxn *txn = db_txn_new(list->context->people);
    DbParams *p = db_txn_add(txn, &STANDS, NULL);
    db_text(p, str_from(list->call->tenant));
    db_text(p, list->query.value[FIND_BY_BATCH]);
    db_txn_submit(txn, on_batch_known, list);
}

// An empty list of another tenant's recipient would look as if there were one.
static void finish(FindList *list)
{
    bool spans = list->query.since_us != 0 || list->query.until_us != 0;
    bool nothing = !list->any && list->page.after.len == 0 && list->before.len == 0;
    if (nothing && list->fixed == FIND_BY_RECIPIENT) {
        ask_recipient(list);
    } else if (
        nothing && list->fixed == FIND_BY_BATCH && list->query.driver == FIND_BY_BATCH && !spans) {
        ask_batch(list);
    } else {
        print_page(list);
    }
}

static void answer_without(FindList *list)
{
    Str text =
        str_from(arena_printf(list->call->http->arena, STR_FMT "null}", STR_ARG(list->before)));
    http_respond(list->call->http, 200, "application/json", text);
}

static void fail(FindList *list, const Error *err)
{
    buf_done(&list->out);
    api_answer_failure(list->call, err);
}

// ---- the rows of history ----

// Slices point into the result.
static HistoryRow read_row(const PGresult *rows, int row, const Candidate *candidate)
{
    HistoryRow out = {.id = candidate->id, .created_at_us = candidate->created_us};
    (void)status_from_name(db_get_text(rows, row, ROW_STATUS), &out.status);
    out.reason_code = db_get_text(rows, row, ROW_REASON_CODE);
    out.reason = db_get_text(rows, row, ROW_REASON);
    for (int i = 0; i < NOTIFICATION_TEXTS; i++) {
        out.text[notification_texts[i]] = db_get_text(rows, row, ROW_TEXTS + i);
    }
    for (int i = 0; i < NOTIFICATION_TIMES; i++) {
        out.at_us[notification_times[i]] = db_get_time(rows, row, ROW_TIMES + i);
    }
    out.text[FOLD_SOURCE_EVENT] = db_get_text(rows, row, ROW_SOURCE_EVENT);
    out.text[FOLD_ADDRESS_HASH] = db_get_text(rows, row, ROW_ADDRESS_HASH);
    return out;
}

static void show_row(FindList *list, const HistoryRow *row)
{
    Channel channel = CHANNEL_NONE;
    bool known = channel_from_name(row->text[FOLD_CHANNEL], &channel);
    page_item(&list->page, &list->out);
    notification_print_open(
        &list->out, row, NULL, 0, known ? &list->context->waits[channel] : NULL, false);
    buf_char(&list->out, '}');
}

// History has no row of it yet, or not any more: what the index knows.
static void show_candidate(FindList *list, const Candidate *candidate)
{
    char at[CLOCK_RFC3339_SIZE];
    clock_format(candidate->created_us, at);
    page_item(&list->page, &list->out);
    buf_cstr(&list->out, "{\"id\":");
    buf_json(&list->out, candidate->id);
    buf_printf(&list->out, ",\"created_at\":\"%s\"}", at);
}

static void show_found(FindList *list, const PGresult *rows)
{
    int at = 0;
    int found = db_rows(rows);
    for (size_t i = 0; i < list->count; i++) {
        const Candidate *candidate = &list->candidates[i];
        if (list->page.made == list->page.limit) {
            list->more = true;
            return;
        }
        list->after = *candidate;
        if (at == found || db_get_int(rows, at, ROW_N) != (int64_t)i + 1) {
            if (!list->query.checks) {
                show_candidate(list, candidate);
            }
            continue;
        }
        HistoryRow row = read_row(rows, at++, candidate);
        if (find_query_fits(&list->query, &row)) {
            show_row(list, &row);
        }
    }
}

static void on_rows(void *ctx, DbTxn *txn, const Error *err)
{
    FindList *list = ctx;
    if (err != NULL) {
        fail(list, err);
        return;
    }
    Candidate seen_until = list->after;
    show_found(list, db_txn_result(txn, 0));
    bool full = list->page.made == list->page.limit;
    if (!full && !list->indexed && list->more) {
        list->after = seen_until; // all of it was looked through, the next page is behind it
    }
    if (full || !list->more || !list->indexed || ++list->rounds == ROUNDS_MAX) {
        finish(list);
    } else {
        ask_candidates(list);
    }
}

static void ask_rows(FindList *list)
{
    DbTxn *txn = db_txn_new(list->context->store->history);
    DbParams *p = db_txn_add(txn, &ROWS, NULL);
    db_text(p, str_from(list->call->tenant));
    DbArray *created = db_array(p, DB_TIME);
    DbArray *ids = db_array(p, DB_TEXT);
    for (size_t i = 0; i < list->count; i++) {
        db_push_time(created, list->candidates[i].created_us);
        db_push_text(ids, list->candidates[i].id);
    }
    db_txn_submit(txn, on_rows, list);
}

// ---- candidates ----

static void take_candidates(FindList *list, const PGresult *rows)
{
    Arena *arena = list->call->http->arena;
    size_t count = (size_t)db_rows(rows);
    list->candidates = arena_array(arena, count + 1, sizeof *list->candidates);
    list->count = 0;
    for (int i = 0; i < (int)count; i++) {
        if (!db_is_null(rows, i, 1)) {
            list->candidates[list->count++] =
                (Candidate){db_get_time(rows, i, 0), arena_str(arena, db_get_text(rows, i, 1))};
        }
    }
}

static void go_on(FindList *list)
{
    if (list->count == 0) {
        finish(list);
    } else {
        ask_rows(list);
    }
}

// One more than fits, so that it is known whether there is another page.
static size_t wanted(const FindList *list)
{
    size_t fits = list->page.limit - list->page.made + 1;
    bool some_did_not = list->query.checks && list->indexed && list->rounds > 0;
    return some_did_not && fits < CANDIDATES ? CANDIDATES : fits;
}

static void on_searched(void *ctx, DbTxn *txn, const Error *err)
{
    FindList *list = ctx;
    if (err != NULL && err->kind == ERROR_TRANSIENT) {
        buf_done(&list->out);
        if (list->before.len > 0) {
            answer_without(list);
        } else {
            api_answer_unavailable(
                list->call, "the search index is away; a notification can be read by its id");
        }
        return;
    }
    if (err != NULL) {
        fail(list, err);
        return;
    }
    const PGresult *as_of = db_txn_result(txn, 1);
    int64_t said_us = db_rows(as_of) > 0 ? db_get_time(as_of, 0, 0) : 0;
    list->as_of_us = said_us > list->current_us ? said_us : list->current_us;
    take_candidates(list, db_txn_result(txn, 0));
    list->any = list->any || list->count > 0;
    list->more = list->count == wanted(list);
    go_on(list);
}

static void add_span(const FindList *list, DbParams *p)
{
    db_time(p, list->query.since_us > 0 ? list->query.since_us : 1);
    db_time(p, list->after.created_us);
    db_text(p, list->after.id);
}

static void search(FindList *list)
{
    list->current_us = find_projector_current_us(list->context->projector);
    DbTxn *txn = db_txn_new(list->context->store->index);
    db_txn_tenant(txn, str_from(list->call->tenant));
    DbParams *p = db_txn_add(txn, &SEARCH, NULL);
    DbArray *keys = db_array(p, DB_I64);
    for (size_t i = 0; i < list->query.key_count; i++) {
        db_push_int(keys, list->query.keys[i]);
    }
    add_span(list, p);
    db_i32(p, (int32_t)wanted(list));
    (void)db_txn_add(txn, &AS_OF, NULL);
    db_txn_submit(txn, on_searched, list);
}

static void on_looked_through(void *ctx, DbTxn *txn, const Error *err)
{
    FindList *list = ctx;
    if (err != NULL) {
        fail(list, err);
        return;
    }
    const PGresult *rows = db_txn_result(txn, 0);
    take_candidates(list, rows);
    bool all = db_rows(rows) == 0 || db_is_null(rows, 0, 2);
    list->more = !all;
    if (!all) {
        list->after = (Candidate){db_get_time(rows, 0, 2), STR_EMPTY};
    }
    go_on(list);
}

static void optional_text(DbParams *p, Str value)
{
    if (value.len > 0) {
        db_text(p, value);
    } else {
        db_null(p);
    }
}

static void look_through(FindList *list)
{
    DbTxn *txn = db_txn_new(list->context->store->history);
    DbParams *p = db_txn_add(txn, &WITHIN, NULL);
    db_text(p, str_from(list->call->tenant));
    add_span(list, p);
    optional_text(p, list->query.value[FIND_BY_STATUS]);
    optional_text(p, list->query.value[FIND_BY_CHANNEL]);
    optional_text(p, list->query.value[FIND_BY_CATEGORY]);
    db_i32(p, (int32_t)wanted(list));
    db_i32(p, LOOKED_AT);
    db_txn_submit(txn, on_looked_through, list);
}

// The Message-ID of an SMTP mail names its notification: nothing is looked up.
static void take_own_id(FindList *list)
{
    int64_t created_ms = 0;
    list->candidates = arena_array(list->call->http->arena, 1, sizeof *list->candidates);
    (void)id_parse(list->query.own_id, "ntf_", &created_ms);
    list->candidates[0] = (Candidate){created_ms * 1000, list->query.own_id};
    bool fits = created_ms > 0 && list->page.after.len == 0 &&
                list->candidates[0].created_us >= list->query.since_us &&
                list->candidates[0].created_us < list->after.created_us;
    list->count = fits ? 1 : 0;
    list->query.checks = true; // shown when it is there
    go_on(list);
}

static void ask_candidates(FindList *list)
{
    if (list->query.driver == FIND_BY_VENDOR_MESSAGE && list->query.own_id.len > 0) {
        take_own_id(list);
    } else if (list->indexed) {
        search(list);
    } else {
        look_through(list);
    }
}

// ---- the question ----

// "<created, us>/<id>", as a cursor holds it; nothing of it comes from the caller.
static bool read_position(FindList *list)
{
    Str us = STR_EMPTY;
    Str id = list->page.after;
    int64_t now_us = list->call->http->received_at_us;
    int64_t until_us = list->query.until_us;
    list->after = (Candidate){until_us != 0 ? until_us : now_us + ahead_us, STR_EMPTY};
    if (list->page.after.len == 0) {
        return true;
    }
    list->after.id = STR_EMPTY;
    bool good = str_split(&id, '/', &us) && str_to_i64(us, &list->after.created_us);
    list->after.id = good ? id : STR_EMPTY;
    return good;
}

static void answer_off(FindList *list)
{
    if (list->before.len > 0) {
        answer_without(list);
        return;
    }
    http_problem(
        list->call->http, 503, "search-off", "The search index is turned off", NULL,
        "the operator has turned it off (STENTOR_GATEWAY_FIND); what needs no index still "
        "answers: a span of at most %d hours by status, channel and category",
        FIND_SCAN_HOURS);
}

void find_list_embed(
    ApiCall *call, const FindContext *context, FindFilter fixed, Str value, Str before)
{
    FindList *list = arena_zalloc(call->http->arena, sizeof *list);
    list->call = call;
    list->context = context;
    list->before = before;
    list->fixed = fixed;
    if (!find_query_read(call, context->master, fixed, value, &list->query) ||
        !page_read(call, PAGE_LIMIT, PAGE_LIMIT_MAX, &list->page)) {
        return;
    }
    if (!read_position(list)) {
        api_answer_parameter(call, "cursor", "not a cursor of this list");
        return;
    }
    list->indexed = list->query.driver != FIND_FILTERS;
    if (list->indexed && !context->store->on) {
        answer_off(list);
        return;
    }
    buf_init(&list->out, LIST_JSON_MAX);
    buf_str(&list->out, before);
    page_begin(&list->out);
    ask_candidates(list);
}

void find_list_answer(ApiCall *call, const FindContext *context, FindFilter fixed, Str value)
{
    find_list_embed(call, context, fixed, value, STR_EMPTY);
}
