// SPDX-License-Identifier: Apache-2.0
#include "common/replay/shadow/shadow_content.h"

#include <stdlib.h>
#include <string.h>

#include "common/codec/event.h"
#include "common/render/template_cache.h"
#include "common/replay/shadow/diff.h"
#include "common/replay/shadow/shadow_gate.h"

enum { COMPILED_MAX = 64, DIFF_BYTES_MAX = 256 * 1024 };

struct ShadowContent {
    const ShadowPlan *plan;
    TemplateCache *frozen;
    TemplateCache *changed; // the same versions with the new words
    Senders *senders;
    Map *suspended;  // tenants
    size_t versions; // of the template that were seen
    size_t replaced; // ... that got the new words
    Draft before, after;
    TemplateTools *tools;
    Buf diff;
};

ShadowContent *shadow_content_new(const ShadowPlan *plan)
{
    ShadowContent *words = xcalloc(1, sizeof *words);
    words->plan = plan;
    words->frozen = template_cache_new(COMPILED_MAX);
    words->changed = template_cache_new(COMPILED_MAX);
    words->senders = senders_new();
    words->suspended = map_new(NULL);
    draft_init(&words->before);
    draft_init(&words->after);
    words->tools = template_tools_new();
    buf_init(&words->diff, DIFF_BYTES_MAX);
    return words;
}

void shadow_content_free(ShadowContent *words)
{
    template_cache_free(words->frozen);
    template_cache_free(words->changed);
    senders_free(words->senders);
    map_free(words->suspended);
    draft_done(&words->before);
    draft_done(&words->after);
    template_tools_free(words->tools);
    buf_done(&words->diff);
    free(words);
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
static bool put_changed(ShadowContent *words, Str tenant, Str key, Str payload, Error *err)
{
    const ShadowPlan *plan = words->plan;
    Arena *arena = arena_new(0);
    Stentor__V1__TemplateVersion *version = (Stentor__V1__TemplateVersion *)event_unpack(
        &stentor__v1__template_version__descriptor, payload, arena, err);
    Stentor__V1__LocaleVariant *variant = version != NULL ? choose_variant(plan, version) : NULL;
    words->versions++;
    if (variant != NULL) {
        words->replaced++;
        variant->html = plan->html != NULL ? plan->html : variant->html;
        variant->subject = plan->subject != NULL ? plan->subject : variant->subject;
        variant->text = plan->text != NULL ? plan->text : variant->text;
    }
    Str bytes = STR_EMPTY;
    bool ok = version != NULL && event_pack(&version->base, arena, &bytes, err) &&
              template_cache_put(words->changed, tenant, key, bytes, err);
    arena_free(arena);
    return ok;
}

static bool put_template(ShadowContent *words, Str tenant, Str key, Str payload, Error *err)
{
    Str version = key;
    Str name = STR_EMPTY;
    str_split(&version, '.', &name);
    if (!str_eq(name, str_from(words->plan->key))) {
        return true;
    }
    return template_cache_put(words->frozen, tenant, key, payload, err) &&
           (payload.len == 0 ? template_cache_put(words->changed, tenant, key, payload, err)
                             : put_changed(words, tenant, key, payload, err));
}

static bool put_tenant(ShadowContent *words, Str tenant, Str payload, Error *err)
{
    Arena *arena = arena_new(0);
    const Stentor__V1__Tenant *entry = (const Stentor__V1__Tenant *)event_unpack(
        &stentor__v1__tenant__descriptor, payload, arena, err);
    bool ok = entry != NULL;
    map_remove(words->suspended, tenant);
    if (ok && entry->suspended) {
        map_put(words->suspended, tenant, words);
    }
    arena_free(arena);
    return ok && senders_put(words->senders, tenant, payload, err);
}

bool shadow_content_put(
    ShadowContent *words, Str kind, Str tenant, Str key, Str payload, Error *err)
{
    if (str_eq(kind, STR("template"))) {
        return put_template(words, tenant, key, payload, err);
    }
    return !str_eq(kind, STR("tenant")) || put_tenant(words, tenant, payload, err);
}

bool shadow_content_found(const ShadowContent *words, Error *err)
{
    const ShadowPlan *plan = words->plan;
    if (words->versions == 0) {
        return error_set(
            err, ERROR_CONFIG,
            "no version of template '%s' is published (HINT: --key KEY; stentor template list)",
            plan->key);
    }
    return words->replaced > 0 ||
           error_set(
               err, ERROR_CONFIG, "no version of template '%s' has the locale '%s'", plan->key,
               plan->locale != NULL ? plan->locale : "");
}

// ---- one request ----

// As the renderer does it (services/renderer/renderer.c, write_words).
static bool render_with(
    const ShadowContent *words, const CompiledVersion *version, const Request *request,
    json_t *variables, Draft *draft, RenderFailure *failure)
{
    const Sender *sender = senders_get(words->senders, str_from(request->meta->tenant));
    Str wanted = str_from(request->locale);
    wanted = wanted.len > 0 ? wanted : str_from(sender->locale);
    ContentContext context = {.zone = str_from(sender->zone), .tools = words->tools};
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
    ShadowContent *words, const char *part, const Buf *before, const Buf *after, Arena *scratch,
    uint64_t *signature)
{
    const char *old_label = arena_printf(scratch, "%s, as it was", part);
    const char *new_label = arena_printf(scratch, "%s, as it would have been", part);
    return diff_unified(
        old_label, buf_view(before), new_label, buf_view(after), scratch, &words->diff, signature);
}

static ShadowResult compare_drafts(
    ShadowContent *words, const char *notification_id, Arena *scratch, ShadowTally *tally)
{
    uint64_t signature = UINT64_C(1469598103934665603);
    buf_clear(&words->diff);
    bool subject = add_diff(
        words, "subject", &words->before.subject, &words->after.subject, scratch, &signature);
    bool html =
        add_diff(words, "html", &words->before.html, &words->after.html, scratch, &signature);
    bool text =
        add_diff(words, "text", &words->before.text, &words->after.text, scratch, &signature);
    if (!subject && !html && !text) {
        return SHADOW_SAME;
    }
    Str diff = words->diff.full ? STR("(too long to print)\n") : buf_view(&words->diff);
    shadow_count_group(tally, signature, notification_id, diff, words->plan->diffs);
    return SHADOW_DIFFERENT;
}

static ShadowResult compare_words(
    ShadowContent *words, const Job *job, const CompiledVersion *frozen,
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
    bool did = render_with(words, frozen, request, variables, &words->before, &before);
    bool would = render_with(words, changed, request, variables, &words->after, &after);
    json_decref(variables);
    if (!would) {
        shadow_count_reason(tally, failure_code_name(after.code), after.reason);
        return did ? SHADOW_FAILS : SHADOW_FAILS_STILL;
    }
    return did ? compare_drafts(words, request->meta->notification_id, scratch, tally)
               : SHADOW_MENDED;
}

bool shadow_content_compare(
    ShadowContent *words, const Job *job, Arena *scratch, ShadowTally *tally, Error *err)
{
    const Request *request = job->request;
    Str tenant = str_from(request->meta->tenant);
    Str version = str_from(request->template_version);
    ShadowRules rules = {.tenant_suspended = map_get(words->suspended, tenant) != NULL};
    ShadowGate gate = shadow_gate(&rules, request, job->now_us);
    const CompiledVersion *frozen =
        template_cache_get(words->frozen, tenant, str_from(request->template_), version);
    const CompiledVersion *changed =
        template_cache_get(words->changed, tenant, str_from(request->template_), version);
    ShadowResult result = SHADOW_GATE_EXPIRED;
    if (changed != NULL && changed->broken.kind != ERROR_NONE &&
        frozen->broken.kind == ERROR_NONE) {
        return error_set(
            err, ERROR_PERMANENT, "the new words cannot be used: %s", changed->broken.text);
    }
    if (gate == SHADOW_SUPPRESSED) {
        result = SHADOW_GATE_SUPPRESSED;
    } else if (gate == SHADOW_PASSED && job->key == NULL) {
        result = SHADOW_ERASED;
    } else if (gate == SHADOW_PASSED && frozen == NULL) {
        result = SHADOW_UNKNOWN;
    } else if (gate == SHADOW_PASSED) {
        result = compare_words(words, job, frozen, changed, scratch, tally);
    }
    tally->results[result]++;
    return true;
}
