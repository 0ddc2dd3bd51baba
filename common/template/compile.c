// SPDX-License-Identifier: Apache-2.0
// Compiler: tree to flat operations. Names of helpers, arguments and @data are checked here, so
// that a render cannot meet an unknown one.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/template/lexer.h"
#include "common/template/program.h"

typedef struct Compiler {
    Program *program;
    TemplateEscape escape;
    uint32_t op_room;
    uint32_t partial_room;
} Compiler;

typedef enum Helper { HELPER_NONE, HELPER_IF, HELPER_UNLESS, HELPER_EACH, HELPER_WITH } Helper;

static bool compile_body(Compiler *compiler, const Body *body, Error *err);

static Op *emit(Compiler *compiler, OpKind kind)
{
    Program *program = compiler->program;
    if (program->op_count == compiler->op_room) {
        compiler->op_room = compiler->op_room == 0 ? 16 : compiler->op_room * 2;
        program->ops = xrealloc(program->ops, compiler->op_room * sizeof(Op));
    }
    Op *op = &program->ops[program->op_count++];
    *op = (Op){.kind = kind};
    return op;
}

static void remember_partial(Compiler *compiler, PartialCall *partial)
{
    Program *program = compiler->program;
    if (program->partial_count == compiler->partial_room) {
        compiler->partial_room = compiler->partial_room == 0 ? 4 : compiler->partial_room * 2;
        program->partials =
            xrealloc(program->partials, compiler->partial_room * sizeof(PartialCall *));
    }
    program->partials[program->partial_count++] = partial;
}

// ---- operands ----

static DataName data_name(Str name)
{
    static const struct {
        const char *name;
        DataName data;
    } names[] = {
        {"root", DATA_ROOT},   {"index", DATA_INDEX}, {"key", DATA_KEY},
        {"first", DATA_FIRST}, {"last", DATA_LAST},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (str_eq(name, str_from(names[i].name))) {
            return names[i].data;
        }
    }
    return DATA_NONE;
}

static const Segment *keep_segments(Compiler *compiler, const Segment *segments, size_t count)
{
    Arena *arena = compiler->program->arena;
    Segment *copy = arena_copy(arena, segments, count * sizeof *segments);
    for (size_t i = 0; i < count; i++) {
        copy[i].name = arena_str(arena, copy[i].name);
    }
    return copy;
}

static bool make_operand(Compiler *compiler, const Expr *expr, Operand *ret, Error *err)
{
    *ret = (Operand){.is_literal = expr->is_literal, .literal = expr->literal};
    if (expr->is_literal) {
        if (expr->literal.kind == VALUE_TEXT) {
            ret->literal.text = arena_str(compiler->program->arena, expr->literal.text);
        }
        return true;
    }
    uint32_t skip = expr->is_data ? 1 : 0;
    ret->depth = expr->depth;
    if (expr->is_data) {
        ret->data = expr->segment_count > 0 ? data_name(expr->segments[0].name) : DATA_NONE;
        if (ret->data == DATA_NONE) {
            return syntax_error(
                compiler->program->source, expr->at, err,
                "unknown '" STR_FMT "'; there are @root, @index, @key, @first and @last",
                STR_ARG(str_slice(expr->original, 0, 40)));
        }
    }
    ret->segment_count = expr->segment_count - skip;
    ret->segments = keep_segments(compiler, expr->segments + skip, ret->segment_count);
    return true;
}

// The name of a tag is a path even when it is spelt as a literal: {{"a name"}}, {{12}}.
static bool make_named_operand(Compiler *compiler, const Expr *expr, Operand *ret, Error *err)
{
    if (!expr->is_literal) {
        return make_operand(compiler, expr, ret, err);
    }
    Segment segment = segment_of(expr->original);
    *ret = (Operand){.segment_count = 1};
    ret->segments = keep_segments(compiler, &segment, 1);
    return true;
}

// ---- tags ----

static Helper helper_of(const Expr *name)
{
    static const struct {
        const char *name;
        Helper helper;
    } helpers[] = {
        {"if", HELPER_IF},
        {"unless", HELPER_UNLESS},
        {"each", HELPER_EACH},
        {"with", HELPER_WITH},
    };
    for (size_t i = 0; i < sizeof helpers / sizeof *helpers; i++) {
        if (str_eq(name->original, str_from(helpers[i].name))) {
            return helpers[i].helper;
        }
    }
    return HELPER_NONE;
}

static bool refuse_arguments(Compiler *compiler, const Node *node, Error *err)
{
    const Call *call = node->call;
    if (call->param_count == 0 && call->pair_count == 0) {
        return true;
    }
    return syntax_error(
        compiler->program->source, node->at, err,
        "unknown helper '" STR_FMT "'; there are #if, #unless, #each and #with",
        STR_ARG(str_slice(call->name.original, 0, 60)));
}

static bool compile_print(Compiler *compiler, const Node *node, Error *err)
{
    const Expr *name = &node->call->name;
    if (helper_of(name) != HELPER_NONE) {
        return syntax_error(
            compiler->program->source, node->at, err,
            "'" STR_FMT "' is a block; write '{{#" STR_FMT " ...}}', or '{{this." STR_FMT
            "}}' for a variable",
            STR_ARG(name->original), STR_ARG(name->original), STR_ARG(name->original));
    }
    Operand operand;
    if (!refuse_arguments(compiler, node, err) ||
        !make_named_operand(compiler, name, &operand, err)) {
        return false;
    }
    Op *op = emit(compiler, OP_PRINT);
    op->escape = node->escaped && compiler->escape == TEMPLATE_ESCAPE_HTML;
    op->operand = operand;
    return true;
}

// Binds named arguments to operands.
static bool compile_pairs(Compiler *compiler, const Call *call, PartialCall *partial, Error *err)
{
    Arena *arena = compiler->program->arena;
    Str *names = arena_array(arena, call->pair_count, sizeof *names);
    Operand *operands = arena_array(arena, call->pair_count, sizeof *operands);
    size_t count = 0;
    for (size_t i = 0; i < call->pair_count; i++) {
        const Expr *value = &call->pairs[i].value;
        if (value->is_literal && value->literal.kind == VALUE_NONE) {
            continue; // name=undefined is as if it were not written
        }
        names[count] = arena_str(arena, call->pairs[i].name);
        if (!make_operand(compiler, value, &operands[count++], err)) {
            return false;
        }
    }
    partial->names = names;
    partial->operands = operands;
    partial->count = count;
    return true;
}

static bool compile_partial(Compiler *compiler, const Node *node, Error *err)
{
    const Call *call = node->call;
    PartialCall *partial = arena_zalloc(compiler->program->arena, sizeof *partial);
    partial->name = arena_str(compiler->program->arena, call->name.original);
    partial->indent = node->indent;
    partial->at = node->at;
    partial->has_context = call->param_count == 1;
    if (partial->has_context && !make_operand(compiler, &call->params[0], &partial->context, err)) {
        return false;
    }
    if (!compile_pairs(compiler, call, partial, err)) {
        return false;
    }
    remember_partial(compiler, partial);
    emit(compiler, OP_PARTIAL)->partial = partial;
    return true;
}

// The one named argument there is: {{#if n includeZero=true}}.
static bool zero_is_true(Compiler *compiler, const Node *node, bool *ret, Error *err)
{
    const Call *call = node->call;
    Helper helper = helper_of(&call->name);
    bool may = helper == HELPER_IF || helper == HELPER_UNLESS;
    *ret = false;
    for (size_t i = 0; i < call->pair_count; i++) {
        const Expr *value = &call->pairs[i].value;
        bool known = may && str_eq(call->pairs[i].name, STR("includeZero"));
        if (!known || !value->is_literal || value->literal.kind != VALUE_BOOL) {
            return syntax_error(
                compiler->program->source, node->at, err,
                "unknown argument '" STR_FMT "' of '#" STR_FMT
                "'; only #if and #unless take one, includeZero=true",
                STR_ARG(str_slice(call->pairs[i].name, 0, 40)), STR_ARG(call->name.original));
        }
        *ret = value->literal.truth;
    }
    return true;
}

static bool compile_opening(Compiler *compiler, const Node *node, Error *err)
{
    static const OpKind kinds[] = {
        [HELPER_NONE] = OP_SECTION, [HELPER_IF] = OP_UNLESS_GO, [HELPER_UNLESS] = OP_IF_GO,
        [HELPER_EACH] = OP_EACH,    [HELPER_WITH] = OP_WITH,
    };
    const Call *call = node->call;
    Helper helper = helper_of(&call->name);
    Operand operand;
    bool zero = false;
    if (helper == HELPER_NONE) {
        if (!refuse_arguments(compiler, node, err) ||
            !make_named_operand(compiler, &call->name, &operand, err)) {
            return false;
        }
    } else if (call->param_count != 1) {
        return syntax_error(
            compiler->program->source, node->at, err,
            "'#" STR_FMT "' takes one argument, not %zu; write '{{#" STR_FMT " name}}'",
            STR_ARG(call->name.original), call->param_count, STR_ARG(call->name.original));
    } else if (
        !zero_is_true(compiler, node, &zero, err) ||
        !make_operand(compiler, &call->params[0], &operand, err)) {
        return false;
    }
    Op *op = emit(compiler, kinds[helper]);
    op->operand = operand;
    op->zero_is_true = zero;
    return true;
}

//   opening    -> else
//   program
//   [leave     -> program]
//   [go        -> end]
//   else: inverse
//   end:
static bool compile_block(Compiler *compiler, const Node *node, Error *err)
{
    Program *program = compiler->program;
    uint32_t opening = program->op_count;
    if (!compile_opening(compiler, node, err)) {
        return false;
    }
    OpKind kind = program->ops[opening].kind;
    if (node->program != NULL && !compile_body(compiler, node->program, err)) {
        return false;
    }
    if (kind != OP_IF_GO && kind != OP_UNLESS_GO) {
        emit(compiler, OP_LEAVE)->target = opening + 1;
    }
    uint32_t go = program->op_count;
    if (node->inverse != NULL) {
        emit(compiler, OP_GO);
    }
    program->ops[opening].target = program->op_count;
    if (node->inverse == NULL) {
        return true;
    }
    bool ok = compile_body(compiler, node->inverse, err);
    program->ops[go].target = program->op_count;
    return ok;
}

static bool compile_node(Compiler *compiler, const Node *node, Error *err)
{
    switch (node->kind) {
    case NODE_CONTENT:
        if (node->value.len > 0) {
            emit(compiler, OP_TEXT)->text = node->value;
        }
        return true;
    case NODE_PRINT:
        return compile_print(compiler, node, err);
    case NODE_COMMENT:
        return true;
    case NODE_BLOCK:
        return compile_block(compiler, node, err);
    case NODE_PARTIAL:
        return compile_partial(compiler, node, err);
    }
    return true;
}

static bool compile_body(Compiler *compiler, const Body *body, Error *err)
{
    for (const Node *node = body->first; node != NULL; node = node->next) {
        if (!compile_node(compiler, node, err)) {
            return false;
        }
    }
    return true;
}

static bool check_source(Str source, Error *err)
{
    if (source.len > TEMPLATE_SOURCE_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "the source has %zu bytes, at most %d are allowed", source.len,
            TEMPLATE_SOURCE_MAX);
    }
    if (!str_is_utf8(source)) {
        return error_set(err, ERROR_PERMANENT, "the source is not UTF-8 text");
    }
    return true;
}

Program *program_compile(Str source, TemplateEscape escape, Error *err)
{
    if (!check_source(source, err)) {
        return NULL;
    }
    Program *program = xcalloc(1, sizeof *program);
    program->arena = arena_new(0);
    program->source = arena_str(program->arena, source);
    Compiler compiler = {.program = program, .escape = escape};
    Arena *scratch = arena_new(0);
    Body *root = NULL;
    bool ok = template_parse(program->source, scratch, &root, err);
    if (ok) {
        template_trim(root);
        ok = compile_body(&compiler, root, err);
    }
    arena_free(scratch);
    if (!ok) {
        program_free(program);
        return NULL;
    }
    return program;
}

void program_free(Program *program)
{
    if (program == NULL) {
        return;
    }
    free(program->ops);
    free(program->partials);
    arena_free(program->arena);
    free(program);
}
