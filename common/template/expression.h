// SPDX-License-Identifier: Apache-2.0
// The inside of a tag: names, paths, literals and arguments. The part of the parser that knows no
// blocks. Not public: used by parser.c only.
#pragma once

#include "common/template/ast.h"
#include "common/template/lexer.h"

typedef struct Parser {
    Lexer lexer;
    Token token; // the one that is looked at
    Arena *arena;
    uint32_t blocks;         // open around this place
    uint32_t nesting;        // those and their else branches
    uint32_t subexpressions; // open around this place
} Parser;

bool parser_advance(Parser *parser, Error *err);
// From behind the opening braces to behind the closing ones, which must be `close`.
bool parser_call(
    Parser *parser, TokenKind close, Call **ret_call, bool *ret_strip_right, Error *err);
