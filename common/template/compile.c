// SPDX-License-Identifier: Apache-2.0
// Compiler: tree to flat operations. Names of helpers, arguments and @data are checked here, so
// that a render cannot meet an unknown one.
#include <stdlib.h>
#include <string.h>

#include "common/template/compiler.h"
#include "common/template/html_url.h"
#include "common/template/lexer.h"

// What the language itself knows; the other helpers stand in helper.c.
typedef enum BlockHelper { BLOCK_NONE, BLOCK_IF, BLOCK_UNLESS, BLOCK_EACH, BLOCK_WITH } BlockHelper;

static bool compile_body(Compiler *compiler, const Body *body, Error *err);
static bool compile_nodes(Compiler *compiler, const Body *body, Error *err);
static bool compile_program(Compiler *compiler, const Body *body, Error *err);

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

// ---- bodies that are programs of their own ----

static Program *new_body(const Compiler *compiler)
{
    Program *whole = compiler->whole;
    Program *body = arena_zalloc(whole->arena, sizeof *body);
    body->source = whole->source;
    body->arena = whole->arena;
    body->next = whole->bodies;
    whole->bodies = body;
    return body;
}

// Of a body whose operands may name the frames of the program around it.
static Compiler body_compiler(const Compiler *compiler)
{
    Compiler inner = *compiler;
    inner.program = new_body(compiler);
    inner.op_room = 0;
    inner.frames = 0;
    inner.level++;
    return inner;
}

static bool add_inline(Compiler *compiler, const Node *node, Error *err)
{
    Program *whole = compiler->whole;
    if (whole->inline_count == TEMPLATE_PARTIALS_MAX) {
        return syntax_error(
            whole->source, node->at, err, "there are more than %d inline partials",
            TEMPLATE_PARTIALS_MAX);
    }
    Inline *made = arena_zalloc(whole->arena, sizeof *made);
    made->name = arena_str(whole->arena, node->call->params[0].original);
    made->program = new_body(compiler);
    made->next = compiler->program->inlines;
    made->next_all = whole->all_inlines;
    compiler->program->inlines = made;
    whole->all_inlines = made;
    whole->inline_count++;
    return true;
}

// An inline partial stands next to its body, not in it: it sees the block parameters and contexts
// around. One of a partial block is for the partial that is called, and does not see its siblings:
// so {{> content}} within "content" is the one further out.
static bool compile_inline(
    const Compiler *compiler, const Node *node, const Sight *outer, Program *program, Error *err)
{
    Compiler inner = *compiler;
    inner.program = program;
    inner.op_room = 0;
    inner.frames = 0;
    inner.in_inline = true;
    inner.sight = compiler->program->is_block ? outer : compiler->sight;
    return compile_program(&inner, node->program, err);
}

static bool compile_inlines(Compiler *compiler, const Body *body, const Sight *outer, Error *err)
{
    for (const Node *node = body->first; node != NULL; node = node->next) {
        if (node->kind == NODE_INLINE && !add_inline(compiler, node, err)) {
            return false;
        }
    }
    const Inline *made = compiler->program->inlines;
    for (const Node *node = body->last; node != NULL; node = node->prev) {
        if (node->kind != NODE_INLINE) {
            continue;
        }
        if (!compile_inline(compiler, node, outer, made->program, err)) {
            return false;
        }
        made = made->next;
    }
    return true;
}

// A body with the inline partials that it defines, wherever in it they stand.
static bool compile_program(Compiler *compiler, const Body *body, Error *err)
{
    const Sight *outer = compiler->sight;
    Sight sight = {compiler->program, outer};
    compiler->sight = &sight;
    bool ok = compile_inlines(compiler, body, outer, err) && compile_nodes(compiler, body, err);
    compiler->sight = outer;
    return ok;
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
                  ? compiler_call_operand(compiler, node->call, node->at, &operand, err)
                  : compiler_named_operand(compiler, name, &operand, err);
    if (!ok) {
        return false;
    }
    Op *op = emit(compiler, OP_PRINT, node->at);
    op->escape = node->escaped ? compiler->escape : TEMPLATE_ESCAPE_NONE;
    op->in_html = compiler->escape == TEMPLATE_ESCAPE_HTML;
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
        if (!compiler_operand(compiler, value, &operands[count++], err)) {
            return false;
        }
    }
    partial->names = names;
    partial->operands = operands;
    partial->count = count;
    return true;
}

static bool in_sight(const Compiler *compiler, Str name)
{
    for (const Sight *sight = compiler->sight; sight != NULL; sight = sight->outer) {
        for (const Inline *it = sight->body->inlines; it != NULL; it = it->next) {
            if (str_eq(it->name, name)) {
                return true;
            }
        }
    }
    return false;
}

static bool compile_partial_name(
    Compiler *compiler, const Expr *name, PartialCall *partial, Error *err)
{
    partial->name = arena_str(compiler->program->arena, name->original);
    partial->is_dynamic = name->call != NULL;
    if (partial->is_dynamic) {
        return compiler_operand(compiler, name, &partial->by, err);
    }
    partial->wants_block = name->is_data;
    if (name->is_data && !str_eq(name->original, STR("@partial-block"))) {
        return syntax_error(
            compiler->program->source, name->at, err,
            "'" STR_FMT "' is no partial; there is only '@partial-block'",
            STR_ARG(str_slice(name->original, 0, 40)));
    }
    partial->in_sight = !partial->wants_block && in_sight(compiler, partial->name);
    partial->in_inline = compiler->in_inline;
    partial->next = compiler->whole->calls;
    compiler->whole->calls = partial;
    return true;
}

static bool compile_partial(Compiler *compiler, const Node *node, Error *err)
{
    const Call *call = node->call;
    PartialCall *partial = arena_zalloc(compiler->program->arena, sizeof *partial);
    partial->indent = node->indent;
    partial->at = node->at;
    partial->has_context = call->param_count == 1;
    if (!compile_partial_name(compiler, &call->name, partial, err) ||
        (partial->has_context &&
         !compiler_operand(compiler, &call->params[0], &partial->context, err)) ||
        !compile_pairs(compiler, call, partial, err)) {
        return false;
    }
    if (node->kind == NODE_PARTIAL_BLOCK) {
        Compiler inner = body_compiler(compiler);
        inner.program->is_block = true;
        partial->block = inner.program;
        if (!compile_program(&inner, node->program, err)) {
            return false;
        }
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
    if (!compiler_call_operand(compiler, call, node->at, ret, err)) {
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
           compiler_operand(compiler, &call->params[0], operand, err);
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
        ok = compiler_named_operand(compiler, &node->call->name, &operand, err);
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
        node->call->block_params, node->call->block_param_count, compiler->frames, compiler->level,
        outer};
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
    bool by_helper = !enters && program->ops[opening].operand.kind == OPERAND_CALL;
    program->ops[opening].by_helper = by_helper;
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
        emit(compiler, OP_GO, node->at)->by_helper = by_helper;
    }
    program->ops[opening].target = program->op_count;
    if (node->inverse == NULL) {
        return true;
    }
    bool ok = compile_body(compiler, node->inverse, err);
    program->ops[go].target = program->op_count;
    return ok;
}

static void compile_content(Compiler *compiler, const Node *node)
{
    if (node->value.len > 0) {
        Op *op = emit(compiler, OP_TEXT, node->at);
        op->text = node->value;
        if (compiler->escape == TEMPLATE_ESCAPE_HTML) {
            op->ends_scheme = html_url_ends_scheme(node->value);
            op->has_code = html_url_has_code(node->value);
        }
    }
}

static bool compile_node(Compiler *compiler, const Node *node, Error *err)
{
    switch (node->kind) {
    case NODE_CONTENT:
        compile_content(compiler, node);
        return true;
    case NODE_PRINT:
        return compile_print(compiler, node, err);
    case NODE_COMMENT:
        return true;
    case NODE_BLOCK:
        return compile_block(compiler, node, err);
    case NODE_PARTIAL:
    case NODE_PARTIAL_BLOCK:
        return compile_partial(compiler, node, err);
    case NODE_INLINE:
        return true; // compile_inlines() has been here
    }
    return true;
}

static bool compile_nodes(Compiler *compiler, const Body *body, Error *err)
{
    for (const Node *node = body->first; node != NULL; node = node->next) {
        if (!compile_node(compiler, node, err)) {
            return false;
        }
    }
    return true;
}

// The body of a block.
static bool compile_body(Compiler *compiler, const Body *body, Error *err)
{
    const Node *node = body->first;
    while (node != NULL && node->kind != NODE_INLINE) {
        node = node->next;
    }
    if (node == NULL) {
        return compile_nodes(compiler, body, err);
    }
    Compiler inner = body_compiler(compiler);
    emit(compiler, OP_BODY, body->first->at)->body = inner.program;
    return compile_program(&inner, body, err);
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
    Compiler compiler = {.program = program, .whole = program, .escape = escape};
    Arena *scratch = arena_new(0);
    Body *root = NULL;
    bool ok = template_parse(program->source, scratch, &root, err);
    if (ok) {
        template_trim(root);
        ok = compile_program(&compiler, root, err);
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
    for (const Program *body = program->bodies; body != NULL; body = body->next) {
        free(body->ops);
    }
    free(program->ops);
    arena_free(program->arena);
    free(program);
}
