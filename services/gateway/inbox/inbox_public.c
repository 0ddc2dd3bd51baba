// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/inbox/inbox_public.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/codec/event.h"
#include "common/events/sealed.h"
#include "common/feed/feed_event.h"
#include "services/gateway/inbox/inbox_bearer.h"
#include "services/gateway/inbox/inbox_keys_api.h"
#include "services/gateway/inbox/inbox_preferences.h"
#include "services/gateway/inbox/inbox_view.h"

enum {
    LIMIT = 30,
    LIMIT_MAX = 100,
    BODY_MAX = 1024,
    SNOOZE_MAX_S = 366 * 86400,
    PARAMETERS_MAX = 4,
};

static const Str PATH = {"/v1/inbox", 9};
static const Str TOKENS = {"/v1/inbox/tokens", 16};

// clang-format off
static const DbStatement LIST = {"inbox_list",
    "SELECT notification_id, category, template, locale, direction, content, created_at, placed_at, expires_at, seen_at, read_at,"
    " archived_at, clicked_at, snoozed_until, fetched_at FROM feed.items WHERE recipient = $1::bytea AND tenant_id = $2::text"
    " AND ($3::timestamptz IS NULL OR (placed_at, notification_id) < ($3, $4::text)) AND ($5::text IS NULL OR category = $5)"
    " AND (expires_at IS NULL OR expires_at > now())"
    " AND CASE $6::text WHEN 'archived' THEN archived_at IS NOT NULL WHEN 'snoozed' THEN archived_at IS NULL AND snoozed_until IS NOT NULL"
    "  WHEN 'unread' THEN archived_at IS NULL AND snoozed_until IS NULL AND read_at IS NULL"
    "  ELSE archived_at IS NULL AND snoozed_until IS NULL END"
    " ORDER BY placed_at DESC, notification_id DESC LIMIT $7::int4"};
static const DbStatement COUNTS = {"inbox_counts",
    "SELECT category, unseen, unread, total, version FROM feed.counters WHERE recipient = $1::bytea AND tenant_id = $2::text"};
static const DbStatement EXISTS = {"inbox_exists",
    "SELECT 1 FROM feed.items WHERE recipient = $1::bytea AND tenant_id = $2::text AND notification_id = $3::text"
    " AND (expires_at IS NULL OR expires_at > now())"};
const DbStatement inbox_position_sql = {"inbox_position",
    "SELECT sequence FROM feed.positions WHERE projection = 'feed' AND stream = 'FEED'"};
enum { ID, CATEGORY, TEMPLATE, LOCALE, DIRECTION, CONTENT, CREATED, PLACED, EXPIRES, SEEN, READ, ARCHIVED, CLICKED, SNOOZED, FETCHED };

// What may be done with an item, or, where `all`, with all up to one.
static const struct {
    const char *word;
    Stentor__V1__FeedAction action;
    bool all;
} ACTIONS[] = {
    {"seen",      STENTOR__V1__FEED_ACTION__FEED_ACTION_SEEN,      true},
    {"read",      STENTOR__V1__FEED_ACTION__FEED_ACTION_READ,      true},
    {"unread",    STENTOR__V1__FEED_ACTION__FEED_ACTION_UNREAD,    false},
    {"archive",   STENTOR__V1__FEED_ACTION__FEED_ACTION_ARCHIVE,   true},
    {"unarchive", STENTOR__V1__FEED_ACTION__FEED_ACTION_UNARCHIVE, false},
    {"click",     STENTOR__V1__FEED_ACTION__FEED_ACTION_CLICK,     false},
    {"snooze",    STENTOR__V1__FEED_ACTION__FEED_ACTION_SNOOZE,    false},
    {"unsnooze",  STENTOR__V1__FEED_ACTION__FEED_ACTION_UNSNOOZE,  false},
};
// clang-format on

// One call; in the request's arena.
typedef struct Visit {
    InboxPublic *inbox;
    HttpRequest *http;
    InboxToken token;
    Str word; // "", "counts", "read", "read-all" ...
    Str id;   // of an item; empty: none
    Stentor__V1__FeedAction action;
    int64_t until_us;
    InboxCursor cursor;
    size_t limit;
    InboxItem *items;
    KeyWant *wants;
    const Stentor__V1__Sealed **sealed;
    bool *fetched;
    size_t count;
    bool more;
} Visit;

static Str recipient_of(const Visit *visit)
{
    return str_of(visit->token.recipient, sizeof visit->token.recipient);
}

// ---- answers ----

static void answer(const Visit *visit, json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT);
    http_response_header(visit->http, "Cache-Control", STR("no-store"));
    http_respond(visit->http, 200, "application/json", str_from(text));
    free(text);
    json_decref(json);
}

static bool refuse(
    Visit *visit, int status, const char *slug, const char *title, const char *field,
    const char *detail)
{
    metric_add(visit->inbox->refused, 1);
    http_problem(visit->http, status, slug, title, field, "%s", detail);
    return false;
}

static void answer_unavailable(Visit *visit, const Error *err)
{
    if (err != NULL && err->kind != ERROR_TRANSIENT && err->kind != ERROR_CANCELLED) {
        LOG(LOG_ERROR, "an inbox could not be shown or changed",
            log_text("request", visit->http->id), log_error(err));
    }
    http_response_header(visit->http, "Retry-After", STR("2"));
    (void)refuse(
        visit, 503, "unavailable", "Temporarily unavailable", NULL,
        "the inbox can be neither shown nor changed now; repeat the request in a moment");
}

static bool answer_missing(Visit *visit)
{
    return refuse(
        visit, 404, "not-found", "Not found", NULL,
        "the inbox has no such item; it may have expired (GET /v1/inbox lists those that there "
        "are)");
}

// ---- showing ----

static DbTxn *ask(const Visit *visit, const DbStatement *statement, DbParams **ret)
{
    DbTxn *txn = db_txn_new(visit->inbox->pool);
    db_txn_tenant(txn, str_from(visit->token.tenant));
    DbParams *p = db_txn_add(txn, statement, NULL);
    db_bytes(p, recipient_of(visit));
    db_text(p, str_from(visit->token.tenant));
    *ret = p;
    return txn;
}

static void on_counts_read(void *ctx, DbTxn *txn, const Error *err)
{
    Visit *visit = ctx;
    if (err != NULL) {
        answer_unavailable(visit, err);
        return;
    }
    metric_add(visit->inbox->shown, 1);
    answer(visit, inbox_counts_json(db_txn_result(txn, 0)));
}

static void show_counts(Visit *visit)
{
    DbParams *p;
    DbTxn *txn = ask(visit, &COUNTS, &p);
    db_txn_submit(txn, on_counts_read, visit);
}

static void on_fetched_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)ctx;
    (void)err; // not stored: the next time that they are shown says it again
    (void)sequence;
    (void)duplicate;
}

// The items that are shown for the first time are delivered. The answer does not wait for it.
static void note_fetched(const Visit *visit, const bool *shown)
{
    Arena *arena = visit->http->arena;
    Buf cause;
    char event_id[EVENT_ID_SIZE];
    Stentor__V1__FeedState state = STENTOR__V1__FEED_STATE__INIT;
    state.action = STENTOR__V1__FEED_ACTION__FEED_ACTION_FETCHED;
    state.notification_ids = arena_array(arena, visit->count + 1, sizeof *state.notification_ids);
    buf_init(&cause, (LIMIT_MAX + 1) * ID_SIZE);
    for (size_t i = 0; i < visit->count; i++) {
        if (shown[i] && !visit->fetched[i]) {
            state.notification_ids[state.n_notification_ids++] =
                arena_cstr(arena, visit->items[i].id);
            buf_str(&cause, visit->items[i].id);
        }
    }
    event_id_derive("feed", buf_view(&cause), STR("fetched"), event_id);
    buf_done(&cause);
    FeedStateSpec spec = {
        .tenant = str_from(visit->token.tenant),
        .recipient = visit->token.recipient,
        .event_id = event_id,
        .at_us = visit->http->received_at_us,
        .state = &state,
    };
    BusOut out;
    if (state.n_notification_ids > 0 && feed_state_event(&spec, arena, &out, NULL)) {
        bus_publish(visit->inbox->bus, &out, on_fetched_acked, NULL);
    }
}

// What an erasure has made unreadable is not shown.
static void on_keys_found(void *ctx, const Error *err)
{
    Visit *visit = ctx;
    if (err != NULL) {
        answer_unavailable(visit, err);
        return;
    }
    Arena *arena = visit->http->arena;
    json_t *list = json_array();
    bool *shown = arena_array(arena, visit->count + 1, sizeof *shown);
    for (size_t i = 0; i < visit->count; i++) {
        InboxItem *item = &visit->items[i];
        Error unreadable = {0};
        item->content = visit->wants[i].key == NULL
                            ? NULL
                            : feed_content_open(
                                  visit->wants[i].key, str_from(visit->token.tenant), item->id,
                                  visit->sealed[i], arena, &unreadable);
        shown[i] = item->content != NULL;
        if (shown[i]) {
            (void)json_array_append_new(list, inbox_item_json(item));
        }
    }
    json_t *next = json_null();
    if (visit->more) {
        char cursor[INBOX_CURSOR_SIZE];
        const InboxItem *last = &visit->items[visit->count - 1];
        inbox_cursor_write(&(InboxCursor){last->placed_us, last->id}, cursor);
        next = json_string(cursor);
    }
    note_fetched(visit, shown);
    metric_add(visit->inbox->shown, 1);
    answer(visit, json_pack("{s:o, s:o}", "data", list, "next", next));
}

static Str text_at(const Visit *visit, const PGresult *rows, int row, int column)
{
    return arena_str(visit->http->arena, db_get_text(rows, row, column));
}

static void read_item(Visit *visit, const PGresult *rows, int row)
{
    size_t i = visit->count;
    Str packed = text_at(visit, rows, row, CONTENT);
    const Stentor__V1__Sealed *sealed = (const Stentor__V1__Sealed *)event_unpack(
        &stentor__v1__sealed__descriptor, packed, visit->http->arena, NULL);
    if (!sealed_names_key(sealed)) {
        return; // the fold has checked it
    }
    visit->items[i] = (InboxItem){
        .id = text_at(visit, rows, row, ID),
        .category = text_at(visit, rows, row, CATEGORY),
        .template = text_at(visit, rows, row, TEMPLATE),
        .locale = text_at(visit, rows, row, LOCALE),
        .direction = text_at(visit, rows, row, DIRECTION),
        .created_us = db_get_time(rows, row, CREATED),
        .placed_us = db_get_time(rows, row, PLACED),
        .expires_us = db_get_time(rows, row, EXPIRES),
        .seen_us = db_get_time(rows, row, SEEN),
        .read_us = db_get_time(rows, row, READ),
        .archived_us = db_get_time(rows, row, ARCHIVED),
        .clicked_us = db_get_time(rows, row, CLICKED),
        .snoozed_until_us = db_get_time(rows, row, SNOOZED),
    };
    visit->sealed[i] = sealed;
    visit->wants[i] = key_want_of(str_from(visit->token.tenant), sealed);
    visit->fetched[i] = !db_is_null(rows, row, FETCHED);
    visit->count++;
}

static void on_items_read(void *ctx, DbTxn *txn, const Error *err)
{
    Visit *visit = ctx;
    if (err != NULL) {
        answer_unavailable(visit, err);
        return;
    }
    const PGresult *rows = db_txn_result(txn, 0);
    Arena *arena = visit->http->arena;
    visit->items = arena_array(arena, visit->limit, sizeof *visit->items);
    visit->wants = arena_array(arena, visit->limit, sizeof *visit->wants);
    visit->sealed = arena_array(arena, visit->limit, sizeof *visit->sealed);
    visit->fetched = arena_array(arena, visit->limit, sizeof *visit->fetched);
    for (int i = 0; i < db_rows(rows) && i < (int)visit->limit; i++) {
        read_item(visit, rows, i);
    }
    visit->more = db_rows(rows) > (int)visit->limit && visit->count > 0;
    keyring_resolve(visit->inbox->keyring, visit->wants, visit->count, on_keys_found, visit);
}

static bool read_limit(Visit *visit)
{
    int64_t limit = LIMIT;
    Str text = http_query(visit->http, "limit");
    if (text.len > 0 && (!str_to_i64(text, &limit) || limit < 1 || limit > LIMIT_MAX)) {
        return refuse(
            visit, 400, "invalid-parameter", "A parameter is wrong", "limit",
            "'limit' is a number from 1 to 100");
    }
    visit->limit = (size_t)limit;
    return true;
}

static bool read_before(Visit *visit)
{
    Str text = http_query(visit->http, "before");
    return text.len == 0 || inbox_cursor_read(text, &visit->cursor) ||
           refuse(
               visit, 400, "invalid-parameter", "A parameter is wrong", "before",
               "'before' is 'next' of the page before, or the 'cursor' of an item");
}

static bool is_tab(Str tab)
{
    return str_eq(tab, STR("all")) || str_eq(tab, STR("unread")) || str_eq(tab, STR("archived")) ||
           str_eq(tab, STR("snoozed"));
}

static void show_items(Visit *visit)
{
    Category known = CATEGORY_NONE;
    Str tab = http_query(visit->http, "tab");
    Str category = http_query(visit->http, "category");
    tab = tab.len == 0 ? STR("all") : tab;
    if (!is_tab(tab)) {
        (void)refuse(
            visit, 400, "invalid-parameter", "A parameter is wrong", "tab",
            "'tab' is one of all, unread, archived, snoozed");
        return;
    }
    if (category.len > 0 && !category_from_name(category, &known)) {
        (void)refuse(
            visit, 400, "invalid-parameter", "A parameter is wrong", "category",
            "'category' is a category such as transactional or social");
        return;
    }
    if (!read_limit(visit) || !read_before(visit)) {
        return;
    }
    DbParams *p;
    DbTxn *txn = ask(visit, &LIST, &p);
    db_time(p, visit->cursor.placed_us);
    db_text(p, visit->cursor.id);
    if (category.len > 0) {
        db_text(p, category);
    } else {
        db_null(p);
    }
    db_text(p, tab);
    db_i32(p, (int32_t)visit->limit + 1);
    db_txn_submit(txn, on_items_read, visit);
}

// ---- changing ----

// Folded, or it takes longer than a client should wait: the counts say which, by their version.
static void on_folded(void *ctx, bool seen)
{
    (void)seen;
    show_counts(ctx);
}

static void on_state_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)duplicate;
    Visit *visit = ctx;
    if (err != NULL) {
        answer_unavailable(visit, err);
        return;
    }
    metric_add(visit->inbox->stored, 1);
    people_wait(visit->inbox->wait, sequence, on_folded, visit);
}

static void store(Visit *visit)
{
    Arena *arena = visit->http->arena;
    char event_id[EVENT_ID_SIZE];
    Stentor__V1__FeedState state = STENTOR__V1__FEED_STATE__INIT;
    char *id = arena_cstr(arena, visit->id);
    state.action = visit->action;
    state.until_us = visit->until_us;
    state.request_id = pb_borrow(visit->http->id);
    if (visit->id.len > 0) {
        state.notification_ids = &id;
        state.n_notification_ids = 1;
    } else {
        state.up_to_us = visit->cursor.placed_us;
        state.up_to_id = arena_cstr(arena, visit->cursor.id);
    }
    event_id_derive(
        "feed", recipient_of(visit),
        str_from(arena_printf(arena, STR_FMT "/%s", STR_ARG(visit->word), visit->http->id)),
        event_id);
    FeedStateSpec spec = {
        .tenant = str_from(visit->token.tenant),
        .recipient = visit->token.recipient,
        .event_id = event_id,
        .at_us = visit->http->received_at_us,
        .state = &state,
    };
    BusOut out;
    Error err = {0};
    if (!feed_state_event(&spec, arena, &out, &err)) {
        answer_unavailable(visit, &err);
        return;
    }
    bus_publish(visit->inbox->bus, &out, on_state_acked, visit);
}

static void on_item_known(void *ctx, DbTxn *txn, const Error *err)
{
    Visit *visit = ctx;
    if (err != NULL) {
        answer_unavailable(visit, err);
    } else if (db_rows(db_txn_result(txn, 0)) == 0) {
        (void)answer_missing(visit);
    } else {
        store(visit);
    }
}

// {"until": time} of a snooze, {"up_to": cursor} of all. false: answered.
static bool read_body(Visit *visit, const char *field, Str *ret)
{
    json_error_t at;
    HttpRequest *http = visit->http;
    json_t *body = json_loadb(http->body.ptr, http->body.len, JSON_REJECT_DUPLICATES, &at);
    const char *text = json_string_value(json_object_get(body, field));
    *ret = text != NULL ? arena_str(http->arena, str_from(text)) : STR_EMPTY;
    json_decref(body);
    return text != NULL ||
           refuse(
               visit, 422, "invalid-field", "A field is wrong", field,
               strcmp(field, "until") == 0
                   ? "the body is {\"until\": \"2026-12-24T15:00:00Z\"}: when it comes back"
                   : "the body is {\"up_to\": CURSOR}: the 'cursor' of the newest item that was "
                     "shown");
}

static bool read_until(Visit *visit)
{
    Str text = STR_EMPTY;
    int64_t now_us = visit->http->received_at_us;
    if (!read_body(visit, "until", &text)) {
        return false;
    }
    return (clock_parse(text, &visit->until_us) && visit->until_us > now_us &&
            visit->until_us <= now_us + SNOOZE_MAX_S * INT64_C(1000000)) ||
           refuse(
               visit, 422, "invalid-field", "A field is wrong", "until",
               "'until' is a time within the next year, such as 2026-12-24T15:00:00Z");
}

static bool read_up_to(Visit *visit)
{
    Str text = STR_EMPTY;
    return read_body(visit, "up_to", &text) && (inbox_cursor_read(text, &visit->cursor) ||
                                                refuse(
                                                    visit, 422, "invalid-field", "A field is wrong",
                                                    "up_to", "'up_to' is the 'cursor' of an item"));
}

static void change(Visit *visit)
{
    if (visit->id.len == 0) {
        if (read_up_to(visit)) {
            store(visit);
        }
        return;
    }
    if (visit->action == STENTOR__V1__FEED_ACTION__FEED_ACTION_SNOOZE && !read_until(visit)) {
        return;
    }
    DbParams *p;
    DbTxn *txn = ask(visit, &EXISTS, &p);
    db_text(p, visit->id);
    db_txn_submit(txn, on_item_known, visit);
}

// ---- the endpoints ----

bool inbox_is_path(Str path)
{
    return str_starts(path, PATH) && !str_eq(path, TOKENS) && !inbox_keys_is_path(path) &&
           (path.len == PATH.len || path.ptr[PATH.len] == '/');
}

static bool take_action(Visit *visit, Str word, bool all)
{
    for (size_t i = 0; i < sizeof ACTIONS / sizeof ACTIONS[0]; i++) {
        if (str_eq(word, str_from(ACTIONS[i].word)) && (!all || ACTIONS[i].all)) {
            visit->action = ACTIONS[i].action;
            return true;
        }
    }
    return false;
}

// "", "/counts", "/preferences", "/stream", "/{id}/read", "/read-all". false: none of them.
static bool read_path(Visit *visit)
{
    Str rest = str_slice(visit->http->path, PATH.len, visit->http->path.len);
    Str first = STR_EMPTY;
    rest = rest.len > 0 ? str_slice(rest, 1, rest.len) : rest;
    visit->word = rest;
    if (rest.len == 0 || str_eq(rest, STR("counts")) || str_eq(rest, STR("preferences")) ||
        str_eq(rest, STR("stream"))) {
        return true;
    }
    if (str_ends(rest, STR("-all"))) {
        return take_action(visit, str_slice(rest, 0, rest.len - 4), true);
    }
    if (!str_split(&rest, '/', &first) || !id_parse(first, "ntf_", NULL)) {
        return false;
    }
    visit->id = first;
    visit->word = rest;
    return take_action(visit, rest, false);
}

static bool answer_unknown_action(Visit *visit)
{
    Buf text;
    buf_init(&text, 512);
    buf_cstr(&text, "POST /v1/inbox/{id}/ and one of");
    for (size_t i = 0; i < sizeof ACTIONS / sizeof ACTIONS[0]; i++) {
        (void)buf_printf(&text, "%s %s", i > 0 ? "," : "", ACTIONS[i].word);
    }
    buf_cstr(&text, "; of all items POST /v1/inbox/");
    for (size_t i = 0, said = 0; i < sizeof ACTIONS / sizeof ACTIONS[0]; i++) {
        if (ACTIONS[i].all) {
            (void)buf_printf(&text, "%s%s-all", said++ > 0 ? ", " : "", ACTIONS[i].word);
        }
    }
    (void)refuse(visit, 404, "unknown-action", "There is no such action", NULL, buf_c(&text));
    buf_done(&text);
    return false;
}

static bool check_method(Visit *visit)
{
    bool writes = visit->action != STENTOR__V1__FEED_ACTION__FEED_ACTION_UNSPECIFIED;
    Str method = visit->http->method;
    if (writes ? str_eq(method, STR("POST"))
               : str_eq(method, STR("GET")) || str_eq(method, STR("HEAD"))) {
        visit->http->body_max = writes ? BODY_MAX : 0;
        return true;
    }
    http_response_header(visit->http, "Allow", writes ? STR("POST") : STR("GET, HEAD"));
    return refuse(
        visit, 405, "method-not-allowed", "Method not allowed", NULL,
        writes ? "use POST" : "use GET");
}

static bool is_preferences(const Visit *visit)
{
    return str_eq(visit->word, STR("preferences"));
}

static bool check_token(Visit *visit)
{
    static const Str scheme = {"Bearer ", 7};
    InboxPublic *inbox = visit->inbox;
    Str shown = http_header(visit->http, "Authorization");
    Str token = str_starts(shown, scheme) ? str_slice(shown, scheme.len, shown.len) : STR_EMPTY;
    InboxVerdict verdict = inbox_bearer_check(inbox, visit->http, token, &visit->token);
    if (verdict != INBOX_GOOD) {
        http_response_header(visit->http, "WWW-Authenticate", STR("Bearer"));
        return refuse(
            visit, 401, verdict == INBOX_EXPIRED ? "token-expired" : "unauthorized",
            "The inbox token is not valid", "Authorization", inbox_bearer_reason(verdict));
    }
    if (inbox->unready(inbox->unready_ctx) == NULL &&
        catalog_standing(inbox->catalog, str_from(visit->token.tenant)) != STANDING_ACTIVE) {
        return refuse(
            visit, 403, "tenant-suspended", "The tenant is not active", NULL,
            "the application's tenant is suspended or is being deleted");
    }
    return true;
}

// Of the list; everything else takes none.
static bool is_parameter(const Visit *visit, Str name)
{
    static const char *const names[] = {"tab", "category", "limit", "before"};
    bool known = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        known = known || str_eq(name, str_from(names[i]));
    }
    return known && visit->word.len == 0;
}

static bool check_query(Visit *visit)
{
    HttpArgument found[PARAMETERS_MAX + 1]; // one more than there are: the first wrong is here
    size_t count = http_arguments(visit->http, found, PARAMETERS_MAX + 1);
    for (size_t i = 0; i < count && i <= PARAMETERS_MAX; i++) {
        bool twice = false;
        for (size_t n = 0; n < i; n++) {
            twice = twice || str_eq(found[n].name, found[i].name);
        }
        if (twice || !is_parameter(visit, found[i].name)) {
            return refuse(
                visit, 400, "invalid-parameter", "A query parameter is not valid",
                arena_cstr(visit->http->arena, str_slice(found[i].name, 0, 64)),
                twice                  ? "given twice; give it once"
                : visit->word.len == 0 ? "unknown; this route takes tab, category, limit, before"
                                       : "unknown; this route takes no query parameters");
        }
    }
    return true;
}

bool inbox_public_admit(InboxPublic *inbox, HttpRequest *http)
{
    Visit *visit = arena_zalloc(http->arena, sizeof *visit);
    visit->inbox = inbox;
    visit->http = http;
    if (!inbox_origins_admit(inbox->origins, http) || !check_token(visit)) {
        return false;
    }
    http_request_known(http);
    if (!read_path(visit)) {
        bool acts = visit->id.len > 0 || str_ends(visit->word, STR("-all"));
        return acts ? answer_unknown_action(visit) : answer_missing(visit);
    }
    http->admitted = visit;
    if (is_preferences(visit)) {
        return inbox_preferences_admit(inbox, http) && check_query(visit);
    }
    return check_method(visit) && check_query(visit);
}

void inbox_public_handle(InboxPublic *inbox, HttpRequest *http)
{
    Visit *visit = http->admitted;
    if (inbox->unready(inbox->unready_ctx) != NULL) {
        answer_unavailable(visit, NULL);
    } else if (is_preferences(visit)) {
        inbox_preferences_handle(inbox, http, &visit->token);
    } else if (visit->action != STENTOR__V1__FEED_ACTION__FEED_ACTION_UNSPECIFIED) {
        change(visit);
    } else if (str_eq(visit->word, STR("stream"))) {
        inbox_streams_open(inbox->streams, http, &visit->token);
    } else if (visit->word.len == 0) {
        show_items(visit);
    } else {
        show_counts(visit);
    }
}

void inbox_public_init(InboxPublic *inbox, Metrics *metrics)
{
    // clang-format off
    inbox->shown   = metrics_counter(metrics, "stentor_gateway_inbox_total", "answer=\"shown\"", "Calls of inboxes");
    inbox->stored  = metrics_counter(metrics, "stentor_gateway_inbox_total", "answer=\"stored\"", "Calls of inboxes");
    inbox->refused = metrics_counter(metrics, "stentor_gateway_inbox_total", "answer=\"refused\"", "Calls of inboxes");
    // clang-format on
}
