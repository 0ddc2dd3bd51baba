// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/templates/templates_api.h"

#include "common/api/config_read.h"
#include "common/api/page.h"
#include "common/base/clock.h"
#include "common/model/template_key.h"
#include "common/render/version_json.h"
#include "services/gateway/templates/template_call.h"

static json_t *version_line(Str tenant, Str key, const CatalogVersion *version)
{
    char at[CLOCK_RFC3339_SIZE];
    clock_format(version->published_at_us, at);
    json_t *line = json_pack(
        "{s:s%,s:s%,s:s,s:s,s:s,s:s,s:I,s:s,s:s,s:s,s:s,s:s}", "tenant", tenant.ptr, tenant.len,
        "key", key.ptr, key.len, "version", version->version, "status",
        version_status_name(version->status), "channel", channel_name(version->channel), "category",
        category_name(version->category), "locales", (json_int_t)version->locales, "published_at",
        at, "published_by", version->published_by, "approved_by", version->approved_by, "source",
        version->source, "provenance", version->provenance);
    if (version->default_priority != PRIORITY_NONE) {
        (void)json_object_set_new(
            line, "default_priority", json_string(priority_name(version->default_priority)));
    }
    if (version->deprecated_at_us > 0) {
        clock_format(version->deprecated_at_us, at);
        (void)json_object_set_new(line, "deprecated_at", json_string(at));
    }
    if (version->supersedes[0] != '\0') {
        (void)json_object_set_new(line, "supersedes", json_string(version->supersedes));
    }
    return line;
}

// "welcome.sms"; a cursor of an earlier release has the key alone.
static CatalogName read_position(Str after)
{
    Str channel = after;
    CatalogName name = {.channel = CHANNEL_NONE};
    (void)str_split(&channel, '.', &name.key);
    if (after.len > 0 && !channel_from_name(channel, &name.channel)) {
        name.channel = CHANNEL_COUNT;
    }
    return name;
}

static Str write_position(CatalogName name, Arena *arena)
{
    return str_from(
        arena_printf(arena, STR_FMT ".%s", STR_ARG(name.key), channel_name(name.channel)));
}

static void get_templates(ApiCall *base)
{
    const TemplatesApi *api = base->ctx;
    Arena *arena = base->http->arena;
    Str tenant = template_tenant_asked(base);
    Page page;
    TemplateCall *call = template_call_new(base);
    if (!template_call_channel(call, http_query(base->http, "channel")) ||
        !page_read(base, PAGE_LIMIT, PAGE_LIMIT_MAX, &page)) {
        return;
    }
    CatalogName *names = arena_array(arena, page.limit + 1, sizeof *names);
    size_t found = catalog_names(
        api->catalog, tenant, read_position(page.after), call->channel, page.limit + 1, arena,
        names);
    size_t shown = found > page.limit ? page.limit : found;
    json_t *list = json_array();
    for (size_t i = 0; i < shown; i++) {
        CatalogVersion version; // not there: none is in force
        if (catalog_find(api->catalog, tenant, names[i], STR_EMPTY, &version)) {
            (void)json_array_append_new(list, version_line(tenant, names[i].key, &version));
        }
    }
    page_answer(base, list, found > shown ? write_position(names[shown - 1], arena) : STR_EMPTY);
}

static void on_words_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    TemplateCall *call = ctx;
    if (!template_call_unpack(call, payload, err)) {
        return;
    }
    Str tenant = str_from(call->version->tenant);
    CatalogName name = {
        str_from(call->version->key), template_channel((int)call->version->channel)};
    CatalogVersion *versions = NULL;
    json_t *answer = version_to_json(call->version, false);
    json_t *list = json_array();
    size_t count =
        catalog_versions(call->api->catalog, tenant, name, call->base->http->arena, &versions);
    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(list, version_line(tenant, name.key, &versions[i]));
    }
    (void)json_object_set_new(answer, "versions", list);
    precondition_tag(call->base, sequence);
    api_answer_json(call->base, 200, answer);
}

static void get_template(ApiCall *base)
{
    TemplateCall *call = template_call_new(base);
    if (template_call_channel(call, http_query(base->http, "channel")) &&
        template_call_find(call, base->params[0], http_query(base->http, "version"))) {
        config_read(call->api->bus, call->subject, base->http->arena, on_words_read, call);
    }
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/templates", SCOPE_TEMPLATES_READ, get_templates, "limit cursor platform channel",
     false},
    {"POST", "/v1/templates", SCOPE_TEMPLATES_WRITE, templates_publish, NULL, true},
    {"POST", "/v1/templates/preview", SCOPE_TEMPLATES_READ, templates_preview, "platform", false},
    {"GET", "/v1/templates/{}", SCOPE_TEMPLATES_READ, get_template, "version platform channel",
     false},
    {"GET", "/v1/templates/{}/diff", SCOPE_TEMPLATES_READ, templates_diff,
     "from to platform channel", false},
    {"POST", "/v1/templates/{}/{}/test-send", SCOPE_TEMPLATES_WRITE, templates_test_send, "channel",
     false},
    {"POST", "/v1/templates/{}/{}/activate", SCOPE_TEMPLATES_ACTIVATE, templates_move, "channel",
     true},
    {"POST", "/v1/templates/{}/{}/deprecate", SCOPE_TEMPLATES_ACTIVATE, templates_move, "channel",
     true},
    {"POST", "/v1/templates/{}/{}/archive", SCOPE_TEMPLATES_ACTIVATE, templates_move, "channel",
     true},
};

void templates_api_add(Api *api, TemplatesApi *templates)
{
    templates->keys = event_keys_new(templates->master);
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], templates);
}

void templates_api_done(TemplatesApi *templates)
{
    event_keys_free(templates->keys);
}
