// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/meta/meta_split.h"

#include "common/base/buf.h"

enum { DEPTH_MAX = 64 };

#define HEAD "{\"object\":\"whatsapp_business_account\",\"entry\":["
#define GROUP_END "]}}]}"
#define END "]}"

// ---- slices of JSON ----

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_blank(Str *rest)
{
    while (rest->len > 0 && is_blank(rest->ptr[0])) {
        *rest = str_slice(*rest, 1, rest->len);
    }
}

// Behind a string's end; 0: it has none.
static size_t string_end(Str text)
{
    for (size_t i = 1; i < text.len; i++) {
        if (text.ptr[i] == '\\') {
            i++;
        } else if (text.ptr[i] == '"') {
            return i + 1;
        }
    }
    return 0;
}

// Behind an object's or array's end; 0: it has none.
static size_t nested_end(Str text)
{
    size_t depth = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '"') {
            size_t used = string_end(str_slice(text, i, text.len));
            if (used == 0) {
                return 0;
            }
            i += used - 1;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            depth--;
        }
        if (depth > DEPTH_MAX) {
            return 0;
        }
        if (depth == 0) {
            return i + 1;
        }
    }
    return 0;
}

static size_t value_end(Str text)
{
    if (text.len > 0 && (text.ptr[0] == '{' || text.ptr[0] == '[')) {
        return nested_end(text);
    }
    if (text.len > 0 && text.ptr[0] == '"') {
        return string_end(text);
    }
    size_t i = 0;
    while (i < text.len && text.ptr[i] != ',' && text.ptr[i] != '}' && text.ptr[i] != ']' &&
           !is_blank(text.ptr[i])) {
        i++;
    }
    return i;
}

static bool take_value(Str *rest, Str *ret)
{
    skip_blank(rest);
    size_t end = value_end(*rest);
    *ret = str_slice(*rest, 0, end);
    *rest = str_slice(*rest, end, rest->len);
    skip_blank(rest);
    return end > 0;
}

static bool take_char(Str *rest, char c)
{
    skip_blank(rest);
    bool there = rest->len > 0 && rest->ptr[0] == c;
    *rest = str_slice(*rest, there ? 1 : 0, rest->len);
    skip_blank(rest);
    return there;
}

// The inside of an array or object, to be walked by next_item or next_member.
static bool open_value(Str value, char c, Str *ret)
{
    bool good = value.len >= 2 && value.ptr[0] == c;
    *ret = good ? str_slice(value, 1, value.len - 1) : STR_EMPTY;
    skip_blank(ret);
    return good;
}

// false: the end, or no JSON (*ret_bad).
static bool next_item(Str *rest, Str *ret, bool *ret_bad)
{
    if (rest->len == 0) {
        return false;
    }
    bool good = take_value(rest, ret) && (rest->len == 0 || take_char(rest, ','));
    *ret_bad = *ret_bad || !good;
    return good;
}

static bool next_member(Str *rest, Str *ret_name, Str *ret_value, bool *ret_bad)
{
    if (rest->len == 0) {
        return false;
    }
    bool good = rest->ptr[0] == '"' && take_value(rest, ret_name) && take_char(rest, ':') &&
                take_value(rest, ret_value) && (rest->len == 0 || take_char(rest, ','));
    *ret_bad = *ret_bad || !good;
    return good;
}

// `name` with its quotes; the value of the first such member; empty: there is none.
static Str member(Str object, Str name, bool *ret_bad)
{
    Str rest, found, value;
    if (!open_value(object, '{', &rest)) {
        *ret_bad = true;
        return STR_EMPTY;
    }
    while (next_member(&rest, &found, &value, ret_bad)) {
        if (str_eq(found, name)) {
            return value;
        }
    }
    return STR_EMPTY;
}

// ---- the parts ----

typedef struct Parts {
    Arena *arena;
    size_t part_max;
    Str *at;
    size_t count;
    Buf part;
    bool in_group; // statuses or messages of one change
    bool bad;      // the body is no webhook
    bool full;     // too many parts, or too long an item
} Parts;

static void close_group(Parts *parts)
{
    if (parts->in_group) {
        buf_cstr(&parts->part, GROUP_END);
        parts->in_group = false;
    }
}

static void close_part(Parts *parts)
{
    if (parts->part.len == 0) {
        return;
    }
    close_group(parts);
    buf_cstr(&parts->part, END);
    if (parts->count == META_PARTS_MAX || parts->part.len > parts->part_max) {
        parts->full = true;
    } else {
        parts->at[parts->count++] = arena_str(parts->arena, buf_view(&parts->part));
    }
    buf_clear(&parts->part);
}

static void add_item(Parts *parts, Str metadata, const char *name, Str item)
{
    size_t room = item.len + metadata.len + sizeof GROUP_END + sizeof END + 128;
    if (parts->part.len + room > parts->part_max) {
        close_part(parts);
    }
    if (parts->in_group) {
        buf_char(&parts->part, ',');
    } else {
        buf_cstr(&parts->part, parts->part.len == 0 ? HEAD : ",");
        buf_cstr(&parts->part, "{\"changes\":[{\"value\":{\"metadata\":");
        buf_str(&parts->part, metadata.len > 0 ? metadata : STR("{}"));
        buf_printf(&parts->part, ",\"%s\":[", name);
        parts->in_group = true;
    }
    buf_str(&parts->part, item);
    parts->full = parts->full || parts->part.full;
}

static void add_change(Parts *parts, Str change)
{
    static const char *const NAMES[] = {"statuses", "messages"};
    static const Str QUOTED[] = {{"\"statuses\"", 10}, {"\"messages\"", 10}};
    Str value = member(change, STR("\"value\""), &parts->bad);
    Str metadata = value.len > 0 ? member(value, STR("\"metadata\""), &parts->bad) : STR_EMPTY;
    for (size_t i = 0; value.len > 0 && i < 2; i++) {
        Str list = member(value, QUOTED[i], &parts->bad), rest, item;
        if (list.len > 0 && !open_value(list, '[', &rest)) {
            parts->bad = true;
        }
        while (list.len > 0 && !parts->bad && next_item(&rest, &item, &parts->bad)) {
            add_item(parts, metadata, NAMES[i], item);
        }
        close_group(parts);
    }
}

static void add_entries(Parts *parts, Str body)
{
    Str rest, entry, changes, change;
    Str list = member(body, STR("\"entry\""), &parts->bad);
    if (!open_value(list, '[', &rest)) {
        parts->bad = true;
    }
    while (!parts->bad && next_item(&rest, &entry, &parts->bad)) {
        Str found = member(entry, STR("\"changes\""), &parts->bad);
        parts->bad = parts->bad || !open_value(found, '[', &changes);
        while (!parts->bad && next_item(&changes, &change, &parts->bad)) {
            add_change(parts, change);
        }
    }
}

bool meta_split(
    Str body, size_t part_max, Arena *arena, Str **ret_parts, size_t *ret_count, Error *err)
{
    Parts parts = {.arena = arena, .part_max = part_max};
    parts.at = arena_array(arena, META_PARTS_MAX, sizeof *parts.at);
    buf_init(&parts.part, part_max + 1024);
    add_entries(&parts, str_trim(body));
    close_part(&parts);
    buf_done(&parts.part);
    *ret_parts = parts.at;
    *ret_count = parts.count;
    if (parts.bad) {
        return error_set(err, ERROR_PERMANENT, "the callback is not Meta's JSON");
    }
    return !parts.full ||
           error_set(
               err, ERROR_PERMANENT,
               "one of the callback's events is longer than %zu bytes, or they are too many",
               part_max);
}
