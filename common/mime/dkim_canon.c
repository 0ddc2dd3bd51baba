// SPDX-License-Identifier: Apache-2.0
// What is hashed: the canonical forms of RFC 6376, 3.4.2 and 3.4.4 (relaxed).
#include <string.h>

#include "common/mime/dkim.h"

enum { CHUNK = 4096, NAMES_MAX = 64 };

// ---- bytes on their way into a hash ----

typedef struct Sink {
    Sha256 *digest;
    char bytes[CHUNK];
    size_t len;
} Sink;

static void flush(Sink *sink)
{
    sha256_add(sink->digest, str_of(sink->bytes, sink->len));
    sink->len = 0;
}

static void put(Sink *sink, Str text)
{
    if (text.len > CHUNK - sink->len) {
        flush(sink);
    }
    if (text.len > CHUNK) {
        sha256_add(sink->digest, text);
        return;
    }
    memcpy(sink->bytes + sink->len, text.ptr, text.len);
    sink->len += text.len;
}

static void put_char(Sink *sink, char c)
{
    put(sink, str_of(&c, 1));
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static Str without_blanks_behind(Str line)
{
    while (line.len > 0 && is_blank(line.ptr[line.len - 1])) {
        line.len--;
    }
    return line;
}

// Runs of blanks become one space.
static void put_relaxed(Sink *sink, Str line)
{
    size_t from = 0;
    for (size_t i = 0; i < line.len; i++) {
        if (!is_blank(line.ptr[i])) {
            continue;
        }
        put(sink, str_slice(line, from, i));
        put_char(sink, ' ');
        while (i + 1 < line.len && is_blank(line.ptr[i + 1])) {
            i++;
        }
        from = i + 1;
    }
    put(sink, str_slice(line, from, line.len));
}

// Cuts the next line off *rest, without its CRLF or LF.
static bool next_line(Str *rest, Str *ret_line)
{
    if (rest->len == 0) {
        return false;
    }
    const char *end = memchr(rest->ptr, '\n', rest->len);
    size_t len = end != NULL ? (size_t)(end - rest->ptr) : rest->len;
    *ret_line = str_of(rest->ptr, len);
    *rest = str_slice(*rest, len + (end != NULL ? 1 : 0), rest->len);
    if (end != NULL && len > 0 && ret_line->ptr[len - 1] == '\r') {
        ret_line->len--;
    }
    return true;
}

// ---- body ----

void dkim_body_hash(Str body, uint8_t out[SHA256_LEN])
{
    Sink sink = {.digest = sha256_begin()};
    size_t empty = 0; // lines: only those with something behind them count
    Str line;
    while (next_line(&body, &line)) {
        line = without_blanks_behind(line);
        if (line.len == 0) {
            empty++;
            continue;
        }
        for (; empty > 0; empty--) {
            put(&sink, STR("\r\n"));
        }
        put_relaxed(&sink, line);
        put(&sink, STR("\r\n"));
    }
    flush(&sink);
    sha256_end(sink.digest, out);
}

// ---- headers ----

// Cuts the next header off *rest, with its folded lines and its last line break.
static bool next_header(Str *rest, Str *ret_header)
{
    Str from = *rest;
    Str line;
    if (!next_line(rest, &line)) {
        return false;
    }
    while (rest->len > 0 && is_blank(rest->ptr[0])) {
        (void)next_line(rest, &line);
    }
    *ret_header = str_of(from.ptr, from.len - rest->len);
    return true;
}

static Str name_of(Str header)
{
    ptrdiff_t colon = str_find(header, ':');
    return colon < 0 ? STR_EMPTY : without_blanks_behind(str_slice(header, 0, (size_t)colon));
}

// Its name in lower case, a colon, and its value on one line without blanks at its ends.
static void put_header(Sink *sink, Str header)
{
    Str name = name_of(header);
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        put_char(sink, c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c);
    }
    put_char(sink, ':');
    ptrdiff_t colon = str_find(header, ':');
    Str rest = str_slice(header, (size_t)(colon + 1), header.len);
    bool first = true;
    Str line;
    while (next_line(&rest, &line)) {
        Str value = without_blanks_behind(line);
        size_t begin = 0;
        while (begin < value.len && is_blank(value.ptr[begin])) {
            begin++;
        }
        value = str_slice(value, begin, value.len);
        if (value.len > 0) { // a line break is folded before blanks, which are one space then
            put(sink, first ? STR_EMPTY : STR(" "));
            put_relaxed(sink, value);
            first = false;
        }
    }
}

// The header of that name with `above` others of it below; false: there are not so many.
static bool find_from_below(Str headers, Str name, size_t above, Str *ret)
{
    size_t count = 0;
    Str header;
    for (Str rest = headers; next_header(&rest, &header);) {
        count += str_eq_nocase(name_of(header), name) ? 1 : 0;
    }
    if (count <= above) {
        return false;
    }
    size_t wanted = count - above;
    for (Str rest = headers; wanted > 0 && next_header(&rest, &header);) {
        wanted -= str_eq_nocase(name_of(header), name) ? 1 : 0;
    }
    *ret = header;
    return true;
}

void dkim_header_hash(Str headers, Str names, Str signature, uint8_t out[SHA256_LEN])
{
    Sink sink = {.digest = sha256_begin()};
    Str seen[NAMES_MAX];
    size_t count = 0;
    Str name;
    while (count < NAMES_MAX && str_split(&names, ':', &name)) {
        name = str_trim(name);
        size_t before = 0;
        for (size_t i = 0; i < count; i++) {
            before += str_eq_nocase(seen[i], name) ? 1 : 0;
        }
        seen[count++] = name;
        Str header;
        if (name.len > 0 && find_from_below(headers, name, before, &header)) {
            put_header(&sink, header);
            put(&sink, STR("\r\n"));
        }
    }
    put_header(&sink, signature);
    flush(&sink);
    sha256_end(sink.digest, out);
}
