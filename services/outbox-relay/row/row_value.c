// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/row/row_value.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/json/json_write.h"

enum { SNAKE_DEPTH_MAX = 32, SNAKE_NAME_MAX = 128, MEMBER_NAME_MAX = 256 };

void row_reader_done(RowReader *r)
{
    for (int i = 0; i < r->mapping->column_count + r->mapping->member_count; i++) {
        json_decref(r->roots[i]);
        r->roots[i] = NULL;
    }
}

bool row_unfit(RowReader *r, const Source *source, const char *field, const char *format, ...)
{
    char text[160];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!source->given || source->constant) {
        return error_set(r->err, ERROR_PERMANENT, "fields.%s %s", field, text);
    }
    Str column = r->mapping->columns[source->column].name;
    return error_set(
        r->err, ERROR_PERMANENT, "fields.%s (column '%.*s') %s", field, STR_ARG(column), text);
}

// ---- JSON in a column ----

// Postgres has extracted the member that the path leads to.
static bool is_picked(const RowReader *r, const Source *source)
{
    return source->path_count > 0 && r->kinds[source->column] == COLUMN_JSONB;
}

static bool is_json(const RowReader *r, const Source *source)
{
    ColumnKind kind = r->kinds[source->column];
    return source->path_count > 0 || kind == COLUMN_JSON || kind == COLUMN_JSONB;
}

static int slot_of(const RowReader *r, const Source *source)
{
    return is_picked(r, source) ? r->mapping->column_count + source->member : source->column;
}

static const RowValue *value_of(const RowReader *r, const Source *source)
{
    return &r->row->values[slot_of(r, source)];
}

const char *row_why_no_json(const json_error_t *where)
{
    enum json_error_code code = json_error_code(where);
    return code == json_error_duplicate_key      ? "has a member twice"
           : code == json_error_numeric_overflow ? "has a number that is too big (store it as text)"
           : code == json_error_null_character   ? "has a character U+0000"
                                                 : "is not JSON";
}

// Postgres has extracted a string.
static bool picked_string(const RowReader *r, const Source *source, Str *ret)
{
    Str text = value_of(r, source)->text;
    if (!is_picked(r, source) || !str_starts(text, STR("\""))) {
        return false;
    }
    *ret = str_slice(text, 1, text.len);
    return true;
}

static bool parse_value(RowReader *r, const Source *source, const char *field, json_t **ret)
{
    Str text = value_of(r, source)->text;
    json_t **root = &r->roots[slot_of(r, source)];
    json_error_t where;
    Str string = STR_EMPTY;
    if (*root == NULL && picked_string(r, source, &string)) {
        *root = json_stringn(string.ptr, string.len);
        if (*root == NULL) {
            return row_unfit(r, source, field, "is not UTF-8");
        }
    }
    if (*root == NULL) {
        *root = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &where);
    }
    *ret = *root;
    return *root != NULL || row_unfit(
                                r, source, field, "%s: line %d, column %d", row_why_no_json(&where),
                                where.line, where.column);
}

// The member at the path, borrowed; NULL: missing, or null.
static bool find_member(RowReader *r, const Source *source, const char *field, json_t **ret)
{
    json_t *at = NULL;
    *ret = NULL;
    if (!parse_value(r, source, field, &at)) {
        return false;
    }
    for (int i = is_picked(r, source) ? source->path_count : 0;
         at != NULL && i < source->path_count; i++) {
        char name[MEMBER_NAME_MAX];
        at = str_to_c(source->path[i], name, sizeof name) ? json_object_get(at, name) : NULL;
    }
    *ret = json_is_null(at) ? NULL : at;
    return true;
}

static Str dump(RowReader *r, const json_t *value)
{
    return json_text(value, JSON_DECIMALS, r->arena);
}

// ---- text ----

// With any number of digits.
static bool is_whole_number(Str json)
{
    size_t begin = str_starts(json, STR("-")) ? 1 : 0;
    for (size_t i = begin; i < json.len; i++) {
        if (json.ptr[i] < '0' || json.ptr[i] > '9') {
            return false;
        }
    }
    return json.len > begin;
}

static bool member_text(RowReader *r, const Source *source, const char *field, Str *ret)
{
    json_t *value = NULL;
    Str text = value_of(r, source)->text;
    if (picked_string(r, source, ret)) {
        return true;
    }
    if (is_picked(r, source) && is_whole_number(text)) {
        *ret = text;
        return true;
    }
    if (!find_member(r, source, field, &value)) {
        return false;
    }
    if (json_is_object(value) || json_is_array(value)) {
        return row_unfit(
            r, source, field, "is %s, not text", json_is_object(value) ? "an object" : "a list");
    }
    if (json_is_string(value)) {
        *ret = str_of(json_string_value(value), json_string_length(value));
        *ret = arena_str(r->arena, *ret);
    } else if (value != NULL) {
        *ret = dump(r, value);
    }
    return true;
}

static Str cut_after_last(Str text, Str mark)
{
    for (size_t i = text.len; mark.len > 0 && i >= mark.len; i--) {
        if (str_eq(str_slice(text, i - mark.len, i), mark)) {
            return str_slice(text, i, text.len);
        }
    }
    return text;
}

static Str cut_before_first(Str text, Str mark)
{
    for (size_t i = 0; mark.len > 0 && i + mark.len <= text.len; i++) {
        if (str_eq(str_slice(text, i, i + mark.len), mark)) {
            return str_slice(text, 0, i);
        }
    }
    return text;
}

static Str string_of(const json_t *value)
{
    return str_of(json_string_value(value), json_string_length(value));
}

static Str choose_by_start(const Source *source, Str text)
{
    const char *key;
    json_t *value;
    text = str_slice(text, (size_t)(str_trim(text).ptr - text.ptr), text.len);
    json_object_foreach(source->starts, key, value)
    {
        if (str_starts(text, str_from(key))) {
            return string_of(value);
        }
    }
    return source->otherwise;
}

// The text before `names`.
static bool plain_text(RowReader *r, const Source *source, const char *field, Str *ret)
{
    *ret = STR_EMPTY;
    if (!source->given || source->constant) {
        *ret = source->given ? source->value : STR_EMPTY;
        return true;
    }
    const RowValue *value = value_of(r, source);
    if (!value->is_null) {
        *ret = value->text;
        if (is_json(r, source) && (*ret = STR_EMPTY, !member_text(r, source, field, ret))) {
            return false;
        }
        if (!str_is_utf8(*ret)) {
            return row_unfit(r, source, field, "is not UTF-8");
        }
    }
    if (ret->len == 0 && source->fallback.ptr != NULL) {
        *ret = source->fallback;
        return true;
    }
    if (ret->len == 0) {
        *ret = STR_EMPTY;
        return true;
    }
    *ret = cut_after_last(cut_before_first(*ret, source->before), source->after);
    if (source->starts != NULL) {
        *ret = choose_by_start(source, *ret);
    }
    return true;
}

// The text, and behind a space that of `with`, in the table `names`.
static bool choose_by_name(RowReader *r, const Source *source, const char *field, Str *ret)
{
    char key[MEMBER_NAME_MAX];
    Str with = STR_EMPTY;
    if (source->with != NULL && !plain_text(r, source->with, field, &with)) {
        return false;
    }
    Str text =
        source->with == NULL
            ? *ret
            : str_from(arena_printf(r->arena, STR_FMT " " STR_FMT, STR_ARG(*ret), STR_ARG(with)));
    const json_t *name =
        str_to_c(text, key, sizeof key) ? json_object_get(source->names, key) : NULL;
    if (name != NULL) {
        *ret = string_of(name);
        return true;
    }
    if (source->other != NULL) {
        return row_text(r, source->other, field, ret);
    }
    return source->with == NULL ||
           row_unfit(r, source, field, "has, with its 'with', no entry in 'names' (HINT: 'else')");
}

bool row_text(RowReader *r, const Source *source, const char *field, Str *ret)
{
    return plain_text(r, source, field, ret) &&
           (source->names == NULL || source->starts != NULL ||
            (ret->len == 0 && source->other == NULL) || choose_by_name(r, source, field, ret));
}

bool row_empty(RowReader *r, const Source *source, const char *field)
{
    source = source->other != NULL ? source->other : source;
    if (!source->given || source->constant || source->path_count == 0) {
        return row_unfit(r, source, field, "is empty");
    }
    json_t *value = NULL;
    bool there = !value_of(r, source)->is_null &&
                 (is_picked(r, source) || (find_member(r, source, field, &value) && value != NULL));
    Str name = str_slice(source->path[source->path_count - 1], 0, 60);
    return row_unfit(
        r, source, field, there ? "has an empty member '%.*s'" : "has no member '%.*s'",
        STR_ARG(name));
}

// ---- JSON ----

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

// orderId -> order_id, OrderID -> order_id. Names that are too long stay as they are.
static const char *snake_name(const char *name, char *out)
{
    size_t len = strlen(name);
    size_t n = 0;
    if (2 * len >= SNAKE_NAME_MAX) {
        return name;
    }
    for (size_t i = 0; i < len; i++) {
        bool begins = i > 0 && is_upper(name[i]) && name[i - 1] != '_' &&
                      (!is_upper(name[i - 1]) ||
                       (i + 1 < len && !is_upper(name[i + 1]) && name[i + 1] != '_'));
        if (begins) {
            out[n++] = '_';
        }
        out[n++] = (char)(is_upper(name[i]) ? name[i] - 'A' + 'a' : name[i]);
    }
    out[n] = '\0';
    return out;
}

// A new reference, with all members renamed; if two get the same name, the last wins.
static json_t *snake(json_t *value, int depth)
{
    const char *key;
    json_t *member;
    size_t index;
    if (depth > SNAKE_DEPTH_MAX || (!json_is_object(value) && !json_is_array(value))) {
        return json_incref(value);
    }
    json_t *copy = json_is_object(value) ? json_object() : json_array();
    if (json_is_array(value)) {
        json_array_foreach(value, index, member)
        {
            json_array_append_new(copy, snake(member, depth + 1));
        }
        return copy;
    }
    json_object_foreach(value, key, member)
    {
        char name[SNAKE_NAME_MAX];
        json_object_set_new(copy, snake_name(key, name), snake(member, depth + 1));
    }
    return copy;
}

static Str json_string_of(RowReader *r, Str text)
{
    Buf json;
    buf_init(&json, 6 * text.len + 2); // the worst case: only control characters
    (void)buf_json(&json, text);
    Str copy = arena_str(r->arena, buf_view(&json));
    buf_done(&json);
    return copy;
}

static bool is_plain_text(const RowReader *r, const Source *source)
{
    return source->constant || source->before.len > 0 || source->after.len > 0 ||
           source->names != NULL || source->starts != NULL ||
           (source->path_count == 0 && r->kinds[source->column] == COLUMN_TEXT);
}

static bool member_json(RowReader *r, const Source *source, const char *field, Str *ret)
{
    json_t *value = NULL;
    Str string = STR_EMPTY;
    if (picked_string(r, source, &string)) {
        *ret = json_string_of(r, string);
        return str_is_utf8(string) || row_unfit(r, source, field, "is not UTF-8");
    }
    if (is_picked(r, source) && !source->snake) {
        *ret = value_of(r, source)->text;
        return true;
    }
    if (!find_member(r, source, field, &value)) {
        return false;
    }
    if (value != NULL && source->snake) {
        json_t *renamed = snake(value, 0);
        *ret = dump(r, renamed);
        json_decref(renamed);
    } else if (value != NULL) {
        *ret = dump(r, value);
    }
    return true;
}

// No value, not even an empty text.
static bool is_absent(RowReader *r, const Source *source, const char *field)
{
    json_t *value = NULL;
    if (source->constant || value_of(r, source)->is_null) {
        return !source->constant;
    }
    return is_json(r, source) && !is_picked(r, source) && find_member(r, source, field, &value) &&
           value == NULL;
}

static bool text_as_json(RowReader *r, const Source *source, const char *field, Str *ret)
{
    Str text = STR_EMPTY;
    if (!row_text(r, source, field, &text)) {
        return false;
    }
    bool absent = text.len == 0 && is_absent(r, source, field);
    *ret = absent ? STR_EMPTY : json_string_of(r, text);
    return true;
}

bool row_json(RowReader *r, const Source *source, const char *field, Str *ret)
{
    *ret = STR_EMPTY;
    if (is_plain_text(r, source)) {
        return text_as_json(r, source, field, ret);
    }
    const RowValue *value = value_of(r, source);
    ColumnKind kind = r->kinds[source->column];
    if (value->is_null) {
        // only the default
    } else if (source->path_count == 0 && (kind == COLUMN_NUMBER || kind == COLUMN_BOOL)) {
        // Postgres's numbers are JSON, except NaN and the infinities.
        bool special = memchr(value->text.ptr, 'N', value->text.len) != NULL ||
                       memchr(value->text.ptr, 'I', value->text.len) != NULL;
        *ret = special ? json_string_of(r, value->text) : value->text;
    } else if (!member_json(r, source, field, ret)) {
        return false;
    }
    if (source->fallback.ptr != NULL && (ret->len == 0 || str_eq(*ret, STR("\"\"")))) {
        *ret = json_string_of(r, source->fallback);
    }
    return true;
}

bool row_object(RowReader *r, const Source *source, const char *field, Str *ret)
{
    const RowValue *value = value_of(r, source);
    *ret = STR_EMPTY;
    if (value->is_null) {
        return row_unfit(
            r, source, field, "%s", is_picked(r, source) ? "has no such member" : "is null");
    }
    // Postgres has validated it; its text is passed on unchanged.
    bool found_there = is_picked(r, source) || (source->path_count == 0 && is_json(r, source));
    if (found_there && !source->snake && str_starts(value->text, STR("{\""))) {
        *ret = value->text;
        return true;
    }
    json_t *found = NULL;
    if (!find_member(r, source, field, &found)) {
        return false;
    }
    if (found == NULL) {
        return row_unfit(r, source, field, "has no such member");
    }
    return json_is_object(found) ? member_json(r, source, field, ret)
                                 : row_unfit(r, source, field, "is not a JSON object");
}
