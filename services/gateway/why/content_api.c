// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/why/content_api.h"

#include <inttypes.h>
#include <string.h>

#include "common/api/config_read.h"
#include "common/base/clock.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/content/content_parts.h"
#include "common/content/text_search.h"
#include "common/model/template_key.h"
#include "services/gateway/notifications/notification_read.h"
#include "services/gateway/why/content_view.h"

enum {
    LOOKED_MAX = 1000000,
    PLACES = 4, // of a version: the tenant's, the platform's, each with its channel or as before
                // 2026-11-23
    GROUND_MAX = 500,
};
// An event is stored at once; clocks of NATS and of the renderer differ by less.
static const int64_t slack_us = INT64_C(60) * 1000000;

// One call on its way; lives in the request's arena.
typedef struct Call {
    ApiCall *base;
    const ContentApi *api;
    const NotificationRead *read;
    Arena *arena;
    Priority lane;
    bool cut;                           // what was looked through is not all that there was
    const Stentor__V1__Rendered *event; // NULL: not found (yet)
    uint64_t sequence;
    const char *stream;
    char filter[SUBJECT_SIZE];
    size_t place; // of the template version that is asked for
    char subject[SUBJECT_SIZE];
    BodyPrefix *prefix;
    KeyWant wants[2];
    ContentOpened opened;
} Call;

// ---- noted, then shown ----

static void on_noted(void *ctx, const Error *err, const AuditHead *head)
{
    (void)head;
    const Call *call = ctx;
    if (err != NULL) {
        api_answer_failure(call->base, err);
        return;
    }
    Buf out;
    buf_init(&out, CONTENT_JSON_MAX);
    content_print(&out, call->event, &call->opened, str_from(status_name(call->read->row.status)));
    http_response_header(call->base->http, "Cache-Control", STR("no-store"));
    http_respond(call->base->http, 200, "application/json", buf_view(&out));
    buf_done(&out);
}

static void note(Call *call)
{
    char checksum[2 * SHA256_LEN + 1];
    Arena *arena = call->arena;
    ApiCall *base = call->base;
    hex_encode(
        call->event->content_checksum.data,
        call->event->content_checksum.len < SHA256_LEN ? call->event->content_checksum.len
                                                       : SHA256_LEN,
        checksum);
    const AuditDetail details[] = {
        {"stream", call->stream},
        {"sequence", arena_printf(arena, "%" PRIu64, call->sequence)},
        {"content_checksum", checksum},
    };
    const char *id = arena_cstr(arena, call->read->id);
    const AuditNote entry = {
        .kind = AUDIT_READ,
        .tenant = base->tenant,
        .action = "content.shown",
        .actor = base->actor,
        .target = id,
        .notification_id = id,
        .ground = arena_cstr(arena, http_query(base->http, "ground")),
        .request_id = base->http->id,
        .program = "stentor-gateway",
        .details = details,
        .detail_count = sizeof details / sizeof *details,
        .at_us = base->http->received_at_us,
    };
    audit_log_append(call->api->audit, &entry, on_noted, call);
}

// ---- opened ----

static void answer_sealed(const Call *call)
{
    http_problem(
        call->base->http, 410, "content-sealed", "The content cannot be opened any more", NULL,
        "its recipient was erased or is restricted, so it stays sealed");
}

// The keys last until the loop turns, so all is opened here.
static void on_keys(void *ctx, const Error *err)
{
    Call *call = ctx;
    Error bad = {0};
    const ContentParts parts = {call->event, call->wants[0].key, call->wants[1].key, call->prefix};
    bool opened = err == NULL && parts.content_key != NULL &&
                  content_parts_open(&parts, call->arena, &call->opened, &bad);
    body_prefix_free(call->prefix);
    call->prefix = NULL;
    if (opened) {
        note(call);
    } else if (err == NULL && parts.content_key == NULL) {
        answer_sealed(call);
    } else {
        api_answer_failure(call->base, err != NULL ? err : &bad);
    }
}

static void resolve_keys(Call *call)
{
    Error err = {0};
    if (!content_parts_wants(call->event, call->wants, &err)) {
        body_prefix_free(call->prefix);
        api_answer_failure(call->base, &err);
        return;
    }
    keyring_resolve(call->api->keyring, call->wants, 2, on_keys, call);
}

// ---- the template version that it was compressed against ----

static void ask_version(Call *call);

static void on_version(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    (void)sequence;
    Call *call = ctx;
    if (err != NULL) {
        api_answer_failure(call->base, err);
        return;
    }
    Error ignored;
    const Stentor__V1__TemplateVersion *version =
        payload.len == 0
            ? NULL
            : (const void *)event_unpack(
                  &stentor__v1__template_version__descriptor, payload, call->arena, &ignored);
    call->prefix = version == NULL ? NULL : content_parts_prefix(call->event, version);
    if (call->prefix != NULL) {
        resolve_keys(call);
    } else {
        call->place++;
        ask_version(call);
    }
}

static void ask_version(Call *call)
{
    char key[TEMPLATE_KEY_SIZE];
    const Stentor__V1__Rendered *event = call->event;
    Channel channel = call->place % 2 == 0 ? (Channel)event->channel : CHANNEL_NONE;
    Str owner = call->place < 2 ? str_from(call->base->tenant) : STR("platform");
    Str name = template_key_write(
        key, str_from(event->template_), channel, str_from(event->template_version));
    if (call->place >= PLACES || name.len == 0) {
        http_problem(
            call->base->http, 410, "content-sealed", "The content cannot be opened any more", NULL,
            "version '%s' of template '%s', which it was made of, is not there any more",
            event->template_version, event->template_);
        return;
    }
    subject_config(call->subject, "template", owner, name);
    config_read(call->api->scans->bus, call->subject, call->arena, on_version, call);
}

// ---- found ----

static bool on_rendered(void *ctx, const BusMessage *message)
{
    Call *call = ctx;
    if (!text_search(message->payload, call->read->id)) {
        return true; // most: they are not read further
    }
    Error ignored;
    Str payload = arena_str(call->arena, message->payload);
    const Stentor__V1__Rendered *event = (const void *)event_unpack(
        &stentor__v1__rendered__descriptor, payload, call->arena, &ignored);
    if (event == NULL || event->meta == NULL ||
        !str_eq(str_from(event->meta->notification_id), call->read->id) ||
        strcmp(event->meta->tenant, call->base->tenant) != 0) {
        return true;
    }
    call->event = event;
    call->sequence = message->sequence;
    return false;
}

static void answer_none(const Call *call)
{
    if (call->cut) {
        api_answer_unavailable(
            call->base, "the content was not found in time, or NATS cannot be reached; 'stentor "
                        "content' looks for longer");
        return;
    }
    http_problem(
        call->base->http, 404, "no-content", "There is no content of it", NULL,
        "notification '" STR_FMT "' was not rendered, or its content is past the age of its "
        "stream; an operator may find it in the archive with 'stentor content'",
        STR_ARG(call->read->id));
}

static void search_lane(Call *call);

static void on_searched(void *ctx, bool whole)
{
    Call *call = ctx;
    call->cut = call->cut || !whole;
    if (call->event == NULL) {
        call->lane++;
        search_lane(call);
    } else if (call->event->content_prefix_id == 0) {
        resolve_keys(call);
    } else {
        ask_version(call);
    }
}

// In its priority's lane, and in the lower ones, where a tenant's flood goes on.
static void search_lane(Call *call)
{
    int64_t rendered_us = call->read->row.at_us[FOLD_RENDERED];
    if (rendered_us == 0 || call->lane == PRIORITY_NONE || call->lane >= PRIORITY_COUNT) {
        answer_none(call);
        return;
    }
    call->stream = topology_lane_stream("RENDERED", call->lane);
    subject_rendered(call->filter, call->lane, str_from(call->base->tenant));
    stream_scan(
        call->api->scans, &(StreamScanQuery){
                              .stream = call->stream,
                              .filter = call->filter,
                              .from_us = rendered_us - slack_us,
                              .to_us = rendered_us + slack_us,
                              .at_most = LOOKED_MAX,
                              .each = on_rendered,
                              .done = on_searched,
                              .ctx = call,
                          });
}

static void on_read(void *ctx, NotificationRead *read)
{
    Call *call = ctx;
    call->read = read;
    (void)priority_from_name(read->row.text[FOLD_PRIORITY], &call->lane);
    search_lane(call);
}

static void get_content(ApiCall *base)
{
    const ContentApi *api = base->ctx;
    Str ground = http_query(base->http, "ground");
    if (ground.len > GROUND_MAX || str_has_control(ground) || str_find(ground, '@') >= 0) {
        api_answer_parameter(
            base, "ground", "one line of up to %d bytes without an address: why it is read",
            GROUND_MAX);
        return;
    }
    Call *call = arena_zalloc(base->http->arena, sizeof *call);
    *call = (Call){.base = base, .api = api, .arena = base->http->arena};
    notification_read(base, &api->pools, on_read, call);
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/notifications/{}/content", SCOPE_CONTENT_REVEAL, get_content, "ground", false},
};

void content_api_add(Api *api, ContentApi *content)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], content);
}
