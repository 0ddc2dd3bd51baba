// SPDX-License-Identifier: Apache-2.0
#include "common/json/json_write.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/json/json_plain.h"

enum { DEPTH_MAX = 256, SORTED_MAX = 64, TEXT_MAX = 1 << 30 };

static bool write_value(const json_t *value, size_t flags, int depth, Buf *out);

static bool write_by_jansson(const json_t *value, size_t flags, Buf *out)
{
    size_t len = json_dumpb(value, NULL, 0, flags);
    if (len == 0 || !buf_reserve(out, len)) {
        return false;
    }
    out->len += json_dumpb(value, out->ptr + out->len, len, flags);
    return true;
}

// ---- strings ----

static void write_escape(unsigned char c, Buf *out)
{
    static const char names[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (const char *name = names; *name != '\0'; name += 2) {
        if ((unsigned char)name[0] == c) {
            const char pair[2] = {'\\', name[1]};
            buf_append(out, pair, sizeof pair);
            return;
        }
    }
    buf_printf(out, "\\u%04X", c);
}

static bool write_text(Str text, Buf *out)
{
    buf_char(out, '"');
    while (text.len > 0) {
        size_t plain = json_plain_len(text);
        buf_append(out, text.ptr, plain);
        text = str_slice(text, plain, text.len);
        if (text.len > 0) {
            if ((unsigned char)text.ptr[0] >= 0x80) {
                return false; // no UTF-8
            }
            write_escape((unsigned char)text.ptr[0], out);
            text = str_slice(text, 1, text.len);
        }
    }
    return buf_char(out, '"');
}

// ---- numbers ----

// Rounded to fewer digits the largest doubles are none: they are written whole.
static bool write_real(const json_t *value, size_t flags, Buf *out)
{
    bool largest = fabs(json_real_value(value)) >= 1e308;
    return write_by_jansson(
        value, largest ? flags & ~(size_t)JSON_REAL_PRECISION(0x1F) : flags, out);
}

// ---- objects and arrays ----

typedef struct Member {
    Str key;
    const json_t *value;
} Member;

static int compare_members(const void *a, const void *b)
{
    return str_cmp(((const Member *)a)->key, ((const Member *)b)->key);
}

static bool write_member(Member member, bool first, size_t flags, int depth, Buf *out)
{
    if (!first) {
        buf_char(out, ',');
    }
    return write_text(member.key, out) && buf_char(out, ':') &&
           write_value(member.value, flags, depth, out);
}

static bool write_sorted(json_t *object, size_t flags, int depth, Buf *out)
{
    Member members[SORTED_MAX];
    size_t count = 0;
    if (json_object_size(object) > SORTED_MAX) {
        return write_by_jansson(object, flags, out);
    }
    for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at)) {
        members[count++] = (Member){
            str_of(json_object_iter_key(at), json_object_iter_key_len(at)),
            json_object_iter_value(at)};
    }
    qsort(members, count, sizeof members[0], compare_members);
    buf_char(out, '{');
    for (size_t i = 0; i < count; i++) {
        if (!write_member(members[i], i == 0, flags, depth, out)) {
            return false;
        }
    }
    return buf_char(out, '}');
}

static bool write_object(json_t *object, size_t flags, int depth, Buf *out)
{
    bool first = true;
    buf_char(out, '{');
    for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at)) {
        Member member = {
            str_of(json_object_iter_key(at), json_object_iter_key_len(at)),
            json_object_iter_value(at)};
        if (!write_member(member, first, flags, depth, out)) {
            return false;
        }
        first = false;
    }
    return buf_char(out, '}');
}

static bool write_array(const json_t *array, size_t flags, int depth, Buf *out)
{
    buf_char(out, '[');
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (i > 0) {
            buf_char(out, ',');
        }
        if (!write_value(json_array_get(array, i), flags, depth, out)) {
            return false;
        }
    }
    return buf_char(out, ']');
}

// `depth`: of containers around it.
static bool write_value(const json_t *value, size_t flags, int depth, Buf *out)
{
    bool container = json_is_object(value) || json_is_array(value);
    if (container && depth >= DEPTH_MAX) {
        return write_by_jansson(value, flags, out);
    }
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        // jansson takes what it iterates over as not const, and changes nothing.
        return (flags & JSON_SORT_KEYS) != 0
                   ? write_sorted((json_t *)(uintptr_t)value, flags, depth + 1, out)
                   : write_object((json_t *)(uintptr_t)value, flags, depth + 1, out);
    case JSON_ARRAY:
        return write_array(value, flags, depth + 1, out);
    case JSON_STRING:
        return write_text(str_of(json_string_value(value), json_string_length(value)), out);
    case JSON_INTEGER:
        return buf_int(out, json_integer_value(value));
    case JSON_TRUE:
        return buf_str(out, STR("true"));
    case JSON_FALSE:
        return buf_str(out, STR("false"));
    case JSON_NULL:
        return buf_str(out, STR("null"));
    default:
        return write_real(value, flags, out);
    }
}

bool json_write(const json_t *value, size_t flags, Buf *out)
{
    return value != NULL && write_value(value, flags | JSON_COMPACT | JSON_ENCODE_ANY, 0, out);
}

Str json_text(const json_t *value, size_t flags, Arena *arena)
{
    Buf out;
    buf_init(&out, TEXT_MAX);
    Str text = json_write(value, flags, &out) ? arena_str(arena, buf_view(&out)) : STR_EMPTY;
    buf_done(&out);
    return text;
}
