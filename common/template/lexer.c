// SPDX-License-Identifier: Apache-2.0
#include "common/template/lexer.h"

#include <stdio.h>
#include <string.h>

bool template_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void find_place(Str source, size_t at, size_t *ret_line, size_t *ret_column)
{
    size_t line = 1;
    size_t column = 1;
    for (size_t i = 0; i < at && i < source.len; i++) {
        bool is_break = source.ptr[i] == '\n';
        line += is_break ? 1 : 0;
        // Bytes that continue a UTF-8 character are not columns of their own.
        bool is_start = ((unsigned char)source.ptr[i] & 0xc0) != 0x80;
        column = is_break ? 1 : column + (is_start ? 1 : 0);
    }
    *ret_line = line;
    *ret_column = column;
}

bool error_place(Str source, size_t at, Error *err)
{
    size_t line = 0;
    size_t column = 0;
    find_place(source, at, &line, &column);
    return error_wrap(err, "line %zu, column %zu", line, column);
}

bool syntax_error(Str source, size_t at, Error *err, const char *format, ...)
{
    size_t line = 0;
    size_t column = 0;
    find_place(source, at, &line, &column);
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return error_set(err, ERROR_PERMANENT, "line %zu, column %zu: %s", line, column, text);
}

// The byte at `at`, or NUL past the end: no source holds a NUL (template.c refuses it).
static char peek(const Lexer *lexer, size_t at)
{
    return at < lexer->source.len ? lexer->source.ptr[at] : '\0';
}

static bool looking_at(const Lexer *lexer, size_t at, const char *text)
{
    size_t len = strlen(text);
    return at <= lexer->source.len && lexer->source.len - at >= len &&
           memcmp(lexer->source.ptr + at, text, len) == 0;
}

// Where `text` comes next, or the end of the source.
static size_t find(const Lexer *lexer, size_t from, const char *text)
{
    size_t at = from;
    while (at < lexer->source.len && !looking_at(lexer, at, text)) {
        const char *next = memchr(lexer->source.ptr + at + 1, text[0], lexer->source.len - at - 1);
        at = next == NULL ? lexer->source.len : (size_t)(next - lexer->source.ptr);
    }
    return at < lexer->source.len ? at : lexer->source.len;
}

static size_t skip_space(const Lexer *lexer, size_t at)
{
    while (template_is_space(peek(lexer, at))) {
        at++;
    }
    return at;
}

static Token make_token(const Lexer *lexer, TokenKind kind, size_t from, size_t to)
{
    return (Token){.kind = kind, .text = str_slice(lexer->source, from, to), .at = from};
}

// ---- outside of tags ----

// What stands behind "\{{" is content up to the next tag, escaped or not.
static Token read_escaped(Lexer *lexer)
{
    size_t from = lexer->at;
    size_t floor = from + 2;
    size_t to = find(lexer, floor, "{{");
    for (int i = 0; i < 2 && to < lexer->source.len && to > floor && peek(lexer, to - 1) == '\\';
         i++) {
        to--;
    }
    lexer->at = to;
    lexer->escaped = false;
    return make_token(lexer, TOKEN_CONTENT, from, to);
}

// Content up to the next "{{"; may be empty. Sets how to go on from there.
static Token read_content(Lexer *lexer)
{
    size_t from = lexer->at;
    size_t to = find(lexer, from, "{{");
    lexer->at = to;
    if (to == lexer->source.len) {
        return make_token(lexer, TOKEN_CONTENT, from, to);
    }
    bool one = to > from && peek(lexer, to - 1) == '\\';
    bool two = one && to - from > 1 && peek(lexer, to - 2) == '\\';
    lexer->escaped = one && !two;
    lexer->in_tag = !lexer->escaped;
    lexer->tag_at = SIZE_MAX;
    return make_token(lexer, TOKEN_CONTENT, from, one ? to - 1 : to);
}

// ---- the beginning of a tag ----

static bool read_comment(Lexer *lexer, size_t body, Token *token, Error *err)
{
    bool is_long = looking_at(lexer, body, "!--");
    size_t end = body;
    if (is_long) {
        end = find(lexer, body + 1, "--");
        while (end < lexer->source.len && !looking_at(lexer, end, "--}}") &&
               !looking_at(lexer, end, "--~}}")) {
            end = find(lexer, end + 1, "--");
        }
        end += 2 + (peek(lexer, end + 2) == '~' ? 1u : 0u);
    } else {
        end = find(lexer, body + 1, "}}");
    }
    if (end >= lexer->source.len) {
        return syntax_error(
            lexer->source, lexer->at, err, "the comment '%s' is never closed; add '%s'",
            is_long ? "{{!--" : "{{!", is_long ? "--}}" : "}}");
    }
    token->kind = TOKEN_COMMENT;
    token->strip_right = peek(lexer, end - 1) == '~';
    lexer->at = end + 2;
    lexer->in_tag = false;
    return true;
}

// {{else}} and {{^}}: *ret_end is behind the closing braces. false: something else stands in the
// tag.
static bool ends_here(const Lexer *lexer, size_t at, Token *token, size_t *ret_end)
{
    at = skip_space(lexer, at);
    bool strip = peek(lexer, at) == '~';
    if (!looking_at(lexer, at + (strip ? 1 : 0), "}}")) {
        return false;
    }
    token->strip_right = strip;
    *ret_end = at + (strip ? 3 : 2);
    return true;
}

static bool refuse_open(const Lexer *lexer, size_t body, Error *err)
{
    const char *what = NULL;
    if (looking_at(lexer, lexer->at, "{{{{")) {
        what = "raw blocks ('{{{{') are not supported; escape a tag as '\\{{'";
    } else if (looking_at(lexer, body, "*")) {
        what = "decorators ('{{*') are not supported; there is only '{{#*inline \"name\"}}'";
    }
    return what == NULL || syntax_error(lexer->source, lexer->at, err, "%s", what);
}

static TokenKind kind_of_block(const Lexer *lexer, size_t *body)
{
    char mark = peek(lexer, *body + 1);
    bool plain = mark != '>' && mark != '*';
    *body += plain ? 1 : 2;
    if (plain) {
        return TOKEN_OPEN_BLOCK;
    }
    return mark == '>' ? TOKEN_OPEN_PARTIAL_BLOCK : TOKEN_OPEN_INLINE;
}

static TokenKind kind_of_open(const Lexer *lexer, size_t *body)
{
    char c = peek(lexer, *body);
    size_t word = skip_space(lexer, *body);
    char after = peek(lexer, word + 4);
    if (c != '^' && looking_at(lexer, word, "else") && !ascii_is_alnum(after) && after != '_') {
        *body = word + 4;
        return TOKEN_OPEN_ELSE_CHAIN;
    }
    switch (c) {
    case '>':
        (*body)++;
        return TOKEN_OPEN_PARTIAL;
    case '#':
        return kind_of_block(lexer, body);
    case '/':
        (*body)++;
        return TOKEN_OPEN_CLOSE;
    case '^':
        (*body)++;
        return TOKEN_OPEN_INVERSE;
    case '{':
        (*body)++;
        return TOKEN_OPEN_UNESCAPED;
    case '&':
        (*body)++;
        return TOKEN_OPEN_AMPERSAND;
    default:
        return TOKEN_OPEN;
    }
}

static bool read_open(Lexer *lexer, Token *token, Error *err)
{
    size_t from = lexer->at;
    token->strip_left = peek(lexer, from + 2) == '~';
    size_t body = from + (token->strip_left ? 3 : 2);
    if (!refuse_open(lexer, body, err)) {
        return false;
    }
    token->at = from;
    if (peek(lexer, body) == '!') {
        return read_comment(lexer, body, token, err);
    }
    lexer->tag_at = from;
    token->kind = kind_of_open(lexer, &body);
    bool may_end = token->kind == TOKEN_OPEN_ELSE_CHAIN || token->kind == TOKEN_OPEN_INVERSE;
    if (may_end && ends_here(lexer, body, token, &body)) {
        token->kind = TOKEN_ELSE;
        lexer->in_tag = false;
    }
    token->text = str_slice(lexer->source, from, body);
    lexer->at = body;
    return true;
}

// ---- inside a tag ----

static bool ends_id(char c)
{
    return c == '=' || c == '~' || c == '}' || c == '/' || c == '.' || c == ')' || c == '|' ||
           template_is_space(c);
}

static bool ends_literal(char c)
{
    return c == '~' || c == '}' || c == ')' || template_is_space(c);
}

// Handlebars' ID: everything but white space, control and ! " # % & ' ( ) * + , . / ; < = > @ [ \ ]
// ^ ` { | } ~
static bool is_id(char c)
{
    return c != '\0' && !template_is_space(c) && strchr("!\"#%&'()*+,./;<=>@[\\]^`{|}~", c) == NULL;
}

static bool read_quoted(Lexer *lexer, char quote, TokenKind kind, Token *token, Error *err)
{
    size_t from = lexer->at;
    size_t at = from + 1;
    while (at < lexer->source.len && peek(lexer, at) != quote) {
        at += peek(lexer, at) == '\\' && peek(lexer, at + 1) == quote ? 2 : 1;
    }
    if (at >= lexer->source.len) {
        return syntax_error(
            lexer->source, from, err, "the %s is never closed; add %c",
            kind == TOKEN_STRING ? "string" : "'['", quote);
    }
    *token = make_token(lexer, kind, from + 1, at);
    token->at = from;
    token->quote = quote;
    lexer->at = at + 1;
    return true;
}

static size_t number_end(const Lexer *lexer, size_t at)
{
    at += peek(lexer, at) == '-' ? 1 : 0;
    size_t digits = at;
    while (peek(lexer, at) >= '0' && peek(lexer, at) <= '9') {
        at++;
    }
    if (at == digits) {
        return 0;
    }
    size_t fraction = at + 1;
    if (peek(lexer, at) == '.') {
        while (peek(lexer, fraction) >= '0' && peek(lexer, fraction) <= '9') {
            fraction++;
        }
        at = fraction > at + 1 ? fraction : at;
    }
    return ends_literal(peek(lexer, at)) ? at : 0;
}

static TokenKind word_kind(Str word)
{
    if (str_eq(word, STR("true"))) {
        return TOKEN_TRUE;
    }
    if (str_eq(word, STR("false"))) {
        return TOKEN_FALSE;
    }
    if (str_eq(word, STR("null"))) {
        return TOKEN_NULL;
    }
    return str_eq(word, STR("undefined")) ? TOKEN_UNDEFINED : TOKEN_ID;
}

static bool refuse_character(const Lexer *lexer, Error *err)
{
    char c = peek(lexer, lexer->at);
    if (c == '(') {
        return syntax_error(
            lexer->source, lexer->at, err, "a space is missing before the subexpression's '('");
    }
    if ((unsigned char)c >= 0x20 && (unsigned char)c < 0x7f) {
        return syntax_error(
            lexer->source, lexer->at, err,
            "unexpected '%c' in a tag; write names with it as [name]", c);
    }
    return syntax_error(lexer->source, lexer->at, err, "unexpected character in a tag");
}

static bool read_word(Lexer *lexer, Token *token, Error *err)
{
    size_t from = lexer->at;
    size_t to = number_end(lexer, from);
    if (to > 0) {
        *token = make_token(lexer, TOKEN_NUMBER, from, to);
        lexer->at = to;
        return true;
    }
    to = from;
    while (to < lexer->source.len && is_id(peek(lexer, to))) {
        to++;
    }
    lexer->at = to;
    if (to == from || (to < lexer->source.len && !ends_id(peek(lexer, to)))) {
        return refuse_character(lexer, err);
    }
    *token = make_token(lexer, TOKEN_ID, from, to);
    bool is_literal = ends_literal(peek(lexer, to));
    token->kind = is_literal ? word_kind(token->text) : TOKEN_ID;
    return true;
}

// "}}", "~}}", "}}}" and "}~}}"; false: none of them.
static bool read_close(Lexer *lexer, Token *token)
{
    size_t at = lexer->at;
    bool unescaped = peek(lexer, at) == '}' &&
                     (looking_at(lexer, at + 1, "}}") || looking_at(lexer, at + 1, "~}}"));
    at += unescaped ? 1 : 0;
    bool strip = peek(lexer, at) == '~';
    at += strip ? 1 : 0;
    if (!looking_at(lexer, at, "}}")) {
        return false;
    }
    *token = make_token(lexer, unescaped ? TOKEN_CLOSE_UNESCAPED : TOKEN_CLOSE, lexer->at, at + 2);
    token->strip_right = strip;
    lexer->at = at + 2;
    lexer->in_tag = false;
    return true;
}

// The length of "as |"; 0: it does not stand here.
static size_t params_begin(const Lexer *lexer, size_t from)
{
    size_t at = skip_space(lexer, from + 2);
    return looking_at(lexer, from, "as") && at > from + 2 && peek(lexer, at) == '|' ? at + 1 - from
                                                                                    : 0;
}

// Tokens of fixed spelling; false: none of them.
static bool read_mark(Lexer *lexer, Token *token)
{
    size_t from = lexer->at;
    char c = peek(lexer, from);
    size_t len = 1;
    TokenKind kind = TOKEN_END;
    if (c == 'a' && params_begin(lexer, from) > 0) {
        kind = TOKEN_OPEN_PARAMS;
        len = params_begin(lexer, from);
    } else if (c == '(' || c == ')') {
        kind = c == '(' ? TOKEN_OPEN_SUB : TOKEN_CLOSE_SUB;
    } else if (c == '|') {
        kind = TOKEN_CLOSE_PARAMS;
    } else if (c == '=') {
        kind = TOKEN_EQUALS;
    } else if (looking_at(lexer, from, "..")) {
        kind = TOKEN_ID;
        len = 2;
    } else if (c == '.' && ends_id(peek(lexer, from + 1))) {
        kind = TOKEN_ID;
    } else if (c == '.' || c == '/') {
        kind = TOKEN_SEPARATOR;
    } else if (c == '@') {
        kind = TOKEN_DATA;
    } else {
        return false;
    }
    *token = make_token(lexer, kind, from, from + len);
    lexer->at = from + len;
    return true;
}

static bool read_in_tag(Lexer *lexer, Token *token, Error *err)
{
    lexer->at = skip_space(lexer, lexer->at);
    char c = peek(lexer, lexer->at);
    if (lexer->at >= lexer->source.len) {
        return syntax_error(
            lexer->source, lexer->tag_at, err, "this tag is never closed; add '}}'");
    }
    if (read_mark(lexer, token) || read_close(lexer, token)) {
        return true;
    }
    if (c == '"' || c == '\'') {
        return read_quoted(lexer, c, TOKEN_STRING, token, err);
    }
    if (c == '[') {
        return read_quoted(lexer, ']', TOKEN_ID_LITERAL, token, err);
    }
    return read_word(lexer, token, err);
}

bool lexer_next(Lexer *lexer, Token *ret_token, Error *err)
{
    *ret_token = (Token){0};
    while (!lexer->in_tag) {
        if (lexer->at >= lexer->source.len) {
            *ret_token = make_token(lexer, TOKEN_END, lexer->at, lexer->at);
            return true;
        }
        *ret_token = lexer->escaped ? read_escaped(lexer) : read_content(lexer);
        if (ret_token->text.len > 0) {
            return true;
        }
    }
    *ret_token = (Token){0};
    return lexer->tag_at == SIZE_MAX ? read_open(lexer, ret_token, err)
                                     : read_in_tag(lexer, ret_token, err);
}
