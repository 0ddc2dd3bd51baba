// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/opt_out_endpoint.h"

#include "common/bus/events/suppression_event.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/config/config_store.h"
#include "common/events/meta.h"
#include "stentor/v1/people.pb-c.h"

enum { PAGE_MAX = 8 * 1024 };

static const Str PATH = {"/v1/opt-out/", 12};

// One click in handling; in the request's arena.
typedef struct Click {
    OptOutEndpoint *endpoint;
    HttpRequest *http;
    OptOut what;
} Click;

bool opt_out_is_path(Str path)
{
    return str_starts(path, PATH);
}

bool opt_out_is_one_click(Str body)
{
    return str_contains(body, STR("List-Unsubscribe")) && str_contains(body, STR("One-Click"));
}

// ---- answers ----

static bool wants_page(const HttpRequest *http)
{
    return str_eq(http->method, STR("GET")) ||
           str_contains(http_header(http, "Accept"), STR("text/html"));
}

// `inside` is our own HTML: no part of the request is ever shown.
static void answer_page(HttpRequest *http, int status, const char *title, const char *inside)
{
    Buf page;
    buf_init(&page, PAGE_MAX);
    buf_printf(
        &page,
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width\"><title>%s</title></head>"
        "<body style=\"font-family:sans-serif;max-width:32em;margin:3em auto;padding:0 1em\">"
        "<h1>%s</h1>%s</body></html>",
        title, title, inside);
    http_response_header(
        http, "Content-Security-Policy",
        STR("default-src 'none'; style-src 'unsafe-inline'; form-action 'self'"));
    http_response_header(http, "Referrer-Policy", STR("no-referrer"));
    http_response_header(http, "X-Robots-Tag", STR("noindex"));
    http_response_header(http, "Cache-Control", STR("no-store"));
    http_respond(http, status, "text/html; charset=utf-8", buf_view(&page));
    buf_done(&page);
}

static void answer_done(OptOutEndpoint *endpoint, HttpRequest *http)
{
    metric_add(endpoint->taken, 1);
    if (wants_page(http)) {
        answer_page(
            http, 200, "You are unsubscribed", "<p>You will not get these mails any more.</p>");
    } else {
        http_respond(http, 200, "application/json", STR("{}"));
    }
}

static void answer_unavailable(OptOutEndpoint *endpoint, HttpRequest *http)
{
    metric_add(endpoint->refused, 1);
    http_response_header(http, "Retry-After", STR("5"));
    http_problem(
        http, 503, "unavailable", "Temporarily unavailable", NULL,
        "your choice could not be stored; please try again in a moment");
}

// One answer for an altered token, one that is too old and a revoked one.
static void answer_bad_link(OptOutEndpoint *endpoint, HttpRequest *http)
{
    metric_add(endpoint->refused, 1);
    if (wants_page(http)) {
        answer_page(
            http, 404, "This link does not work",
            "<p>The link is incomplete or too old. Please use the link of a newer mail.</p>");
    } else {
        http_problem(
            http, 404, "not-found", "This link does not work", NULL,
            "the link was not made by this installation, or is incomplete or too old");
    }
}

static void answer_question(HttpRequest *http, const OptOut *what)
{
    const char *inside = arena_printf(
        http->arena,
        "<p>Do you want no more mails of the kind &ldquo;%s&rdquo;?</p>"
        "<form method=\"post\"><input type=\"hidden\" name=\"List-Unsubscribe\" "
        "value=\"One-Click\"><button type=\"submit\">Unsubscribe</button></form>",
        category_name(what->category));
    answer_page(http, 200, "Unsubscribe", inside);
}

// ---- storing ----

static const Stentor__V1__Suppression *make_suppression(const Click *click)
{
    SuppressionSpec spec = {
        .tenant = click->what.tenant,
        .channel = click->what.channel,
        .category = click->what.category,
        .hash = click->what.address_hash,
        .reason = SUPPRESSION_OPT_OUT,
        .at_us = click->http->received_at_us,
        .by = STR("opt-out"),
        .notification_id = click->what.notification_id,
    };
    return suppression_make(&spec, click->http->arena);
}

bool opt_out_preference(const OptOut *what, int64_t at_us, Arena *arena, BusOut *ret, Error *err)
{
    static char said_by[] = "opt-out";
    char *event_id = arena_alloc(arena, EVENT_ID_SIZE);
    char *subject = arena_alloc(arena, SUBJECT_SIZE);
    event_id_derive(
        "opt-out", what->notification_id, str_from(arena_printf(arena, "%lld", (long long)at_us)),
        event_id);
    MetaSpec head = {
        .event_id = event_id,
        .tenant = arena_cstr(arena, what->tenant),
        .at_us = at_us,
    };
    Stentor__V1__Meta meta = meta_make(&head);
    Stentor__V1__Preference preference;
    stentor__v1__preference__init(&preference);
    preference.category = (Stentor__V1__Category)what->category;
    preference.channel = (Stentor__V1__Channel)what->channel;
    preference.off = true;
    Stentor__V1__PersonEvent event;
    stentor__v1__person_event__init(&event);
    event.meta = &meta;
    event.recipient_id = arena_cstr(arena, what->recipient_id);
    event.part_case = STENTOR__V1__PERSON_EVENT__PART_PREFERENCE;
    event.preference = &preference;
    event.said_by = said_by;
    subject_people(subject, what->tenant);
    *ret = (BusOut){.subject = subject, .event_id = str_from(event_id)};
    return event_pack(&event.base, arena, &ret->payload, err);
}

static void finish(Click *click, const Error *err)
{
    click->endpoint->waiting--;
    if (err != NULL) {
        answer_unavailable(click->endpoint, click->http);
    } else {
        answer_done(click->endpoint, click->http);
    }
}

static void on_suppression_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate;
    finish(ctx, err);
}

static void store_suppression(Click *click)
{
    const OptOutEndpoint *endpoint = click->endpoint;
    suppression_store(
        endpoint->bus, endpoint->known, make_suppression(click), STR_EMPTY, click->http->arena,
        on_suppression_acked, click);
}

// Killed here: the suppression is missing, so the next click stores both, which does not change the
// preference (tests/integration/recipients/test_opt_out.py: a_kill_between). In the other order a
// stored suppression would hide that the preference is missing.
static void on_preference_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate;
    if (err != NULL) {
        finish(ctx, err);
    } else {
        store_suppression(ctx);
    }
}

static void store(Click *click)
{
    BusOut out;
    Error err = {0};
    click->endpoint->waiting++;
    if (click->what.recipient_id.len == 0) {
        store_suppression(click);
    } else if (opt_out_preference(
                   &click->what, click->http->received_at_us, click->http->arena, &out, &err)) {
        bus_publish(click->endpoint->bus, &out, on_preference_acked, click);
    } else {
        finish(click, &err);
    }
}

// ---- the endpoint ----

static void take_post(OptOutEndpoint *endpoint, HttpRequest *http, const OptOut *what)
{
    if (!opt_out_is_one_click(http->body)) {
        metric_add(endpoint->refused, 1);
        http_problem(
            http, 400, "not-one-click", "Not an unsubscription", NULL,
            "the body must be List-Unsubscribe=One-Click (RFC 8058)");
        return;
    }
    if (!endpoint->ready(endpoint->ready_ctx) || endpoint->waiting >= OPT_OUTS_MAX) {
        answer_unavailable(endpoint, http);
        return;
    }
    if (suppressions_of_entry(
            endpoint->known, what->tenant, what->channel, what->category, what->address_hash,
            http->received_at_us) == SUPPRESSION_UNREADABLE) {
        answer_unavailable(endpoint, http); // it would be lost when the entry is fixed
        return;
    }
    if (!suppressions_wants(
            endpoint->known, what->tenant, what->channel, what->category, what->address_hash,
            SUPPRESSION_OPT_OUT, http->received_at_us, 0)) {
        answer_done(endpoint, http); // a repeat changes nothing
        return;
    }
    Click *click = arena_zalloc(http->arena, sizeof *click);
    *click = (Click){.endpoint = endpoint, .http = http, .what = *what};
    store(click);
}

static bool is_revoked(const OptOutEndpoint *endpoint, const OptOut *what)
{
    LinkOwner owner = {
        .tenant = what->tenant,
        .notification_id = what->notification_id,
        .recipient_id = what->recipient_id,
        .who = str_of(what->address_hash, sizeof what->address_hash),
        .issued_at_us = what->issued_at_us,
    };
    return link_is_revoked(endpoint->revoked, &owner);
}

bool opt_out_admit(OptOutEndpoint *endpoint, HttpRequest *request)
{
    OptOut *what = arena_zalloc(request->arena, sizeof *what);
    if (!str_eq(request->method, STR("POST")) && !str_eq(request->method, STR("GET"))) {
        http_response_header(request, "Allow", STR("GET, POST"));
        http_problem(
            request, 405, "method-not-allowed", "Method not allowed", NULL, "use GET or POST");
        return false;
    }
    Str token = str_slice(request->path, PATH.len, request->path.len);
    if (!opt_out_verify(
            &endpoint->key, token, request->received_at_us, request->arena, what, NULL) ||
        is_revoked(endpoint, what)) {
        answer_bad_link(endpoint, request);
        return false;
    }
    http_request_known(request);
    request->body_max = OPT_OUT_BODY_MAX;
    request->admitted = what;
    return true;
}

void opt_out_handle(OptOutEndpoint *endpoint, HttpRequest *request)
{
    const OptOut *what = request->admitted;
    if (str_eq(request->method, STR("POST"))) {
        take_post(endpoint, request, what);
    } else {
        answer_question(request, what);
    }
}
