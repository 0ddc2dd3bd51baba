// SPDX-License-Identifier: Apache-2.0
// Expressions to operands. Names of helpers, arguments and @data are checked here.
#include "common/template/compiler.h"
#include "common/template/lexer.h"

static DataName data_name(Str name)
{
    static const struct {
        const char *name;
        DataName data;
    } names[] = {
        {"root", DATA_ROOT},   {"index", DATA_INDEX}, {"key", DATA_KEY},
        {"first", DATA_FIRST}, {"last", DATA_LAST},   {"partial-block", DATA_PARTIAL_BLOCK},
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
            "unknown '" STR_FMT "'; there are @root, @index, @key, @first, @last and "
            "@partial-block",
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
                ret->up = (uint8_t)(compiler->level - scope->level);
                ret->segment_count = expr->segment_count - 1;
                ret->segments = keep_segments(compiler, expr->segments + 1, ret->segment_count);
                return true;
            }
        }
    }
    return false;
}

// The helper that a call names, when its arguments fit. *ret NULL: `err` says what does not.
static const Helper *check_helper(const Compiler *compiler, const Call *call, size_t at, Error *err)
{
    bool plain = !call->name.is_data && !call->name.is_scoped && call->name.call == NULL;
    const Helper *helper = plain ? helper_find(call->name.original) : NULL;
    if (helper == NULL) {
        (void)syntax_error(
            compiler->program->source, at, err,
            "unknown helper '" STR_FMT "'; common/template/README.md lists them all",
            STR_ARG(str_slice(call->name.original, 0, 60)));
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

static void note_asset(const Compiler *compiler, const Helper *helper, const Operand *name)
{
    Program *whole = compiler->whole;
    bool literal = name->kind == OPERAND_LITERAL && name->literal.kind == VALUE_TEXT;
    if (literal && str_eq(str_from(helper->name), STR(HELPER_ASSET))) {
        AssetName *made = arena_zalloc(whole->arena, sizeof *made);
        *made = (AssetName){name->literal.text, whole->assets};
        whole->assets = made;
    }
}

bool compiler_call_operand(
    Compiler *compiler, const Call *call, size_t at, Operand *ret, Error *err)
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
        if (!compiler_operand(compiler, &call->params[i], &params[i], err)) {
            return false;
        }
        params[i].may_miss = params[i].may_miss || helper->may_miss;
    }
    for (size_t i = 0; i < call->pair_count; i++) {
        names[i] = arena_str(arena, call->pairs[i].name);
        if (!compiler_operand(compiler, &call->pairs[i].value, &operands[i], err)) {
            return false;
        }
    }
    if (call->param_count > 0) {
        note_asset(compiler, helper, &params[0]);
    }
    *made = (HelperCall){helper, params, call->param_count, names, operands, call->pair_count};
    ret->kind = OPERAND_CALL;
    ret->may_miss = helper->may_miss;
    ret->call = made;
    return true;
}

bool compiler_operand(Compiler *compiler, const Expr *expr, Operand *ret, Error *err)
{
    *ret = (Operand){.kind = OPERAND_PATH};
    ret->name = arena_str(compiler->program->arena, str_slice(expr->original, 0, 80));
    if (expr->call != NULL) {
        return compiler_call_operand(compiler, expr->call, expr->at, ret, err);
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
bool compiler_named_operand(Compiler *compiler, const Expr *expr, Operand *ret, Error *err)
{
    if (!expr->is_literal) {
        if (!compiler_operand(compiler, expr, ret, err)) {
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
