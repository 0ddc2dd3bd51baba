// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/templates/templates_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/api/api_json.h"
#include "common/api/config_read.h"
#include "common/api/page.h"
#include "common/api/precondition.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/render/preview.h"
#include "common/render/version_json.h"
#include "common/request/semver.h"

#define PLATFORM STR("platform")

// One call on its way to its answer; lives in the request's arena.
typedef struct TemplateCall {
    ApiCall *base;
    TemplatesApi *api;
    json_t *body;                          // the arena's: answers quote it; NULL: none
    Stentor__V1__TemplateVersion *version; // what is published or previewed
    const char *subject;                   // where a stored version's words are; NULL: given inline
    Str locale;
    Str packed;
    Precondition needs;
} TemplateCall;

// ---- answers ----

static void answer_json(ApiCall *call, int status, json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT);
    http_respond(call->http, status, "application/json", str_from(text != NULL ? text : "{}"));
    free(text);
    json_decref(json);
}

static void refuse_field(ApiCall *call, const char *field, const char *detail)
{
    FieldError error;
    (void)field_error(&error, field, "%s", detail);
    api_answer_field(call, &error);
}

static TemplateCall *begin(ApiCall *base)
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

// false: answered.
static bool read_body(TemplateCall *call)
{
    json_error_t where;
    Str text = call->base->http->body;
    call->body = api_json_load(text, JSON_REJECT_DUPLICATES, &where);
    arena_own(call->base->http->arena, free_body, call->body);
    if (json_is_object(call->body)) {
        return true;
    }
    Problem problem = {.status = 400};
    problem.slug = call->body == NULL ? "malformed-json" : "invalid-body";
    problem.title =
        call->body == NULL ? "The body is not valid JSON" : "The body is not a JSON object";
    if (call->body == NULL) {
        (void)snprintf(
            problem.detail, sizeof problem.detail, "line %d, column %d: %.120s", where.line,
            where.column, where.text);
    }
    api_answer_problem(call->base, &problem);
    return false;
}

// ---- lists ----

static json_t *version_line(Str tenant, Str key, const CatalogVersion *version)
{
    char at[CLOCK_RFC3339_SIZE];
    Channel channel = version->channel == CHANNEL_NONE ? CHANNEL_EMAIL : version->channel;
    clock_format(version->published_at_us, at);
    return json_pack(
        "{s:s%,s:s%,s:s,s:s,s:s,s:s,s:I,s:s,s:s,s:s,s:s,s:s}", "tenant", tenant.ptr, tenant.len,
        "key", key.ptr, key.len, "version", version->version, "status",
        version_status_name(version->status), "channel", channel_name(channel), "category",
        category_name(version->category), "locales", (json_int_t)version->locales, "published_at",
        at, "published_by", version->published_by, "approved_by", version->approved_by, "source",
        version->source, "provenance", version->provenance);
}

static Str tenant_asked(const ApiCall *call)
{
    bool shared = str_eq(http_query(call->http, "platform"), STR("true"));
    return shared ? PLATFORM : str_from(call->tenant);
}

static json_t *template_line(const Catalog *catalog, Str tenant, Str key)
{
    CatalogVersion version;
    if (!catalog_find(catalog, tenant, key, STR_EMPTY, &version)) {
        return NULL; // without a version in force
    }
    return version_line(tenant, key, &version);
}

static void get_templates(ApiCall *base)
{
    const TemplatesApi *api = base->ctx;
    Arena *arena = base->http->arena;
    Str tenant = tenant_asked(base);
    Page page;
    if (!page_read(base, PAGE_LIMIT, PAGE_LIMIT_MAX, &page)) {
        return;
    }
    Str *keys = arena_array(arena, page.limit + 1, sizeof *keys);
    size_t found = catalog_keys(api->catalog, tenant, page.after, page.limit + 1, arena, keys);
    size_t shown = found > page.limit ? page.limit : found;
    json_t *list = json_array();
    for (size_t i = 0; i < shown; i++) {
        json_t *line = template_line(api->catalog, tenant, keys[i]);
        if (line != NULL) {
            (void)json_array_append_new(list, line);
        }
    }
    page_answer(base, list, found > shown ? keys[shown - 1] : STR_EMPTY);
}

// ---- stored words ----

char *templates_subject(Arena *arena, Str tenant, Str key, Str version)
{
    char *token = arena_cstr(arena, version);
    for (char *c = token; *c != '\0'; c++) {
        *c = *c == '.' ? '_' : *c;
    }
    return arena_printf(
        arena, "cfg.template." STR_FMT "." STR_FMT ".%s", STR_ARG(tenant), STR_ARG(key), token);
}

// The tenant's own, else the platform's. false: answered.
static bool find_stored(TemplateCall *call, Str key, Str version)
{
    const Catalog *catalog = call->api->catalog;
    Arena *arena = call->base->http->arena;
    const Str tenants[] = {tenant_asked(call->base), PLATFORM};
    for (size_t i = 0; i < 2; i++) {
        CatalogVersion found;
        if (catalog_find(catalog, tenants[i], key, version, &found)) {
            call->subject = templates_subject(arena, tenants[i], key, str_from(found.version));
            return true;
        }
    }
    api_answer_missing(
        call->base, arena_printf(
                        arena, "template '%.*s'%s" STR_FMT, STR_ARG(str_slice(key, 0, 64)),
                        version.len > 0 ? " version " : "", STR_ARG(str_slice(version, 0, 64))));
    return false;
}

// false: answered.
static bool unpack_stored(TemplateCall *call, Str payload, const Error *err)
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

static void on_words_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    TemplateCall *call = ctx;
    if (!unpack_stored(call, payload, err)) {
        return;
    }
    precondition_tag(call->base, sequence);
    json_t *answer = version_to_json(call->version, false);
    CatalogVersion *versions = NULL;
    json_t *list = json_array();
    size_t count = catalog_versions(
        call->api->catalog, str_from(call->version->tenant), str_from(call->version->key),
        call->base->http->arena, &versions);
    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(
            list, version_line(
                      str_from(call->version->tenant), str_from(call->version->key), &versions[i]));
    }
    (void)json_object_set_new(answer, "versions", list);
    answer_json(call->base, 200, answer);
}

static void get_template(ApiCall *base)
{
    TemplateCall *call = begin(base);
    if (find_stored(call, base->params[0], http_query(base->http, "version"))) {
        config_read(call->api->bus, call->subject, base->http->arena, on_words_read, call);
    }
}

// ---- publishing ----

static void answer_published(TemplateCall *call)
{
    Problem problem = {.status = 409, .slug = "version-exists"};
    problem.title = "The version is published and cannot change";
    api_answer_problem(call->base, &problem);
}

void templates_note(TemplatesApi *api, const Stentor__V1__TemplateVersion *version, Str payload)
{
    (void)catalog_template_changed(
        api->catalog, str_from(version->tenant), str_from(version->key), payload, NULL);
}

static void on_published(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    TemplateCall *call = ctx;
    (void)duplicate;
    if (err != NULL && err->kind == ERROR_CONFLICT && precondition_is_given(&call->needs)) {
        precondition_answer_failed(call->base, sequence);
        return;
    }
    if (err != NULL && err->kind == ERROR_CONFLICT) {
        answer_published(call);
        return;
    }
    if (err != NULL) {
        api_answer_failure(call->base, err);
        return;
    }
    precondition_tag(call->base, sequence);
    templates_note(call->api, call->version, call->packed);
    http_response_header(
        call->base->http, "Location",
        str_from(arena_printf(
            call->base->http->arena, "/v1/templates/%s?version=%s", call->version->key,
            call->version->version)));
    answer_json(call->base, 201, version_to_json(call->version, true));
}

// replaces: the draft's sequence; 0: what is new must be new on the server too.
static bool publish(TemplateCall *call, uint64_t replaces, Error *err)
{
    const Stentor__V1__TemplateVersion *version = call->version;
    Arena *arena = call->base->http->arena;
    const BusHeader expected = bus_replaces(replaces, arena);
    char now[32];
    char id[EVENT_ID_SIZE];
    if (!event_pack(&version->base, arena, &call->packed, err)) {
        return false;
    }
    const char *subject = templates_subject(
        arena, str_from(version->tenant), str_from(version->key), str_from(version->version));
    (void)snprintf(now, sizeof now, "%lld", (long long)version->published_at_us);
    event_id_derive("config", str_from(subject), str_from(now), id);
    BusOut out = {
        .subject = subject,
        .event_id = str_from(id),
        .payload = call->packed,
        .headers = &expected,
        .header_count = 1,
    };
    bus_publish(call->api->bus, &out, on_published, call);
    return true;
}

static Stentor__V1__TemplateStatus status_asked(const json_t *body)
{
    const char *text = json_string_value(json_object_get(body, "status"));
    bool draft = text != NULL && strcmp(text, "draft") == 0;
    bool other = text != NULL && strcmp(text, "active") != 0 && !draft;
    return other   ? STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_UNSPECIFIED
           : draft ? STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_DRAFT
                   : STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE;
}

// Left out, it is the release above the highest; "" where that cannot be counted.
static char *next_version(const TemplateCall *call)
{
    CatalogVersion *versions = NULL;
    Arena *arena = call->base->http->arena;
    char *next = arena_zalloc(arena, SEMVER_MAX + 1);
    size_t count = catalog_versions(
        call->api->catalog, str_from(call->base->tenant), str_from(call->version->key), arena,
        &versions);
    (void)semver_next(count > 0 ? str_from(versions[count - 1].version) : STR_EMPTY, next);
    return next;
}

// false: answered.
static bool check_names(TemplateCall *call, const json_t *body)
{
    Stentor__V1__TemplateVersion *version = call->version;
    Error err = {0};
    if (!id_is_key(str_from(version->key))) {
        refuse_field(call->base, "key", "required: 1 to 64 of a-z 0-9 '_' '-'");
        return false;
    }
    if (version->version[0] == '\0') {
        version->version = next_version(call);
    }
    if (!semver_is(str_from(version->version))) {
        refuse_field(
            call->base, "version",
            "a semantic version as '1.0.0'; left out: the release above the highest");
        return false;
    }
    Stentor__V1__TemplateStatus status = status_asked(body);
    if (status == STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_UNSPECIFIED) {
        refuse_field(call->base, "status", "expected 'draft' or 'active'");
        return false;
    }
    if (!version_may_become(version, status, &err)) {
        refuse_field(call->base, "approved_by", err.text);
        return false;
    }
    version->status = status;
    if (!version_check(version, &err)) {
        refuse_field(call->base, "locales", err.text);
        return false;
    }
    return true;
}

// false: answered.
static bool read_version(TemplateCall *call, const json_t *document)
{
    FieldFault fault;
    Arena *arena = call->base->http->arena;
    call->version = arena_alloc(arena, sizeof *call->version);
    if (!version_from_json(document, arena, call->version, &fault)) {
        refuse_field(call->base, fault.field, fault.detail);
        return false;
    }
    call->version->tenant = call->base->tenant;
    call->version->published_at_us = clock_now_us();
    // Whom the caller names is its own word; the key is not.
    const char *by = call->version->published_by;
    Str key_id = call->base->key_id;
    call->version->published_by =
        by[0] == '\0' ? arena_cstr(arena, key_id)
                      : arena_printf(arena, "%s (key " STR_FMT ")", by, STR_ARG(key_id));
    return true;
}

static void store_version(TemplateCall *call, uint64_t replaces)
{
    Error err = {0};
    if (!publish(call, replaces, &err)) {
        refuse_field(call->base, "locales", err.text);
    }
}

// A draft may be written again, in the place of just what was looked at.
static void on_draft_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    TemplateCall *call = ctx;
    Error own = {0};
    const Stentor__V1__TemplateVersion *there =
        err != NULL || payload.len == 0 ? NULL
                                        : (const Stentor__V1__TemplateVersion *)event_unpack(
                                              &stentor__v1__template_version__descriptor, payload,
                                              call->base->http->arena, &own);
    if (err != NULL || own.kind != ERROR_NONE) {
        api_answer_failure(call->base, err != NULL ? err : &own);
    } else if (!precondition_holds(&call->needs, there == NULL ? 0 : sequence)) {
        precondition_answer_failed(call->base, there == NULL ? 0 : sequence);
    } else if (
        there != NULL && there->status != STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_DRAFT) {
        answer_published(call);
    } else {
        store_version(call, sequence);
    }
}

static void post_templates(ApiCall *base)
{
    TemplateCall *call = begin(base);
    if (!precondition_read(base, &call->needs) || !read_body(call)) {
        return;
    }
    bool ok = read_version(call, call->body) && check_names(call, call->body) &&
              (call->version->status == STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_DRAFT ||
               api_need_scope(base, SCOPE_TEMPLATES_ACTIVATE));
    CatalogVersion there;
    bool replaces =
        ok && catalog_find(
                  call->api->catalog, str_from(base->tenant), str_from(call->version->key),
                  str_from(call->version->version), &there);
    bool given = precondition_is_given(&call->needs);
    if (ok && !given && replaces &&
        there.status != STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_DRAFT) {
        answer_published(call);
    } else if (ok && (given || replaces)) {
        call->subject = templates_subject(
            base->http->arena, str_from(base->tenant), str_from(call->version->key),
            str_from(call->version->version));
        config_read(call->api->bus, call->subject, base->http->arena, on_draft_read, call);
    } else if (ok) {
        store_version(call, 0);
    }
}

// ---- preview ----

static void answer_preview(TemplateCall *call, const Stentor__V1__Tenant *tenant)
{
    CompiledVersion *version = version_compile(call->packed);
    PreviewAsk ask = {
        .locale = call->locale,
        .data = json_object_get(call->body, "data"),
        .tenant = tenant,
        .cpu_us = clock_thread_cpu_us,
        .cpu_max_us = call->api->preview_cpu_us,
    };
    json_t *answer = NULL;
    RenderFailure failure = {.code = FAILURE_NONE};
    if (version->broken.kind != ERROR_NONE) {
        refuse_field(call->base, "source.locales", version->broken.text);
    } else if (!preview(version, &ask, &answer, &failure)) {
        refuse_field(call->base, "data", failure.reason);
    } else {
        (void)json_object_set_new(answer, "template", json_string(call->version->key));
        (void)json_object_set_new(answer, "version", json_string(call->version->version));
        answer_json(call->base, 200, answer);
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

static void on_preview_words_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    TemplateCall *call = ctx;
    (void)sequence;
    if (unpack_stored(call, payload, err)) {
        read_tenant(call);
    }
}

// Fields of the body that must be texts, and no others. false: answered.
static bool check_preview(TemplateCall *call)
{
    static const char *const texts[] = {"template", "version", "locale", "channel"};
    const char *name = NULL;
    json_t *value = NULL;
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
            refuse_field(
                call->base, name,
                text     ? "expected a text of at most 64 bytes"
                : object ? "expected an object"
                         : "unknown; there are: template version source data locale channel");
            return false;
        }
    }
    return true;
}

static Str text_of(const json_t *body, const char *name)
{
    return str_from(json_string_value(json_object_get(body, name)));
}

// As small as a notification's variables. false: answered.
static bool check_data(TemplateCall *call)
{
    Error err = {0};
    if (preview_data_fits(json_object_get(call->body, "data"), &err)) {
        return true;
    }
    refuse_field(call->base, "data", err.text);
    return false;
}

// The source may leave out its channel; `channel` says it then. false: answered.
static bool take_inline(TemplateCall *call, json_t *source)
{
    Error err = {0};
    Str channel = text_of(call->body, "channel");
    if (channel.len > 0 && json_object_get(source, "channel") == NULL) {
        (void)json_object_set_new(source, "channel", json_stringn(channel.ptr, channel.len));
    }
    if (!read_version(call, source)) {
        return false;
    }
    if (!event_pack(&call->version->base, call->base->http->arena, &call->packed, &err)) {
        refuse_field(call->base, "source", err.text);
        return false;
    }
    return true;
}

static void post_preview(ApiCall *base)
{
    TemplateCall *call = begin(base);
    if (!read_body(call)) {
        return;
    }
    if (!check_preview(call) || !check_data(call)) {
        return;
    }
    json_t *source = json_object_get(call->body, "source");
    Str key = text_of(call->body, "template");
    call->locale = arena_str(base->http->arena, text_of(call->body, "locale"));
    if ((source == NULL) == (key.len == 0)) {
        refuse_field(base, "template", "either a template's key or a source is required");
    } else if (source == NULL) {
        if (find_stored(call, key, text_of(call->body, "version"))) {
            config_read(
                call->api->bus, call->subject, base->http->arena, on_preview_words_read, call);
        }
    } else if (take_inline(call, source)) {
        read_tenant(call);
    }
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/templates", SCOPE_TEMPLATES_READ, get_templates, "limit cursor platform"},
    {"POST", "/v1/templates", SCOPE_TEMPLATES_WRITE, post_templates, NULL},
    {"POST", "/v1/templates/preview", SCOPE_TEMPLATES_READ, post_preview, "platform"},
    {"GET", "/v1/templates/{}", SCOPE_TEMPLATES_READ, get_template, "version platform"},
};

void templates_api_add(Api *api, TemplatesApi *templates)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], templates);
}
