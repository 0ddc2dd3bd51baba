// SPDX-License-Identifier: Apache-2.0
// GET /v1/templates/{}/diff: two versions, read from CONFIG one after the other.
#include "common/api/config_read.h"
#include "common/render/version_json.h"
#include "services/gateway/templates/template_call.h"
#include "services/gateway/templates/template_diff.h"

typedef struct DiffCall {
    TemplateCall *from, *to;
} DiffCall;

static void on_to_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    const DiffCall *diff = ctx;
    (void)sequence;
    if (!template_call_unpack(diff->to, payload, err)) {
        return;
    }
    json_t *from = version_to_json(diff->from->version, false);
    json_t *to = version_to_json(diff->to->version, false);
    json_t *changes = template_diff(from, to);
    json_t *answer = json_pack(
        "{s:s, s:O, s:O, s:O, s:b}", "key", diff->to->version->key, "channel",
        json_object_get(to, "channel"), "from", json_object_get(from, "version"), "to",
        json_object_get(to, "version"), "complete", json_array_size(changes) < DIFF_CHANGES_MAX);
    (void)json_object_set_new(answer, "changes", changes);
    json_decref(from);
    json_decref(to);
    api_answer_json(diff->to->base, 200, answer);
}

static void on_from_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    DiffCall *diff = ctx;
    (void)sequence;
    if (template_call_unpack(diff->from, payload, err)) {
        TemplateCall *to = diff->to;
        config_read(to->api->bus, to->subject, to->base->http->arena, on_to_read, diff);
    }
}

// Each names a version; `to` is the one in force when it is not said.
static TemplateCall *find(ApiCall *base, const char *name, bool must)
{
    Str version = http_query(base->http, name);
    TemplateCall *call = template_call_new(base);
    if (must && version.len == 0) {
        (void)api_refuse_field(base, name, "required: the version to compare with, such as 1.0.0");
        return NULL;
    }
    bool found = template_call_channel(call, http_query(base->http, "channel")) &&
                 template_call_find(call, base->params[0], version);
    return found ? call : NULL;
}

void templates_diff(ApiCall *base)
{
    DiffCall *diff = arena_zalloc(base->http->arena, sizeof *diff);
    diff->from = find(base, "from", true);
    diff->to = diff->from != NULL ? find(base, "to", false) : NULL;
    if (diff->to != NULL) {
        config_read(
            diff->from->api->bus, diff->from->subject, base->http->arena, on_from_read, diff);
    }
}
