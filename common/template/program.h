// SPDX-License-Identifier: Apache-2.0
// Program: a compiled template, a flat list of operations. Immutable once its partials are bound.
// Not public: compile.c makes it, render.c runs it, template.c owns it.
#pragma once

#include "common/template/ast.h"
#include "common/template/helpers/helper.h"

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
    OP_BODY,      // run a body that defines inline partials
} OpKind;

typedef enum DataName {
    DATA_NONE,
    DATA_ROOT,
    DATA_INDEX,
    DATA_KEY,
    DATA_FIRST,
    DATA_LAST,
    DATA_PARTIAL_BLOCK
} DataName;

typedef enum OperandKind {
    OPERAND_PATH,   // in the context, or `depth` contexts around it
    OPERAND_SEARCH, // in the context, else in those around, as Mustache does
    OPERAND_LITERAL,
    OPERAND_DATA,
    OPERAND_PARAM, // a block parameter; `depth` is its frame, counted from its program's first
    OPERAND_CALL,  // what a helper gives
} OperandKind;

typedef struct HelperCall HelperCall;

// An expression ready to evaluate.
typedef struct Operand {
    OperandKind kind;
    DataName data;
    bool is_key;   // OPERAND_PARAM: the second one, the index or key
    bool may_miss; // strict mode does not mind that there is nothing
    uint8_t up;    // OPERAND_PARAM: how many programs around this one it belongs to
    uint32_t depth;
    uint32_t segment_count;
    const Segment *segments;
    union {
        Value literal;
        const HelperCall *call;
    };
    Str name; // as it is written, for errors
} Operand;

struct HelperCall {
    const Helper *helper;
    const Operand *params;
    size_t param_count;
    const Str *names; // named arguments
    const Operand *operands;
    size_t pair_count;
};

typedef struct Program Program;

typedef struct PartialCall {
    Str name;
    bool is_dynamic; // {{> (lookup a "b")}}: `by` gives the name
    Operand by;
    bool wants_block;       // {{> @partial-block}}
    bool in_sight;          // an inline partial around this place has the name
    bool in_inline;         // stands in the body of an inline partial
    const Program *program; // the set's partial; NULL: it has none, or is not bound yet
    const Program *block;   // {{#> name}}: its body; else NULL
    bool has_context;
    Operand context;
    const Str *names; // named arguments
    const Operand *operands;
    size_t count;
    Str indent;
    size_t at; // where in the source
    struct PartialCall *next;
} PartialCall;

// {{#*inline "name"}}
typedef struct Inline {
    Str name;
    Program *program;
    const struct Inline *next;     // of the same body; the one that counts comes first
    const struct Inline *next_all; // of the same source
} Inline;

// {{asset "logo.png"}}
typedef struct AssetName {
    Str name;
    const struct AssetName *next;
} AssetName;

typedef struct Op {
    OpKind kind;
    TemplateEscape escape; // OP_PRINT
    bool in_html;          // OP_PRINT: the template is escaped for HTML, though this tag may not be
    bool ends_scheme;      // OP_TEXT in HTML: begins with what may end a URL's scheme
    bool has_code;         // OP_TEXT in HTML: may begin an attribute that is code
    bool zero_is_true;     // OP_UNLESS_GO, OP_IF_GO: includeZero=true
    bool by_helper;        // OP_UNLESS_GO, OP_IF_GO and their OP_GO: a helper's result chooses
    uint32_t target;
    uint32_t at; // where in the source
    union {
        Str text;
        Operand operand;
        PartialCall *partial;
        const Program *body;
    };
} Op;

// A template, a partial, or a body within one that needs an environment of its own: that of a
// partial block, of an inline partial, and of a block that defines inline partials. Bodies belong
// to the program of the whole source and share its arena.
struct Program {
    Str source; // a copy; texts of the operations point into it
    Arena *arena;
    Op *ops;
    uint32_t op_count;
    const Inline *inlines; // that this body defines
    bool is_block;         // the body of a {{#> name}}
    Program *bodies;       // of the whole source, linked by `next`
    Program *next;
    // of the whole source
    PartialCall *calls;      // those that name their partial
    const AssetName *assets; // the last one first
    const Inline *all_inlines;
    size_t inline_count;
};

// ERROR_PERMANENT with line and column.
Program *program_compile(Str source, TemplateEscape escape, Error *err);
void program_free(Program *program);

// The partial of that name; NULL: the set (which may be NULL) has none.
const Program *template_set_find(const TemplateSet *set, Str name);
// May an unknown partial be nothing instead of an error?
bool template_set_is_lenient(const TemplateSet *set);

bool program_render(
    const Program *program, const TemplateSet *set, const json_t *variables,
    const TemplateContext *context, Buf *out, Error *err);
