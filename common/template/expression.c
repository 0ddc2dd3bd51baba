// SPDX-License-Identifier: Apache-2.0
#include "common/template/expression.h"

#include <stdlib.h>
#include <string.h>

bool parser_advance(Parser *parser, Error *err)
{
    return lexer_next(&parser->lexer, &parser->token, err);
}

// Removes the backslash before each `mark` (and, in a [segment], before each backslash).
static Str unescape(Parser *parser, Str text, char mark)
{
    if (str_find(text, '\\') < 0) {
        return text;
    }
    char *out = arena_alloc(parser->arena, text.len);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        char after = i + 1 < text.len ? text.ptr[i + 1] : '\0';
        bool is_escape = after == mark || (mark == ']' && after == '\\');
        if (text.ptr[i] == '\\' && is_escape) {
            i++;
        }
        out[len++] = text.ptr[i];
    }
    return str_of(out, len);
}

// ---- expressions ----

static bool is_name(TokenKind kind)
{
    return kind == TOKEN_ID || kind == TOKEN_ID_LITERAL;
}

// Behind a separator anything that looks like a word is a name: items.0, flags.true.
static bool is_segment(const Token *token)
{
    return is_name(token->kind) || token->kind == TOKEN_TRUE || token->kind == TOKEN_FALSE ||
           token->kind == TOKEN_NULL || token->kind == TOKEN_UNDEFINED ||
           (token->kind == TOKEN_NUMBER && str_find(token->text, '-') < 0 &&
            str_find(token->text, '.') < 0);
}

// What a path is gathered in until its length is known.
typedef struct PathDraft {
    Segment segments[SEGMENTS_MAX];
    uint32_t count;
    uint32_t depth;
    bool is_scoped;
    char original[PATH_BYTES_MAX];
    size_t original_len;
} PathDraft;

static bool add_original(Parser *parser, PathDraft *path, Str text, Error *err)
{
    if (sizeof path->original - path->original_len < text.len) {
        return syntax_error(
            parser->lexer.source, parser->token.at, err, "a path has at most %d bytes",
            PATH_BYTES_MAX);
    }
    memcpy(path->original + path->original_len, text.ptr, text.len);
    path->original_len += text.len;
    return true;
}

static bool add_segment(Parser *parser, PathDraft *path, Error *err)
{
    Token *token = &parser->token;
    bool is_literal = token->kind == TOKEN_ID_LITERAL;
    Str text = is_literal ? unescape(parser, token->text, ']') : token->text;
    if (!add_original(parser, path, text, err)) {
        return false;
    }
    bool is_up = !is_literal && str_eq(text, STR(".."));
    bool is_here = !is_literal && (str_eq(text, STR(".")) || str_eq(text, STR("this")));
    if ((is_up || is_here) && path->count > 0) {
        return syntax_error(
            parser->lexer.source, token->at, err,
            "'" STR_FMT "' may only begin a path; write [" STR_FMT "] for a member of that name",
            STR_ARG(text), STR_ARG(text));
    }
    path->depth += is_up ? 1 : 0;
    path->is_scoped = path->is_scoped || is_here;
    if (is_up || is_here) {
        return true;
    }
    if (path->count == SEGMENTS_MAX) {
        return syntax_error(
            parser->lexer.source, token->at, err, "a path has at most %d names", SEGMENTS_MAX);
    }
    path->segments[path->count++] = segment_of(text);
    return true;
}

// From a separator to the name behind it.
static bool next_segment(Parser *parser, PathDraft *path, Error *err)
{
    if (!add_original(parser, path, parser->token.text, err) || !parser_advance(parser, err)) {
        return false;
    }
    if (!is_segment(&parser->token)) {
        return syntax_error(
            parser->lexer.source, parser->token.at, err, "a name is missing behind '" STR_FMT "'",
            (int)path->original_len, path->original);
    }
    return true;
}

static bool parse_path(Parser *parser, Expr *expr, Error *err)
{
    PathDraft path;
    path.count = 0;
    path.depth = 0;
    path.is_scoped = false;
    path.original_len = 0;
    if (expr->is_data) {
        path.original[path.original_len++] = '@';
    }
    bool ok = add_segment(parser, &path, err) && parser_advance(parser, err);
    while (ok && parser->token.kind == TOKEN_SEPARATOR) {
        ok = next_segment(parser, &path, err) && add_segment(parser, &path, err) &&
             parser_advance(parser, err);
    }
    expr->depth = path.depth;
    expr->is_scoped = path.is_scoped;
    expr->segment_count = path.count;
    expr->segments = arena_copy(parser->arena, path.segments, path.count * sizeof(Segment));
    expr->original = arena_str(parser->arena, str_of(path.original, path.original_len));
    return ok;
}

static Value number_literal(Str text)
{
    Value value = {.kind = VALUE_INT};
    if (str_to_i64(text, &value.number)) {
        return value;
    }
    char copy[64];
    value.kind = VALUE_REAL;
    value.real = str_to_c(text, copy, sizeof copy) ? strtod(copy, NULL) : 0;
    return value;
}

static bool literal_of(Parser *parser, const Token *token, Value *ret)
{
    switch ((int)token->kind) {
    case TOKEN_STRING:
        *ret = (Value){
            .kind = VALUE_TEXT,
            .text = unescape(parser, token->text, token->quote),
        };
        return true;
    case TOKEN_NUMBER:
        *ret = number_literal(token->text);
        return true;
    case TOKEN_TRUE:
    case TOKEN_FALSE:
        *ret = (Value){.kind = VALUE_BOOL, .truth = token->kind == TOKEN_TRUE};
        return true;
    case TOKEN_NULL:
        *ret = (Value){.kind = VALUE_NULL};
        return true;
    case TOKEN_UNDEFINED:
        *ret = (Value){.kind = VALUE_NONE};
        return true;
    default:
        return false;
    }
}

static bool parse_arguments(Parser *parser, Call *call, Error *err);

// (helper a b=c), from its opening to behind its closing one.
static bool parse_subexpression(Parser *parser, Expr *expr, Error *err)
{
    if (++parser->subexpressions > SUBEXPRESSIONS_MAX) {
        return syntax_error(
            parser->lexer.source, expr->at, err, "more than %d subexpressions inside each other",
            SUBEXPRESSIONS_MAX);
    }
    expr->call = arena_zalloc(parser->arena, sizeof *expr->call);
    if (!parser_advance(parser, err)) {
        return false;
    }
    if (parser->token.kind == TOKEN_CLOSE_SUB) {
        return syntax_error(
            parser->lexer.source, expr->at, err, "the subexpression is empty; a helper is missing");
    }
    if (!parse_arguments(parser, expr->call, err)) {
        return false;
    }
    if (parser->token.kind != TOKEN_CLOSE_SUB) {
        return syntax_error(
            parser->lexer.source, expr->at, err,
            "the subexpression '(" STR_FMT "' is never closed; add ')'",
            STR_ARG(str_slice(expr->call->name.original, 0, 40)));
    }
    parser->subexpressions--;
    expr->original = str_slice(parser->lexer.source, expr->at, parser->token.at + 1);
    return parser_advance(parser, err);
}

static bool parse_expr(Parser *parser, Expr *expr, Error *err)
{
    *expr = (Expr){.at = parser->token.at};
    if (parser->token.kind == TOKEN_OPEN_SUB) {
        return parse_subexpression(parser, expr, err);
    }
    if (parser->token.kind == TOKEN_NUMBER && parser->token.text.len > 40) {
        return syntax_error(parser->lexer.source, expr->at, err, "a number has at most 40 digits");
    }
    if (literal_of(parser, &parser->token, &expr->literal)) {
        expr->is_literal = true;
        bool is_text = parser->token.kind == TOKEN_STRING;
        expr->original = is_text ? expr->literal.text : parser->token.text;
        return parser_advance(parser, err);
    }
    if (parser->token.kind == TOKEN_DATA) {
        expr->is_data = true;
        if (!parser_advance(parser, err)) {
            return false;
        }
    }
    if (!is_name(parser->token.kind)) {
        return syntax_error(
            parser->lexer.source, parser->token.at, err, "expected a name, found '" STR_FMT "'",
            STR_ARG(str_slice(parser->token.text, 0, 20)));
    }
    return parse_path(parser, expr, err);
}

// Does "name=" stand here?
static bool at_pair(const Parser *parser)
{
    Lexer ahead = parser->lexer;
    Token next;
    return is_name(parser->token.kind) && ahead.in_tag && lexer_next(&ahead, &next, NULL) &&
           next.kind == TOKEN_EQUALS;
}

static bool add_pair(Parser *parser, Call *call, Str name, Error *err)
{
    if (call->pairs == NULL) {
        call->pairs = arena_array(parser->arena, PAIRS_MAX, sizeof(Pair));
    }
    if (call->pair_count == PAIRS_MAX) {
        return syntax_error(
            parser->lexer.source, parser->token.at, err, "a tag has at most %d named arguments",
            PAIRS_MAX);
    }
    for (size_t i = 0; i < call->pair_count; i++) {
        if (str_eq(call->pairs[i].name, name)) {
            return syntax_error(
                parser->lexer.source, parser->token.at, err,
                "argument '" STR_FMT "' is given twice", STR_ARG(str_slice(name, 0, 40)));
        }
    }
    call->pairs[call->pair_count++].name = name;
    return true;
}

static bool parse_pair(Parser *parser, Call *call, Error *err)
{
    bool is_literal = parser->token.kind == TOKEN_ID_LITERAL;
    Str name = is_literal ? unescape(parser, parser->token.text, ']') : parser->token.text;
    return add_pair(parser, call, name, err) && parser_advance(parser, err) &&
           parser_advance(parser, err) &&
           parse_expr(parser, &call->pairs[call->pair_count - 1].value, err);
}

static bool parse_argument(Parser *parser, Call *call, Error *err)
{
    if (at_pair(parser)) {
        return parse_pair(parser, call, err);
    }
    if (call->pair_count > 0) {
        return syntax_error(
            parser->lexer.source, parser->token.at, err,
            "arguments without a name come before named ones");
    }
    if (call->param_count == PARAMS_MAX) {
        return syntax_error(
            parser->lexer.source, parser->token.at, err, "a tag has at most %d arguments",
            PARAMS_MAX);
    }
    return parse_expr(parser, &call->params[call->param_count++], err);
}

// A name and its arguments, up to what closes the tag or the subexpression.
static bool parse_arguments(Parser *parser, Call *call, Error *err)
{
    if (!parse_expr(parser, &call->name, err)) {
        return false;
    }
    for (;;) {
        TokenKind kind = parser->token.kind;
        if (kind == TOKEN_CLOSE || kind == TOKEN_CLOSE_UNESCAPED || kind == TOKEN_CLOSE_SUB ||
            kind == TOKEN_OPEN_PARAMS) {
            return true;
        }
        if (!parse_argument(parser, call, err)) {
            return false;
        }
    }
}

// "as |item index|"
static bool parse_block_params(Parser *parser, Call *call, Error *err)
{
    if (!parser_advance(parser, err)) {
        return false;
    }
    while (parser->token.kind == TOKEN_ID && call->block_param_count < BLOCK_PARAMS_MAX) {
        call->block_params[call->block_param_count++] = parser->token.text;
        if (!parser_advance(parser, err)) {
            return false;
        }
    }
    if (call->block_param_count == 0 || parser->token.kind != TOKEN_CLOSE_PARAMS) {
        return syntax_error(
            parser->lexer.source, parser->token.at, err,
            "block parameters are one or two names: 'as |item index|'");
    }
    return parser_advance(parser, err);
}

bool parser_call(
    Parser *parser, TokenKind close, Call **ret_call, bool *ret_strip_right, Error *err)
{
    Call *call = arena_zalloc(parser->arena, sizeof *call);
    if (!parser_advance(parser, err)) {
        return false;
    }
    if (parser->token.kind == TOKEN_CLOSE || parser->token.kind == TOKEN_CLOSE_UNESCAPED) {
        return syntax_error(
            parser->lexer.source, parser->token.at, err, "the tag is empty; a name is missing");
    }
    if (!parse_arguments(parser, call, err) ||
        (parser->token.kind == TOKEN_OPEN_PARAMS && !parse_block_params(parser, call, err))) {
        return false;
    }
    if (parser->token.kind != close) {
        return syntax_error(
            parser->lexer.source, parser->token.at, err, "expected '%s', found '" STR_FMT "'",
            close == TOKEN_CLOSE ? "}}" : "}}}", STR_ARG(parser->token.text));
    }
    *ret_call = call;
    *ret_strip_right = parser->token.strip_right;
    return parser_advance(parser, err);
}
