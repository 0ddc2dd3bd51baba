// SPDX-License-Identifier: Apache-2.0
// POST /v1/templates: a version is checked and published. A new one must be new on the server too;
// a draft may be written again, in the place of just what was looked at.
#include <stdio.h>

#include "common/api/config_read.h"
#include "common/base/id.h"
#include "common/codec/event.h"
#include "common/render/version_json.h"
#include "common/request/semver.h"
#include "services/gateway/templates/template_call.h"

typedef Stentor__V1__TemplateStatus TemplateStatus;

static const TemplateStatus DRAFT = STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_DRAFT;
static const TemplateStatus ACTIVE = STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE;

// ---- the body ----

// false: neither of both.
static bool read_status(const json_t *body, TemplateStatus *ret)
{
    const json_t *status = json_object_get(body, "status");
    Str text = str_from(json_string_value(status));
    *ret = str_eq(text, STR("draft")) ? DRAFT : ACTIVE;
    return status == NULL || json_is_null(status) || *ret == DRAFT || str_eq(text, STR("active"));
}

// No part of the version, so it leaves the document.
static void read_permission(TemplateCall *call)
{
    static const char name[] = "allow_category_change";
    const json_t *value = json_object_get(call->body, name);
    if (value != NULL && !json_is_boolean(value) && !json_is_null(value)) {
        (void)template_call_fail(call, name, "must be true or false");
    }
    call->may_change_category = json_is_true(value);
    (void)json_object_del(call->body, name);
}

static void check_category(TemplateCall *call)
{
    const json_t *category = json_object_get(call->body, "category");
    if (category == NULL || json_is_null(category) || json_string_length(category) == 0) {
        template_category_keep(call);
    }
    const char *fault = template_category_change(call);
    if (fault != NULL) {
        (void)template_call_fail(call, "category", "%s", fault);
    }
}

static CatalogName template_name(const TemplateCall *call)
{
    return (CatalogName){str_from(call->version->key), (Channel)call->version->channel};
}

// Left out, it is the highest active version below it, the tenant's own.
static void check_supersedes(TemplateCall *call)
{
    Stentor__V1__TemplateVersion *version = call->version;
    const Catalog *catalog = call->api->catalog;
    Str tenant = str_from(version->tenant);
    Str own = str_from(version->version);
    Str given = str_from(version->supersedes);
    CatalogVersion there;
    if (given.len > 0) {
        bool found = catalog_find(catalog, tenant, template_name(call), given, &there) ||
                     catalog_find(catalog, PLATFORM, template_name(call), given, &there);
        if (!found || str_eq(given, own)) {
            (void)template_call_fail(
                call, "supersedes", "must be another version of this template on this channel");
        }
        return;
    }
    CatalogVersion *versions = NULL;
    size_t count =
        catalog_versions(catalog, tenant, template_name(call), call->base->http->arena, &versions);
    while (count-- > 0 && version->supersedes[0] == '\0') {
        if (versions[count].status == ACTIVE &&
            semver_compare(str_from(versions[count].version), own) < 0) {
            version->supersedes =
                arena_cstr(call->base->http->arena, str_from(versions[count].version));
        }
    }
}

// Left out, it is the release above the highest; "" where that cannot be counted.
static char *next_version(const TemplateCall *call)
{
    CatalogVersion *versions = NULL;
    Arena *arena = call->base->http->arena;
    char *next = arena_zalloc(arena, SEMVER_MAX + 1);
    size_t count = catalog_versions(
        call->api->catalog, str_from(call->base->tenant), template_name(call), arena, &versions);
    (void)semver_next(count > 0 ? str_from(versions[count - 1].version) : STR_EMPTY, next);
    return next;
}

// All that is wrong with it at once: the document, its names, and what may become of it; whether it
// compiles is asked of a document that can be read only. false: answered.
static bool read_version(TemplateCall *call)
{
    TemplateStatus status = DRAFT;
    Error err = {0};
    read_permission(call);
    bool readable = template_call_read_version(call, call->body);
    Stentor__V1__TemplateVersion *version = call->version;
    bool named = id_is_key(str_from(version->key));
    if (!named) {
        (void)template_call_fail(call, "key", "required: 1 to 64 of a-z 0-9 '_' '-'");
    }
    bool said = version->version[0] != '\0';
    if (named && !said) {
        version->version = next_version(call);
    }
    if ((named || said) && !semver_is(str_from(version->version))) {
        (void)template_call_fail(
            call, "version",
            "must be a semantic version such as '1.0.0'; without it: the release above the "
            "highest");
    }
    if (!read_status(call->body, &status)) {
        (void)template_call_fail(call, "status", "must be 'draft' or 'active'");
    } else if (!version_may_become(version, status, &err)) {
        (void)template_call_fail(call, "approved_by", "%s", err.text);
    }
    version->status = status;
    if (named && readable) {
        check_category(call);
    }
    if (named && readable && semver_is(str_from(version->version))) {
        check_supersedes(call);
    }
    if (readable && !version_check(version, &err)) {
        (void)template_call_fail(call, "locales", "%s", err.text);
    }
    return template_call_good(call);
}

// ---- storing ----

static void answer_published(TemplateCall *call)
{
    Problem problem = {.status = 409, .slug = "version-exists"};
    problem.title = "The version is published and cannot change";
    (void)snprintf(
        problem.detail, sizeof problem.detail, "leave 'version' out, or give one that is new");
    api_answer_problem(call->base, &problem);
}

static void on_published(void *ctx, const Error *err, Str payload, uint64_t sequence)
{
    TemplateCall *call = ctx;
    ErrorKind kind = err == NULL ? ERROR_NONE : err->kind;
    if (kind == ERROR_CONFLICT && precondition_is_given(&call->needs)) {
        precondition_answer_failed(call->base, sequence);
    } else if (kind == ERROR_CONFLICT) {
        answer_published(call);
    } else if (kind == ERROR_PERMANENT) {
        (void)api_refuse_field(call->base, "locales", "%s", err->text); // too large for an event
    } else if (err != NULL) {
        api_answer_failure(call->base, err);
    } else {
        http_response_header(
            call->base->http, "Location",
            str_from(arena_printf(
                call->base->http->arena, "/v1/templates/%s?version=%s&channel=%s",
                call->version->key, call->version->version,
                channel_name((Channel)call->version->channel))));
        template_call_answer_stored(call, 201, payload, sequence);
    }
}

// The same draft, by the same key.
static bool is_same(
    const TemplateCall *call, const Stentor__V1__TemplateVersion *there, Str payload)
{
    Stentor__V1__TemplateVersion version = *call->version;
    version.published_at_us = there->published_at_us;
    return config_is_same(&version.base, payload, call->base->http->arena);
}

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
    } else if (there != NULL && there->status != DRAFT) {
        answer_published(call);
    } else if (there != NULL && is_same(call, there, payload)) {
        template_call_answer_stored(call, 200, payload, sequence);
    } else {
        template_call_store(call, sequence, on_published);
    }
}

void templates_publish(ApiCall *base)
{
    TemplateCall *call = template_call_new(base);
    if (!precondition_read(base, &call->needs) || !template_call_read_body(call) ||
        !read_version(call) ||
        (call->version->status != DRAFT && !api_need_scope(base, SCOPE_TEMPLATES_ACTIVATE))) {
        return;
    }
    CatalogVersion there;
    Str tenant = str_from(base->tenant);
    CatalogName name = template_name(call);
    Str version = str_from(call->version->version);
    bool known = catalog_find(call->api->catalog, tenant, name, version, &there);
    bool given = precondition_is_given(&call->needs);
    call->subject =
        template_subject(base->http->arena, tenant, name, version, known ? &there : NULL);
    if (known && !given && there.status != DRAFT) {
        answer_published(call);
    } else if (known || given) {
        config_read(call->api->bus, call->subject, base->http->arena, on_draft_read, call);
    } else {
        template_call_store(call, 0, on_published);
    }
}
