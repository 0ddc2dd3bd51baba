// SPDX-License-Identifier: Apache-2.0
// In the order in which it happens: the body is read, the stored version is read from CONFIG, moved
// on, and published in the place of just that message: of two who move it at the same moment one is
// refused.
#include "services/gateway/templates/templates_life.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/api/api_json.h"
#include "common/api/config_read.h"
#include "common/api/precondition.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/render/version_json.h"
#include "common/request/semver.h"

enum { APPROVED_BY_MAX = 128 };

typedef Stentor__V1__TemplateStatus TemplateStatus;

// Lives in the request's arena.
typedef struct Move {
    ApiCall *base;
    TemplatesApi *api;
    TemplateStatus to;
    const char *approved_by; // NULL: not said
    Precondition needs;
    char *subject;
    Stentor__V1__TemplateVersion *version;
    Str packed;
} Move;

static void refuse_field(ApiCall *call, const char *field, const char *detail)
{
    FieldError error;
    (void)field_error(&error, field, "%s", detail);
    api_answer_field(call, &error);
}

static void refuse_conflict(Move *move, const char *title, const char *detail)
{
    Problem problem = {.status = 409, .slug = "version-status", .title = title};
    (void)snprintf(problem.detail, sizeof problem.detail, "%.*s", APPROVED_BY_MAX, detail);
    api_answer_problem(move->base, &problem);
}

static void refuse_missing(Move *move)
{
    Str key = str_slice(move->base->params[0], 0, 64);
    Str version = str_slice(move->base->params[1], 0, 64);
    Arena *arena = move->base->http->arena;
    api_answer_missing(
        move->base, arena_printf(
                        arena, "template '" STR_FMT "' version " STR_FMT " of your own",
                        STR_ARG(key), STR_ARG(version)));
}

// ---- the body: none, or {"approved_by": "..."} ----

// false: answered.
static bool read_fields(Move *move, const json_t *body)
{
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)body, name, value)
    {
        bool known = str_eq(str_from(name), STR("approved_by"));
        if (!known || !json_is_string(value) || json_string_length(value) > APPROVED_BY_MAX) {
            refuse_field(
                move->base, known ? name : "body",
                known ? "expected a text of at most 128 bytes"
                      : "unknown field; there is only: approved_by");
            return false;
        }
        move->approved_by = arena_cstr(move->base->http->arena, str_from(json_string_value(value)));
    }
    return true;
}

// false: answered.
static bool read_body(Move *move)
{
    Str text = move->base->http->body;
    if (text.len == 0) {
        return true;
    }
    json_error_t where;
    json_t *body = api_json_load(text, JSON_REJECT_DUPLICATES, &where);
    bool object = json_is_object(body);
    if (!object) {
        Problem problem = {.status = 400, .slug = "invalid-body"};
        problem.title = "The body is not a JSON object";
        api_answer_problem(move->base, &problem);
    }
    bool ok = object && read_fields(move, body);
    json_decref(body);
    return ok;
}

// ---- the stored version ----

static void on_published(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    Move *move = ctx;
    (void)duplicate;
    if (err != NULL && err->kind == ERROR_CONFLICT && precondition_is_given(&move->needs)) {
        precondition_answer_failed(move->base, sequence);
        return;
    }
    if (err != NULL && err->kind == ERROR_CONFLICT) {
        refuse_conflict(move, "The version was changed by another at this moment", "read it again");
        return;
    }
    if (err != NULL) {
        api_answer_failure(move->base, err);
        return;
    }
    precondition_tag(move->base, sequence);
    templates_note(move->api, move->version, move->packed);
    json_t *json = version_to_json(move->version, true);
    char *text = json_dumps(json, JSON_COMPACT);
    http_respond(move->base->http, 200, "application/json", str_from(text != NULL ? text : "{}"));
    free(text);
    json_decref(json);
}

// false: answered.
static bool advance(Move *move)
{
    Stentor__V1__TemplateVersion *version = move->version;
    Error err = {0};
    if (move->approved_by != NULL) {
        version->approved_by = arena_cstr(move->base->http->arena, str_from(move->approved_by));
    }
    if (!version_may_become(version, move->to, &err)) {
        if ((int)move->to <= (int)version->status) {
            refuse_conflict(move, "The version is past that", err.text);
        } else {
            refuse_field(move->base, "approved_by", err.text);
        }
        return false;
    }
    version->status = move->to;
    bool active = move->to == STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE;
    if (active && !version_check(version, &err)) {
        refuse_field(move->base, "locales", err.text);
        return false;
    }
    return true;
}

static bool publish(Move *move, uint64_t replaces, Error *err)
{
    Arena *arena = move->base->http->arena;
    if (!event_pack(&move->version->base, arena, &move->packed, err)) {
        return false;
    }
    char *id = arena_alloc(arena, EVENT_ID_SIZE);
    event_id_derive(
        "config", str_from(move->subject),
        str_from(arena_printf(arena, "%" PRIi64, clock_now_us())), id);
    const BusHeader expected = bus_replaces(replaces, arena);
    BusOut out = {
        .subject = move->subject,
        .event_id = str_from(id),
        .payload = move->packed,
        .headers = &expected,
        .header_count = 1,
    };
    bus_publish(move->api->bus, &out, on_published, move);
    return true;
}

static void on_version_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    Move *move = ctx;
    Error own = {0};
    if (err != NULL) {
        api_answer_failure(move->base, err);
        return;
    }
    if (payload.len == 0) {
        refuse_missing(move);
        return;
    }
    if (!precondition_holds(&move->needs, sequence)) {
        precondition_answer_failed(move->base, sequence);
        return;
    }
    move->version = (Stentor__V1__TemplateVersion *)event_unpack(
        &stentor__v1__template_version__descriptor, payload, move->base->http->arena, &own);
    if (move->version == NULL || (advance(move) && !publish(move, sequence, &own))) {
        api_answer_failure(move->base, &own);
    }
}

// ---- the calls ----

static void begin(ApiCall *base, TemplateStatus to)
{
    Arena *arena = base->http->arena;
    TemplatesApi *api = base->ctx;
    Move *move = arena_zalloc(arena, sizeof *move);
    move->base = base;
    move->api = api;
    move->to = to;
    if (!id_is_key(base->params[0]) || !semver_is(base->params[1])) {
        refuse_missing(move); // and nothing of the path gets into a subject
        return;
    }
    if (!precondition_read(base, &move->needs) || !read_body(move)) {
        return;
    }
    move->subject =
        templates_subject(arena, str_from(base->tenant), base->params[0], base->params[1]);
    config_read(move->api->bus, move->subject, arena, on_version_read, move);
}

static void post_activate(ApiCall *base)
{
    begin(base, STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE);
}

static void post_archive(ApiCall *base)
{
    begin(base, STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ARCHIVED);
}

static const ApiRoute ROUTES[] = {
    {"POST", "/v1/templates/{}/{}/activate", SCOPE_TEMPLATES_ACTIVATE, post_activate, NULL},
    {"POST", "/v1/templates/{}/{}/archive", SCOPE_TEMPLATES_ACTIVATE, post_archive, NULL},
};

void templates_life_add(Api *api, TemplatesApi *templates)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], templates);
}
