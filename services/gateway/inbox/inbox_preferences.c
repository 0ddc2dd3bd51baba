// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/inbox/inbox_preferences.h"

#include "common/base/log.h"
#include "services/gateway/inbox/inbox_owner.h"
#include "services/gateway/preferences/preference_page.h"

enum { ANSWER_MAX = 64 * 1024 };

// One call; in the request's arena.
typedef struct Visit {
    PreferenceCall call; // first
    InboxPublic *inbox;
    InboxOwner owner;
} Visit;

// ---- answers ----

static void answer_choices(const Visit *visit, Metric *counted)
{
    Buf out;
    HttpRequest *http = visit->call.http;
    buf_init(&out, ANSWER_MAX);
    preference_page_json(&out, visit->call.choices, visit->call.count);
    metric_add(counted, 1);
    http_response_header(http, "Cache-Control", STR("no-store"));
    http_respond(http, 200, "application/json", buf_view(&out));
    buf_done(&out);
}

static void answer_unavailable(const InboxPublic *inbox, HttpRequest *http, const Error *err)
{
    if (err != NULL && err->kind != ERROR_TRANSIENT && err->kind != ERROR_CANCELLED) {
        LOG(LOG_ERROR, "a recipient's choices could not be shown or stored",
            log_text("request", http->id), log_error(err));
    }
    metric_add(inbox->refused, 1);
    http_response_header(http, "Retry-After", STR("2"));
    http_problem(
        http, 503, "unavailable", "Temporarily unavailable", NULL,
        "preferences can be neither shown nor changed now; repeat the request in a moment");
}

static void answer_no_record(const InboxPublic *inbox, HttpRequest *http)
{
    metric_add(inbox->refused, 1);
    http_problem(
        http, 404, "no-recipient", "The inbox has no recipient's record", NULL,
        "preferences belong to a recipient's record, and this inbox is of no one record; the "
        "application makes one (POST /v1/recipients) with the in-app address, or gets the token by "
        "'recipient_id'");
}

static void answer_malformed(const InboxPublic *inbox, HttpRequest *http, const Problem *problem)
{
    metric_add(inbox->refused, 1);
    http_problem(
        http, problem->status, problem->slug, problem->title,
        problem->field[0] == '\0' ? NULL : problem->field, "%s", problem->detail);
}

// ---- the call ----

static void on_stored(PreferenceCall *call, const Error *err)
{
    const Visit *visit = (const Visit *)call;
    if (err != NULL) {
        answer_unavailable(visit->inbox, call->http, err);
    } else {
        answer_choices(visit, visit->inbox->stored);
    }
}

static void store(Visit *visit)
{
    ApiBody body = {0};
    PreferenceCall *call = &visit->call;
    bool ok = api_body_parse(&body, call->http->body, call->http->arena) &&
              preference_json_read(&body, call->choices, call->count);
    if (ok) {
        call->done = on_stored;
        preference_store(call);
    } else {
        answer_malformed(visit->inbox, call->http, &body.problem);
    }
    api_body_free(&body);
}

static void on_looked_up(PreferenceCall *call, const Error *err)
{
    Visit *visit = (Visit *)call;
    if (err != NULL) {
        answer_unavailable(visit->inbox, call->http, err);
    } else if (!call->state.has_record) {
        answer_no_record(visit->inbox, call->http);
    } else if (str_eq(call->http->method, STR("PUT"))) {
        store(visit);
    } else {
        answer_choices(visit, visit->inbox->shown);
    }
}

bool inbox_preferences_admit(InboxPublic *inbox, HttpRequest *http)
{
    bool puts = str_eq(http->method, STR("PUT"));
    http->body_max = puts ? PREFERENCE_BODY_MAX : 0;
    if (puts || str_eq(http->method, STR("GET")) || str_eq(http->method, STR("HEAD"))) {
        return true;
    }
    metric_add(inbox->refused, 1);
    http_response_header(http, "Allow", STR("GET, HEAD, PUT"));
    http_problem(http, 405, "method-not-allowed", "Method not allowed", NULL, "use GET or PUT");
    return false;
}

static void go_on(Visit *visit, Str recipient_id)
{
    if (recipient_id.len == 0) {
        answer_no_record(visit->inbox, visit->call.http);
        return;
    }
    visit->call.recipient_id = recipient_id;
    preference_look_up(&visit->call);
}

static void on_owner_found(InboxOwner *owner, const Error *err)
{
    Visit *visit = owner->ctx;
    if (err != NULL) {
        answer_unavailable(visit->inbox, visit->call.http, err);
    } else {
        go_on(visit, owner->id);
    }
}

// A token that the tenant has signed has an address and names no record.
static void find_owner(Visit *visit, const InboxToken *token)
{
    visit->owner = (InboxOwner){
        .pool = visit->inbox->pool,
        .master = visit->inbox->master,
        .http = visit->call.http,
        .tenant = visit->call.tenant,
        .address = str_from(token->address),
        .done = on_owner_found,
        .ctx = visit,
    };
    inbox_owner_find(&visit->owner);
}

void inbox_preferences_handle(InboxPublic *inbox, HttpRequest *http, const InboxToken *token)
{
    bool puts = str_eq(http->method, STR("PUT"));
    if (puts && preference_store_unready(inbox->preferences) != NULL) {
        answer_unavailable(inbox, http, NULL);
        return;
    }
    Visit *visit = arena_zalloc(http->arena, sizeof *visit);
    *visit = (Visit){.inbox = inbox};
    visit->call = (PreferenceCall){
        .parts = inbox->preferences,
        .http = http,
        .tenant = str_from(token->tenant),
        .notification_id = STR_EMPTY,
        .said_by = "inbox",
        .done = on_looked_up,
    };
    visit->call.state.channels[CHANNEL_INAPP] = true; // by its id, where it has no such address
    if (token->address[0] != '\0') {
        find_owner(visit, token);
    } else {
        go_on(visit, str_from(token->recipient_id));
    }
}
