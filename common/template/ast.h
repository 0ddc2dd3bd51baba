// SPDX-License-Identifier: Apache-2.0
// The tree that the parser makes of a template, that whitespace.c trims and that compile.c
// flattens. It lives in the arena of the compilation and is gone afterwards; the slices in it point
// into the template's source or that arena. Not public: used inside common/template.
#pragma once

#include "common/base/arena.h"
#include "common/template/template.h"
#include "common/template/value.h"

enum {
    PARAMS_MAX = 8,    // positional arguments of one tag or subexpression
    PAIRS_MAX = 16,    // named arguments of one tag
    SEGMENTS_MAX = 32, // names of one path
    PATH_BYTES_MAX = 512,
    SUBEXPRESSIONS_MAX = 8, // inside each other
    BLOCK_PARAMS_MAX = 2,   // {{#each a as |item index|}}
    NESTING_MAX =
        256, // blocks and {{else ...}} branches inside each other, as the tree counts them
};

typedef struct Call Call;

// What an argument is. `original` is its spelling, by which {{/close}} is matched and partials are
// named.
typedef struct Expr {
    bool is_literal;
    Value literal;
    bool is_data;   // @...
    bool is_scoped; // begins with "this" or ".": a name of this context and of no other
    uint32_t depth; // how many "../"
    uint32_t segment_count;
    const Segment *segments;
    Call *call; // of a subexpression: (helper a b); else NULL
    Str original;
    size_t at;
} Expr;

typedef struct Pair {
    Str name;
    Expr value;
} Pair;

struct Call {
    Expr name;
    Expr params[PARAMS_MAX];
    size_t param_count;
    Pair *pairs;
    size_t pair_count;
    Str block_params[BLOCK_PARAMS_MAX];
    size_t block_param_count;
};

// Which sides of a tag carry a '~'.
typedef struct Strip {
    bool open;
    bool close;
} Strip;

typedef enum NodeKind {
    NODE_CONTENT,
    NODE_PRINT,
    NODE_COMMENT,
    NODE_BLOCK,
    NODE_PARTIAL,
    NODE_PARTIAL_BLOCK, // {{#> name}}default{{/name}}
    NODE_INLINE,        // {{#*inline "name"}}..{{/inline}}
} NodeKind;

typedef struct Node Node;

typedef struct Body {
    Node *first;
    Node *last;
    bool chained; // holds only the block of an {{else if ...}}
} Body;

struct Node {
    NodeKind kind;
    size_t at;
    Node *prev;
    Node *next;
    Strip strip; // of prints, comments, partials; of a block: its opening tag
    // content
    Str original;
    Str value;
    bool left_stripped;
    bool right_stripped;
    // prints, blocks, partials
    Call *call;
    bool escaped;
    Str indent; // of a partial alone on its line
    // blocks of all kinds
    Body *program;
    Body *inverse;
    Strip inverse_strip;
    Strip close_strip;
};

// *ret_root lives in `arena`. ERROR_PERMANENT with line and column.
bool template_parse(Str source, Arena *arena, Body **ret_root, Error *err);

// Applies '~' and the rule that tags alone on a line take the line with them, as Handlebars 4.7
// does.
void template_trim(Body *root);
