// SPDX-License-Identifier: Apache-2.0
// White space around tags. The order of the steps and the odd cases (inverted blocks with an else,
// chains of else) are those of Handlebars 4.7, which authors' templates were tried with.
#include "common/template/ast.h"
#include "common/template/lexer.h"

// What a node asks of the content around it.
typedef struct Trim {
    bool any;
    Strip strip;
    bool open_standalone;
    bool close_standalone;
    bool inline_standalone;
} Trim;

static size_t leading_space(Str s)
{
    size_t i = 0;
    while (i < s.len && template_is_space(s.ptr[i])) {
        i++;
    }
    return i;
}

static size_t before_trailing_space(Str s)
{
    size_t i = s.len;
    while (i > 0 && template_is_space(s.ptr[i - 1])) {
        i--;
    }
    return i;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static size_t before_trailing_blanks(Str s)
{
    size_t i = s.len;
    while (i > 0 && is_blank(s.ptr[i - 1])) {
        i--;
    }
    return i;
}

// Does the line before this place end, or the template begin? `prev` is the node before it.
static bool line_begins(const Node *prev, bool is_root)
{
    if (prev == NULL) {
        return is_root;
    }
    if (prev->kind != NODE_CONTENT) {
        return false;
    }
    size_t space = before_trailing_space(prev->original);
    bool has_break = str_find(str_slice(prev->original, space, prev->original.len), '\n') >= 0;
    return has_break || (is_root && prev->prev == NULL && space == 0);
}

static bool line_ends(const Node *next, bool is_root)
{
    if (next == NULL) {
        return is_root;
    }
    if (next->kind != NODE_CONTENT) {
        return false;
    }
    size_t space = leading_space(next->original);
    bool has_break = str_find(str_slice(next->original, 0, space), '\n') >= 0;
    return has_break || (is_root && next->next == NULL && space == next->original.len);
}

// Takes the rest of the line (or, for '~', all white space) off the front of the content behind a
// tag.
static void omit_right(Node *next, bool all)
{
    if (next == NULL || next->kind != NODE_CONTENT || (!all && next->right_stripped)) {
        return;
    }
    Str value = next->value;
    size_t from = all ? leading_space(value) : 0;
    while (!all && from < value.len && is_blank(value.ptr[from])) {
        from++;
    }
    if (!all && from + 1 < value.len && value.ptr[from] == '\r' && value.ptr[from + 1] == '\n') {
        from += 2;
    } else if (!all && from < value.len && (value.ptr[from] == '\n' || value.ptr[from] == '\r')) {
        from++;
    }
    next->value = str_slice(value, from, value.len);
    next->right_stripped = from > 0;
}

// Takes the indentation (or all white space) off the end of the content before a tag; true: there
// was some.
static bool omit_left(Node *prev, bool all)
{
    if (prev == NULL || prev->kind != NODE_CONTENT || (!all && prev->left_stripped)) {
        return false;
    }
    Str value = prev->value;
    size_t to = all ? before_trailing_space(value) : before_trailing_blanks(value);
    prev->value = str_slice(value, 0, to);
    prev->left_stripped = to < value.len;
    return prev->left_stripped;
}

static void trim_body(Body *body, bool is_root);

static void trim_inverse(Node *block, Body *program, Body *first_inverse)
{
    if (block->inverse_strip.open) {
        omit_left(program->last, true);
    }
    if (block->inverse_strip.close) {
        omit_right(first_inverse->first, true);
    }
    if (block->close_strip.open) {
        omit_left(first_inverse->last, true);
    }
    if (line_begins(program->last, false) && line_ends(first_inverse->first, false)) {
        omit_left(program->last, false);
        omit_right(first_inverse->first, false);
    }
}

static Trim trim_block(Node *block)
{
    if (block->program != NULL) {
        trim_body(block->program, false);
    }
    if (block->inverse != NULL) {
        trim_body(block->inverse, false);
    }
    Body *program = block->program != NULL ? block->program : block->inverse;
    Body *inverse = block->program != NULL ? block->inverse : NULL;
    Body *first_inverse = inverse;
    if (inverse != NULL && inverse->chained) {
        first_inverse = inverse->first->program;
    }
    Trim trim = {
        .any = true,
        .strip = {.open = block->strip.open, .close = block->close_strip.close},
        .open_standalone = line_ends(program->first, false),
        .close_standalone =
            line_begins((first_inverse != NULL ? first_inverse : program)->last, false),
    };
    if (block->strip.close) {
        omit_right(program->first, true);
    }
    if (inverse != NULL) {
        trim_inverse(block, program, first_inverse);
    } else if (block->close_strip.open) {
        omit_left(program->last, true);
    }
    return trim;
}

static Trim trim_node(Node *node)
{
    switch (node->kind) {
    case NODE_BLOCK:
    case NODE_PARTIAL_BLOCK:
    case NODE_INLINE:
        return trim_block(node);
    case NODE_PRINT:
        return (Trim){.any = true, .strip = node->strip};
    case NODE_COMMENT:
    case NODE_PARTIAL:
        return (Trim){.any = true, .strip = node->strip, .inline_standalone = true};
    case NODE_CONTENT:
        break;
    }
    return (Trim){0};
}

static void trim_inline(Node *node)
{
    omit_right(node->next, false);
    if (omit_left(node->prev, false) && node->kind == NODE_PARTIAL) {
        Str line = node->prev->original;
        node->indent = str_slice(line, before_trailing_blanks(line), line.len);
    }
}

static void trim_around(Node *node, const Trim *trim, bool is_root)
{
    bool begins = line_begins(node->prev, is_root);
    bool ends = line_ends(node->next, is_root);
    if (trim->strip.close) {
        omit_right(node->next, true);
    }
    if (trim->strip.open) {
        omit_left(node->prev, true);
    }
    if (trim->inline_standalone && begins && ends) {
        trim_inline(node);
    }
    if (trim->open_standalone && begins) {
        Body *first = node->program != NULL ? node->program : node->inverse;
        omit_right(first->first, false);
        omit_left(node->prev, false);
    }
    if (trim->close_standalone && ends) {
        Body *last = node->inverse != NULL ? node->inverse : node->program;
        omit_right(node->next, false);
        omit_left(last->last, false);
    }
}

static void trim_body(Body *body, bool is_root)
{
    for (Node *node = body->first; node != NULL; node = node->next) {
        Trim trim = trim_node(node);
        if (trim.any) {
            trim_around(node, &trim, is_root);
        }
    }
}

void template_trim(Body *root)
{
    trim_body(root, true);
}
