// SPDX-License-Identifier: Apache-2.0
// Render: a loop over operations with a small stack of frames; nothing is allocated but `out`, and
// the texts that helpers make (HELPER_TEXT_MAX).
// Bounds: frames (TEMPLATE_DEPTH_MAX), rounds of loops and partials (TEMPLATE_ITERATIONS_MAX),
// operations (TEMPLATE_STEPS_MAX), bytes (TEMPLATE_OUTPUT_MAX); so no template and no variables can
// hold the loop thread.
#include <stdlib.h>
#include <string.h>

#include "common/template/lexer.h"
#include "common/template/render.h"

enum { LOOK_STEPS = 4096 };

// ---- values ----

static Value context_at(const Render *render, uint32_t depth)
{
    int at = render->current;
    for (; depth > 0 && at != NO_FRAME; depth--) {
        at = render->frames[at].outer;
    }
    return at == NO_FRAME ? (Value){.kind = VALUE_NONE} : render->frames[at].context;
}

Value render_context(const Render *render)
{
    return context_at(render, 0);
}

// The loop that @index and its like speak of; `../` in front goes to the loops around.
static const Frame *loop_at(const Render *render, uint32_t depth)
{
    for (int at = render->top; at >= 0; at--) {
        const Frame *frame = &render->frames[at];
        if (frame->loop != LOOP_NONE && depth-- == 0) {
            return frame;
        }
    }
    return NULL;
}

static Value loop_key(const Frame *loop)
{
    if (loop->loop == LOOP_ARRAY) {
        return (Value){.kind = VALUE_INT, .number = (int64_t)loop->index};
    }
    Str key = {json_object_iter_key(loop->member), json_object_iter_key_len(loop->member)};
    return (Value){.kind = VALUE_TEXT, .text = key};
}

static Value data_value(const Render *render, DataName name, uint32_t depth)
{
    if (name == DATA_ROOT) {
        return render->root;
    }
    if (name == DATA_PARTIAL_BLOCK) {
        bool is_there = render->activation->block != NULL;
        return (Value){.kind = is_there ? VALUE_BOOL : VALUE_NONE, .truth = true};
    }
    const Frame *loop = loop_at(render, depth);
    if (loop == NULL) {
        return (Value){.kind = VALUE_NONE};
    }
    switch (name) {
    case DATA_INDEX:
        return (Value){.kind = VALUE_INT, .number = (int64_t)loop->index};
    case DATA_FIRST:
        return (Value){.kind = VALUE_BOOL, .truth = loop->index == 0};
    case DATA_LAST:
        return (Value){.kind = VALUE_BOOL, .truth = loop->index + 1 == loop->count};
    case DATA_KEY:
        return loop_key(loop);
    case DATA_ROOT:
    case DATA_PARTIAL_BLOCK:
    case DATA_NONE:
        break;
    }
    return (Value){.kind = VALUE_NONE};
}

static Value search(Render *render, const Segment *name)
{
    Value value = {.kind = VALUE_NONE};
    for (int at = render->current; at != NO_FRAME && value.kind == VALUE_NONE;) {
        const Frame *frame = &render->frames[at];
        value = value_member(&frame->context, name, &render->steps);
        render->steps++;
        at = frame->around;
    }
    return value;
}

static Value param_value(const Render *render, const Operand *operand)
{
    const Activation *activation = render->activation;
    for (uint8_t up = operand->up; up > 0; up--) {
        activation = activation->definer;
    }
    const Frame *frame = &render->frames[activation->base + (int)operand->depth];
    if (!operand->is_key) {
        return frame->context;
    }
    return frame->loop != LOOP_NONE ? loop_key(frame) : (Value){.kind = VALUE_NONE};
}

static bool call_helper(Render *render, const Operand *operand, Value *ret, Error *err);

// Where the operand's path begins.
static Value start_of(Render *render, const Operand *operand)
{
    switch (operand->kind) {
    case OPERAND_SEARCH:
        return search(render, &operand->segments[0]);
    case OPERAND_LITERAL:
        return operand->literal;
    case OPERAND_DATA:
        return data_value(render, operand->data, operand->depth);
    case OPERAND_PARAM:
        return param_value(render, operand);
    case OPERAND_PATH:
    case OPERAND_CALL:
        break;
    }
    return context_at(render, operand->depth);
}

bool render_evaluate(Render *render, const Operand *operand, Value *ret, Error *err)
{
    if (operand->kind == OPERAND_CALL) {
        return call_helper(render, operand, ret, err);
    }
    Value value = start_of(render, operand);
    for (uint32_t i = operand->kind == OPERAND_SEARCH ? 1 : 0; i < operand->segment_count; i++) {
        value = value_member(&value, &operand->segments[i], &render->steps);
    }
    *ret = value;
    render->steps += operand->segment_count;
    bool missing = value.kind == VALUE_NONE && render->context->strict && !operand->may_miss;
    return !missing ||
           error_set(
               err, ERROR_PERMANENT, "variable '" STR_FMT "' is missing", STR_ARG(operand->name));
}

// ---- helpers ----

static HelperRun *helper_run(Render *render)
{
    HelperRun *run = &render->helper;
    if (render->tools == NULL) {
        const TemplateContext *context = render->context;
        render->tools = context->tools != NULL ? context->tools : template_tools_new();
        arena_reset(render->tools->arena);
        *run = (HelperRun){
            .locale = context->locale,
            .zone = context->zone,
            .formats = render->tools->formats,
            .assets = context->assets,
            .arena = render->tools->arena,
            .work = &render->tools->work,
        };
    }
    return run;
}

void render_set_over(Render *render)
{
    if (render->context->meter != NULL) {
        render->context->meter->over = true;
    }
}

static bool look_at_limits(Render *render, Error *err)
{
    if (render->steps > TEMPLATE_STEPS_MAX) {
        render_set_over(render);
        return error_set(
            err, ERROR_PERMANENT, "the template takes more than %d steps", TEMPLATE_STEPS_MAX);
    }
    uint32_t next = render->steps + LOOK_STEPS;
    render->look_at = next < TEMPLATE_STEPS_MAX ? next : TEMPLATE_STEPS_MAX;
    return template_meter_ask(render->context->meter, err);
}

// Ends a render that has more steps than it may have, or takes too long.
static bool within_steps(Render *render, Error *err)
{
    return render->steps <= render->look_at || look_at_limits(render, err);
}

static bool call_helper(Render *render, const Operand *operand, Value *ret, Error *err)
{
    const HelperCall *call = operand->call;
    if (render->context->as_written) { // what it makes of values is as personal as they are
        *ret = (Value){.kind = VALUE_TEXT, .text = STR("{{}}")};
        render->steps++;
        return true;
    }
    Value params[PARAMS_MAX];
    Value values[PAIRS_MAX];
    for (size_t i = 0; i < call->param_count; i++) {
        if (!render_evaluate(render, &call->params[i], &params[i], err)) {
            return false;
        }
    }
    for (size_t i = 0; i < call->pair_count; i++) {
        if (!render_evaluate(render, &call->operands[i], &values[i], err)) {
            return false;
        }
    }
    HelperArgs args = {
        .params = params,
        .count = call->param_count,
        .names = call->names,
        .named = values,
        .named_count = call->pair_count,
        .first_is_written = call->param_count > 0 && call->params[0].kind == OPERAND_LITERAL,
    };
    HelperRun *run = helper_run(render);
    buf_clear(run->work);
    bool ok = helper_apply(call->helper, run, &args, ret, err);
    render->steps += run->steps;
    return ok && within_steps(render, err);
}

// ---- operations ----

typedef enum Entry { ENTRY_SKIP, ENTRY_LOOP, ENTRY_CONTEXT, ENTRY_HERE } Entry;

// How a block goes on, by its kind and its value. Source: Handlebars' each, with and
// blockHelperMissing.
static Entry entry_of(OpKind kind, const Value *value)
{
    if (kind == OP_WITH) {
        return value_is_empty(value) ? ENTRY_SKIP : ENTRY_CONTEXT;
    }
    switch (value->kind) {
    case VALUE_ARRAY:
        return json_array_size(value->json) > 0 ? ENTRY_LOOP : ENTRY_SKIP;
    case VALUE_OBJECT:
        if (kind == OP_SECTION) {
            return ENTRY_CONTEXT;
        }
        return json_object_size(value->json) > 0 ? ENTRY_LOOP : ENTRY_SKIP;
    case VALUE_NONE:
    case VALUE_NULL:
        return ENTRY_SKIP;
    case VALUE_BOOL:
        return kind == OP_SECTION && value->truth ? ENTRY_HERE : ENTRY_SKIP;
    case VALUE_INT:
    case VALUE_REAL:
    case VALUE_TEXT:
    case VALUE_MERGED:
        break;
    }
    return kind == OP_SECTION ? ENTRY_CONTEXT : ENTRY_SKIP;
}

static bool enter(Render *render, const Op *op, uint32_t *pc, Error *err)
{
    Value value;
    if (!render_evaluate(render, &op->operand, &value, err)) {
        return false;
    }
    if (op->kind == OP_EACH && value.kind == VALUE_MERGED) {
        return error_set(
            err, ERROR_PERMANENT,
            "'#each' cannot walk the context of a partial that has named arguments");
    }
    switch (entry_of(op->kind, &value)) {
    case ENTRY_SKIP:
        *pc = op->target;
        return true;
    case ENTRY_LOOP:
        return render_enter_loop(render, &value, err);
    case ENTRY_CONTEXT:
        return render_enter_context(render, value, err);
    case ENTRY_HERE:
        break;
    }
    return render_enter_context(render, context_at(render, 0), err);
}

static bool leave(Render *render, const Op *op, uint32_t *pc, Error *err)
{
    Frame *frame = &render->frames[render->top];
    if (frame->loop != LOOP_NONE && frame->index + 1 < frame->count) {
        frame->index++;
        if (frame->loop == LOOP_OBJECT) {
            // jansson's iterators do not change what they walk
            json_t *items = (json_t *)(uintptr_t)frame->items;
            frame->member = json_object_iter_next(items, frame->member);
        }
        *pc = op->target;
        return render_begin_round(render, frame, err);
    }
    render_pop(render, frame->outer);
    return true;
}

static void put_indent(Buf *out, const Indent *indent)
{
    if (indent != NULL) {
        put_indent(out, indent->outer);
        buf_append(out, indent->text.ptr, indent->text.len);
    }
}

// The program's own text, with the indentation before each of its lines.
static void put_lines(Render *render, Str text)
{
    Buf *out = render->out;
    for (size_t at = 0; at < text.len && !out->full;) {
        const char *end = memchr(text.ptr + at, '\n', text.len - at);
        size_t to = end == NULL ? text.len : (size_t)(end - text.ptr) + 1;
        if (render->line_begins) {
            put_indent(out, render->indent);
        }
        buf_append(out, text.ptr + at, to - at);
        render->line_begins = end != NULL;
        at = to;
    }
}

static bool within_limits(Render *render, Error *err)
{
    if (render->out->full || render->out->len > render->out_limit) {
        bool field = render->out->max < render->out_limit; // its own limit, as of a title
        return error_set(
            err, ERROR_PERMANENT, "the output is larger than %zu bytes",
            field ? render->out->max : (size_t)TEMPLATE_OUTPUT_MAX);
    }
    render->steps++;
    return within_steps(render, err);
}

// What was appended from `from` on must not make a script of a URL or of CSS; else a harmless one
// stands for it. ERROR_PERMANENT: no room for that.
static void guard_url(Render *render, size_t from, bool raw, Str instead)
{
    Buf *out = render->out;
    if (!html_url_is_unsafe(&render->html, buf_view(out), from, raw, &render->steps)) {
        return;
    }
    out->len = from;
    buf_cstr(out, TEMPLATE_UNSAFE_URL);
    buf_str(out, instead);
    if (render->context->meter != NULL) {
        render->context->meter->unsafe_urls++;
    }
}

static void put_text(Render *render, const Op *op)
{
    size_t from = render->out->len;
    if (render->indent != NULL) {
        put_lines(render, op->text);
    } else {
        buf_append(render->out, op->text.ptr, op->text.len);
    }
    render->html.has_code = render->html.has_code || op->has_code;
    if (op->ends_scheme &&
        html_url_has_started(&render->html, buf_view(render->out), from, &render->steps)) {
        guard_url(render, from, false, op->text);
    }
}

// "{{date due \"long\"}}", from `at` on.
static Str tag_at(Str source, size_t at)
{
    size_t to = at;
    char quote = '\0';
    while (to < source.len &&
           (quote != '\0' || !str_starts(str_slice(source, to, source.len), STR("}}")))) {
        char c = source.ptr[to++];
        if (quote != '\0') {
            quote = c == quote ? '\0' : quote;
        } else if (c == '"' || c == '\'') {
            quote = c;
        }
    }
    to += to + 2 < source.len && source.ptr[to + 2] == '}' ? 3 : 2; // {{{name}}}
    return str_slice(source, at, to);
}

static bool print_tag(Render *render, const Op *op, Error *err)
{
    Value tag = {.kind = VALUE_TEXT, .text = tag_at(render->activation->program->source, op->at)};
    bool in_json = op->escape == TEMPLATE_ESCAPE_JSON;
    Print print = {.escape = in_json ? op->escape : TEMPLATE_ESCAPE_NONE, .out = render->out};
    bool ok = value_print(&print, &tag, err);
    render->steps += print.steps;
    return ok;
}

static bool print(Render *render, const Op *op, Error *err)
{
    Value value;
    if (!render_evaluate(render, &op->operand, &value, err)) {
        return false;
    }
    if (render->indent != NULL && render->line_begins) {
        put_indent(render->out, render->indent);
        render->line_begins = false;
    }
    if (render->context->as_written) {
        return print_tag(render, op, err);
    }
    Buf *out = render->out;
    Print print = {.escape = op->escape, .out = out};
    size_t from = out->len;
    bool ok = value_print(&print, &value, err);
    render->steps += print.steps;
    bool raw = op->escape == TEMPLATE_ESCAPE_NONE;
    if (op->in_html && (print.marked || raw || render->html.has_code)) {
        guard_url(render, from, raw, STR_EMPTY);
    }
    return ok;
}

static bool step(Render *render, const Op *op, uint32_t *pc, Error *err)
{
    Value value;
    bool is_true;
    if (op->by_helper && render->context->as_written) {
        return true; // both branches are shown: which one held would say how values compare
    }
    switch (op->kind) {
    case OP_TEXT:
        put_text(render, op);
        return true;
    case OP_PRINT:
        return print(render, op, err);
    case OP_UNLESS_GO:
    case OP_IF_GO:
        if (!render_evaluate(render, &op->operand, &value, err)) {
            return false;
        }
        is_true = !value_is_empty(&value) && (op->zero_is_true || !value_is_zero(&value));
        if (is_true == (op->kind == OP_IF_GO)) {
            *pc = op->target;
        }
        return true;
    case OP_EACH:
    case OP_WITH:
    case OP_SECTION:
        return enter(render, op, pc, err);
    case OP_LEAVE:
        return leave(render, op, pc, err);
    case OP_GO:
        *pc = op->target;
        return true;
    case OP_PARTIAL:
        return invoke_partial(render, op->partial, err);
    case OP_BODY:
        return invoke_body(render, op->body, err);
    }
    return true;
}

// The innermost place is named, once.
static bool place(Render *render, const Op *op, Error *err)
{
    if (render->placed) {
        return false;
    }
    render->placed = true;
    const Activation *activation = render->activation;
    (void)error_place(activation->program->source, op->at, err);
    return activation->partial.len > 0 &&
           error_wrap(err, "partial '" STR_FMT "'", STR_ARG(activation->partial));
}

bool render_run(Render *render, Activation *next, Error *err)
{
    const Program *program = next->program;
    render->activation = next;
    next->base = render->top;
    if (program->inlines != NULL) {
        next->own = (Inlines){
            .body = program,
            .partial = next->partial,
            .definer = next->definer,
            .around = next->around,
            .seen = program->is_block ? next->inlines : &next->own,
            .outer = next->inlines,
        };
        next->inlines = &next->own;
    }
    for (uint32_t pc = 0; pc < program->op_count;) {
        const Op *op = &program->ops[pc++];
        if (!step(render, op, &pc, err) || !within_limits(render, err)) {
            return place(render, op, err);
        }
    }
    return true;
}

bool program_render(
    const Program *program, const TemplateSet *set, const json_t *variables,
    const TemplateContext *context, Buf *out, Error *err)
{
    Render render;
    render.context = context;
    render.set = set;
    render.tools = NULL;
    render.root = value_of_json(variables);
    render.frames[0] =
        (Frame){.context = render.root, .outer = NO_FRAME, .around = NO_FRAME, .adds = true};
    render.top = 0;
    render.current = 0;
    render.indent = NULL;
    render.line_begins = false;
    render.placed = false;
    render.rounds = 0;
    render.steps = 0;
    render.look_at = LOOK_STEPS;
    render.html = (HtmlScan){.at = out->len};
    render.out_limit = out->len + TEMPLATE_OUTPUT_MAX;
    render.out = out;
    Activation whole = {.program = program, .around = NO_FRAME};
    bool ok = render_run(&render, &whole, err);
    if (render.tools != context->tools) {
        template_tools_free(render.tools);
    }
    return ok;
}
