// SPDX-License-Identifier: Apache-2.0
#include "common/template/template.h"

#include <stdlib.h>

#include "common/template/lexer.h"
#include "common/template/render.h"

typedef struct Partial {
    char *name;
    Program *program;
} Partial;

struct TemplateSet {
    Partial partials[TEMPLATE_PARTIALS_MAX];
    size_t count;
    bool lenient;
};

struct Template {
    Program *program;
    const TemplateSet *set;
};

TemplateSet *template_set_new(void)
{
    return xcalloc(1, sizeof(TemplateSet));
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
    set->partials[set->count++] = (Partial){.name = copy, .program = program};
    for (size_t i = 0; i < set->count; i++) {
        bind_partials(set, set->partials[i].program);
    }
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

static bool is_inline_somewhere(const TemplateSet *set, const Program *program, Str name)
{
    bool found = defines_inline(program, name);
    for (size_t i = 0; set != NULL && !found && i < set->count; i++) {
        found = defines_inline(set->partials[i].program, name);
    }
    return found;
}

// A partial, and the body of an inline one, also sees the inline partials of whoever calls it,
// which may be any of the version's; a template sees those around the place.
static bool may_be_there(
    const TemplateSet *set, const Program *main, bool is_main, const PartialCall *call)
{
    if (call->program != NULL || call->block != NULL || call->in_sight) {
        return true;
    }
    bool is_called = !is_main || call->in_inline;
    return is_called && (call->wants_block || is_inline_somewhere(set, main, call->name));
}

static bool check_bound(
    const TemplateSet *set, const Program *main, const Program *program, Error *err)
{
    for (const PartialCall *call = program->calls; call != NULL; call = call->next) {
        if (may_be_there(set, main, program == main, call)) {
            continue;
        }
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
    return true;
}

// Partials may call one another in any order, so what is missing is known only when all are there.
static bool check_set(const TemplateSet *set, const Program *main, Error *err)
{
    for (size_t i = 0; set != NULL && !set->lenient && i < set->count; i++) {
        if (!check_bound(set, main, set->partials[i].program, err)) {
            return error_wrap(err, "partial '%s'", set->partials[i].name);
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
    if ((!lenient && !check_bound(set, program, program, err)) || !check_set(set, program, err)) {
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

const json_t *template_lookup(const json_t *variables, Str path)
{
    const json_t *json = variables;
    Str name;
    for (Str rest = path; json != NULL && str_split(&rest, '.', &name);) {
        Segment segment = segment_of(name);
        if (json_is_object(json)) {
            json = json_object_getn(json, name.ptr, name.len);
        } else if (json_is_array(json) && segment.index >= 0) {
            json = json_array_get(json, (size_t)segment.index);
        } else {
            json = NULL;
        }
    }
    return json;
}
