// SPDX-License-Identifier: Apache-2.0
#include "common/json/json_read.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/json_scan.h"
#include "common/json/json_plain.h"

enum { INTEGER_DIGITS_MAX = 18 }; // of any of which 64 bits have room

typedef struct Reading {
    const char *at, *end;
    size_t flags;
    size_t values;
    // Strings with escapes, decoded; a stack, because a key waits there for its value. As long as
    // the text, which no string is longer than.
    char *decoded;
    size_t decoded_len, decoded_max;
} Reading;

static json_t *read_value(Reading *r, int depth);

static char peek(const Reading *r)
{
    return r->at < r->end ? *r->at : '\0';
}

static void skip_blanks(Reading *r)
{
    while (r->at < r->end &&
           (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t')) {
        r->at++;
    }
}

// The next character is `c`, behind blanks: takes it.
static bool take(Reading *r, char c)
{
    skip_blanks(r);
    bool there = r->at < r->end && *r->at == c;
    r->at += there ? 1 : 0;
    return there;
}

// ---- strings ----

// Past what stands in a string as it is. false: no UTF-8.
static bool skip_plain(Reading *r)
{
    r->at += json_plain_len(str_of(r->at, (size_t)(r->end - r->at)));
    return r->at == r->end || (unsigned char)*r->at < 0x80;
}

static void push_decoded(Reading *r, const char *bytes, size_t len)
{
    memcpy(r->decoded + r->decoded_len, bytes, len);
    r->decoded_len += len;
}

// -1: not four hexadecimal digits.
static int32_t read_hex4(Reading *r)
{
    int32_t value = 0;
    if (r->end - r->at < 4) {
        return -1;
    }
    for (int i = 0; i < 4; i++) {
        char c = *r->at++;
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0) {
            return -1;
        }
        value = value * 16 + digit;
    }
    return value;
}

// Behind "\u". false: half of a pair, or NUL.
static bool read_unicode(Reading *r)
{
    int32_t code = read_hex4(r);
    if (code >= 0xd800 && code < 0xdc00) {
        if (r->end - r->at < 6 || r->at[0] != '\\' || r->at[1] != 'u') {
            return false;
        }
        r->at += 2;
        int32_t low = read_hex4(r);
        if (low < 0xdc00 || low > 0xdfff) {
            return false;
        }
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    if (code <= 0 || (code >= 0xdc00 && code < 0xe000)) {
        return false;
    }
    r->decoded_len += str_utf8_write((uint32_t)code, r->decoded + r->decoded_len);
    return true;
}

// At the backslash.
static bool read_escape(Reading *r)
{
    static const char names[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    if (r->end - r->at < 2) {
        return false;
    }
    char c = r->at[1];
    r->at += 2;
    if (c == 'u') {
        return read_unicode(r);
    }
    for (const char *name = names; *name != '\0'; name += 2) {
        if (name[0] == c) {
            push_decoded(r, name + 1, 1);
            return true;
        }
    }
    return false;
}

static bool read_escaped(Reading *r, const char *begin, Str *ret)
{
    if (r->decoded == NULL) {
        r->decoded = xmalloc(r->decoded_max);
    }
    size_t first = r->decoded_len;
    while (peek(r) == '\\') {
        push_decoded(r, begin, (size_t)(r->at - begin));
        if (!read_escape(r)) {
            return false;
        }
        begin = r->at;
        if (!skip_plain(r)) {
            return false;
        }
    }
    push_decoded(r, begin, (size_t)(r->at - begin));
    *ret = str_of(r->decoded + first, r->decoded_len - first);
    return true;
}

// Behind the quote. The string is of the text, or the last of `decoded`.
static bool read_text(Reading *r, Str *ret)
{
    const char *begin = r->at;
    if (!skip_plain(r)) {
        return false;
    }
    *ret = str_of(begin, (size_t)(r->at - begin));
    return (peek(r) != '\\' || read_escaped(r, begin, ret)) && r->at < r->end && *r->at++ == '"';
}

static json_t *read_string(Reading *r)
{
    Str text = STR_EMPTY;
    size_t decoded_len = r->decoded_len;
    json_t *value = read_text(r, &text) ? json_stringn_nocheck(text.ptr, text.len) : NULL;
    r->decoded_len = decoded_len;
    return value;
}

// ---- numbers and names ----

// With a fraction or an exponent: jansson's, to the last digit.
static json_t *read_real(Reading *r, const char *begin)
{
    while (r->at < r->end && (ascii_is_digit(*r->at) || strchr("+-.eE", *r->at) != NULL) &&
           *r->at != '\0') {
        r->at++;
    }
    return json_loadb(begin, (size_t)(r->at - begin), JSON_DECODE_ANY, NULL);
}

static json_t *read_number(Reading *r)
{
    const char *begin = r->at;
    bool negative = *begin == '-';
    const char *digits = begin + (negative ? 1 : 0);
    int64_t number = 0;
    for (r->at = digits; r->at < r->end && ascii_is_digit(*r->at); r->at++) {
        if (r->at - digits >= INTEGER_DIGITS_MAX) {
            return NULL;
        }
        number = number * 10 + (*r->at - '0');
    }
    size_t count = (size_t)(r->at - digits);
    if (count == 0 || (count > 1 && *digits == '0')) {
        return NULL;
    }
    char next = peek(r);
    if (next == '.' || next == 'e' || next == 'E') {
        return read_real(r, begin);
    }
    return json_integer(negative ? -number : number);
}

static json_t *read_name(Reading *r)
{
    static const Str names[] = {{"true", 4}, {"false", 5}, {"null", 4}};
    Str rest = str_of(r->at, (size_t)(r->end - r->at));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (str_starts(rest, names[i])) {
            r->at += names[i].len;
            return i == 0 ? json_true() : i == 1 ? json_false() : json_null();
        }
    }
    return NULL;
}

// ---- objects and arrays ----

// What follows the bracket is counted as json_is_modest counts it.
static bool count_value(Reading *r)
{
    return ++r->values <= JSON_VALUES_MAX;
}

static bool read_member(Reading *r, json_t *object, int depth)
{
    Str key = STR_EMPTY;
    size_t decoded_len = r->decoded_len;
    size_t size = json_object_size(object);
    if (!take(r, '"') || !read_text(r, &key) || !take(r, ':')) {
        return false;
    }
    json_t *value = read_value(r, depth);
    bool ok = value != NULL && json_object_setn_new_nocheck(object, key.ptr, key.len, value) == 0;
    r->decoded_len = decoded_len;
    return ok && ((r->flags & JSON_REJECT_DUPLICATES) == 0 || json_object_size(object) > size);
}

static bool read_element(Reading *r, json_t *array, int depth)
{
    json_t *value = read_value(r, depth);
    return value != NULL && json_array_append_new(array, value) == 0;
}

// Behind the opening bracket.
static json_t *read_container(Reading *r, bool is_object, int depth)
{
    if (depth > JSON_DEPTH_MAX || !count_value(r)) {
        return NULL;
    }
    json_t *container = is_object ? json_object() : json_array();
    char end = is_object ? '}' : ']';
    bool ok = take(r, end);
    while (!ok) {
        if (!(is_object ? read_member(r, container, depth) : read_element(r, container, depth))) {
            break;
        }
        ok = take(r, end);
        if (!ok && (!take(r, ',') || !count_value(r))) {
            break;
        }
    }
    if (!ok) {
        json_decref(container);
        return NULL;
    }
    return container;
}

// `depth`: of containers around it.
static json_t *read_value(Reading *r, int depth)
{
    skip_blanks(r);
    switch (peek(r)) {
    case '{':
    case '[':
        return read_container(r, *r->at++ == '{', depth + 1);
    case '"':
        r->at++;
        return read_string(r);
    case 't':
    case 'f':
    case 'n':
        return read_name(r);
    default:
        return peek(r) == '-' || ascii_is_digit(peek(r)) ? read_number(r) : NULL;
    }
}

json_t *json_read_plain(Str text, size_t flags)
{
    Reading r = {
        .at = text.ptr,
        .end = text.ptr + text.len,
        .flags = flags,
        .values = 1,
        .decoded_max = text.len,
    };
    json_t *value = (flags & ~(size_t)(JSON_DECODE_ANY | JSON_REJECT_DUPLICATES)) == 0
                        ? read_value(&r, 0)
                        : NULL;
    skip_blanks(&r);
    free(r.decoded);
    bool whole = r.at == r.end &&
                 ((flags & JSON_DECODE_ANY) != 0 || json_is_object(value) || json_is_array(value));
    if (!whole) {
        json_decref(value);
        return NULL;
    }
    return value;
}

json_t *json_read(Str text, size_t flags, json_error_t *ret_error)
{
    json_t *value = json_read_plain(text, flags);
    return value != NULL ? value : json_loadb(text.ptr, text.len, flags, ret_error);
}
