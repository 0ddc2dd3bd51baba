// SPDX-License-Identifier: Apache-2.0
#include "common/base/str.h"

#include <string.h>

const char *str_read(Str s)
{
    const volatile char *bytes = s.ptr;
    for (size_t i = 0; i < s.len; i++) {
        (void)bytes[i];
    }
    return s.ptr;
}

Str str_from(const char *text)
{
    return text == NULL ? STR_EMPTY : (Str){text, strlen(text)};
}

Str str_of(const void *ptr, size_t len)
{
    return len == 0 ? STR_EMPTY : (Str){ptr, len};
}

bool str_eq(Str a, Str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static unsigned char lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

bool str_eq_nocase(Str a, Str b)
{
    if (a.len != b.len) {
        return false;
    }
    for (size_t i = 0; i < a.len; i++) {
        if (lower(a.ptr[i]) != lower(b.ptr[i])) {
            return false;
        }
    }
    return true;
}

int str_cmp(Str a, Str b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common == 0 ? 0 : memcmp(a.ptr, b.ptr, common);
    if (order != 0) {
        return order;
    }
    return (a.len > b.len) - (a.len < b.len);
}

bool str_starts(Str s, Str prefix)
{
    return s.len >= prefix.len && str_eq((Str){s.ptr, prefix.len}, prefix);
}

bool str_ends(Str s, Str suffix)
{
    return s.len >= suffix.len && str_eq(str_slice(s, s.len - suffix.len, s.len), suffix);
}

Str str_slice(Str s, size_t from, size_t to)
{
    if (s.len == 0) {
        return s; // its ptr may be NULL, to which nothing may be added
    }
    size_t end = to < s.len ? to : s.len;
    size_t start = from < end ? from : end;
    return (Str){s.ptr + start, end - start};
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

Str str_trim(Str s)
{
    while (s.len > 0 && is_space(s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 && is_space(s.ptr[s.len - 1])) {
        s.len--;
    }
    return s;
}

ptrdiff_t str_find(Str s, char c)
{
    const char *at = s.len == 0 ? NULL : memchr(s.ptr, c, s.len);
    return at == NULL ? -1 : at - s.ptr;
}

bool str_contains(Str s, Str part)
{
    while (part.len > 0 && s.len >= part.len) {
        ptrdiff_t at = str_find(str_slice(s, 0, s.len - part.len + 1), part.ptr[0]);
        if (at < 0) {
            return false;
        }
        s = str_slice(s, (size_t)at, s.len);
        if (str_starts(s, part)) {
            return true;
        }
        s = str_slice(s, 1, s.len);
    }
    return false;
}

bool str_contains_nocase(Str s, Str part)
{
    for (size_t i = 0; part.len > 0 && i + part.len <= s.len; i++) {
        if (str_eq_nocase(str_slice(s, i, i + part.len), part)) {
            return true;
        }
    }
    return false;
}

bool str_split(Str *rest, char sep, Str *ret_token)
{
    if (rest->ptr == NULL) {
        return false;
    }
    ptrdiff_t at = str_find(*rest, sep);
    if (at < 0) {
        *ret_token = *rest;
        *rest = (Str){NULL, 0};
        return true;
    }
    *ret_token = (Str){rest->ptr, (size_t)at};
    *rest = (Str){rest->ptr + at + 1, rest->len - (size_t)at - 1};
    return true;
}

bool str_to_i64(Str s, int64_t *ret_value)
{
    bool negative = s.len > 0 && s.ptr[0] == '-';
    size_t i = negative ? 1 : 0;
    if (i == s.len) {
        return false;
    }
    // Gathered below zero, where the range is wider by one.
    int64_t value = 0;
    for (; i < s.len; i++) {
        int digit = s.ptr[i] - '0';
        if (digit < 0 || digit > 9 || value < (INT64_MIN + digit) / 10) {
            return false;
        }
        value = value * 10 - digit;
    }
    if (!negative && value == INT64_MIN) {
        return false;
    }
    *ret_value = negative ? value : -value;
    return true;
}

bool str_to_c(Str s, char *out, size_t size)
{
    bool fits = s.len < size;
    if (fits && s.len > 0) {
        memcpy(out, s.ptr, s.len);
    }
    if (size > 0) {
        out[fits ? s.len : 0] = '\0';
    }
    return fits;
}

// The first byte of a sequence fixes its length and the range of its second byte (RFC 3629, section
// 4).
static size_t lead(unsigned char first, unsigned char *ret_low, unsigned char *ret_high)
{
    *ret_low = 0x80;
    *ret_high = 0xbf;
    if (first < 0x80) {
        return 1;
    }
    if (first < 0xc2 || first > 0xf4) {
        return 0;
    }
    if (first < 0xe0) {
        return 2;
    }
    if (first < 0xf0) {
        *ret_low = first == 0xe0 ? 0xa0 : 0x80;
        *ret_high = first == 0xed ? 0x9f : 0xbf;
        return 3;
    }
    *ret_low = first == 0xf0 ? 0x90 : 0x80;
    *ret_high = first == 0xf4 ? 0x8f : 0xbf;
    return 4;
}

size_t str_utf8_step(Str s)
{
    if (s.len == 0) {
        return 0;
    }
    const unsigned char *p = (const unsigned char *)s.ptr;
    unsigned char low;
    unsigned char high;
    size_t length = lead(p[0], &low, &high);
    if (length < 2) {
        return length;
    }
    if (s.len < length || p[1] < low || p[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < length; i++) {
        if ((p[i] & 0xc0u) != 0x80u) {
            return 0;
        }
    }
    return length;
}

// Eight bytes at once: none has its high bit, none is NUL.
static bool is_plain_word(const char *p)
{
    const uint64_t highs = UINT64_C(0x8080808080808080);
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return ((word | (word - ones)) & highs) == 0;
}

size_t str_utf8_write(uint32_t c, char out[STR_UTF8_MAX])
{
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    out[0] = (char)(marks[len] | c);
    return len;
}

bool str_is_utf8(Str s)
{
    const char *at = s.ptr;
    size_t left = s.len;
    while (left > 0) {
        size_t step = 1;
        if (left >= 8 && is_plain_word(at)) {
            step = 8;
        } else if (*at == '\0') {
            return false;
        } else if ((unsigned char)*at >= 0x80) {
            step = str_utf8_step((Str){at, left});
        }
        if (step == 0) {
            return false;
        }
        at += step;
        left -= step;
    }
    return true;
}

bool str_has_control(Str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c < 0x20 || c == 0x7f) {
            return true;
        }
    }
    return false;
}

size_t str_bidi_step(Str s)
{
    const unsigned char *c = (const unsigned char *)s.ptr;
    if (s.len >= 2 && c[0] == 0xd8 && c[1] == 0x9c) {
        return 2;
    }
    if (s.len < 3 || c[0] != 0xe2) {
        return 0;
    }
    bool mark = c[1] == 0x80 && (c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xaa && c[2] <= 0xae));
    return mark || (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9) ? 3 : 0;
}

bool str_has_bidi(Str s)
{
    size_t at = 0;
    while (at < s.len && str_bidi_step(str_slice(s, at, s.len)) == 0) {
        at++;
    }
    return at < s.len;
}

uint64_t str_hash(Str s)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < s.len; i++) {
        hash = (hash ^ (unsigned char)s.ptr[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static size_t least_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t str_distance(Str a, Str b)
{
    if (a.len > STR_DISTANCE_MAX || b.len > STR_DISTANCE_MAX) {
        return SIZE_MAX;
    }
    size_t rows[3][STR_DISTANCE_MAX + 1]; // of three prefixes of `a`, against each prefix of `b`
    for (size_t j = 0; j <= b.len; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= a.len; i++) {
        size_t *row = rows[i % 3], *above = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            bool same = a.ptr[i - 1] == b.ptr[j - 1];
            row[j] = least_of(least_of(above[j], row[j - 1]) + 1, above[j - 1] + (same ? 0 : 1));
            if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1]) {
                row[j] = least_of(row[j], before[j - 2] + 1);
            }
        }
    }
    return rows[a.len % 3][b.len];
}
