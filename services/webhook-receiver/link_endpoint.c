// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/link_endpoint.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bus/events/status_event.h"
#include "common/bus/topology/topology.h"
#include "common/events/meta.h"
#include "common/events/status.h"

static_assert((int)LINK_WHO_LEN == (int)MAIL_LINK_WHO_LEN, "a link is revoked by its address");

static const Str CLICK_PATH = {"/v1/click/", 10};
static const Str OPEN_PATH = {"/v1/open/", 9};
static const Str PIXEL_END = {".gif", 4};

// A transparent GIF of one pixel.
static const unsigned char PIXEL[] = {
    'G',  'I',  'F',  '8',  '9',  'a',  0x01, 0x00, 0x01, 0x00, 0x80, 0x00, 0x00, 0x00, 0x00,
    0x00, 0xff, 0xff, 0xff, '!',  0xf9, 0x04, 0x01, 0x00, 0x00, 0x00, 0x00, ',',  0x00, 0x00,
    0x00, 0x00, 0x01, 0x00, 0x01, 0x00, 0x00, 0x02, 0x02, 0x44, 0x01, 0x00, ';',
};

// Outlives its request: the answer may go out before the acks come.
struct LinkVisiting {
    LinkEndpoint *endpoint;
    HttpRequest *http; // NULL: answered
    uint64_t until_ms; // of the loop's clock: answered then at the latest
    int acks;          // that are still to come
    bool failed;
    LinkVisiting *next, *previous;
};

bool link_is_path(Str path)
{
    return str_starts(path, CLICK_PATH) || str_starts(path, OPEN_PATH);
}

// ---- answers ----

Str link_location(Str url, Arena *arena)
{
    static const char digits[] = "0123456789ABCDEF";
    char *out = arena_alloc(arena, 3 * url.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < url.len; i++) {
        unsigned char c = (unsigned char)url.ptr[i];
        if (c < 0x80) {
            out[len++] = (char)c;
        } else {
            out[len++] = '%';
            out[len++] = digits[c >> 4];
            out[len++] = digits[c & 15];
        }
    }
    return str_of(out, len);
}

static void answer(HttpRequest *http)
{
    const MailLink *link = http->admitted;
    http_response_header(http, "Referrer-Policy", STR("no-referrer"));
    http_response_header(http, "X-Robots-Tag", STR("noindex"));
    http_response_header(http, "Cache-Control", STR("no-store, private"));
    if (link->kind == MAIL_LINK_CLICK) {
        http_response_header(http, "Location", link_location(link->url, http->arena));
        http_respond(http, 302, "text/plain; charset=utf-8", STR_EMPTY);
    } else {
        http_respond(http, 200, "image/gif", str_of(PIXEL, sizeof PIXEL));
    }
}

// An altered token, a revoked one and one that is too old are answered alike.
static bool answer_bad_link(LinkEndpoint *endpoint, HttpRequest *http)
{
    metric_add(endpoint->refused, 1);
    http_response_header(http, "Cache-Control", STR("no-store"));
    http_problem(
        http, 404, "not-found", "This link does not work", NULL,
        "it is incomplete or too old; please use the link of a newer mail");
    return false;
}

// ---- events ----

static Stentor__V1__Attempt *make_attempt(
    const MailLink *link, bool machine, int64_t at_us, Arena *arena)
{
    Stentor__V1__Attempt *attempt = arena_alloc(arena, sizeof *attempt);
    stentor__v1__attempt__init(attempt); // number 0: the link does not know the attempt
    attempt->outcome = link->kind == MAIL_LINK_CLICK ? STENTOR__V1__OUTCOME__OUTCOME_CLICKED
                                                     : STENTOR__V1__OUTCOME__OUTCOME_OPENED;
    attempt->machine = machine;
    attempt->link = link->index;
    attempt->finished_at_us = at_us;
    return attempt;
}

bool link_events(
    const MailLink *link, bool machine, int64_t at_us, Arena *arena, BusOut *ret_status,
    BusOut *ret_settle, Error *err)
{
    Status reached = link->kind == MAIL_LINK_CLICK ? STATUS_CLICKED : STATUS_OPENED;
    const char *place = arena_printf(
        arena, "%s/link/%u/%lld%s", status_name(reached), link->index,
        (long long)(at_us / 60000000), machine ? "/machine" : "");
    char *id = arena_alloc(arena, EVENT_ID_SIZE);
    event_id_derive("status", link->notification_id, str_from(place), id);
    MetaSpec head = {
        .event_id = id,
        .tenant = arena_cstr(arena, link->tenant),
        .notification_id = arena_cstr(arena, link->notification_id),
        .at_us = at_us,
    };
    Stentor__V1__Meta meta = meta_make(&head);
    StatusSpec spec = {.meta = &meta, .status = reached};
    Stentor__V1__NotificationStatus status = status_make(&spec, CHANNEL_EMAIL);
    status.attempt = make_attempt(link, machine, at_us, arena);
    if (!status_event(&status, STR_EMPTY, arena, ret_status, err)) {
        return false;
    }
    char *subject = arena_alloc(arena, SUBJECT_SIZE);
    char *settle_id = arena_alloc(arena, EVENT_ID_SIZE);
    subject_settle(subject, link->tenant);
    event_id_derive("settle", link->notification_id, str_from(place), settle_id);
    *ret_settle = (BusOut){
        .subject = subject,
        .event_id = str_from(settle_id),
        .payload = ret_status->payload,
    };
    return true;
}

// ---- waiting ----

static void arm(LinkEndpoint *endpoint);

static void leave_queue(LinkVisiting *visiting)
{
    LinkEndpoint *endpoint = visiting->endpoint;
    *(visiting->previous != NULL ? &visiting->previous->next : &endpoint->waiting) = visiting->next;
    *(visiting->next != NULL ? &visiting->next->previous : &endpoint->last_waiting) =
        visiting->previous;
    visiting->next = visiting->previous = NULL;
}

static void answer_visitor(LinkVisiting *visiting)
{
    leave_queue(visiting);
    answer(visiting->http);
    visiting->http = NULL;
}

static void on_timer_late(uv_timer_t *timer)
{
    LinkEndpoint *endpoint = timer->data;
    uint64_t now_ms = uv_now(timer->loop);
    while (endpoint->waiting != NULL && endpoint->waiting->until_ms <= now_ms) {
        metric_add(endpoint->late, 1);
        answer_visitor(endpoint->waiting);
    }
    arm(endpoint);
}

static void arm(LinkEndpoint *endpoint)
{
    if (endpoint->waiting == NULL) {
        (void)uv_timer_stop(&endpoint->timer);
        return;
    }
    uint64_t now_ms = uv_now(endpoint->timer.loop);
    uint64_t until_ms = endpoint->waiting->until_ms;
    (void)uv_timer_start(
        &endpoint->timer, on_timer_late, until_ms > now_ms ? until_ms - now_ms : 0, 0);
}

static void on_event_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate; // the same link in the same minute
    LinkVisiting *visiting = ctx;
    visiting->failed = visiting->failed || err != NULL;
    if (--visiting->acks > 0) {
        return;
    }
    LinkEndpoint *endpoint = visiting->endpoint;
    metric_add(endpoint->lost, visiting->failed ? 1 : 0);
    if (visiting->http != NULL) {
        answer_visitor(visiting);
        arm(endpoint);
    }
    endpoint->on_the_way--;
    free(visiting);
}

// ---- the endpoint ----

// Killed with one of the two stored: the status is there, and the next proof settles the send; or
// the other way round, and the visit is one that was not noticed.
static void store(LinkEndpoint *endpoint, HttpRequest *http, bool machine)
{
    BusOut status, settle;
    Error err = {0};
    if (!endpoint->ready(endpoint->ready_ctx) || endpoint->on_the_way >= LINK_VISITS_MAX ||
        !link_events(
            http->admitted, machine, http->received_at_us, http->arena, &status, &settle, &err)) {
        metric_add(endpoint->lost, 1);
        answer(http);
        return;
    }
    LinkVisiting *visiting = xcalloc(1, sizeof *visiting);
    *visiting = (LinkVisiting){
        .endpoint = endpoint,
        .http = http,
        .until_ms = uv_now(endpoint->timer.loop) + LINK_WAIT_MS,
        .acks = 2,
        .previous = endpoint->last_waiting,
    };
    *(visiting->previous != NULL ? &visiting->previous->next : &endpoint->waiting) = visiting;
    endpoint->last_waiting = visiting;
    endpoint->on_the_way++;
    arm(endpoint);
    bus_publish(endpoint->bus, &status, on_event_acked, visiting);
    bus_publish(endpoint->bus, &settle, on_event_acked, visiting);
}

static Str purpose_of(const HttpRequest *http)
{
    static const char *const names[] = {"Sec-Purpose", "Purpose", "X-Moz"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        Str value = http_header(http, names[i]);
        if (value.len > 0) {
            return value;
        }
    }
    return STR_EMPTY;
}

static bool is_machine(LinkEndpoint *endpoint, const HttpRequest *http)
{
    const MailLink *link = http->admitted;
    LinkVisit visit = {
        .method = http->method,
        .user_agent = http_header(http, "User-Agent"),
        .purpose = purpose_of(http),
        .age_us = http->received_at_us - link->issued_at_us,
    };
    bool burst = link->kind == MAIL_LINK_CLICK &&
                 link_bursts_note(
                     &endpoint->bursts, link->notification_id, link->index, http->received_at_us);
    return link_visit_is_machine(&visit, endpoint->soon_us) || burst;
}

// *ret_kind is what the path is for.
static Str token_of(Str path, MailLinkKind *ret_kind)
{
    *ret_kind = str_starts(path, CLICK_PATH) ? MAIL_LINK_CLICK : MAIL_LINK_OPEN;
    size_t from = *ret_kind == MAIL_LINK_CLICK ? CLICK_PATH.len : OPEN_PATH.len;
    Str token = str_slice(path, from, path.len);
    if (*ret_kind == MAIL_LINK_OPEN) {
        token =
            str_ends(token, PIXEL_END) ? str_slice(token, 0, token.len - PIXEL_END.len) : STR_EMPTY;
    }
    return token;
}

bool link_admit(LinkEndpoint *endpoint, HttpRequest *request)
{
    if (!str_eq(request->method, STR("GET")) && !str_eq(request->method, STR("HEAD"))) {
        http_response_header(request, "Allow", STR("GET, HEAD"));
        http_problem(request, 405, "method-not-allowed", "Method not allowed", NULL, "use GET");
        return false;
    }
    MailLink *link = arena_zalloc(request->arena, sizeof *link);
    MailLinkKind kind;
    Str token = token_of(request->path, &kind);
    if (!mail_link_open(
            &endpoint->key, token, request->received_at_us, request->arena, link, NULL) ||
        link->kind != kind) {
        return answer_bad_link(endpoint, request);
    }
    LinkOwner owner = {
        .tenant = link->tenant,
        .notification_id = link->notification_id,
        .who = str_of(link->who, sizeof link->who),
        .issued_at_us = link->issued_at_us,
    };
    if (link_is_revoked(endpoint->revoked, &owner)) {
        return answer_bad_link(endpoint, request);
    }
    http_request_known(request);
    request->body_max = 0;
    request->admitted = link;
    return true;
}

void link_handle(LinkEndpoint *endpoint, HttpRequest *request)
{
    const MailLink *link = request->admitted;
    bool machine = is_machine(endpoint, request);
    metric_add(link->kind == MAIL_LINK_CLICK ? endpoint->clicked : endpoint->opened, 1);
    metric_add(endpoint->machine, machine ? 1 : 0);
    store(endpoint, request, machine);
}

void link_endpoint_init(
    LinkEndpoint *endpoint, const MasterKey *master, Metrics *metrics, uv_loop_t *loop)
{
    mail_link_key(master, &endpoint->key);
    // clang-format off
    endpoint->clicked = metrics_counter(metrics, "stentor_webhook_receiver_link_visits_total", "kind=\"click\"", "Tracked links followed and pixels loaded, machines' too");
    endpoint->opened  = metrics_counter(metrics, "stentor_webhook_receiver_link_visits_total", "kind=\"open\"", "Tracked links followed and pixels loaded, machines' too");
    endpoint->machine = metrics_counter(metrics, "stentor_webhook_receiver_link_machines_total", "", "Of these, by scanners, proxies and previews");
    endpoint->refused = metrics_counter(metrics, "stentor_webhook_receiver_links_refused_total", "", "Tracked links that are not ours, altered, revoked or too old");
    endpoint->late    = metrics_counter(metrics, "stentor_webhook_receiver_links_late_total", "", "Visits answered before their event was stored");
    endpoint->lost    = metrics_counter(metrics, "stentor_webhook_receiver_links_lost_total", "", "Visits whose event was not stored: NATS was away, or too many were on their way");
    // clang-format on
    (void)uv_timer_init(loop, &endpoint->timer);
    endpoint->timer.data = endpoint;
}

void link_endpoint_close(LinkEndpoint *endpoint, uv_close_cb on_closed)
{
    assert(endpoint->waiting == NULL);
    uv_close((uv_handle_t *)&endpoint->timer, on_closed);
}
