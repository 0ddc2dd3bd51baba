// SPDX-License-Identifier: Apache-2.0
#include "common/template/template.h"

#include <stdlib.h>

#include "common/base/map.h"
#include "common/names/member.h"
#include "common/template/lexer.h"
#include "common/template/render.h"

typedef struct Partial {
    char *name;
    Program *program;
} Partial;

// A partial's call that only an inline partial of the template can answer.
typedef struct OpenCall {
    const Partial *partial; // whose call it is
    const PartialCall *call;
} OpenCall;

// What a finished set knows of its calls, so that no template looks through all of them again: one
// call for each name. Made with the first template.
typedef struct OpenCalls {
    bool known;
    OpenCall *calls;
    size_t count;
    Arena *arena;
    Map *inlines; // names of all inline partials of the set
} OpenCalls;

struct TemplateSet {
    Partial partials[TEMPLATE_PARTIALS_MAX];
    size_t count;
    bool lenient;
    OpenCalls *open;
};

struct Template {
    Program *program;
    const TemplateSet *set;
};

TemplateSet *template_set_new(void)
{
    TemplateSet *set = xcalloc(1, sizeof *set);
    set->open = xcalloc(1, sizeof *set->open);
    set->open->arena = arena_new(0);
    return set;
}

void template_set_free(TemplateSet *set)
{
    if (set == NULL) {
        return;
    }
    for (size_t i = 0; i < set->count; i++) {
        free(set->partials[i].name);
        program_free(set->partials[i].program);
    }
    arena_free(set->open->arena);
    map_free(set->open->inlines);
    free(set->open);
    free(set);
}

static const Partial *find_partial(const TemplateSet *set, Str name)
{
    for (size_t i = 0; set != NULL && i < set->count; i++) {
        if (str_eq(str_from(set->partials[i].name), name)) {
            return &set->partials[i];
        }
    }
    return NULL;
}

const Program *template_set_find(const TemplateSet *set, Str name)
{
    const Partial *partial = find_partial(set, name);
    return partial == NULL ? NULL : partial->program;
}

void template_set_allow_missing(TemplateSet *set)
{
    set->lenient = true;
}

bool template_set_is_lenient(const TemplateSet *set)
{
    return set != NULL && set->lenient;
}

// Gives every call of a partial that was there before the new one its program.
static void bind_to(const Partial *partial, Program *program)
{
    Str name = str_from(partial->name);
    for (PartialCall *call = program->calls; call != NULL; call = call->next) {
        if (!call->wants_block && str_eq(call->name, name)) {
            call->program = partial->program;
        }
    }
}

// Gives every call its program, as far as the set has it.
static void bind_partials(const TemplateSet *set, Program *program)
{
    for (PartialCall *call = program->calls; call != NULL; call = call->next) {
        call->program = call->wants_block ? NULL : template_set_find(set, call->name);
    }
}

static bool check_name(const TemplateSet *set, Str name, Error *err)
{
    if (name.len == 0 || name.len > TEMPLATE_PARTIAL_NAME_MAX || !str_is_utf8(name)) {
        return error_set(
            err, ERROR_PERMANENT, "a partial's name has 1 to %d bytes of UTF-8 text",
            TEMPLATE_PARTIAL_NAME_MAX);
    }
    if (set->count == TEMPLATE_PARTIALS_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "there are more than %d partials", TEMPLATE_PARTIALS_MAX);
    }
    if (find_partial(set, name) != NULL) {
        return error_set(
            err, ERROR_PERMANENT, "partial '" STR_FMT "' is given twice", STR_ARG(name));
    }
    return true;
}

bool template_set_add(TemplateSet *set, Str name, Str source, TemplateEscape escape, Error *err)
{
    if (!check_name(set, name, err)) {
        return false;
    }
    Program *program = program_compile(source, escape, err);
    if (program == NULL) {
        return error_wrap(err, "partial '" STR_FMT "'", STR_ARG(name));
    }
    char *copy = xcalloc(name.len + 1, 1);
    (void)str_to_c(name, copy, name.len + 1);
    const Partial *added = &set->partials[set->count];
    set->partials[set->count++] = (Partial){.name = copy, .program = program};
    for (size_t i = 0; i + 1 < set->count; i++) {
        bind_to(added, set->partials[i].program);
    }
    bind_partials(set, program);
    set->open->known = false;
    return true;
}

static bool defines_inline(const Program *program, Str name)
{
    const Inline *inline_partial = program->all_inlines;
    while (inline_partial != NULL && !str_eq(inline_partial->name, name)) {
        inline_partial = inline_partial->next_all;
    }
    return inline_partial != NULL;
}

static bool refuse_call(const Program *program, const PartialCall *call, Error *err)
{
    if (call->wants_block) {
        return syntax_error(
            program->source, call->at, err,
            "'@partial-block' is only there inside of partials; remove it");
    }
    return syntax_error(
        program->source, call->at, err,
        "unknown partial '" STR_FMT "'; add it to the template version",
        STR_ARG(str_slice(call->name, 0, TEMPLATE_PARTIAL_NAME_MAX)));
}

static bool is_answered(const PartialCall *call)
{
    return call->program != NULL || call->block != NULL || call->in_sight;
}

static void find_inlines(const TemplateSet *set, OpenCalls *open)
{
    map_free(open->inlines);
    open->inlines = map_new(NULL);
    for (size_t i = 0; i < set->count; i++) {
        const Inline *it = set->partials[i].program->all_inlines;
        for (; it != NULL; it = it->next_all) {
            map_put(open->inlines, it->name, open);
        }
    }
}

static void find_open_calls(const TemplateSet *set, OpenCalls *open)
{
    Map *seen = map_new(NULL);
    Buf calls;
    buf_init(&calls, (size_t)4 * TEMPLATE_PARTIALS_MAX * TEMPLATE_SOURCE_MAX);
    for (size_t i = 0; i < set->count; i++) {
        const PartialCall *call = set->partials[i].program->calls;
        for (; call != NULL; call = call->next) {
            if (!is_answered(call) && !call->wants_block &&
                map_get(open->inlines, call->name) == NULL && map_get(seen, call->name) == NULL) {
                map_put(seen, call->name, open);
                buf_append(&calls, &(OpenCall){&set->partials[i], call}, sizeof(OpenCall));
            }
        }
    }
    arena_reset(open->arena);
    open->calls = arena_copy(open->arena, calls.ptr, calls.len);
    open->count = calls.len / sizeof(OpenCall);
    buf_done(&calls);
    map_free(seen);
}

// A partial also sees the inline partials of whoever calls it, which may be any of the version's.
static const OpenCalls *open_calls(const TemplateSet *set)
{
    OpenCalls *open = set->open;
    if (!open->known) {
        find_inlines(set, open);
        find_open_calls(set, open);
        open->known = true;
    }
    return open;
}

// A template sees the inline partials around the place; the body of an inline one also those of
// whoever calls it.
static bool check_template(const TemplateSet *set, const Program *main, Error *err)
{
    const Map *inlines = set != NULL ? open_calls(set)->inlines : NULL;
    for (const PartialCall *call = main->calls; call != NULL; call = call->next) {
        bool is_inline = defines_inline(main, call->name) ||
                         (inlines != NULL && map_get(inlines, call->name) != NULL);
        bool there = is_answered(call) || (call->in_inline && (call->wants_block || is_inline));
        if (!there) {
            return refuse_call(main, call, err);
        }
    }
    return true;
}

// Partials may call one another in any order, so what is missing is known only when all are there.
static bool check_set(const TemplateSet *set, const Program *main, Error *err)
{
    const OpenCalls *open = set != NULL ? open_calls(set) : NULL;
    for (size_t i = 0; open != NULL && i < open->count; i++) {
        const OpenCall *it = &open->calls[i];
        if (!defines_inline(main, it->call->name)) {
            (void)refuse_call(it->partial->program, it->call, err);
            return error_wrap(err, "partial '%s'", it->partial->name);
        }
    }
    return true;
}

Template *template_compile(Str source, TemplateEscape escape, const TemplateSet *set, Error *err)
{
    Program *program = program_compile(source, escape, err);
    if (program == NULL) {
        return NULL;
    }
    bind_partials(set, program);
    bool lenient = template_set_is_lenient(set);
    if (!lenient && (!check_template(set, program, err) || !check_set(set, program, err))) {
        program_free(program);
        return NULL;
    }
    Template *tpl = xcalloc(1, sizeof *tpl);
    tpl->program = program;
    tpl->set = set;
    return tpl;
}

void template_free(Template *tpl)
{
    if (tpl != NULL) {
        program_free(tpl->program);
        free(tpl);
    }
}

TemplateTools *template_tools_new(void)
{
    TemplateTools *tools = xcalloc(1, sizeof *tools);
    tools->formats = formats_new();
    tools->arena = arena_new(0);
    buf_init(&tools->work, HELPER_TEXT_MAX);
    return tools;
}

void template_tools_free(TemplateTools *tools)
{
    if (tools != NULL) {
        formats_free(tools->formats);
        arena_free(tools->arena);
        buf_done(&tools->work);
        free(tools);
    }
}

bool template_meter_ask(TemplateMeter *meter, Error *err)
{
    if (meter == NULL || meter->cpu_us == NULL) {
        return true;
    }
    int64_t now_us = meter->cpu_us();
    if (meter->until_us == 0) {
        meter->until_us = now_us + meter->max_us;
    }
    if (now_us <= meter->until_us) {
        return true;
    }
    meter->over = true;
    return error_set(
        err, ERROR_PERMANENT, "the rendering takes more than %lld ms of CPU time",
        (long long)(meter->max_us / 1000));
}

bool template_render(const Template *tpl, const json_t *variables, Buf *out, Error *err)
{
    return template_render_in(tpl, &(TemplateContext){0}, variables, out, err);
}

bool template_render_in(
    const Template *tpl, const TemplateContext *context, const json_t *variables, Buf *out,
    Error *err)
{
    return program_render(tpl->program, tpl->set, variables, context, out, err);
}

static void each_asset(const Program *program, TemplateAssetNamed each, void *ctx)
{
    for (const AssetName *it = program->assets; it != NULL; it = it->next) {
        each(ctx, it->name);
    }
}

void template_assets(const Template *tpl, TemplateAssetNamed each, void *ctx)
{
    each_asset(tpl->program, each, ctx);
    for (size_t i = 0; tpl->set != NULL && i < tpl->set->count; i++) {
        each_asset(tpl->set->partials[i].program, each, ctx);
    }
}

const json_t *template_lookup(const json_t *variables, Str path)
{
    const json_t *json = variables;
    Str name;
    for (Str rest = path; json != NULL && str_split(&rest, '.', &name);) {
        Segment segment = segment_of(name);
        if (json_is_object(json)) {
            json = member_find(json, name);
        } else if (json_is_array(json) && segment.index >= 0) {
            json = json_array_get(json, (size_t)segment.index);
        } else {
            json = NULL;
        }
    }
    return json;
}
