// SPDX-License-Identifier: Apache-2.0
#include "common/replay/shadow/diff.h"

enum { CONTEXT = 3 };

// A line with its line break; the last one may have none.
typedef struct Lines {
    Str *line;
    size_t count;
} Lines;

// One step of the way from the first text to the second.
typedef struct Step {
    char kind; // ' ', '-', '+'
    size_t a, b;
} Step;

typedef struct Steps {
    Step *step;
    size_t count;
} Steps;

static Lines split(Str text, Arena *arena)
{
    Lines lines = {NULL, 0};
    size_t most = 1;
    for (size_t i = 0; i < text.len; i++) {
        most += text.ptr[i] == '\n';
    }
    lines.line = arena_array(arena, most, sizeof *lines.line);
    for (size_t from = 0, i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\n' || i + 1 == text.len) {
            lines.line[lines.count++] = str_slice(text, from, i + 1);
            from = i + 1;
        }
    }
    return lines;
}

static size_t common_tail(const Lines *a, const Lines *b, size_t head)
{
    size_t n = 0;
    while (n < a->count - head && n < b->count - head &&
           str_eq(a->line[a->count - 1 - n], b->line[b->count - 1 - n])) {
        n++;
    }
    return n;
}

static void add(Steps *steps, char kind, size_t *a, size_t *b)
{
    steps->step[steps->count++] = (Step){kind, *a, *b};
    *a += kind != '+';
    *b += kind != '-';
}

// Lengths of the longest common subsequences of all the tails of two middles of n and m lines.
static uint16_t *measure(const Str *a, size_t n, const Str *b, size_t m, Arena *arena)
{
    size_t width = m + 1;
    uint16_t *length = arena_array(arena, (n + 1) * width, sizeof *length);
    for (size_t i = n; i-- > 0;) {
        for (size_t j = m; j-- > 0;) {
            uint16_t down = length[(i + 1) * width + j];
            uint16_t right = length[i * width + j + 1];
            uint16_t longer = down > right ? down : right;
            bool same = str_eq(a[i], b[j]);
            length[i * width + j] = same ? (uint16_t)(length[(i + 1) * width + j + 1] + 1) : longer;
        }
    }
    return length;
}

static Steps walk(const Lines *a, const Lines *b, size_t head, size_t tail, Arena *arena)
{
    size_t n = a->count - head - tail;
    size_t m = b->count - head - tail;
    uint16_t *length = measure(a->line + head, n, b->line + head, m, arena);
    Steps steps = {arena_array(arena, a->count + b->count + 1, sizeof(Step)), 0};
    size_t at = 0;
    size_t bt = 0;
    while (at < head) {
        add(&steps, ' ', &at, &bt);
    }
    while (at < head + n || bt < head + m) {
        size_t i = at - head;
        size_t j = bt - head;
        if (i < n && j < m && str_eq(a->line[at], b->line[bt])) {
            add(&steps, ' ', &at, &bt);
        } else if (
            i < n && (j == m || length[(i + 1) * (m + 1) + j] >= length[i * (m + 1) + j + 1])) {
            add(&steps, '-', &at, &bt);
        } else {
            add(&steps, '+', &at, &bt);
        }
    }
    while (at < a->count) {
        add(&steps, ' ', &at, &bt);
    }
    return steps;
}

static void mix(uint64_t *signature, uint64_t value)
{
    *signature = (*signature ^ value) * UINT64_C(1099511628211);
}

static void print_step(const Step *step, const Lines *a, const Lines *b, Buf *out)
{
    Str line = step->kind == '+' ? b->line[step->b] : a->line[step->a];
    buf_char(out, step->kind);
    buf_str(out, line);
    if (!str_ends(line, STR("\n"))) {
        buf_cstr(out, "\n\\ no line break at the end\n");
    }
}

// The steps from..to, with their place in both texts as a head.
static void print_hunk(
    const Steps *steps, size_t from, size_t to, const Lines *a, const Lines *b, Buf *out)
{
    size_t removed = 0;
    size_t added = 0;
    for (size_t i = from; i < to; i++) {
        removed += steps->step[i].kind != '+';
        added += steps->step[i].kind != '-';
    }
    const Step *first = &steps->step[from];
    // As diff does: a side without lines is named by the line before.
    buf_printf(
        out, "@@ -%zu,%zu +%zu,%zu @@\n", first->a + (removed > 0), removed, first->b + (added > 0),
        added);
    for (size_t i = from; i < to; i++) {
        print_step(&steps->step[i], a, b, out);
    }
}

static void print_hunks(
    const Steps *steps, const Lines *a, const Lines *b, Buf *out, uint64_t *signature)
{
    size_t i = 0;
    while (i < steps->count) {
        if (steps->step[i].kind == ' ') {
            i++;
            continue;
        }
        size_t from = i > CONTEXT ? i - CONTEXT : 0;
        size_t last = i; // the last change that is near enough to the one before
        for (size_t j = i; j < steps->count && j <= last + 2 * CONTEXT; j++) {
            if (steps->step[j].kind != ' ') {
                last = j;
                mix(signature, (uint64_t)steps->step[j].kind);
                mix(signature, steps->step[j].a);
                mix(signature, steps->step[j].b);
            }
        }
        size_t to = last + 1 + CONTEXT < steps->count ? last + 1 + CONTEXT : steps->count;
        print_hunk(steps, from, to, a, b, out);
        i = last + 1;
    }
}

bool diff_unified(
    const char *before_label, Str before, const char *after_label, Str after, Arena *scratch,
    Buf *out, uint64_t *signature)
{
    mix(signature, 0);
    if (str_eq(before, after)) {
        return false;
    }
    Lines a = split(before, scratch);
    Lines b = split(after, scratch);
    size_t head = 0;
    while (head < a.count && head < b.count && str_eq(a.line[head], b.line[head])) {
        head++;
    }
    size_t tail = common_tail(&a, &b, head);
    buf_printf(out, "--- %s\n+++ %s\n", before_label, after_label);
    if (a.count - head - tail > DIFF_LINES_MAX || b.count - head - tail > DIFF_LINES_MAX) {
        buf_printf(out, "too long to compare, differs from line %zu\n", head + 1);
        mix(signature, head + 1);
        return true;
    }
    Steps steps = walk(&a, &b, head, tail, scratch);
    print_hunks(&steps, &a, &b, out, signature);
    return true;
}
