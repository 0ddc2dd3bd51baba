// SPDX-License-Identifier: Apache-2.0
// What the compiler's files share. Not public: compile.c owns it, operand.c makes operands for it.
#pragma once

#include "common/template/program.h"

// The block parameters in sight, innermost first.
typedef struct Scope {
    const Str *names;
    size_t count;
    uint32_t frame; // of the block, counted from its program's first
    uint32_t level; // of its program
    const struct Scope *outer;
} Scope;

// The inline partials in sight, innermost body first.
typedef struct Sight {
    const Program *body;
    const struct Sight *outer;
} Sight;

// One a program; those of bodies are made while the one around stands still.
typedef struct Compiler {
    Program *program;
    Program *whole; // of the whole source
    TemplateEscape escape;
    uint32_t op_room;
    uint32_t frames; // that the blocks around this place have entered
    uint32_t level;  // programs whose frames this one's operands can name
    bool in_inline;
    const Scope *scope;
    const Sight *sight;
} Compiler;

// ERROR_PERMANENT with line and column.
bool compiler_operand(Compiler *compiler, const Expr *expr, Operand *ret, Error *err);
// Of a tag's name: a path even when it is spelt as a literal.
bool compiler_named_operand(Compiler *compiler, const Expr *expr, Operand *ret, Error *err);
bool compiler_call_operand(
    Compiler *compiler, const Call *call, size_t at, Operand *ret, Error *err);
