// SPDX-License-Identifier: Apache-2.0
#include "common/bus/consume/guard/poison.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"

enum { STREAM_MAX = 64, PROCESS_MAX = 64 };

// ---- the decision ----

size_t poison_group_max(uint32_t deaths)
{
    static const size_t sizes[] = {POISON_GROUP_MAX, 32, 4, 1};
    enum { LAST = sizeof sizes / sizeof *sizes - 1 };
    return sizes[deaths < LAST ? deaths : LAST];
}

bool poison_is_proven(const PoisonEvidence *evidence)
{
    return evidence->deaths >= POISON_DEATHS && evidence->alone >= POISON_ALONE;
}

// ---- a mark's text ----

bool poison_mark_write(
    Buf *out, const char *stream, size_t size, const PoisonInput *inputs, size_t count)
{
    if (count > 0) {
        buf_printf(out, "%s %zu", stream, size);
    }
    for (size_t i = 0; i < count; i++) {
        buf_printf(out, " %" PRIu64 "/%" PRId64, inputs[i].sequence, inputs[i].stored_at_us);
    }
    return !out->full;
}

static bool read_number(Str text, int64_t max, int64_t *ret)
{
    return str_to_i64(text, ret) && *ret > 0 && *ret <= max;
}

static bool read_input(Str text, PoisonInput *ret)
{
    int64_t sequence, stored;
    ptrdiff_t slash = str_find(text, '/');
    if (slash < 0 || !read_number(str_slice(text, 0, (size_t)slash), INT64_MAX, &sequence) ||
        !read_number(str_slice(text, (size_t)slash + 1, text.len), INT64_MAX, &stored)) {
        return false;
    }
    *ret = (PoisonInput){(uint64_t)sequence, stored};
    return true;
}

// Fills stream, size and inputs, which are the caller's; nothing is kept when it is no mark.
static bool read_mark(Str text, PoisonMark *mark)
{
    PoisonInput inputs[POISON_GROUP_MAX];
    Str stream, word;
    int64_t size;
    size_t count = 0;
    if (!str_split(&text, ' ', &stream) || stream.len == 0 || stream.len > STREAM_MAX ||
        memchr(stream.ptr, '\0', stream.len) != NULL || !str_split(&text, ' ', &word) ||
        !read_number(word, POISON_GROUP_MAX, &size)) {
        return false;
    }
    while (count < POISON_GROUP_MAX && str_split(&text, ' ', &word)) {
        if (!read_input(word, &inputs[count++])) {
            return false;
        }
    }
    if (count == 0 || text.len > 0 || count > (size_t)size) {
        return false;
    }
    mark->stream = xmalloc(stream.len + 1);
    memcpy(mark->stream, stream.ptr, stream.len);
    mark->stream[stream.len] = '\0';
    mark->size = (size_t)size;
    mark->inputs = xmalloc(count * sizeof *inputs);
    memcpy(mark->inputs, inputs, count * sizeof *inputs);
    mark->count = count;
    return true;
}

// ---- all marks ----

// count: not there. Marks are few, and none stand while all goes well.
static size_t find_input(const PoisonMark *mark, const char *stream, const PoisonInput *input)
{
    if (strcmp(mark->stream, stream) != 0) {
        return mark->count;
    }
    size_t i = 0;
    while (i < mark->count && (mark->inputs[i].sequence != input->sequence ||
                               mark->inputs[i].stored_at_us != input->stored_at_us)) {
        i++;
    }
    return i;
}

PoisonMark *poison_marks_find(PoisonMarks *marks, Str process)
{
    for (size_t i = 0; i < marks->count; i++) {
        if (str_eq(str_from(marks->at[i].process), process)) {
            return &marks->at[i];
        }
    }
    return NULL;
}

static void free_mark(PoisonMark *mark)
{
    free(mark->process);
    free(mark->stream);
    free(mark->inputs);
}

void poison_marks_drop(PoisonMarks *marks, PoisonMark *mark)
{
    free_mark(mark);
    size_t behind = (size_t)(marks->at + marks->count - (mark + 1));
    memmove(mark, mark + 1, behind * sizeof *mark);
    marks->count--;
}

static void add_mark(PoisonMarks *marks, Str process, PoisonMark mark)
{
    if (marks->count == POISON_MARKS_MAX) {
        poison_marks_drop(marks, &marks->at[0]); // in the order in which they came
    }
    if (marks->count == marks->cap) {
        marks->cap = marks->cap == 0 ? 16 : 2 * marks->cap;
        marks->at = xrealloc(marks->at, marks->cap * sizeof *marks->at);
    }
    mark.process = xmalloc(process.len + 1);
    memcpy(mark.process, process.ptr, process.len);
    mark.process[process.len] = '\0';
    marks->at[marks->count++] = mark;
}

// Two processes that each lived over some of a mark's inputs store it again at the same time: one
// of them is refused, and reads the other's, which still has what itself took out.
static void take_out_again(PoisonMark *mark, const PoisonMark *known)
{
    bool stored_again = mark->count < mark->size && mark->size == known->size &&
                        strcmp(mark->stream, known->stream) == 0;
    for (size_t i = 0; stored_again && i < mark->count;) {
        if (find_input(known, mark->stream, &mark->inputs[i]) < known->count) {
            i++;
        } else {
            mark->inputs[i] = mark->inputs[--mark->count];
            mark->acquitted = true;
        }
    }
}

bool poison_marks_put(PoisonMarks *marks, Str process, uint64_t at, Str text)
{
    PoisonMark *known = poison_marks_find(marks, process);
    PoisonMark mark = {.at = at};
    if (known != NULL && at <= known->at) {
        return true;
    }
    bool is_name = process.len > 0 && process.len <= PROCESS_MAX &&
                   memchr(process.ptr, '\0', process.len) == NULL;
    bool is_mark = text.len > 0 && is_name && read_mark(text, &mark);
    if (is_mark && known != NULL) {
        take_out_again(&mark, known);
    }
    if (known != NULL) {
        poison_marks_drop(marks, known);
    }
    if (is_mark) {
        add_mark(marks, process, mark);
    }
    return is_mark || text.len == 0;
}

void poison_marks_done(PoisonMarks *marks)
{
    for (size_t i = 0; i < marks->count; i++) {
        free_mark(&marks->at[i]);
    }
    free(marks->at);
    *marks = (PoisonMarks){0};
}

// ---- evidence ----

PoisonEvidence poison_evidence(
    const PoisonMarks *marks, Str own, const char *stream, const PoisonInput *input)
{
    PoisonEvidence evidence = {0};
    for (size_t i = 0; i < marks->count; i++) {
        const PoisonMark *mark = &marks->at[i];
        if (find_input(mark, stream, input) < mark->count &&
            !str_eq(str_from(mark->process), own)) {
            evidence.deaths++;
            evidence.alone += mark->size == 1 ? 1 : 0;
        }
    }
    return evidence;
}

bool poison_acquit(PoisonMarks *marks, Str own, const char *stream, const PoisonInput *input)
{
    bool any = false;
    for (size_t i = 0; i < marks->count; i++) {
        PoisonMark *mark = &marks->at[i];
        size_t at = find_input(mark, stream, input);
        if (at < mark->count && !str_eq(str_from(mark->process), own)) {
            mark->inputs[at] = mark->inputs[--mark->count];
            mark->acquitted = true;
            any = true;
        }
    }
    return any;
}

bool poison_marks_through(PoisonMarks *marks, Str own, const char *stream, uint64_t floor)
{
    bool any = false;
    for (size_t i = 0; i < marks->count; i++) {
        PoisonMark *mark = &marks->at[i];
        bool counts = strcmp(mark->stream, stream) == 0 && !str_eq(str_from(mark->process), own);
        for (size_t at = 0; counts && at < mark->count;) {
            if (mark->inputs[at].sequence > floor) {
                at++;
            } else {
                mark->inputs[at] = mark->inputs[--mark->count];
                mark->acquitted = true;
                any = true;
            }
        }
    }
    return any;
}
