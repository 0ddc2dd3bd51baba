// SPDX-License-Identifier: Apache-2.0
// The head of an HTTP/1.1 request (request line and headers): bytes to values, or the refusal.
// Pure. Law: what two programs could read in two ways is refused, never guessed at. One line end
// (CRLF), one length of the body, names without white space, no folded lines, no control
// characters, and what decides about a request (SINGLE in head.c) at most once. Sources: RFC 9110,
// RFC 9112.
#pragma once

#include "common/base/arena.h"

enum { HTTP_HEAD_MAX = 32 * 1024, HTTP_FIELDS_MAX = 100 };

typedef struct HttpField {
    Str name;
    Str value; // without the white space around it
} HttpField;

typedef struct HttpHead {
    Str method;
    Str path;  // as it was written, before the '?'
    Str query; // as it was written, behind the '?'
    HttpField *fields;
    size_t field_count;
    bool keep_alive; // the client will send another request
    bool wants_100;  // waits for "100 Continue" before it sends its body
    bool chunked;
    uint64_t length; // of the body; 0 when chunked
} HttpHead;

// Why a head is refused; the texts are literals.
typedef struct HttpRefusal {
    int status;
    const char *slug, *title, *detail;
} HttpRefusal;

typedef enum HeadScan { HEAD_PART, HEAD_WHOLE, HEAD_REFUSED } HeadScan;

// Is the whole head there? HEAD_WHOLE: *ret_len is its length with the empty line. *scanned (0 at
// first) remembers what was looked at. HEAD_REFUSED: it can never become one.
HeadScan http_head_scan(Str bytes, size_t *scanned, size_t *ret_len, HttpRefusal *ret_refusal);
// `head` is what http_head_scan measured; the values are slices of it. The fields lie in `arena`.
bool http_head_parse(Str head, Arena *arena, HttpHead *ret, HttpRefusal *ret_refusal);
Str http_head_field(const HttpHead *head, Str name); // the first; empty when not there
