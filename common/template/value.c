// SPDX-License-Identifier: Apache-2.0
#include "common/template/value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/names/member.h"

enum { PRINT_DEPTH_MAX = 32, INDEX_DIGITS_MAX = 9, REAL_STEPS = 4, MEMBERS_A_STEP = 8 };

Segment segment_of(Str name)
{
    Segment segment = {.name = name, .index = -1};
    int64_t index = 0;
    bool canonical = name.len == 1 || (name.len > 1 && name.ptr[0] != '0');
    bool digits = canonical && name.len <= INDEX_DIGITS_MAX && name.ptr[0] != '-';
    if (digits && str_to_i64(name, &index)) {
        segment.index = index;
    }
    return segment;
}

Value value_of_json(const json_t *json)
{
    if (json == NULL) {
        return (Value){.kind = VALUE_NONE};
    }
    switch (json_typeof(json)) {
    case JSON_STRING:
        return (Value){
            .kind = VALUE_TEXT,
            .text = {json_string_value(json), json_string_length(json)},
        };
    case JSON_INTEGER:
        return (Value){.kind = VALUE_INT, .number = json_integer_value(json)};
    case JSON_REAL:
        return (Value){.kind = VALUE_REAL, .real = json_real_value(json)};
    case JSON_TRUE:
        return (Value){.kind = VALUE_BOOL, .truth = true};
    case JSON_FALSE:
        return (Value){.kind = VALUE_BOOL, .truth = false};
    case JSON_ARRAY:
        return (Value){.kind = VALUE_ARRAY, .json = json};
    case JSON_OBJECT:
        return (Value){.kind = VALUE_OBJECT, .json = json};
    case JSON_NULL:
        break;
    }
    return (Value){.kind = VALUE_NULL};
}

uint32_t steps_of(size_t bytes)
{
    return (uint32_t)(bytes / TEXT_STEP_BYTES);
}

// UTF-16 units that the character takes whose first byte is `c`; 0: a byte inside of a character.
static int64_t utf16_units(char c)
{
    unsigned char byte = (unsigned char)c;
    return ((byte & 0xc0) != 0x80 ? 1 : 0) + (byte >= 0xf0 ? 1 : 0);
}

// A string's length as JavaScript counts it: UTF-16 units.
static int64_t utf16_length(Str text)
{
    int64_t units = 0;
    for (size_t i = 0; i < text.len; i++) {
        units += utf16_units(text.ptr[i]);
    }
    return units;
}

// The character at a place that is counted as `length` counts. A character of two units stands
// whole at the first and is an empty text at the second. JavaScript gives its halves, neither of
// which is text; printed one after the other, both give the same.
static Value character_at(Str text, int64_t index, uint32_t *steps)
{
    int64_t units = 0;
    size_t at = 0;
    while (at < text.len && units + utf16_units(text.ptr[at]) <= index) {
        units += utf16_units(text.ptr[at++]);
    }
    *steps += steps_of(at);
    if (at == text.len) {
        return (Value){.kind = VALUE_NONE};
    }
    size_t end = units == index ? at + 1 : at;
    while (end > at && end < text.len && utf16_units(text.ptr[end]) == 0) {
        end++;
    }
    return (Value){.kind = VALUE_TEXT, .text = str_slice(text, at, end)};
}

static Value find_merged(const Merged *merged, const Segment *segment, uint32_t *steps)
{
    ++*steps;
    for (size_t i = 0; i < merged->count; i++) {
        if (str_eq(merged->names[i], segment->name)) {
            return merged->values[i];
        }
    }
    return value_member(&merged->base, segment, steps);
}

// A name that is not there is sought in its other spellings, member by member.
static Value object_member(const json_t *object, Str name, uint32_t *steps)
{
    const json_t *exact = json_object_getn(object, name.ptr, name.len);
    if (exact != NULL) {
        return value_of_json(exact);
    }
    *steps += (uint32_t)(json_object_size(object) / MEMBERS_A_STEP);
    return value_of_json(member_find(object, name));
}

Value value_member(const Value *value, const Segment *segment, uint32_t *steps)
{
    Value length = {.kind = VALUE_INT};
    switch (value->kind) {
    case VALUE_OBJECT:
        return object_member(value->json, segment->name, steps);
    case VALUE_ARRAY:
        if (segment->index >= 0) {
            return value_of_json(json_array_get(value->json, (size_t)segment->index));
        }
        length.number = (int64_t)json_array_size(value->json);
        break;
    case VALUE_TEXT:
        if (segment->index >= 0) {
            return character_at(value->text, segment->index, steps);
        }
        if (str_eq(segment->name, STR("length"))) {
            length.number = utf16_length(value->text);
            *steps += steps_of(value->text.len);
        }
        break;
    case VALUE_MERGED:
        return find_merged(value->merged, segment, steps);
    case VALUE_NONE:
    case VALUE_NULL:
    case VALUE_BOOL:
    case VALUE_INT:
    case VALUE_REAL:
        return (Value){.kind = VALUE_NONE};
    }
    return str_eq(segment->name, STR("length")) ? length : (Value){.kind = VALUE_NONE};
}

bool value_is_zero(const Value *value)
{
    return (value->kind == VALUE_INT && value->number == 0) ||
           (value->kind == VALUE_REAL && fpclassify(value->real) == FP_ZERO);
}

bool value_is_falsy(const Value *value)
{
    return value_is_zero(value) || (value->kind != VALUE_ARRAY && value_is_empty(value));
}

bool value_is_empty(const Value *value)
{
    switch (value->kind) {
    case VALUE_NONE:
    case VALUE_NULL:
        return true;
    case VALUE_BOOL:
        return !value->truth;
    case VALUE_TEXT:
        return value->text.len == 0;
    case VALUE_ARRAY:
        return json_array_size(value->json) == 0;
    case VALUE_INT:
    case VALUE_REAL:
    case VALUE_OBJECT:
    case VALUE_MERGED:
        break;
    }
    return false;
}

bool value_same(const Value *a, const Value *b)
{
    if (a->kind <= VALUE_NULL && b->kind <= VALUE_NULL) {
        return true;
    }
    if (a->kind != b->kind) {
        return false;
    }
    switch (a->kind) {
    case VALUE_BOOL:
        return a->truth == b->truth;
    case VALUE_INT:
        return a->number == b->number;
    case VALUE_REAL:
        return memcmp(&a->real, &b->real, sizeof a->real) == 0;
    case VALUE_TEXT:
        return (a->text.ptr == b->text.ptr && a->text.len == b->text.len) ||
               str_eq(a->text, b->text);
    case VALUE_ARRAY:
    case VALUE_OBJECT:
        return a->json == b->json;
    case VALUE_MERGED:
        return a->merged == b->merged;
    case VALUE_NONE:
    case VALUE_NULL:
        break;
    }
    return true;
}

// ---- printing ----

// The shortest digits that read back as the same number, as "d.ddde+XX".
static void shortest_digits(double real, char *out, size_t size)
{
    for (int precision = 14; precision <= 16; precision++) {
        snprintf(out, size, "%.*e", precision, real);
        if (memcmp(&(double){strtod(out, NULL)}, &real, sizeof real) == 0) {
            return;
        }
    }
}

// Takes "d.ddd000e+XX" apart; *ret_exponent is that of the decimal point behind the first digit.
static size_t split_digits(const char *text, char digits[24], int *ret_exponent)
{
    size_t count = 0;
    const char *at = text;
    for (; *at != 'e' && *at != '\0' && count < 23; at++) {
        if (*at >= '0' && *at <= '9') {
            digits[count++] = *at;
        }
    }
    *ret_exponent = *at == 'e' ? (int)strtol(at + 1, NULL, 10) : 0;
    while (count > 1 && digits[count - 1] == '0') {
        count--;
    }
    return count;
}

static void print_exponential(const char *digits, int count, int exponent, Buf *out)
{
    buf_char(out, digits[0]);
    if (count > 1) {
        buf_char(out, '.');
        buf_append(out, digits + 1, (size_t)(count - 1));
    }
    buf_printf(out, "e%+d", exponent);
}

// ECMAScript Number::toString, radix 10.
static void print_real(double real, Buf *out)
{
    if (fpclassify(real) == FP_ZERO) {
        buf_char(out, '0');
        return;
    }
    char text[40];
    char digits[24];
    int exponent = 0;
    shortest_digits(real < 0 ? -real : real, text, sizeof text);
    int count = (int)split_digits(text, digits, &exponent);
    int point = exponent + 1;
    if (real < 0) {
        buf_char(out, '-');
    }
    if (point > 21 || point < -5) {
        print_exponential(digits, count, exponent, out);
        return;
    }
    if (point <= 0) {
        buf_printf(out, "0.%.*s%.*s", -point, "00000", count, digits);
        return;
    }
    for (int i = 0; i < count || i < point; i++) {
        if (i == point) {
            buf_char(out, '.');
        }
        buf_char(out, i < count ? digits[i] : '0');
    }
}

// What is as long as it was stays as it is, but is noticed: a URL's scheme may end with ':', and
// CSS that runs has one of the others (html_css.h).
static const Str html_escapes[256] = {
    ['&'] = {"&amp;", 5},   ['<'] = {"&lt;", 4},   ['>'] = {"&gt;", 4},   ['"'] = {"&quot;", 6},
    ['\''] = {"&#x27;", 6}, ['`'] = {"&#x60;", 6}, ['='] = {"&#x3D;", 6}, [':'] = {":", 1},
    ['('] = {"(", 1},       ['@'] = {"@", 1},      ['*'] = {"*", 1},      ['\\'] = {"\\", 1},
};

static void print_escaped(Print *print, Str text)
{
    Buf *out = print->out;
    size_t done = 0;
    for (size_t i = 0; i < text.len; i++) {
        const Str *escape = &html_escapes[(unsigned char)text.ptr[i]];
        if (escape->len > 0) {
            buf_append(out, text.ptr + done, i - done);
            buf_append(out, escape->ptr, escape->len);
            print->marked = print->marked || escape->len == 1;
            done = i + 1;
        }
    }
    buf_append(out, text.ptr + done, text.len - done);
}

// A JSON string without its quotes.
static void print_json(Str text, Buf *out)
{
    size_t start = out->len;
    if (buf_json(out, text)) {
        memmove(out->ptr + start, out->ptr + start + 1, out->len - start - 1);
        out->len -= 2;
    }
}

static void print_text(Print *print, Str text)
{
    print->steps += steps_of(text.len);
    switch (print->escape) {
    case TEMPLATE_ESCAPE_HTML:
        print_escaped(print, text);
        break;
    case TEMPLATE_ESCAPE_JSON:
        print_json(text, print->out);
        break;
    case TEMPLATE_ESCAPE_NONE:
        buf_append(print->out, text.ptr, text.len);
        break;
    }
}

static bool print_at(Print *print, const Value *value, int depth, Error *err);

// Array.prototype.join: elements that are null print as nothing.
static bool print_array(Print *print, const json_t *array, int depth, Error *err)
{
    if (depth >= PRINT_DEPTH_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "an array nested deeper than %d cannot be printed",
            PRINT_DEPTH_MAX);
    }
    size_t count = json_array_size(array);
    for (size_t i = 0; i < count && !print->out->full; i++) {
        Value element = value_of_json(json_array_get(array, i));
        print->steps++;
        if (i > 0) {
            buf_char(print->out, ',');
        }
        if (!print_at(print, &element, depth + 1, err)) {
            return false;
        }
    }
    return true;
}

static bool print_at(Print *print, const Value *value, int depth, Error *err)
{
    Buf *out = print->out;
    switch (value->kind) {
    case VALUE_NONE:
    case VALUE_NULL:
        break;
    case VALUE_BOOL:
        buf_cstr(out, value->truth ? "true" : "false");
        break;
    case VALUE_INT:
        buf_int(out, value->number);
        break;
    case VALUE_REAL:
        print->steps += REAL_STEPS;
        print_real(value->real, out);
        break;
    case VALUE_TEXT:
        print_text(print, value->text);
        break;
    case VALUE_ARRAY:
        return print_array(print, value->json, depth, err);
    case VALUE_OBJECT:
    case VALUE_MERGED:
        buf_cstr(out, "[object Object]");
        break;
    }
    return true;
}

bool value_print(Print *print, const Value *value, Error *err)
{
    return print_at(print, value, 0, err);
}
