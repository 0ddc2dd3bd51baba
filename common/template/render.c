// SPDX-License-Identifier: Apache-2.0
// Render: a loop over operations with a small stack of frames; nothing is allocated but `out`.
// Bounds: frames (TEMPLATE_DEPTH_MAX), rounds of loops and partials (TEMPLATE_ITERATIONS_MAX),
// operations (TEMPLATE_STEPS_MAX), bytes (TEMPLATE_OUTPUT_MAX); so no template and no variables can
// hold the loop thread.
#include <assert.h>
#include <string.h>

#include "common/template/program.h"

typedef enum LoopKind { LOOP_NONE, LOOP_ARRAY, LOOP_OBJECT } LoopKind;

enum { NO_FRAME = -1 };

typedef struct Frame {
    Value context;
    int outer; // frame of the context around this one; NO_FRAME in a partial's first
    bool adds; // false: the context is the same as the one around, so `../` does not stop here
    LoopKind loop;
    const json_t *items;
    void *member; // of LOOP_OBJECT
    size_t index;
    size_t count;
} Frame;

typedef struct Render {
    Value root;
    Frame frames[TEMPLATE_DEPTH_MAX + 1];
    int top;     // frame that was entered last
    int current; // frame whose context is in force
    uint32_t rounds;
    uint32_t steps;
    size_t out_limit;
    Buf *out;
} Render;

static bool run(Render *render, const Program *program, Error *err);

// ---- values ----

static Value context_at(const Render *render, uint32_t depth)
{
    int at = render->current;
    for (; depth > 0 && at != NO_FRAME; depth--) {
        at = render->frames[at].outer;
    }
    return at == NO_FRAME ? (Value){.kind = VALUE_NONE} : render->frames[at].context;
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

static json_t *unconst(const json_t *json)
{
    return (json_t *)(uintptr_t)json; // jansson's iterators do not change what they walk
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
    case DATA_NONE:
        break;
    }
    return (Value){.kind = VALUE_NONE};
}

static Value evaluate(const Render *render, const Operand *operand)
{
    if (operand->is_literal) {
        return operand->literal;
    }
    Value value = operand->data != DATA_NONE ? data_value(render, operand->data, operand->depth)
                                             : context_at(render, operand->depth);
    for (uint32_t i = 0; i < operand->segment_count; i++) {
        value = value_member(&value, &operand->segments[i]);
    }
    return value;
}

static bool is_true(const Value *value, bool zero_is_true)
{
    return !value_is_empty(value) && (zero_is_true || !value_is_zero(value));
}

// ---- frames ----

static bool count_round(Render *render, Error *err)
{
    if (++render->rounds > TEMPLATE_ITERATIONS_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "more than %d rounds of loops and partials in one render",
            TEMPLATE_ITERATIONS_MAX);
    }
    return true;
}

static void set_context(Render *render, Frame *frame, Value context)
{
    bool has_outer = frame->outer != NO_FRAME;
    frame->context = context;
    frame->adds = !has_outer || !value_same(&context, &render->frames[frame->outer].context);
    render->current = frame->adds ? (int)(frame - render->frames) : frame->outer;
}

static Frame *push(Render *render, Error *err)
{
    if (render->top == TEMPLATE_DEPTH_MAX) {
        error_set(
            err, ERROR_PERMANENT,
            "blocks and partials are more than %d deep; does a partial call "
            "itself without an end?",
            TEMPLATE_DEPTH_MAX);
        return NULL;
    }
    Frame *frame = &render->frames[++render->top];
    *frame = (Frame){.outer = render->current};
    return frame;
}

static void pop(Render *render, int current)
{
    render->top--;
    render->current = current;
}

static bool begin_round(Render *render, Frame *frame, Error *err)
{
    const json_t *item = frame->loop == LOOP_ARRAY ? json_array_get(frame->items, frame->index)
                                                   : json_object_iter_value(frame->member);
    set_context(render, frame, value_of_json(item));
    return count_round(render, err);
}

static bool enter_loop(Render *render, const Value *value, Error *err)
{
    Frame *frame = push(render, err);
    if (frame == NULL) {
        return false;
    }
    frame->items = value->json;
    frame->loop = value->kind == VALUE_ARRAY ? LOOP_ARRAY : LOOP_OBJECT;
    if (frame->loop == LOOP_ARRAY) {
        frame->count = json_array_size(value->json);
    } else {
        frame->count = json_object_size(value->json);
        frame->member = json_object_iter(unconst(value->json));
    }
    return begin_round(render, frame, err);
}

static bool enter_context(Render *render, Value value, Error *err)
{
    Frame *frame = push(render, err);
    if (frame == NULL) {
        return false;
    }
    set_context(render, frame, value);
    return true;
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
    Value value = evaluate(render, &op->operand);
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
        return enter_loop(render, &value, err);
    case ENTRY_CONTEXT:
        return enter_context(render, value, err);
    case ENTRY_HERE:
        break;
    }
    return enter_context(render, context_at(render, 0), err);
}

static bool leave(Render *render, const Op *op, uint32_t *pc, Error *err)
{
    Frame *frame = &render->frames[render->top];
    if (frame->loop != LOOP_NONE && frame->index + 1 < frame->count) {
        frame->index++;
        if (frame->loop == LOOP_OBJECT) {
            frame->member = json_object_iter_next(unconst(frame->items), frame->member);
        }
        *pc = op->target;
        return begin_round(render, frame, err);
    }
    pop(render, frame->outer);
    return true;
}

// Puts `indent` before every line of what was appended from `start` on; an empty last line gets
// none.
static void indent_output(Buf *out, size_t start, Str indent)
{
    size_t lines = 0;
    for (size_t i = start; i < out->len; i++) {
        bool begins = i == start || out->ptr[i - 1] == '\n';
        lines += begins ? 1 : 0;
    }
    size_t grow = lines * indent.len;
    size_t from = out->len;
    if (!buf_reserve(out, grow)) {
        return; // `full` is set, which the caller tests
    }
    out->len += grow;
    size_t to = out->len;
    // Backwards, so that every byte is moved once and in place.
    while (from > start) {
        out->ptr[--to] = out->ptr[--from];
        if (from == start || out->ptr[from - 1] == '\n') {
            to -= indent.len;
            memcpy(out->ptr + to, indent.ptr, indent.len);
        }
    }
}

// A partial sees its context and the loops around, but not the contexts around (`../`), as in
// Handlebars.
static bool run_partial(Render *render, const PartialCall *call, Error *err)
{
    Value values[PAIRS_MAX];
    Value base = call->has_context ? evaluate(render, &call->context) : context_at(render, 0);
    Merged merged = {.base = base, .names = call->names, .values = values, .count = call->count};
    for (size_t i = 0; i < call->count; i++) {
        values[i] = evaluate(render, &call->operands[i]);
    }
    int current = render->current;
    Frame *frame = push(render, err);
    if (frame == NULL || !count_round(render, err)) {
        return false;
    }
    frame->outer = NO_FRAME;
    Value context = call->count > 0 ? (Value){.kind = VALUE_MERGED, .merged = &merged} : base;
    set_context(render, frame, context);
    size_t start = render->out->len;
    if (!run(render, call->program, err)) {
        return false;
    }
    if (call->indent.len > 0) {
        indent_output(render->out, start, call->indent);
    }
    pop(render, current);
    return true;
}

static bool within_limits(Render *render, Error *err)
{
    if (render->out->full || render->out->len > render->out_limit) {
        return error_set(
            err, ERROR_PERMANENT, "the output is larger than %d bytes", TEMPLATE_OUTPUT_MAX);
    }
    if (++render->steps > TEMPLATE_STEPS_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "the template takes more than %d steps", TEMPLATE_STEPS_MAX);
    }
    return true;
}

static bool print(Render *render, const Op *op, Error *err)
{
    Value value = evaluate(render, &op->operand);
    return value_print(&value, op->escape, render->out, err);
}

static bool step(Render *render, const Op *op, uint32_t *pc, Error *err)
{
    Value value;
    switch (op->kind) {
    case OP_TEXT:
        buf_append(render->out, op->text.ptr, op->text.len);
        return true;
    case OP_PRINT:
        return print(render, op, err);
    case OP_UNLESS_GO:
    case OP_IF_GO:
        value = evaluate(render, &op->operand);
        if (is_true(&value, op->zero_is_true) == (op->kind == OP_IF_GO)) {
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
        return run_partial(render, op->partial, err);
    }
    return true;
}

static bool run(Render *render, const Program *program, Error *err)
{
    for (uint32_t pc = 0; pc < program->op_count;) {
        const Op *op = &program->ops[pc++];
        if (!step(render, op, &pc, err) || !within_limits(render, err)) {
            return false;
        }
    }
    return true;
}

bool program_render(const Program *program, const json_t *variables, Buf *out, Error *err)
{
    Render render;
    render.root = value_of_json(variables);
    render.frames[0] = (Frame){.context = render.root, .outer = NO_FRAME, .adds = true};
    render.top = 0;
    render.current = 0;
    render.rounds = 0;
    render.steps = 0;
    render.out_limit = out->len + TEMPLATE_OUTPUT_MAX;
    render.out = out;
    return run(&render, program, err);
}
