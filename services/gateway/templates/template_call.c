// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/templates/template_call.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/api/api_json.h"
#include "common/base/clock.h"
#include "common/codec/event.h"
#include "common/model/template_key.h"
#include "common/render/version_json.h"

#define SUBJECTS "cfg.template."

TemplateCall *template_call_new(ApiCall *base)
{
    TemplateCall *call = arena_zalloc(base->http->arena, sizeof *call);
    call->base = base;
    call->api = base->ctx;
    return call;
}

static void free_body(void *body)
{
    json_decref(body);
}

bool template_call_read_body(TemplateCall *call)
{
    ApiBody body = {0};
    Arena *arena = call->base->http->arena;
    bool ok = api_body_parse(&body, call->base->http->body, arena);
    if (ok) {
        call->body = body.root;
        arena_own(arena, free_body, call->body);
    } else {
        api_answer_problem(call->base, &body.problem);
    }
    return ok;
}

bool template_call_fail(TemplateCall *call, const char *field, const char *format, ...)
{
    char detail[sizeof call->problem.detail];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    problem_add(&call->problem, call->base->http->arena, field, detail);
    return false;
}

bool template_call_good(TemplateCall *call)
{
    if (call->problem.status == 0) {
        return true;
    }
    api_answer_problem(call->base, &call->problem);
    return false;
}

bool template_call_read_version(TemplateCall *call, const json_t *document)
{
    FieldFaults faults;
    Arena *arena = call->base->http->arena;
    call->version = arena_alloc(arena, sizeof *call->version);
    bool ok = version_from_json(document, arena, call->version, &faults);
    for (size_t i = 0; i < faults.count; i++) {
        (void)template_call_fail(call, faults.items[i].field, "%s", faults.items[i].detail);
    }
    call->version->tenant = call->base->tenant;
    call->version->published_at_us = clock_now_us();
    // The name in the body is the caller's own claim; the key is checked.
    const char *by = call->version->published_by;
    Str key_id = call->base->key_id;
    call->version->published_by =
        by[0] == '\0' ? arena_cstr(arena, key_id)
                      : arena_printf(arena, "%s (key " STR_FMT ")", by, STR_ARG(key_id));
    return ok;
}

Str template_tenant_asked(const ApiCall *call)
{
    bool shared = str_eq(http_query(call->http, "platform"), STR("true"));
    return shared ? PLATFORM : str_from(call->tenant);
}

const char *template_subject(
    Arena *arena, Str tenant, CatalogName name, Str version, const CatalogVersion *there)
{
    char key[TEMPLATE_KEY_SIZE];
    bool unplaced = there != NULL && there->unplaced; // it stays where it is
    Str whole = template_key_write(key, name.key, unplaced ? CHANNEL_NONE : name.channel, version);
    return arena_printf(arena, SUBJECTS STR_FMT "." STR_FMT, STR_ARG(tenant), STR_ARG(whole));
}

bool template_call_channel(TemplateCall *call, Str name)
{
    if (name.len == 0 || channel_from_name(name, &call->channel)) {
        return true;
    }
    api_answer_parameter(call->base, "channel", "not a channel: " CHANNEL_NAMES);
    return false;
}

bool template_call_choose(TemplateCall *call, Str tenant, Str key, CatalogName *ret)
{
    ChannelSet channels = catalog_channels(call->api->catalog, tenant, key);
    bool several = (channels & (channels - 1)) != 0;
    if (call->channel == CHANNEL_NONE && several) {
        char names[CHANNEL_SET_TEXT_SIZE];
        channel_set_text(channels, names);
        api_answer_parameter(
            call->base, "channel", "the template is there for %s: say which", names);
        return false;
    }
    *ret = (CatalogName){.key = key, .channel = call->channel};
    for (int c = CHANNEL_EMAIL; ret->channel == CHANNEL_NONE && c < CHANNEL_COUNT; c++) {
        ret->channel = channel_set_has(channels, (Channel)c) ? (Channel)c : CHANNEL_NONE;
    }
    return true;
}

bool template_call_find(TemplateCall *call, Str key, Str version)
{
    Arena *arena = call->base->http->arena;
    const Str tenants[] = {template_tenant_asked(call->base), PLATFORM};
    for (size_t i = 0; i < 2; i++) {
        CatalogName name;
        CatalogVersion found;
        if (!template_call_choose(call, tenants[i], key, &name)) {
            return false;
        }
        if (catalog_find(call->api->catalog, tenants[i], name, version, &found)) {
            call->subject =
                template_subject(arena, tenants[i], name, str_from(found.version), &found);
            return true;
        }
    }
    api_answer_missing(
        call->base, arena_printf(
                        arena, "template '%.*s'%s" STR_FMT "%s%s", STR_ARG(str_slice(key, 0, 64)),
                        version.len > 0 ? " version " : "", STR_ARG(str_slice(version, 0, 64)),
                        call->channel != CHANNEL_NONE ? " for " : "", channel_name(call->channel)));
    return false;
}

bool template_call_unpack(TemplateCall *call, Str payload, const Error *err)
{
    Error own = {0};
    if (err == NULL && payload.len > 0) {
        call->version = (Stentor__V1__TemplateVersion *)event_unpack(
            &stentor__v1__template_version__descriptor, payload, call->base->http->arena, &own);
        call->packed = payload;
    }
    if (call->version != NULL) {
        return true;
    }
    if (err != NULL || own.kind != ERROR_NONE) {
        api_answer_failure(call->base, err != NULL ? err : &own);
    } else {
        api_answer_missing(call->base, "template version, which was removed");
    }
    return false;
}

void template_call_store(TemplateCall *call, uint64_t replaces, ConfigWritten done)
{
    config_write(
        &(ConfigWrite){
            .bus = call->api->bus,
            .arena = call->base->http->arena,
            .subject = call->subject,
            .message = &call->version->base,
            .replaces = replaces,
        },
        done, call);
}

// Of a version that requests get, or may get later.
static void add_warnings(const TemplateCall *call, Str payload, json_t *answer)
{
    const Stentor__V1__TemplateVersion *version = call->version;
    json_t *warnings = json_array();
    char no_vendor[CHANNEL_WARNING_SIZE];
    if (call->warning != NULL) {
        (void)json_array_append_new(warnings, json_string(call->warning));
    }
    if (version->status != STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ARCHIVED &&
        channel_set_warn(
            routes_channels(call->api->routes, str_from(call->base->tenant), call->api->delivered),
            template_channel((int)version->channel), no_vendor)) {
        (void)json_array_append_new(warnings, json_string(no_vendor));
    }
    template_asset_warnings(call, payload, warnings);
    if (json_array_size(warnings) > 0) {
        (void)json_object_set(answer, "warnings", warnings);
    }
    json_decref(warnings);
}

void template_call_answer_stored(TemplateCall *call, int status, Str payload, uint64_t sequence)
{
    const Stentor__V1__TemplateVersion *version = call->version;
    Str tenant = str_from(version->tenant);
    Str place = str_from(call->subject + strlen(SUBJECTS) + tenant.len + 1);
    (void)catalog_template_changed(call->api->catalog, tenant, place, payload, NULL);
    json_t *answer = version_to_json(version, true);
    add_warnings(call, payload, answer);
    precondition_tag(call->base, sequence);
    api_answer_json(call->base, status, answer);
}
