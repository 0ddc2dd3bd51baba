// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/jobs/shadow_answer.h"

#include <stdlib.h>

static void set_count(json_t *object, const char *name, uint64_t count)
{
    (void)json_object_set_new(object, name, json_integer((json_int_t)count));
}

uint64_t shadow_answer_compared(const ShadowTally *tally)
{
    uint64_t sum = 0;
    for (int i = 0; i < SHADOW_RESULT_COUNT; i++) {
        sum += tally->results[i];
    }
    return sum;
}

static json_t *cut_text(Str line, bool *cut)
{
    size_t at = 0;
    while (at < line.len && at + str_utf8_step(str_slice(line, at, line.len)) <= SHADOW_LINE_MAX) {
        at += str_utf8_step(str_slice(line, at, line.len));
    }
    *cut = *cut || at < line.len;
    json_t *text = json_stringn(line.ptr, at);
    return text != NULL ? text : json_string("(not UTF-8)");
}

// A unified diff's line: a place, or what it does with the rest.
static json_t *line_json(Str line, bool *cut)
{
    bool place = str_starts(line, STR("@@"));
    char op[] = {place ? '@' : line.ptr[0], '\0'};
    return json_pack(
        "{s:s, s:o}", "op", op, "text", cut_text(place ? line : str_slice(line, 1, line.len), cut));
}

// What is shown of a diff: as many lines as its room, in bytes of JSON, has place for.
typedef struct Shown {
    size_t room;
    uint64_t left_out; // lines
    bool cut;          // in the midst of a line
} Shown;

static json_t *lines_json(const char *diff, Shown *shown)
{
    json_t *lines = json_array();
    uint64_t left_out = 0;
    Str rest = str_from(diff), text;
    while (rest.len > 0 && str_split(&rest, '\n', &text)) {
        if (text.len == 0 || text.ptr[0] == '\\') {
            continue; // "\ no line break at the end"
        }
        json_t *line = line_json(text, &shown->cut);
        size_t size = json_dumpb(line, NULL, 0, JSON_COMPACT) + 1; // and its comma
        if (left_out > 0 || json_array_size(lines) == SHADOW_LINES_MAX || size > shown->room) {
            left_out++;
            json_decref(line);
        } else {
            (void)json_array_append_new(lines, line);
            shown->room -= size;
        }
    }
    shown->left_out += left_out;
    return lines;
}

static int parts_from(const ShadowGroup *group, int from)
{
    int count = 0;
    for (int i = from; i < SHADOW_PART_COUNT; i++) {
        count += group->parts[i] != NULL;
    }
    return count;
}

// Each part may take its share of the room, and what those before it have left. *room is what is
// left of it.
static json_t *difference_json(const ShadowGroup *group, size_t *room)
{
    Shown shown = {0};
    json_t *parts = json_array();
    for (int i = 0; i < SHADOW_PART_COUNT; i++) {
        if (group->parts[i] != NULL) {
            size_t share = *room / (size_t)parts_from(group, i);
            shown.room = share;
            (void)json_array_append_new(
                parts, json_pack(
                           "{s:s, s:o}", "part", shadow_part_name((ShadowPart)i), "lines",
                           lines_json(group->parts[i], &shown)));
            *room -= share - shown.room;
        }
    }
    return json_pack(
        "{s:I, s:s, s:s, s:b, s:I, s:o}", "count", (json_int_t)group->count, "notification_id",
        group->notification_id, "version", group->version, "cut", shown.cut || shown.left_out > 0,
        "lines_left_out", (json_int_t)shown.left_out, "parts", parts);
}

// The first SHADOW_EXAMPLES groups in the order of their appearance, each with its share of the
// room for lines; *ret_others: requests in none of them.
static json_t *differences_json(const ShadowTally *tally, uint64_t *ret_others)
{
    const ShadowGroup *examples[SHADOW_EXAMPLES] = {NULL};
    size_t room = SHADOW_LINES_ROOM, count = 0;
    json_t *list = json_array();
    Str name;
    void *value;
    *ret_others = tally->ungrouped;
    for (size_t i = 0; map_next(tally->groups, &i, &name, &value);) {
        const ShadowGroup *group = value;
        if (group->order < SHADOW_EXAMPLES) {
            examples[group->order] = group;
            count++;
        } else {
            *ret_others += group->count;
        }
    }
    for (size_t i = 0; i < count; i++) {
        size_t share = room / (count - i), left = share;
        (void)json_array_append_new(list, difference_json(examples[i], &left));
        room -= share - left;
    }
    return list;
}

typedef struct Reason {
    Str text;
    uint64_t count;
} Reason;

static int compare_reasons(const void *a, const void *b)
{
    const Reason *one = a, *two = b;
    int by_count = (two->count > one->count) - (two->count < one->count);
    return by_count != 0 ? by_count : str_cmp(one->text, two->text);
}

static json_t *reasons_json(const ShadowTally *tally)
{
    Reason reasons[SHADOW_REASONS_MAX];
    size_t count = 0;
    json_t *list = json_array();
    Str name;
    void *value;
    for (size_t i = 0; count < SHADOW_REASONS_MAX && map_next(tally->reasons, &i, &name, &value);) {
        reasons[count++] = (Reason){name, *(const uint64_t *)value};
    }
    qsort(reasons, count, sizeof *reasons, compare_reasons);
    for (size_t i = 0; i < count && i < SHADOW_REASONS_LISTED; i++) {
        (void)json_array_append_new(
            list, json_pack(
                      "{s:s%, s:I}", "reason", reasons[i].text.ptr, reasons[i].text.len, "count",
                      (json_int_t)reasons[i].count));
    }
    return list;
}

json_t *shadow_answer(const ShadowTally *tally, int64_t took_us)
{
    const uint64_t *results = tally->results;
    uint64_t others = 0;
    json_t *object = json_object();
    json_t *skipped = json_object();
    set_count(object, "scanned", tally->scanned);
    set_count(object, "compared", shadow_answer_compared(tally));
    (void)json_object_set_new(object, "complete", json_boolean(!tally->limited));
    set_count(object, "same", results[SHADOW_SAME]);
    set_count(object, "different", results[SHADOW_DIFFERENT]);
    set_count(object, "failed", results[SHADOW_FAILS]);
    set_count(object, "fixed", results[SHADOW_FIXED]);
    set_count(object, "failed_both", results[SHADOW_FAILS_STILL]);
    set_count(skipped, "expired", results[SHADOW_GATE_EXPIRED]);
    set_count(skipped, "suppressed", results[SHADOW_GATE_SUPPRESSED]);
    set_count(skipped, "erased", results[SHADOW_ERASED]);
    set_count(skipped, "unknown_version", results[SHADOW_UNKNOWN]);
    set_count(skipped, "unreadable", results[SHADOW_UNREADABLE]);
    (void)json_object_set_new(object, "skipped", skipped);
    (void)json_object_set_new(object, "reasons", reasons_json(tally));
    (void)json_object_set_new(object, "differences", differences_json(tally, &others));
    set_count(object, "other_differences", others);
    (void)json_object_set_new(object, "seconds", json_real((double)took_us / 1e6));
    return object;
}
