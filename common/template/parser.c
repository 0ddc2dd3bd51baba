// SPDX-License-Identifier: Apache-2.0
// Parser: tokens to tree, by recursive descent; NESTING_MAX bounds the recursion.
#include <assert.h>

#include "common/template/expression.h"

// An {{else}} branch, or an {{else if ...}} one (then the body holds just that block).
typedef struct Inverse {
    Body *body;
    Strip strip;
    bool chain;
} Inverse;

static bool parse_body(Parser *parser, Body **ret_body, Error *err);

static Body *new_body(Parser *parser)
{
    return arena_zalloc(parser->arena, sizeof(Body));
}

static Node *append_node(Parser *parser, Body *body, NodeKind kind)
{
    Node *node = arena_zalloc(parser->arena, sizeof *node);
    node->kind = kind;
    node->at = parser->token.at;
    node->prev = body->last;
    if (body->last != NULL) {
        body->last->next = node;
    } else {
        body->first = node;
    }
    body->last = node;
    return node;
}

// ---- nodes ----

static bool parse_content(Parser *parser, Body *body, Error *err)
{
    Node *node = append_node(parser, body, NODE_CONTENT);
    node->original = parser->token.text;
    node->value = parser->token.text;
    return parser_advance(parser, err);
}

static bool parse_comment(Parser *parser, Body *body, Error *err)
{
    Node *node = append_node(parser, body, NODE_COMMENT);
    node->strip = (Strip){parser->token.strip_left, parser->token.strip_right};
    return parser_advance(parser, err);
}

static bool refuse_block_params(const Parser *parser, const Node *node, Error *err)
{
    return node->call->block_param_count == 0 ||
           syntax_error(
               parser->lexer.source, node->at, err,
               "only blocks have parameters ('as |" STR_FMT "|')",
               STR_ARG(str_slice(node->call->block_params[0], 0, 40)));
}

static bool parse_print(Parser *parser, Body *body, Error *err)
{
    Node *node = append_node(parser, body, NODE_PRINT);
    TokenKind open = parser->token.kind;
    node->escaped = open == TOKEN_OPEN;
    node->strip.open = parser->token.strip_left;
    TokenKind close = open == TOKEN_OPEN_UNESCAPED ? TOKEN_CLOSE_UNESCAPED : TOKEN_CLOSE;
    return parser_call(parser, close, &node->call, &node->strip.close, err) &&
           refuse_block_params(parser, node, err);
}

static bool check_partial(const Parser *parser, const Node *node, Error *err)
{
    if (!refuse_block_params(parser, node, err)) {
        return false;
    }
    if (node->call->param_count > 1) {
        return syntax_error(
            parser->lexer.source, node->at, err,
            "a partial takes one context and named arguments, not %zu arguments",
            node->call->param_count);
    }
    return true;
}

static bool parse_partial(Parser *parser, Body *body, Error *err)
{
    Node *node = append_node(parser, body, NODE_PARTIAL);
    node->strip.open = parser->token.strip_left;
    return parser_call(parser, TOKEN_CLOSE, &node->call, &node->strip.close, err) &&
           check_partial(parser, node, err);
}

// An inverted block ({{^x}}) has its parts the other way round.
static void finish_block(
    Node *block, Body *program, const Inverse *inverse, Strip close, bool inverted)
{
    if (inverse->chain) {
        inverse->body->first->close_strip = close;
    }
    block->inverse_strip = inverse->strip;
    block->close_strip = close;
    block->program = inverted ? inverse->body : program;
    block->inverse = inverted ? program : inverse->body;
}

static bool is_else(TokenKind kind)
{
    return kind == TOKEN_ELSE || kind == TOKEN_OPEN_ELSE_CHAIN;
}

static bool parse_inverse(Parser *parser, Inverse *ret, Error *err);

static bool parse_chain(Parser *parser, Inverse *ret, Error *err)
{
    Body *program = NULL;
    Inverse inner = {.body = NULL};
    ret->chain = true;
    ret->body = new_body(parser);
    ret->body->chained = true;
    Node *block = append_node(parser, ret->body, NODE_BLOCK);
    block->strip.open = parser->token.strip_left;
    if (!parser_call(parser, TOKEN_CLOSE, &block->call, &block->strip.close, err) ||
        !parse_body(parser, &program, err) ||
        (is_else(parser->token.kind) && !parse_inverse(parser, &inner, err))) {
        return false;
    }
    ret->strip = block->strip;
    finish_block(block, program, &inner, inner.strip, false);
    return true;
}

static bool parse_inverse(Parser *parser, Inverse *ret, Error *err)
{
    if (++parser->nesting > NESTING_MAX) {
        return syntax_error(
            parser->lexer.source, parser->token.at, err,
            "more than %d blocks and else branches inside each other", NESTING_MAX);
    }
    bool ok = true;
    if (parser->token.kind == TOKEN_OPEN_ELSE_CHAIN) {
        ok = parse_chain(parser, ret, err);
    } else {
        ret->strip = (Strip){parser->token.strip_left, parser->token.strip_right};
        ok = parser_advance(parser, err) && parse_body(parser, &ret->body, err);
    }
    parser->nesting--;
    return ok;
}

// {{/name}}, which must be the block's own.
static bool parse_close(Parser *parser, const Node *block, const char *mark, Strip *ret, Error *err)
{
    Str name = str_slice(block->call->name.original, 0, 40);
    bool inverted = mark[0] == '^';
    Token *token = &parser->token;
    if (is_else(token->kind)) {
        return syntax_error(
            parser->lexer.source, token->at, err,
            "this else has no place in '{{%s" STR_FMT "}}'; %s", mark, STR_ARG(name),
            inverted && token->kind == TOKEN_OPEN_ELSE_CHAIN ? "use '{{else}}'" : "remove it");
    }
    if (token->kind != TOKEN_OPEN_CLOSE) {
        return syntax_error(
            parser->lexer.source, block->at, err,
            "'{{%s" STR_FMT "' is never closed; add '{{/" STR_FMT "}}'", mark, STR_ARG(name),
            STR_ARG(name));
    }
    size_t at = token->at;
    Call *close = NULL;
    ret->open = token->strip_left;
    if (!parser_call(parser, TOKEN_CLOSE, &close, &ret->close, err)) {
        return false;
    }
    if (!str_eq(close->name.original, block->call->name.original) || close->param_count > 0) {
        return syntax_error(
            parser->lexer.source, at, err,
            "'{{/" STR_FMT "}}' does not match '{{%s" STR_FMT "'; write '{{/" STR_FMT "}}'",
            STR_ARG(str_slice(close->name.original, 0, 40)), mark, STR_ARG(name), STR_ARG(name));
    }
    return true;
}

static bool parse_block_inside(Parser *parser, Node *block, bool inverted, Error *err)
{
    Body *program = NULL;
    Inverse inverse = {.body = NULL};
    Strip close = {.open = false};
    if (!parser_call(parser, TOKEN_CLOSE, &block->call, &block->strip.close, err) ||
        !parse_body(parser, &program, err)) {
        return false;
    }
    bool may_chain = !inverted || parser->token.kind == TOKEN_ELSE;
    if (is_else(parser->token.kind) && may_chain && !parse_inverse(parser, &inverse, err)) {
        return false;
    }
    if (!parse_close(parser, block, inverted ? "^" : "#", &close, err)) {
        return false;
    }
    finish_block(block, program, &inverse, close, inverted);
    return true;
}

static bool check_inline(const Parser *parser, const Node *node, Error *err)
{
    const Call *call = node->call;
    if (call->name.is_literal || !str_eq(call->name.original, STR("inline"))) {
        return syntax_error(
            parser->lexer.source, node->at, err,
            "unknown decorator '" STR_FMT "'; there is only '{{#*inline \"name\"}}'",
            STR_ARG(str_slice(call->name.original, 0, 40)));
    }
    bool named = call->param_count == 1 && call->params[0].is_literal &&
                 call->params[0].literal.kind == VALUE_TEXT && call->pair_count == 0;
    if (!named) {
        return syntax_error(
            parser->lexer.source, node->at, err,
            "an inline partial takes its name and nothing else; write '{{#*inline \"name\"}}'");
    }
    size_t len = call->params[0].original.len;
    if (len == 0 || len > TEMPLATE_PARTIAL_NAME_MAX) {
        return syntax_error(
            parser->lexer.source, node->at, err, "a partial's name has 1 to %d bytes",
            TEMPLATE_PARTIAL_NAME_MAX);
    }
    return refuse_block_params(parser, node, err);
}

// {{#> name}}..{{/name}} and {{#*inline "name"}}..{{/inline}}
static bool parse_partial_body(Parser *parser, Node *node, Error *err)
{
    bool is_inline = node->kind == NODE_INLINE;
    if (!parser_call(parser, TOKEN_CLOSE, &node->call, &node->strip.close, err)) {
        return false;
    }
    return (is_inline ? check_inline(parser, node, err) : check_partial(parser, node, err)) &&
           parse_body(parser, &node->program, err) &&
           parse_close(parser, node, is_inline ? "#*" : "#>", &node->close_strip, err);
}

static bool parse_block(Parser *parser, Body *body, Error *err)
{
    TokenKind open = parser->token.kind;
    NodeKind kind = open == TOKEN_OPEN_PARTIAL_BLOCK ? NODE_PARTIAL_BLOCK
                    : open == TOKEN_OPEN_INLINE      ? NODE_INLINE
                                                     : NODE_BLOCK;
    Node *block = append_node(parser, body, kind);
    block->strip.open = parser->token.strip_left;
    if (++parser->blocks > TEMPLATE_DEPTH_MAX || ++parser->nesting > NESTING_MAX) {
        return syntax_error(
            parser->lexer.source, block->at, err, "more than %d blocks inside each other",
            TEMPLATE_DEPTH_MAX);
    }
    bool ok = block->kind == NODE_BLOCK
                  ? parse_block_inside(parser, block, open == TOKEN_OPEN_INVERSE, err)
                  : parse_partial_body(parser, block, err);
    parser->blocks--;
    parser->nesting--;
    return ok;
}

// Stops at what closes a body: {{else}}, {{/...}}, the end. That token stays.
static bool parse_body(Parser *parser, Body **ret_body, Error *err)
{
    Body *body = new_body(parser);
    *ret_body = body;
    for (bool ok = true; ok;) {
        switch ((int)parser->token.kind) {
        case TOKEN_CONTENT:
            ok = parse_content(parser, body, err);
            break;
        case TOKEN_COMMENT:
            ok = parse_comment(parser, body, err);
            break;
        case TOKEN_OPEN:
        case TOKEN_OPEN_AMPERSAND:
        case TOKEN_OPEN_UNESCAPED:
            ok = parse_print(parser, body, err);
            break;
        case TOKEN_OPEN_PARTIAL:
            ok = parse_partial(parser, body, err);
            break;
        case TOKEN_OPEN_BLOCK:
        case TOKEN_OPEN_INVERSE:
        case TOKEN_OPEN_PARTIAL_BLOCK:
        case TOKEN_OPEN_INLINE:
            ok = parse_block(parser, body, err);
            break;
        default:
            return true;
        }
    }
    return false;
}

bool template_parse(Str source, Arena *arena, Body **ret_root, Error *err)
{
    Parser parser = {.lexer = {.source = source}, .arena = arena};
    if (!parser_advance(&parser, err) || !parse_body(&parser, ret_root, err)) {
        return false;
    }
    if (parser.token.kind == TOKEN_OPEN_CLOSE) {
        return syntax_error(
            source, parser.token.at, err,
            "this '{{/' closes nothing; remove it, or open its block with '{{#'");
    }
    if (is_else(parser.token.kind)) {
        return syntax_error(
            source, parser.token.at, err, "'{{else}}' outside of a block; remove it");
    }
    assert(parser.token.kind == TOKEN_END);
    return true;
}
