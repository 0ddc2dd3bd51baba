// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/templates/template_diff.h"

#include <stdio.h>
#include <string.h>

#include "common/base/arena.h"

enum { PATH_SIZE = 512 };

typedef struct Lines {
    const char **at;
    size_t *len;
    size_t count;
} Lines;

static void compare(json_t *list, const char *path, json_t *from, json_t *to, int depth);

// ---- texts ----

static Lines split(const char *text, Arena *arena)
{
    size_t count = 1;
    for (const char *c = text; *c != '\0'; c++) {
        count += *c == '\n';
    }
    Lines lines = {
        .at = arena_array(arena, count, sizeof(const char *)),
        .len = arena_array(arena, count, sizeof(size_t)),
        .count = count,
    };
    for (size_t i = 0; i < count; i++) {
        lines.at[i] = text;
        lines.len[i] = strcspn(text, "\n");
        text += lines.len[i] + 1;
    }
    return lines;
}

static bool same(const Lines *a, size_t i, const Lines *b, size_t j)
{
    return a->len[i] == b->len[j] && memcmp(a->at[i], b->at[j], a->len[i]) == 0;
}

static void add_line(json_t *list, const char *op, const Lines *lines, size_t at)
{
    (void)json_array_append_new(
        list, json_pack("{s:s, s:s%}", "op", op, "text", lines->at[at], lines->len[at]));
}

// longest[i][j]: of the longest common subsequence of the lines from i and from j on.
static uint16_t *measure(const Lines *a, const Lines *b, Arena *arena)
{
    size_t width = b->count + 1;
    uint16_t *longest = arena_zalloc(arena, (a->count + 1) * width * sizeof *longest);
    for (size_t i = a->count; i-- > 0;) {
        for (size_t j = b->count; j-- > 0;) {
            uint16_t down = longest[(i + 1) * width + j];
            uint16_t right = longest[i * width + j + 1];
            longest[i * width + j] = same(a, i, b, j)
                                         ? (uint16_t)(longest[(i + 1) * width + j + 1] + 1)
                                     : down >= right ? down
                                                     : right;
        }
    }
    return longest;
}

// NULL: too many.
static json_t *lines_json(const char *from, const char *to)
{
    Arena *arena = arena_new(0);
    Lines a = split(from, arena);
    Lines b = split(to, arena);
    json_t *list = NULL;
    if (a.count <= UINT16_MAX && b.count <= UINT16_MAX && a.count * b.count <= DIFF_CELLS_MAX) {
        uint16_t *longest = measure(&a, &b, arena);
        size_t i = 0;
        size_t j = 0;
        list = json_array();
        while (i < a.count || j < b.count) {
            size_t width = b.count + 1;
            if (i < a.count && j < b.count && same(&a, i, &b, j)) {
                add_line(list, " ", &a, i++);
                j++;
            } else if (
                j == b.count ||
                (i < a.count && longest[(i + 1) * width + j] >= longest[i * width + j + 1])) {
                add_line(list, "-", &a, i++);
            } else {
                add_line(list, "+", &b, j++);
            }
        }
    }
    arena_free(arena);
    return list;
}

// ---- members ----

static void add_change(json_t *list, const char *path, json_t *from, json_t *to)
{
    if (json_array_size(list) == DIFF_CHANGES_MAX) {
        return;
    }
    json_t *change = json_object();
    (void)json_object_set_new(change, "at", json_string(path));
    (void)json_object_set(change, "from", from != NULL ? from : json_null());
    (void)json_object_set(change, "to", to != NULL ? to : json_null());
    const char *old = json_string_value(from);
    const char *new = json_string_value(to);
    bool several = old != NULL && new != NULL && (strchr(old, '\n') || strchr(new, '\n'));
    json_t *lines = several ? lines_json(old, new) : NULL;
    if (lines != NULL) {
        (void)json_object_set_new(change, "lines", lines);
    }
    (void)json_array_append_new(list, change);
}

static void compare_objects(json_t *list, const char *path, json_t *from, json_t *to, int depth)
{
    char inner[PATH_SIZE];
    const char *name = NULL;
    json_t *value = NULL;
    const char *dot = path[0] != '\0' ? "." : "";
    json_object_foreach(from, name, value)
    {
        (void)snprintf(inner, sizeof inner, "%s%s%s", path, dot, name);
        compare(list, inner, value, json_object_get(to, name), depth + 1);
    }
    json_object_foreach(to, name, value)
    {
        if (json_object_get(from, name) == NULL) {
            (void)snprintf(inner, sizeof inner, "%s%s%s", path, dot, name);
            add_change(list, inner, NULL, value);
        }
    }
}

// An element is known by its `locale` or `name`, else by its place.
static json_t *find_alike(json_t *array, const json_t *element, size_t place)
{
    static const char *const names[] = {"locale", "name"};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        const json_t *known = json_object_get(element, names[n]);
        for (size_t i = 0; known != NULL && i < json_array_size(array); i++) {
            json_t *other = json_array_get(array, i);
            if (json_equal(known, json_object_get(other, names[n]))) {
                return other;
            }
        }
        if (known != NULL) {
            return NULL;
        }
    }
    return json_array_get(array, place);
}

static void name_element(char out[PATH_SIZE], const char *path, const json_t *element, size_t place)
{
    const char *locale = json_string_value(json_object_get(element, "locale"));
    const char *name = json_string_value(json_object_get(element, "name"));
    const char *known = locale != NULL ? locale : name;
    if (known != NULL) {
        (void)snprintf(out, PATH_SIZE, "%.400s[%.64s]", path, known);
    } else {
        (void)snprintf(out, PATH_SIZE, "%.400s[%zu]", path, place);
    }
}

static void compare_arrays(json_t *list, const char *path, json_t *from, json_t *to, int depth)
{
    char inner[PATH_SIZE];
    for (size_t i = 0; i < json_array_size(from); i++) {
        json_t *element = json_array_get(from, i);
        name_element(inner, path, element, i);
        compare(list, inner, element, find_alike(to, element, i), depth + 1);
    }
    for (size_t i = 0; i < json_array_size(to); i++) {
        json_t *element = json_array_get(to, i);
        if (find_alike(from, element, i) == NULL) {
            name_element(inner, path, element, i);
            add_change(list, inner, NULL, element);
        }
    }
}

static void compare(json_t *list, const char *path, json_t *from, json_t *to, int depth)
{
    if (json_equal(from, to)) {
        return;
    }
    if (json_is_object(from) && json_is_object(to) && depth < DIFF_DEPTH_MAX) {
        compare_objects(list, path, from, to, depth);
    } else if (json_is_array(from) && json_is_array(to) && depth < DIFF_DEPTH_MAX) {
        compare_arrays(list, path, from, to, depth);
    } else {
        add_change(list, path, from, to);
    }
}

static json_t *without_own(json_t *document)
{
    static const char *const own[] = {"tenant",       "version",      "status",     "supersedes",
                                      "published_by", "published_at", "approved_by"};
    json_t *copy = json_copy(document);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        (void)json_object_del(copy, own[i]);
    }
    return copy;
}

json_t *template_diff(json_t *from, json_t *to)
{
    json_t *a = without_own(from);
    json_t *b = without_own(to);
    json_t *list = json_array();
    compare(list, "", a, b, 0);
    json_decref(a);
    json_decref(b);
    return list;
}
