// SPDX-License-Identifier: Apache-2.0
// Partials at render: which program a name means here, and the environment that it runs in. Inline
// partials and blocks are closures, on the stack of C: none outlives the body that defines it.
#include "common/template/render.h"

// The inline partial that is in force; NULL: none has the name.
static const Inline *find_inline(Render *render, Str name, const Inlines **ret_from)
{
    for (const Inlines *from = render->activation->inlines; from != NULL; from = from->outer) {
        for (const Inline *it = from->body->inlines; it != NULL; it = it->next) {
            render->steps++;
            if (str_eq(it->name, name)) {
                *ret_from = from;
                return it;
            }
        }
    }
    return NULL;
}

static void take_block(const Block *block, Activation *ret)
{
    ret->program = block->program;
    ret->partial = block->definer->partial;
    ret->definer = block->definer;
    ret->around = block->around;
    ret->inlines = block->definer->inlines;
    ret->block = block->definer->block;
}

// What the set has is bound before; what is in force here goes first.
static void take_named(Render *render, const PartialCall *call, Str name, Activation *ret)
{
    const Inlines *from = NULL;
    const Inline *found = find_inline(render, name, &from);
    if (found != NULL) {
        ret->program = found->program;
        ret->partial = from->partial;
        ret->definer = from->definer;
        ret->around = from->around;
        ret->inlines = from->seen;
        return;
    }
    ret->program = call->is_dynamic ? template_set_find(render->set, name) : call->program;
    ret->partial = name;
    ret->inlines = render->activation->inlines;
}

static bool refuse_partial(const Render *render, const PartialCall *call, Error *err)
{
    Str name = str_slice(call->name, 0, 60);
    if (template_set_is_lenient(render->set)) {
        return true;
    }
    if (call->wants_block) {
        return error_set(
            err, ERROR_PERMANENT,
            "there is no '@partial-block': this partial was called without a block; call it with "
            "'{{#> name}}', or ask '{{#if @partial-block}}'");
    }
    if (call->is_dynamic) {
        return error_set(
            err, ERROR_PERMANENT, "'" STR_FMT "' gives no partial of this template version",
            STR_ARG(name));
    }
    return error_set(
        err, ERROR_PERMANENT,
        "partial '" STR_FMT
        "' does not exist: the caller of this partial defines no such inline partial",
        STR_ARG(name));
}

// What the call means here; ret->program NULL and true: nothing.
static bool find_partial(
    Render *render, const PartialCall *call, const Block *given, Activation *ret, Error *err)
{
    const Activation *here = render->activation;
    Str name = call->name;
    if (call->is_dynamic) {
        Value value;
        if (!render_evaluate(render, &call->by, &value, err)) {
            return false;
        }
        name = value.kind == VALUE_TEXT ? value.text : STR("");
    }
    *ret = (Activation){.block = call->block != NULL ? given : here->block, .around = NO_FRAME};
    if (!call->wants_block) {
        take_named(render, call, name, ret);
    } else if (here->block != NULL) {
        take_block(here->block, ret);
    }
    if (ret->program == NULL && call->block != NULL) {
        take_block(given, ret);
    }
    return ret->program != NULL || refuse_partial(render, call, err);
}

static bool run_inside(Render *render, Activation *next, const PartialCall *call, Error *err)
{
    const Activation *here = render->activation;
    const Indent *indent_before = render->indent;
    Indent indent = {call->indent, indent_before};
    if (call->indent.len > 0) {
        render->indent = &indent;
        render->line_begins = true;
    }
    // The inline partials of its block are there for what it calls.
    Inlines offered;
    if (call->block != NULL && call->block->inlines != NULL && !next->program->is_block) {
        offered = (Inlines){
            .body = call->block,
            .partial = here->partial,
            .definer = here,
            .around = render->frames[render->top].around,
            .seen = here->inlines,
            .outer = next->inlines,
        };
        next->inlines = &offered;
    }
    if (!render_run(render, next, err)) {
        return false;
    }
    render->activation = here;
    render->indent = indent_before;
    return true;
}

// A partial sees its context, the loops around and the names of the contexts around, but `../` does
// not leave it, as in Handlebars; out of a block or an inline partial it leads to where that
// stands.
bool invoke_partial(Render *render, const PartialCall *call, Error *err)
{
    const Block given = {call->block, render->activation, render->current};
    Activation next;
    Value values[PAIRS_MAX];
    Value base = render_context(render);
    if (!find_partial(render, call, &given, &next, err) ||
        (call->has_context && !render_evaluate(render, &call->context, &base, err))) {
        return false;
    }
    if (next.program == NULL) {
        return true;
    }
    for (size_t i = 0; i < call->count; i++) {
        if (!render_evaluate(render, &call->operands[i], &values[i], err)) {
            return false;
        }
    }
    Merged merged = {.base = base, .names = call->names, .values = values, .count = call->count};
    int current = render->current;
    Frame *frame = render_push(render, err);
    if (frame == NULL || !render_count_round(render, err)) {
        return false;
    }
    frame->outer = next.around;
    Value context = call->count > 0 ? (Value){.kind = VALUE_MERGED, .merged = &merged} : base;
    render_set_context(render, frame, context);
    if (!run_inside(render, &next, call, err)) {
        return false;
    }
    render_pop(render, current);
    return true;
}

// A block's body that defines inline partials: in the same context; the frame is there for the
// bound on depth.
bool invoke_body(Render *render, const Program *body, Error *err)
{
    const Activation *here = render->activation;
    int current = render->current;
    Activation next = {
        .program = body,
        .partial = here->partial,
        .definer = here,
        .block = here->block,
        .inlines = here->inlines,
        .around = current,
    };
    Value context = render_context(render);
    Frame *frame = render_push(render, err);
    if (frame == NULL) {
        return false;
    }
    render_set_context(render, frame, context);
    if (!render_run(render, &next, err)) {
        return false;
    }
    render->activation = here;
    render_pop(render, current);
    return true;
}
