// SPDX-License-Identifier: Apache-2.0
// POST /v1/templates/{key}/{version}/activate and /archive: a version's way from draft to active to
// archived; /deprecate: from when callers should leave it. Its content stays as it is; only the
// tenant's own versions are changed. In the order in which it happens: the body is read, the stored
// version is read from CONFIG, moved on, and published in the place of just that message: of two
// who move it at the same moment one is refused.
#include <stdio.h>

#include "common/api/api_json.h"
#include "common/api/config_read.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/render/version_json.h"
#include "common/request/semver.h"
#include "services/gateway/templates/template_call.h"

enum { APPROVED_BY_MAX = 128 };

// ---- refusals ----

static void refuse_conflict(TemplateCall *call, const char *title, const char *detail)
{
    Problem problem = {.status = 409, .slug = "version-status", .title = title};
    (void)snprintf(problem.detail, sizeof problem.detail, "%.*s", APPROVED_BY_MAX, detail);
    api_answer_problem(call->base, &problem);
}

static void refuse_missing(ApiCall *base)
{
    Str key = str_slice(base->params[0], 0, 64);
    Str version = str_slice(base->params[1], 0, 64);
    api_answer_missing(
        base, arena_printf(
                  base->http->arena, "template '" STR_FMT "' version " STR_FMT " of your own",
                  STR_ARG(key), STR_ARG(version)));
}

// ---- the body: none, or {"approved_by": "...", "allow_category_change": true}; of
// deprecate {"deprecated_at": "..."} or {"deprecated": false} ----

// false: answered.
static bool read_words(TemplateCall *call)
{
    ApiBody body = {0};
    Str text = call->base->http->body;
    bool ok = text.len == 0 || api_body_parse(&body, text, call->base->http->arena);
    if (ok && text.len > 0) {
        if (call->deprecates) {
            bool deprecated = true;
            (void)api_read_time(&body, "deprecated_at", &call->deprecated_at_us);
            (void)api_read_bool(&body, "deprecated", &deprecated);
            call->deprecated_at_us = deprecated ? call->deprecated_at_us : 0;
        } else {
            (void)api_read_text(&body, "approved_by", APPROVED_BY_MAX, &call->approved_by);
            (void)api_read_bool(&body, "allow_category_change", &call->may_change_category);
        }
        ok = api_body_end(&body);
    }
    if (!ok) {
        api_answer_problem(call->base, &body.problem);
    }
    api_body_free(&body);
    return ok;
}

// ---- the stored version ----

static void on_published(void *ctx, const Error *err, Str payload, uint64_t sequence)
{
    TemplateCall *call = ctx;
    bool conflict = err != NULL && err->kind == ERROR_CONFLICT;
    if (conflict && precondition_is_given(&call->needs)) {
        precondition_answer_failed(call->base, sequence);
    } else if (conflict) {
        refuse_conflict(call, "Another call changed the version at this moment", "read it again");
    } else if (err != NULL) {
        api_answer_failure(call->base, err);
    } else {
        template_call_answer_stored(call, 200, payload, sequence);
    }
}

// Its content and status stay: it is sent all the same, and callers are warned. false: answered.
static bool deprecate(TemplateCall *call)
{
    if (call->version->status == STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ARCHIVED) {
        refuse_conflict(
            call, "The version's status does not allow this",
            "it is archived, so no request gets it");
        return false;
    }
    call->version->deprecated_at_us = call->deprecated_at_us;
    return true;
}

// false: answered.
static bool advance(TemplateCall *call)
{
    Stentor__V1__TemplateVersion *version = call->version;
    Error err = {0};
    if (call->approved_by.len > 0) {
        version->approved_by = arena_cstr(call->base->http->arena, call->approved_by);
    }
    if (!version_may_become(version, call->to, &err)) {
        if ((int)call->to > (int)version->status) {
            return api_refuse_field(call->base, "approved_by", "%s", err.text);
        }
        refuse_conflict(call, "The version's status does not allow this", err.text);
        return false;
    }
    version->status = call->to;
    const char *fault = template_category_change(call);
    if (fault != NULL) {
        return api_refuse_field(call->base, "category", "%s", fault);
    }
    bool active = call->to == STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE;
    return !active || version_check(version, &err) ||
           api_refuse_field(call->base, "locales", "%s", err.text);
}

static void on_version_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    TemplateCall *call = ctx;
    if (err == NULL && payload.len == 0) {
        refuse_missing(call->base);
    } else if (err == NULL && !precondition_holds(&call->needs, sequence)) {
        precondition_answer_failed(call->base, sequence);
    } else if (
        template_call_unpack(call, payload, err) &&
        (call->deprecates ? deprecate(call) : advance(call))) {
        template_call_store(call, sequence, on_published);
    }
}

// ---- the call ----

void templates_move(ApiCall *base)
{
    TemplateCall *call = template_call_new(base);
    Arena *arena = base->http->arena;
    call->deprecates = str_eq(api_route_word(base), STR("deprecate"));
    call->deprecated_at_us = clock_now_us();
    call->to = str_eq(api_route_word(base), STR("archive"))
                   ? STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ARCHIVED
                   : STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE;
    if (!id_is_key(base->params[0]) || !semver_is(base->params[1])) {
        refuse_missing(base); // and nothing of the path gets into a subject
        return;
    }
    CatalogName name;
    Str tenant = str_from(base->tenant);
    if (precondition_read(base, &call->needs) && read_words(call) &&
        template_call_channel(call, http_query(base->http, "channel")) &&
        template_call_choose(call, tenant, base->params[0], &name)) {
        CatalogVersion there;
        bool known = catalog_find(call->api->catalog, tenant, name, base->params[1], &there);
        call->subject =
            template_subject(arena, tenant, name, base->params[1], known ? &there : NULL);
        config_read(call->api->bus, call->subject, arena, on_version_read, call);
    }
}
