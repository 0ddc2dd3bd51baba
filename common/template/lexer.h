// SPDX-License-Identifier: Apache-2.0
// Lexer: template source cut into Handlebars' tokens, one at a time. It knows nothing of nesting or
// of names. Not public: used by parser.c only. Tokens are slices of the source, which must outlive
// them.
#pragma once

#include "common/base/error.h"
#include "common/base/str.h"

typedef enum TokenKind {
    TOKEN_END,
    TOKEN_CONTENT,
    TOKEN_COMMENT,
    TOKEN_OPEN,               // {{
    TOKEN_OPEN_AMPERSAND,     // {{&
    TOKEN_OPEN_UNESCAPED,     // {{{
    TOKEN_OPEN_BLOCK,         // {{#
    TOKEN_OPEN_INVERSE,       // {{^
    TOKEN_OPEN_ELSE_CHAIN,    // {{else, with something after it
    TOKEN_OPEN_PARTIAL,       // {{>
    TOKEN_OPEN_PARTIAL_BLOCK, // {{#>
    TOKEN_OPEN_INLINE,        // {{#*
    TOKEN_OPEN_CLOSE,         // {{/
    TOKEN_ELSE,               // {{else}} or {{^}}, whole
    TOKEN_CLOSE,              // }}
    TOKEN_CLOSE_UNESCAPED,    // }}}
    TOKEN_ID,
    TOKEN_ID_LITERAL, // [segment]; text is without the brackets
    TOKEN_SEPARATOR,  // . or /
    TOKEN_EQUALS,
    TOKEN_DATA,         // @
    TOKEN_OPEN_SUB,     // (
    TOKEN_CLOSE_SUB,    // )
    TOKEN_OPEN_PARAMS,  // as |
    TOKEN_CLOSE_PARAMS, // |
    TOKEN_STRING,
    TOKEN_NUMBER,
    TOKEN_TRUE,
    TOKEN_FALSE,
    TOKEN_NULL,
    TOKEN_UNDEFINED,
} TokenKind;

typedef struct Token {
    TokenKind kind;
    Str text;         // for strings and [literals]: between the quotes, backslashes not yet removed
    size_t at;        // offset of its first byte
    bool strip_left;  // '~' behind the opening braces
    bool strip_right; // '~' before the closing ones
    char quote;       // of a TOKEN_STRING
} Token;

typedef struct Lexer {
    Str source;
    size_t at;
    size_t tag_at; // where the tag being read began
    bool in_tag;
    bool escaped; // behind "\{{": what follows is content
} Lexer;

// ERROR_PERMANENT with line and column.
bool lexer_next(Lexer *lexer, Token *ret_token, Error *err);

// "line 3, column 7: <text>"; returns false.
bool syntax_error(Str source, size_t at, Error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// Puts "line 3, column 7: " before the text that is there; returns false.
bool error_place(Str source, size_t at, Error *err);

// What JavaScript's \s is in ASCII.
bool template_is_space(char c);
