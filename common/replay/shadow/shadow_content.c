// SPDX-License-Identifier: Apache-2.0
#include "common/replay/shadow/shadow_content.h"

#include <stdlib.h>
#include <string.h>

#include "common/codec/event.h"
#include "common/render/assets.h"
#include "common/render/template_cache.h"
#include "common/replay/shadow/diff.h"
#include "common/replay/shadow/shadow_gate.h"

enum { COMPILED_MAX = 64, DIFF_BYTES_MAX = 256 * 1024 };

struct ShadowContent {
    const ShadowPlan *plan;
    TemplateCache *frozen;
    TemplateCache *changed; // the same versions with the new content
    Senders *senders;
    Assets *assets;
    Map *suspended;  // tenants
    size_t versions; // of the template that were seen
    size_t replaced; // ... that got the new content
    Draft before, after;
    TemplateTools *tools;
    Buf diff;
};

ShadowContent *shadow_content_new(const ShadowPlan *plan)
{
    ShadowContent *content = xcalloc(1, sizeof *content);
    content->plan = plan;
    content->frozen = template_cache_new(COMPILED_MAX);
    content->changed = template_cache_new(COMPILED_MAX);
    content->senders = senders_new();
    content->assets = assets_new();
    content->suspended = map_new(NULL);
    draft_init(&content->before);
    draft_init(&content->after);
    content->tools = template_tools_new();
    buf_init(&content->diff, DIFF_BYTES_MAX);
    return content;
}

void shadow_content_free(ShadowContent *content)
{
    template_cache_free(content->frozen);
    template_cache_free(content->changed);
    senders_free(content->senders);
    assets_free(content->assets);
    map_free(content->suspended);
    draft_done(&content->before);
    draft_done(&content->after);
    template_tools_free(content->tools);
    buf_done(&content->diff);
    free(content);
}

// ---- configuration ----

static Stentor__V1__LocaleVariant *choose_variant(
    const ShadowPlan *plan, const Stentor__V1__TemplateVersion *version)
{
    for (size_t i = 0; plan->locale != NULL && i < version->n_locales; i++) {
        if (str_eq_nocase(str_from(plan->locale), str_from(version->locales[i]->locale))) {
            return version->locales[i];
        }
    }
    return plan->locale == NULL && version->n_locales > 0 ? version->locales[0] : NULL;
}

// The version as it would have been; without the wanted locale it is as it was.
static bool put_changed(ShadowContent *content, Str tenant, Str key, Str payload, Error *err)
{
    const ShadowPlan *plan = content->plan;
    Arena *arena = arena_new(0);
    Stentor__V1__TemplateVersion *version = (Stentor__V1__TemplateVersion *)event_unpack(
        &stentor__v1__template_version__descriptor, payload, arena, err);
    Stentor__V1__LocaleVariant *variant = version != NULL ? choose_variant(plan, version) : NULL;
    content->versions++;
    if (variant != NULL) {
        content->replaced++;
        variant->html = plan->html != NULL ? plan->html : variant->html;
        variant->subject = plan->subject != NULL ? plan->subject : variant->subject;
        variant->text = plan->text != NULL ? plan->text : variant->text;
    }
    Str bytes = STR_EMPTY;
    bool ok = version != NULL && event_pack(&version->base, arena, &bytes, err) &&
              template_cache_put(content->changed, tenant, key, bytes, 0, err);
    arena_free(arena);
    return ok;
}

static bool put_template(ShadowContent *content, Str tenant, Str key, Str payload, Error *err)
{
    Str version = key;
    Str name = STR_EMPTY;
    str_split(&version, '.', &name);
    if (!str_eq(name, str_from(content->plan->key))) {
        return true;
    }
    return template_cache_put(content->frozen, tenant, key, payload, 0, err) &&
           (payload.len == 0 ? template_cache_put(content->changed, tenant, key, payload, 0, err)
                             : put_changed(content, tenant, key, payload, err));
}

static bool put_tenant(ShadowContent *content, Str tenant, Str payload, Error *err)
{
    Arena *arena = arena_new(0);
    const Stentor__V1__Tenant *entry = (const Stentor__V1__Tenant *)event_unpack(
        &stentor__v1__tenant__descriptor, payload, arena, err);
    bool ok = entry != NULL;
    map_remove(content->suspended, tenant);
    if (ok && entry->suspended) {
        map_put(content->suspended, tenant, content);
    }
    arena_free(arena);
    return ok && senders_put(content->senders, tenant, payload, err);
}

bool shadow_content_put(
    ShadowContent *content, Str kind, Str tenant, Str key, Str payload, Error *err)
{
    if (str_eq(kind, STR("template"))) {
        return put_template(content, tenant, key, payload, err);
    }
    if (str_eq(kind, STR("asset"))) {
        return assets_put(content->assets, tenant, key, payload, 0, err);
    }
    return !str_eq(kind, STR("tenant")) || put_tenant(content, tenant, payload, err);
}

bool shadow_content_found(const ShadowContent *content, Error *err)
{
    const ShadowPlan *plan = content->plan;
    if (content->versions == 0) {
        return error_set(
            err, ERROR_CONFIG,
            "no version of template '%s' is published (HINT: --key KEY; stentor template list)",
            plan->key);
    }
    return content->replaced > 0 ||
           error_set(
               err, ERROR_CONFIG, "no version of template '%s' has the locale '%s'", plan->key,
               plan->locale != NULL ? plan->locale : "");
}

// ---- one request ----

// As the renderer does it (services/renderer/renderer.c, write_words).
static bool render_with(
    const ShadowContent *content, const CompiledVersion *version, const Request *request,
    json_t *variables, Draft *draft, RenderFailure *failure)
{
    const Sender *sender = senders_get(content->senders, str_from(request->meta->tenant));
    Str wanted = str_from(request->locale);
    wanted = wanted.len > 0 ? wanted : str_from(sender->locale);
    AssetLookup lookup = {
        .assets = content->assets,
        .tenant = str_from(request->meta->tenant),
        .public_url = STR("https://api.example"), // of both sides, which are compared
    };
    TemplateAssets assets = {.find = asset_find_address, .ctx = &lookup};
    ContentContext context = {
        .zone = str_from(sender->zone), .tools = content->tools, .assets = &assets};
    if (version->broken.kind != ERROR_NONE) {
        return render_fail(failure, FAILURE_INVALID_TEMPLATE, "%s", version->broken.text);
    }
    const CompiledLocale *locale = version_locale(version, wanted);
    if (!check_variables(version->source, variables, failure)) {
        return false;
    }
    json_t *all = json_copy(variables);
    add_surroundings(all, locale, sender->theme, sender->names);
    bool ok = render_content(version, locale, all, &context, draft, failure);
    json_decref(all);
    return ok;
}

static bool add_diff(
    ShadowContent *content, const char *part, const Buf *before, const Buf *after, Arena *scratch,
    uint64_t *signature)
{
    const char *old_label = arena_printf(scratch, "%s, as it was", part);
    const char *new_label = arena_printf(scratch, "%s, as it would have been", part);
    return diff_unified(
        old_label, buf_view(before), new_label, buf_view(after), scratch, &content->diff,
        signature);
}

static ShadowResult compare_drafts(
    ShadowContent *content, const char *notification_id, Arena *scratch, ShadowTally *tally)
{
    uint64_t signature = UINT64_C(1469598103934665603);
    buf_clear(&content->diff);
    bool subject = add_diff(
        content, "subject", &content->before.subject, &content->after.subject, scratch, &signature);
    bool html =
        add_diff(content, "html", &content->before.html, &content->after.html, scratch, &signature);
    bool text =
        add_diff(content, "text", &content->before.text, &content->after.text, scratch, &signature);
    if (!subject && !html && !text) {
        return SHADOW_SAME;
    }
    Str diff = content->diff.full ? STR("(too long to print)\n") : buf_view(&content->diff);
    shadow_count_group(tally, signature, notification_id, diff, content->plan->diffs);
    return SHADOW_DIFFERENT;
}

static ShadowResult compare_content(
    ShadowContent *content, const Job *job, const CompiledVersion *frozen,
    const CompiledVersion *changed, Arena *scratch, ShadowTally *tally)
{
    const Request *request = job->request;
    Str json = STR_EMPTY;
    Error err;
    json_t *variables = NULL;
    RenderFailure before = {.code = FAILURE_NONE};
    RenderFailure after = {.code = FAILURE_NONE};
    if (!job_variables(job, &json, &err)) {
        return SHADOW_UNREADABLE;
    }
    if (!parse_variables(json, &variables, &before)) {
        shadow_count_reason(tally, failure_code_name(before.code), before.reason);
        return SHADOW_FAILS_STILL;
    }
    bool did = render_with(content, frozen, request, variables, &content->before, &before);
    bool would = render_with(content, changed, request, variables, &content->after, &after);
    json_decref(variables);
    if (!would) {
        shadow_count_reason(tally, failure_code_name(after.code), after.reason);
        return did ? SHADOW_FAILS : SHADOW_FAILS_STILL;
    }
    return did ? compare_drafts(content, request->meta->notification_id, scratch, tally)
               : SHADOW_FIXED;
}

bool shadow_content_compare(
    ShadowContent *content, const Job *job, Arena *scratch, ShadowTally *tally, Error *err)
{
    const Request *request = job->request;
    Str tenant = str_from(request->meta->tenant);
    const TemplateName wanted = template_name_of(request);
    ShadowRules rules = {.tenant_suspended = map_get(content->suspended, tenant) != NULL};
    ShadowGate gate = shadow_gate(&rules, request, job->now_us);
    const CompiledVersion *frozen = template_cache_get(content->frozen, &wanted);
    const CompiledVersion *changed = template_cache_get(content->changed, &wanted);
    ShadowResult result = SHADOW_GATE_EXPIRED;
    if (changed != NULL && changed->broken.kind != ERROR_NONE &&
        frozen->broken.kind == ERROR_NONE) {
        return error_set(
            err, ERROR_PERMANENT, "the new content cannot be used: %s", changed->broken.text);
    }
    if (gate == SHADOW_SUPPRESSED) {
        result = SHADOW_GATE_SUPPRESSED;
    } else if (gate == SHADOW_PASSED && job->key == NULL) {
        result = SHADOW_ERASED;
    } else if (gate == SHADOW_PASSED && frozen == NULL) {
        result = SHADOW_UNKNOWN;
    } else if (gate == SHADOW_PASSED) {
        result = compare_content(content, job, frozen, changed, scratch, tally);
    }
    tally->results[result]++;
    return true;
}
