// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/preferences/preferences_public.h"

#include <string.h>

#include "common/base/log.h"
#include "services/gateway/preferences/preference_page.h"

enum { PAGE_MAX = 64 * 1024 };

static const Str PATH = {"/v1/preferences/", 16};

// One call in handling; in the request's arena.
typedef struct Visit {
    PreferenceCall call; // first
    PreferencesPublic *preferences;
    OptOut what;
} Visit;

bool preferences_is_path(Str path)
{
    return str_starts(path, PATH);
}

// ---- answers ----

static bool wants_json(const HttpRequest *http)
{
    return str_contains_nocase(http_header(http, "Accept"), STR("application/json")) ||
           str_contains_nocase(http_header(http, "Content-Type"), STR("application/json"));
}

static void answer_choices(Visit *visit, bool stored)
{
    Buf out;
    HttpRequest *http = visit->call.http;
    bool json = wants_json(http);
    buf_init(&out, PAGE_MAX);
    if (json) {
        preference_page_json(&out, visit->call.choices, visit->call.count);
    } else {
        preference_page_html(&out, visit->call.choices, visit->call.count, stored);
        http_response_header(
            http, "Content-Security-Policy",
            STR("default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
                "frame-ancestors 'none'"));
    }
    metric_add(stored ? visit->preferences->stored : visit->preferences->shown, 1);
    http_response_header(http, "Referrer-Policy", STR("no-referrer"));
    http_response_header(http, "X-Robots-Tag", STR("noindex"));
    http_response_header(http, "Cache-Control", STR("no-store"));
    http_respond(http, 200, json ? "application/json" : "text/html; charset=utf-8", buf_view(&out));
    buf_done(&out);
}

static void answer_unavailable(PreferencesPublic *preferences, HttpRequest *http, const Error *err)
{
    metric_add(preferences->refused, 1);
    if (err != NULL && err->kind != ERROR_TRANSIENT && err->kind != ERROR_CANCELLED) {
        LOG(LOG_ERROR, "a recipient's choices could not be shown or stored",
            log_text("request", http->id), log_error(err));
    }
    http_response_header(http, "Retry-After", STR("5"));
    http_problem(
        http, 503, "unavailable", "Temporarily unavailable", NULL,
        "your choices could not be shown or stored; please try again in a moment");
}

static bool answer_bad_link(PreferencesPublic *preferences, HttpRequest *http)
{
    metric_add(preferences->refused, 1);
    http_response_header(http, "Cache-Control", STR("no-store"));
    http_problem(
        http, 404, "not-found", "This link does not work", NULL,
        "it is incomplete or too old; please use the link of a newer mail");
    return false;
}

static void answer_malformed(Visit *visit, const Problem *problem)
{
    metric_add(visit->preferences->refused, 1);
    http_problem(
        visit->call.http, problem->status, problem->slug, problem->title,
        problem->field[0] == '\0' ? NULL : problem->field, "%s", problem->detail);
}

// false: answered.
static bool read_wanted(Visit *visit)
{
    HttpRequest *http = visit->call.http;
    if (!str_contains_nocase(http_header(http, "Content-Type"), STR("application/json"))) {
        Problem problem = {
            .status = 400,
            .slug = "invalid-body",
            .title = "Not a form of this page",
            .detail = "expected the page's own form, or JSON with Content-Type application/json",
        };
        bool ok = preference_form_read(http->body, visit->call.choices, visit->call.count);
        if (!ok) {
            answer_malformed(visit, &problem);
        }
        return ok;
    }
    ApiBody body = {0};
    bool ok = api_body_parse(&body, http->body, http->arena) &&
              preference_json_read(&body, visit->call.choices, visit->call.count);
    if (!ok) {
        answer_malformed(visit, &body.problem);
    }
    api_body_free(&body);
    return ok;
}

static void on_stored(PreferenceCall *call, const Error *err)
{
    Visit *visit = (Visit *)call;
    if (err != NULL) {
        answer_unavailable(visit->preferences, call->http, err);
    } else {
        answer_choices(visit, true);
    }
}

static void on_looked_up(PreferenceCall *call, const Error *err)
{
    Visit *visit = (Visit *)call;
    if (err != NULL) {
        answer_unavailable(visit->preferences, call->http, err);
    } else if (!str_eq(call->http->method, STR("POST"))) {
        answer_choices(visit, false);
    } else if (read_wanted(visit)) {
        call->done = on_stored;
        preference_store(call);
    }
}

// ---- the endpoint ----

bool preferences_public_admit(PreferencesPublic *preferences, HttpRequest *http)
{
    bool post = str_eq(http->method, STR("POST"));
    if (!post && !str_eq(http->method, STR("GET")) && !str_eq(http->method, STR("HEAD"))) {
        http_response_header(http, "Allow", STR("GET, HEAD, POST"));
        http_problem(
            http, 405, "method-not-allowed", "Method not allowed", NULL, "use GET or POST");
        return false;
    }
    Visit *visit = arena_zalloc(http->arena, sizeof *visit);
    visit->preferences = preferences;
    OptOut *what = &visit->what;
    Str token = str_slice(http->path, PATH.len, http->path.len);
    if (!opt_out_verify(&preferences->key, token, http->received_at_us, http->arena, what, NULL) ||
        what->channel != CHANNEL_EMAIL) {
        return answer_bad_link(preferences, http);
    }
    LinkOwner owner = {
        .tenant = what->tenant,
        .notification_id = what->notification_id,
        .recipient_id = what->recipient_id,
        .who = str_of(what->address_hash, sizeof what->address_hash),
        .issued_at_us = what->issued_at_us,
    };
    if (link_is_revoked(preferences->revoked, &owner)) {
        return answer_bad_link(preferences, http);
    }
    visit->call = (PreferenceCall){
        .parts = &preferences->parts,
        .http = http,
        .tenant = what->tenant,
        .recipient_id = what->recipient_id,
        .notification_id = what->notification_id,
        .said_by = "preferences",
        .address_hash = what->address_hash,
        .done = on_looked_up,
    };
    http_request_known(http);
    http->body_max = post ? PREFERENCE_BODY_MAX : 0;
    http->admitted = visit;
    return true;
}

void preferences_public_handle(PreferencesPublic *preferences, HttpRequest *http)
{
    Visit *visit = http->admitted;
    bool writes = str_eq(http->method, STR("POST"));
    if (preferences->unready(preferences->unready_ctx) != NULL ||
        (writes && preference_store_unready(&preferences->parts) != NULL)) {
        answer_unavailable(preferences, http, NULL);
    } else {
        preference_look_up(&visit->call);
    }
}

void preferences_public_init(
    PreferencesPublic *preferences, const MasterKey *master, Metrics *metrics)
{
    // clang-format off
    opt_out_key(master, &preferences->key);
    preferences->shown   = metrics_counter(metrics, "stentor_gateway_preference_pages_total", "answer=\"shown\"", "Calls of preference pages");
    preferences->stored  = metrics_counter(metrics, "stentor_gateway_preference_pages_total", "answer=\"stored\"", "Calls of preference pages");
    preferences->refused = metrics_counter(metrics, "stentor_gateway_preference_pages_total", "answer=\"refused\"", "Calls of preference pages");
    // clang-format on
}
