// SPDX-License-Identifier: Apache-2.0
// POST /v1/templates/preview, of a stored version or of a source in the body. In the order in which
// it happens: the body, the stored version's content, the tenant's settings, the answer.
#include <string.h>

#include "common/api/config_read.h"
#include "common/base/clock.h"
#include "common/codec/event.h"
#include "common/render/preview.h"
#include "common/render/version_json.h"
#include "services/gateway/templates/template_call.h"

static void answer_preview(TemplateCall *call, const Stentor__V1__Tenant *tenant)
{
    CompiledVersion *version = version_compile(call->packed);
    AssetLookup lookup = template_asset_lookup(call);
    TemplateAssets assets = {.find = asset_find_address, .ctx = &lookup};
    PreviewAsk ask = {
        .assets = &assets,
        .locale = call->locale,
        .data = json_object_get(call->body, "data"),
        .tenant = tenant,
        .cpu_us = clock_thread_cpu_us,
        .cpu_max_us = call->api->preview_cpu_us,
    };
    json_t *answer = NULL;
    RenderFailure failure = {.code = FAILURE_NONE};
    if (version->broken.kind != ERROR_NONE) {
        (void)api_refuse_field(call->base, "source.locales", "%s", version->broken.text);
    } else if (!preview(version, &ask, &answer, &failure)) {
        (void)api_refuse_field(call->base, "data", "%s", failure.reason);
    } else {
        (void)json_object_set_new(answer, "template", json_string(call->version->key));
        (void)json_object_set_new(answer, "version", json_string(call->version->version));
        api_answer_json(call->base, 200, answer);
    }
    version_free(version);
}

static void on_tenant_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    TemplateCall *call = ctx;
    (void)sequence;
    if (err != NULL) {
        api_answer_failure(call->base, err);
        return;
    }
    const Stentor__V1__Tenant *tenant =
        payload.len == 0
            ? NULL
            : (const Stentor__V1__Tenant *)event_unpack(
                  &stentor__v1__tenant__descriptor, payload, call->base->http->arena, NULL);
    answer_preview(call, tenant);
}

static void read_tenant(TemplateCall *call)
{
    Arena *arena = call->base->http->arena;
    const char *subject = arena_printf(arena, "cfg.tenant.%s.self", call->base->tenant);
    config_read(call->api->bus, subject, arena, on_tenant_read, call);
}

static void on_words_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    TemplateCall *call = ctx;
    (void)sequence;
    if (template_call_unpack(call, payload, err)) {
        read_tenant(call);
    }
}

// ---- the body ----

// Fields of the body that must be texts, and no others; data as small as a notification's
// variables.
static void check_body(TemplateCall *call)
{
    static const char *const texts[] = {"template", "version", "locale", "channel"};
    const char *name = NULL;
    json_t *value = NULL;
    Error err = {0};
    json_object_foreach(call->body, name, value)
    {
        bool text = false;
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            text = text || strcmp(name, texts[i]) == 0;
        }
        bool object = strcmp(name, "data") == 0 || strcmp(name, "source") == 0;
        bool fits = text     ? json_is_string(value) && json_string_length(value) <= 64
                    : object ? json_is_object(value)
                             : false;
        if (!fits) {
            (void)template_call_fail(
                call, name, "%s",
                text     ? "must be a string of at most 64 bytes"
                : object ? "must be an object"
                         : "unknown field; known are: template version source data locale channel");
        }
    }
    if (!preview_data_fits(json_object_get(call->body, "data"), &err)) {
        (void)template_call_fail(call, "data", "%s", err.text);
    }
}

static Str text_of(const json_t *body, const char *name)
{
    return str_from(json_string_value(json_object_get(body, name)));
}

// The source may leave out its channel; then `channel` of the body counts.
static void take_inline(TemplateCall *call, json_t *source)
{
    Error err = {0};
    Str channel = text_of(call->body, "channel");
    if (channel.len > 0 && json_object_get(source, "channel") == NULL) {
        (void)json_object_set_new(source, "channel", json_stringn(channel.ptr, channel.len));
    }
    if (template_call_read_version(call, source) &&
        !event_pack(&call->version->base, call->base->http->arena, &call->packed, &err)) {
        (void)template_call_fail(call, "source", "%s", err.text);
    }
}

void templates_preview(ApiCall *base)
{
    TemplateCall *call = template_call_new(base);
    if (!template_call_read_body(call)) {
        return;
    }
    check_body(call);
    json_t *source = json_object_get(call->body, "source");
    Str key = text_of(call->body, "template");
    call->locale = arena_str(base->http->arena, text_of(call->body, "locale"));
    if ((source == NULL) == (key.len == 0)) {
        (void)template_call_fail(
            call, "template", "required: either 'template' (its key) or 'source'");
    } else if (json_is_object(source)) {
        take_inline(call, source);
    }
    if (!template_call_good(call)) {
        return;
    }
    if (source != NULL) {
        read_tenant(call);
    } else if (
        template_call_channel(call, text_of(call->body, "channel")) &&
        template_call_find(call, key, text_of(call->body, "version"))) {
        config_read(call->api->bus, call->subject, base->http->arena, on_words_read, call);
    }
}
