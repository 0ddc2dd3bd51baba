// SPDX-License-Identifier: Apache-2.0
// Program: a compiled template, a flat list of operations. Immutable once its partials are bound.
// Not public: compile.c makes it, render.c runs it, template.c owns it.
#pragma once

#include "common/template/ast.h"

typedef enum OpKind {
    OP_TEXT,      // append text
    OP_PRINT,     // append the value of expr
    OP_UNLESS_GO, // {{#if}}: go to `target` unless expr is true
    OP_IF_GO,     // {{#unless}}: go to `target` if expr is true
    OP_EACH,      // enter a loop over expr, or go to `target`
    OP_WITH,      // enter expr as context, or go to `target`
    OP_SECTION,   // {{#name}}: whichever of the two fits its value
    OP_LEAVE,     // next round of the innermost loop (to `target`), or leave it
    OP_GO,        // go to `target`
    OP_PARTIAL,   // run another program
} OpKind;

typedef enum DataName {
    DATA_NONE,
    DATA_ROOT,
    DATA_INDEX,
    DATA_KEY,
    DATA_FIRST,
    DATA_LAST
} DataName;

// An expression ready to evaluate.
typedef struct Operand {
    bool is_literal;
    DataName data;
    uint32_t depth;
    uint32_t segment_count;
    const Segment *segments;
    Value literal;
} Operand;

typedef struct Program Program;

typedef struct PartialCall {
    Str name;
    const Program *program; // NULL until bound
    bool has_context;
    Operand context;
    const Str *names; // named arguments
    const Operand *operands;
    size_t count;
    Str indent;
    size_t at; // where in the source
} PartialCall;

typedef struct Op {
    OpKind kind;
    bool escape;       // OP_PRINT
    bool zero_is_true; // OP_UNLESS_GO, OP_IF_GO: includeZero=true
    uint32_t target;
    union {
        Str text;
        Operand operand;
        PartialCall *partial;
    };
} Op;

struct Program {
    Str source; // a copy; texts of the operations point into it
    Arena *arena;
    Op *ops;
    uint32_t op_count;
    PartialCall **partials; // every OP_PARTIAL's call
    uint32_t partial_count;
};

// ERROR_PERMANENT with line and column.
Program *program_compile(Str source, TemplateEscape escape, Error *err);
void program_free(Program *program);

bool program_render(const Program *program, const json_t *variables, Buf *out, Error *err);
