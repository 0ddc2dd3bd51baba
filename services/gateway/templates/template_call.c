// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/templates/template_call.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/api/api_json.h"
#include "common/base/clock.h"
#include "common/codec/event.h"
#include "common/render/version_json.h"

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

char *template_subject(Arena *arena, Str tenant, Str key, Str version)
{
    char *token = arena_cstr(arena, version);
    for (char *c = token; *c != '\0'; c++) {
        *c = *c == '.' ? '_' : *c;
    }
    return arena_printf(
        arena, "cfg.template." STR_FMT "." STR_FMT ".%s", STR_ARG(tenant), STR_ARG(key), token);
}

bool template_call_find(TemplateCall *call, Str key, Str version)
{
    Arena *arena = call->base->http->arena;
    const Str tenants[] = {template_tenant_asked(call->base), PLATFORM};
    for (size_t i = 0; i < 2; i++) {
        CatalogVersion found;
        if (catalog_find(call->api->catalog, tenants[i], key, version, &found)) {
            call->subject = template_subject(arena, tenants[i], key, str_from(found.version));
            return true;
        }
    }
    api_answer_missing(
        call->base, arena_printf(
                        arena, "template '%.*s'%s" STR_FMT, STR_ARG(str_slice(key, 0, 64)),
                        version.len > 0 ? " version " : "", STR_ARG(str_slice(version, 0, 64))));
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

void template_call_answer_stored(TemplateCall *call, int status, Str payload, uint64_t sequence)
{
    const Stentor__V1__TemplateVersion *version = call->version;
    (void)catalog_template_changed(
        call->api->catalog, str_from(version->tenant), str_from(version->key), payload, NULL);
    json_t *answer = version_to_json(version, true);
    if (call->warning != NULL) {
        (void)json_object_set_new(answer, "warnings", json_pack("[s]", call->warning));
    }
    precondition_tag(call->base, sequence);
    api_answer_json(call->base, status, answer);
}
