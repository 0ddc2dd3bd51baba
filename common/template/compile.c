// SPDX-License-Identifier: Apache-2.0
// Compiler: tree to flat operations. Names of helpers, arguments and @data are checked here, so
// that a render cannot meet an unknown one.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/template/lexer.h"
#include "common/template/program.h"

// The block parameters in sight, innermost first.
typedef struct Scope {
    const Str *names;
    size_t count;
    uint32_t frame; // of the block, counted from the program's first
    const struct Scope *outer;
} Scope;

typedef struct Compiler {
    Program *program;
    TemplateEscape escape;
    uint32_t op_room;
    uint32_t partial_room;
    uint32_t frames; // that the blocks around this place have entered
    const Scope *scope;
} Compiler;

// What the language itself knows; the other helpers stand in helper.c.
typedef enum BlockHelper { BLOCK_NONE, BLOCK_IF, BLOCK_UNLESS, BLOCK_EACH, BLOCK_WITH } BlockHelper;

static bool compile_body(Compiler *compiler, const Body *body, Error *err);
static bool make_operand(Compiler *compiler, const Expr *expr, Operand *ret, Error *err);

static Op *emit(Compiler *compiler, OpKind kind, size_t at)
{
    Program *program = compiler->program;
    if (program->op_count == compiler->op_room) {
        compiler->op_room = compiler->op_room == 0 ? 16 : compiler->op_room * 2;
        program->ops = xrealloc(program->ops, compiler->op_room * sizeof(Op));
    }
    Op *op = &program->ops[program->op_count++];
    *op = (Op){.kind = kind, .at = (uint32_t)at};
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

static bool literal_operand(Compiler *compiler, const Expr *expr, Operand *ret)
{
    ret->kind = OPERAND_LITERAL;
    ret->may_miss = true;
    ret->literal = expr->literal;
    if (expr->literal.kind == VALUE_TEXT) {
        ret->literal.text = arena_str(compiler->program->arena, expr->literal.text);
    }
    return true;
}

static bool data_operand(Compiler *compiler, const Expr *expr, Operand *ret, Error *err)
{
    ret->kind = OPERAND_DATA;
    ret->data = expr->segment_count > 0 ? data_name(expr->segments[0].name) : DATA_NONE;
    if (ret->data == DATA_NONE) {
        return syntax_error(
            compiler->program->source, expr->at, err,
            "unknown '" STR_FMT "'; there are @root, @index, @key, @first and @last",
            STR_ARG(str_slice(expr->original, 0, 40)));
    }
    ret->depth = expr->depth;
    ret->segment_count = expr->segment_count - 1;
    ret->segments = keep_segments(compiler, expr->segments + 1, ret->segment_count);
    return true;
}

// Is the path's first name a block parameter?
static bool param_operand(Compiler *compiler, const Expr *expr, Operand *ret)
{
    bool may = expr->segment_count > 0 && expr->depth == 0 && !expr->is_scoped;
    for (const Scope *scope = may ? compiler->scope : NULL; scope != NULL; scope = scope->outer) {
        for (size_t i = 0; i < scope->count; i++) {
            if (str_eq(scope->names[i], expr->segments[0].name)) {
                ret->kind = OPERAND_PARAM;
                ret->is_key = i == 1;
                ret->depth = scope->frame;
                ret->segment_count = expr->segment_count - 1;
                ret->segments = keep_segments(compiler, expr->segments + 1, ret->segment_count);
                return true;
            }
        }
    }
    return false;
}

static bool refuse_helper(const Compiler *compiler, const Call *call, size_t at, Error *err)
{
    return syntax_error(
        compiler->program->source, at, err,
        "unknown helper '" STR_FMT "'; README.md of common/template lists those there are",
        STR_ARG(str_slice(call->name.original, 0, 60)));
}

// The helper that a call names, when its arguments fit. *ret NULL: `err` says what does not.
static const Helper *check_helper(const Compiler *compiler, const Call *call, size_t at, Error *err)
{
    bool plain = !call->name.is_data && !call->name.is_scoped && call->name.call == NULL;
    const Helper *helper = plain ? helper_find(call->name.original) : NULL;
    if (helper == NULL) {
        (void)refuse_helper(compiler, call, at, err);
        return NULL;
    }
    if (call->param_count < helper->min || call->param_count > helper->max) {
        (void)syntax_error(
            compiler->program->source, at, err,
            "'%s' takes %zu to %zu arguments without a name, not %zu", helper->name, helper->min,
            helper->max, call->param_count);
        return NULL;
    }
    for (size_t i = 0; i < call->pair_count; i++) {
        if (!helper_takes(helper, call->pairs[i].name)) {
            (void)syntax_error(
                compiler->program->source, at, err, "'%s' has no argument '" STR_FMT "'%s%s",
                helper->name, STR_ARG(str_slice(call->pairs[i].name, 0, 40)),
                helper->named[0] == '\0' ? "" : "; it takes: ", helper->named);
            return NULL;
        }
    }
    return helper;
}

static bool call_operand(Compiler *compiler, const Call *call, size_t at, Operand *ret, Error *err)
{
    Arena *arena = compiler->program->arena;
    const Helper *helper = check_helper(compiler, call, at, err);
    if (helper == NULL) {
        return false;
    }
    HelperCall *made = arena_zalloc(arena, sizeof *made);
    Operand *params = arena_array(arena, call->param_count, sizeof *params);
    Operand *operands = arena_array(arena, call->pair_count, sizeof *operands);
    Str *names = arena_array(arena, call->pair_count, sizeof *names);
    for (size_t i = 0; i < call->param_count; i++) {
        if (!make_operand(compiler, &call->params[i], &params[i], err)) {
            return false;
        }
        params[i].may_miss = params[i].may_miss || helper->may_miss;
    }
    for (size_t i = 0; i < call->pair_count; i++) {
        names[i] = arena_str(arena, call->pairs[i].name);
        if (!make_operand(compiler, &call->pairs[i].value, &operands[i], err)) {
            return false;
        }
    }
    *made = (HelperCall){helper, params, call->param_count, names, operands, call->pair_count};
    ret->kind = OPERAND_CALL;
    ret->may_miss = helper->may_miss;
    ret->call = made;
    return true;
}

static bool make_operand(Compiler *compiler, const Expr *expr, Operand *ret, Error *err)
{
    *ret = (Operand){.kind = OPERAND_PATH};
    ret->name = arena_str(compiler->program->arena, str_slice(expr->original, 0, 80));
    if (expr->call != NULL) {
        return call_operand(compiler, expr->call, expr->at, ret, err);
    }
    if (expr->is_literal) {
        return literal_operand(compiler, expr, ret);
    }
    if (expr->is_data) {
        return data_operand(compiler, expr, ret, err);
    }
    if (param_operand(compiler, expr, ret)) {
        return true;
    }
    ret->depth = expr->depth;
    ret->segment_count = expr->segment_count;
    ret->segments = keep_segments(compiler, expr->segments, ret->segment_count);
    return true;
}

// The name of a tag is a path even when it is spelt as a literal: {{"a name"}}, {{12}}; and it is
// looked for in the contexts around too, as Mustache does.
static bool make_named_operand(Compiler *compiler, const Expr *expr, Operand *ret, Error *err)
{
    if (!expr->is_literal) {
        if (!make_operand(compiler, expr, ret, err)) {
            return false;
        }
        bool plain = ret->kind == OPERAND_PATH && ret->depth == 0 && ret->segment_count > 0;
        ret->kind = plain && !expr->is_scoped ? OPERAND_SEARCH : ret->kind;
        return true;
    }
    Segment segment = segment_of(expr->original);
    *ret = (Operand){.kind = OPERAND_SEARCH, .segment_count = 1};
    ret->segments = keep_segments(compiler, &segment, 1);
    ret->name = ret->segments[0].name;
    return true;
}

// ---- tags ----

static BlockHelper block_helper(const Expr *name)
{
    static const struct {
        const char *name;
        BlockHelper helper;
    } helpers[] = {
        {"if", BLOCK_IF},
        {"unless", BLOCK_UNLESS},
        {"each", BLOCK_EACH},
        {"with", BLOCK_WITH},
    };
    for (size_t i = 0; i < sizeof helpers / sizeof *helpers; i++) {
        if (str_eq(name->original, str_from(helpers[i].name))) {
            return helpers[i].helper;
        }
    }
    return BLOCK_NONE;
}

static bool has_arguments(const Call *call)
{
    return call->param_count > 0 || call->pair_count > 0;
}

// A tag with arguments calls a helper; one without is a variable, whatever helpers there are.
static bool compile_print(Compiler *compiler, const Node *node, Error *err)
{
    const Expr *name = &node->call->name;
    if (block_helper(name) != BLOCK_NONE) {
        return syntax_error(
            compiler->program->source, node->at, err,
            "'" STR_FMT "' is a block; write '{{#" STR_FMT " ...}}', or '{{this." STR_FMT
            "}}' for a variable",
            STR_ARG(name->original), STR_ARG(name->original), STR_ARG(name->original));
    }
    Operand operand = {.kind = OPERAND_CALL, .name = name->original};
    bool ok = has_arguments(node->call)
                  ? call_operand(compiler, node->call, node->at, &operand, err)
                  : make_named_operand(compiler, name, &operand, err);
    if (!ok) {
        return false;
    }
    Op *op = emit(compiler, OP_PRINT, node->at);
    op->escape = node->escaped ? compiler->escape : TEMPLATE_ESCAPE_NONE;
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
    partial->is_dynamic = call->name.call != NULL;
    if (partial->is_dynamic && !make_operand(compiler, &call->name, &partial->by, err)) {
        return false;
    }
    if (partial->has_context && !make_operand(compiler, &call->params[0], &partial->context, err)) {
        return false;
    }
    if (!compile_pairs(compiler, call, partial, err)) {
        return false;
    }
    if (!partial->is_dynamic) {
        remember_partial(compiler, partial);
    }
    emit(compiler, OP_PARTIAL, node->at)->partial = partial;
    return true;
}

// The one named argument there is: {{#if n includeZero=true}}.
static bool zero_is_true(Compiler *compiler, const Node *node, bool *ret, Error *err)
{
    const Call *call = node->call;
    BlockHelper helper = block_helper(&call->name);
    bool may = helper == BLOCK_IF || helper == BLOCK_UNLESS;
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

// {{#eq a b}}: a block upon a helper that says yes or no.
static bool compile_condition(Compiler *compiler, const Node *node, Operand *ret, Error *err)
{
    const Call *call = node->call;
    if (!call_operand(compiler, call, node->at, ret, err)) {
        return false;
    }
    if (!ret->call->helper->is_condition) {
        return syntax_error(
            compiler->program->source, node->at, err,
            "'%s' is not a block; write '{{%s ...}}', or '{{#if (%s ...)}}'",
            ret->call->helper->name, ret->call->helper->name, ret->call->helper->name);
    }
    return true;
}

static bool compile_helper_block(
    Compiler *compiler, const Node *node, Operand *operand, bool *zero, Error *err)
{
    const Call *call = node->call;
    if (call->param_count != 1) {
        return syntax_error(
            compiler->program->source, node->at, err,
            "'#" STR_FMT "' takes one argument, not %zu; write '{{#" STR_FMT " name}}'",
            STR_ARG(call->name.original), call->param_count, STR_ARG(call->name.original));
    }
    return zero_is_true(compiler, node, zero, err) &&
           make_operand(compiler, &call->params[0], operand, err);
}

static bool compile_opening(Compiler *compiler, const Node *node, Error *err)
{
    static const OpKind kinds[] = {
        [BLOCK_NONE] = OP_SECTION, [BLOCK_IF] = OP_UNLESS_GO, [BLOCK_UNLESS] = OP_IF_GO,
        [BLOCK_EACH] = OP_EACH,    [BLOCK_WITH] = OP_WITH,
    };
    BlockHelper helper = block_helper(&node->call->name);
    OpKind kind = kinds[helper];
    Operand operand = {.kind = OPERAND_CALL, .name = node->call->name.original};
    bool zero = false;
    bool ok = false;
    if (helper != BLOCK_NONE) {
        ok = compile_helper_block(compiler, node, &operand, &zero, err);
    } else if (has_arguments(node->call)) {
        kind = OP_UNLESS_GO;
        ok = compile_condition(compiler, node, &operand, err);
    } else {
        ok = make_named_operand(compiler, &node->call->name, &operand, err);
    }
    if (!ok) {
        return false;
    }
    bool asks = kind == OP_UNLESS_GO || kind == OP_IF_GO || kind == OP_SECTION;
    if (asks && node->call->block_param_count > 0 && kind != OP_SECTION) {
        return syntax_error(
            compiler->program->source, node->at, err,
            "'#" STR_FMT "' has no block parameters; #each and #with have",
            STR_ARG(str_slice(node->call->name.original, 0, 40)));
    }
    Op *op = emit(compiler, kind, node->at);
    op->operand = operand;
    op->operand.may_miss = operand.may_miss || asks;
    op->zero_is_true = zero;
    return true;
}

// The body of a block that enters a context, with the names that it gives it.
static bool compile_inside(Compiler *compiler, const Node *node, Error *err)
{
    const Scope *outer = compiler->scope;
    compiler->frames++;
    Scope scope = {
        node->call->block_params, node->call->block_param_count, compiler->frames, outer};
    compiler->scope = &scope;
    bool ok = node->program == NULL || compile_body(compiler, node->program, err);
    compiler->scope = outer;
    compiler->frames--;
    return ok;
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
    bool enters = kind != OP_IF_GO && kind != OP_UNLESS_GO;
    if (enters && !compile_inside(compiler, node, err)) {
        return false;
    }
    if (!enters && node->program != NULL && !compile_body(compiler, node->program, err)) {
        return false;
    }
    if (enters) {
        emit(compiler, OP_LEAVE, node->at)->target = opening + 1;
    }
    uint32_t go = program->op_count;
    if (node->inverse != NULL) {
        emit(compiler, OP_GO, node->at);
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
            emit(compiler, OP_TEXT, node->at)->text = node->value;
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
