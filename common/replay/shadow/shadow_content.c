// SPDX-License-Identifier: Apache-2.0
#include "common/replay/shadow/shadow_content.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/codec/event.h"
#include "common/model/template_key.h"
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
    Draft before_written, after_written;
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
    draft_init(&content->before_written);
    draft_init(&content->after_written);
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
    draft_done(&content->before_written);
    draft_done(&content->after_written);
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

// Only that one, so that nothing else is found in its place. An entry of before 2026-11-23 has no
// channel in its key.
static bool put_candidate(ShadowContent *content, Str tenant, Str key, Str payload, Error *err)
{
    const ShadowPlan *plan = content->plan;
    char placed[TEMPLATE_KEY_SIZE], unplaced[TEMPLATE_KEY_SIZE];
    Str name = str_from(plan->key), version = str_from(plan->version);
    bool is_it = str_eq(tenant, str_from(plan->version_tenant)) &&
                 (str_eq(key, template_key_write(placed, name, plan->channel, version)) ||
                  str_eq(key, template_key_write(unplaced, name, CHANNEL_NONE, version)));
    content->versions++;
    return !is_it || template_cache_put(content->changed, tenant, key, payload, 0, err);
}

static const CompiledVersion *changed_version(ShadowContent *content, const TemplateName *wanted)
{
    const ShadowPlan *plan = content->plan;
    if (plan->version == NULL) {
        return template_cache_get(content->changed, wanted);
    }
    const TemplateName candidate = {
        .tenant = str_from(plan->version_tenant),
        .key = str_from(plan->key),
        .channel = plan->channel,
        .version = str_from(plan->version),
    };
    return template_cache_get(content->changed, &candidate);
}

static bool put_template(ShadowContent *content, Str tenant, Str key, Str payload, Error *err)
{
    Str version = key;
    Str name = STR_EMPTY;
    str_split(&version, '.', &name);
    if (!str_eq(name, str_from(content->plan->key))) {
        return true;
    }
    if (content->plan->version != NULL) {
        return template_cache_put(content->frozen, tenant, key, payload, 0, err) &&
               put_candidate(content, tenant, key, payload, err);
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

bool shadow_content_found(ShadowContent *content, Error *err)
{
    const ShadowPlan *plan = content->plan;
    if (content->versions == 0) {
        return error_set(
            err, ERROR_CONFIG,
            "no version of template '%s' is published (HINT: --key KEY; stentor template list)",
            plan->key);
    }
    if (plan->version != NULL) {
        return changed_version(content, NULL) != NULL ||
               error_set(
                   err, ERROR_CONFIG, "template '%s' has no version '%s' for %s", plan->key,
                   plan->version, channel_name(plan->channel));
    }
    return content->replaced > 0 ||
           error_set(
               err, ERROR_CONFIG, "no version of template '%s' has the locale '%s'", plan->key,
               plan->locale != NULL ? plan->locale : "");
}

// ---- one request ----

typedef struct Comparison {
    const Job *job;
    const CompiledVersion *frozen, *changed;
    json_t *variables;
    Arena *scratch;
} Comparison;

// As the renderer does it (services/renderer/renderer.c, write_words).
static bool render_with(
    const ShadowContent *content, const CompiledVersion *version, const Comparison *c,
    bool as_written, Draft *draft, RenderFailure *failure)
{
    const Request *request = c->job->request;
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
        .zone = str_from(sender->zone),
        .tools = content->tools,
        .assets = &assets,
        .as_written = as_written,
    };
    if (version->broken.kind != ERROR_NONE) {
        return render_fail(failure, FAILURE_INVALID_TEMPLATE, "%s", version->broken.text);
    }
    const CompiledLocale *locale = version_locale(version, wanted);
    if (!check_variables(version->source, c->variables, failure)) {
        return false;
    }
    json_t *all = json_copy(c->variables);
    add_surroundings(all, locale, sender->theme, sender->names);
    bool ok = render_content(version, locale, all, &context, draft, failure);
    json_decref(all);
    return ok;
}

// What stands in the part, as text: each parameter on a line of its own.
static Str part_of(const Draft *draft, ShadowPart part, Arena *scratch)
{
    switch (part) {
    case SHADOW_SUBJECT:
        return buf_view(&draft->subject);
    case SHADOW_TITLE:
        return buf_view(&draft->title);
    case SHADOW_HTML:
        return buf_view(&draft->html);
    case SHADOW_TEXT:
        return buf_view(&draft->text);
    case SHADOW_DATA:
        return buf_view(&draft->data);
    case SHADOW_REFERENCE:
        return str_from(draft->reference);
    case SHADOW_PARAMETERS: {
        Str lines = arena_str(scratch, buf_view(&draft->parameters));
        for (size_t i = 0; i < lines.len; i++) {
            char *c = (char *)(uintptr_t)&lines.ptr[i];
            *c = *c == '\0' ? '\n' : *c;
        }
        return lines;
    }
    case SHADOW_PART_COUNT:
        break;
    }
    return STR_EMPTY;
}

// Appends to content->diff. false: they are equal.
static bool add_diff(
    ShadowContent *content, ShadowPart part, const Draft *before, const Draft *after,
    Arena *scratch, uint64_t *signature)
{
    const char *name = shadow_part_name(part);
    const char *old_label = arena_printf(scratch, "%s, as it was", name);
    const char *new_label = arena_printf(scratch, "%s, as it would have been", name);
    return diff_unified(
        old_label, part_of(before, part, scratch), new_label, part_of(after, part, scratch),
        scratch, &content->diff, signature);
}

// Behind the two lines of a diff's head.
static Str without_head(Str diff)
{
    Str line;
    (void)str_split(&diff, '\n', &line);
    (void)str_split(&diff, '\n', &line);
    return diff;
}

// The same two renderings once more, with tags in the place of values. A part whose values alone
// differ has no lines.
static void show_parts(
    ShadowContent *content, const Comparison *c, const bool differs[SHADOW_PART_COUNT],
    ShadowGroup *group)
{
    RenderFailure ignored;
    bool shown = render_with(content, c->frozen, c, true, &content->before_written, &ignored) &&
                 render_with(content, c->changed, c, true, &content->after_written, &ignored);
    for (int i = 0; i < SHADOW_PART_COUNT; i++) {
        uint64_t unused = 0;
        buf_clear(&content->diff);
        if (differs[i] && shown) {
            (void)add_diff(
                content, (ShadowPart)i, &content->before_written, &content->after_written,
                c->scratch, &unused);
        }
        Str lines = without_head(buf_view(&content->diff));
        if (differs[i]) {
            group->parts[i] = xmalloc(lines.len + 1);
            (void)str_to_c(lines, group->parts[i], lines.len + 1);
        }
    }
}

static ShadowResult compare_drafts(ShadowContent *content, const Comparison *c, ShadowTally *tally)
{
    uint64_t signature = UINT64_C(1469598103934665603);
    bool differs[SHADOW_PART_COUNT], any = false;
    buf_clear(&content->diff);
    for (int i = 0; i < SHADOW_PART_COUNT; i++) {
        differs[i] = add_diff(
            content, (ShadowPart)i, &content->before, &content->after, c->scratch, &signature);
        any = any || differs[i];
    }
    if (!any) {
        return SHADOW_SAME;
    }
    ShadowGroup *group = shadow_count_group(
        tally, signature, c->job->request->meta->notification_id, content->plan->diffs);
    if (group != NULL) {
        group->version = xstrdup(c->job->request->template_version);
    }
    if (group != NULL && content->plan->as_written) {
        show_parts(content, c, differs, group);
    } else if (group != NULL) {
        shadow_group_diff(
            group, content->diff.full ? STR("(too long to print)\n") : buf_view(&content->diff));
    }
    return SHADOW_DIFFERENT;
}

// Where a rendering failed, and which value was no time zone, says what the values are.
static void count_reason(
    const ShadowContent *content, const RenderFailure *failure, ShadowTally *tally)
{
    bool by_values = failure->code == FAILURE_RENDER || failure->code == FAILURE_LIMIT;
    Str rest = str_from(failure->reason), part;
    char reason[80];
    (void)str_split(&rest, ':', &part);
    snprintf(
        reason, sizeof reason, STR_FMT ": a preview with such data says where",
        STR_ARG(str_slice(part, 0, 40)));
    shadow_count_reason(
        tally, failure_code_name(failure->code),
        content->plan->as_written && by_values ? reason : failure->reason);
}

static ShadowResult compare_renderings(
    ShadowContent *content, const Comparison *c, ShadowTally *tally)
{
    RenderFailure before = {.code = FAILURE_NONE};
    RenderFailure after = {.code = FAILURE_NONE};
    bool did = render_with(content, c->frozen, c, false, &content->before, &before);
    bool would = render_with(content, c->changed, c, false, &content->after, &after);
    if (!would) {
        count_reason(content, &after, tally);
        return did ? SHADOW_FAILS : SHADOW_FAILS_STILL;
    }
    return did ? compare_drafts(content, c, tally) : SHADOW_FIXED;
}

static ShadowResult compare_content(ShadowContent *content, Comparison *c, ShadowTally *tally)
{
    Str json = STR_EMPTY;
    Error err;
    RenderFailure failure = {.code = FAILURE_NONE};
    if (!job_variables(c->job, &json, &err)) {
        return SHADOW_UNREADABLE;
    }
    if (!parse_variables(json, &c->variables, &failure)) {
        count_reason(content, &failure, tally);
        return SHADOW_FAILS_STILL;
    }
    ShadowResult result = compare_renderings(content, c, tally);
    json_decref(c->variables);
    return result;
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
    const CompiledVersion *changed = changed_version(content, &wanted);
    ShadowResult result = SHADOW_GATE_EXPIRED;
    bool was_broken = frozen != NULL && frozen->broken.kind != ERROR_NONE;
    if (changed != NULL && changed->broken.kind != ERROR_NONE && !was_broken) {
        return error_set(
            err, ERROR_PERMANENT, "the new content cannot be used: %s", changed->broken.text);
    }
    if (gate == SHADOW_SUPPRESSED) {
        result = SHADOW_GATE_SUPPRESSED;
    } else if (gate == SHADOW_PASSED && job->key == NULL) {
        result = SHADOW_ERASED;
    } else if (gate == SHADOW_PASSED && (frozen == NULL || changed == NULL)) {
        result = SHADOW_UNKNOWN;
    } else if (gate == SHADOW_PASSED) {
        Comparison c = {job, frozen, changed, NULL, scratch};
        result = compare_content(content, &c, tally);
    }
    tally->results[result]++;
    return true;
}
