// SPDX-License-Identifier: Apache-2.0
// Whether libmicrohttpd 0.9 read a head as other programs do. It writes zeroes over colons and
// ends of lines where they lie, and so lets pass what version 1.0 refuses: a bare LF is an end, the
// text of a folded line goes to the end of the header's name ("Content-Leng: 3", " th" is a
// length), a value ends at NUL, a line that begins with NUL is the empty line behind which the next
// request stands. This measures the gaps between what it handed out: each must be as wide as in a
// head of plain lines that end with CRLF. Pure; of no use for 1.0, which lays a head out otherwise.
#pragma once

#include "common/http/framing.h"

// As libmicrohttpd hands it out; all pointers are into its one copy of the head.
typedef struct HttpHead {
    const char *method;  // the first byte
    size_t size;         // to behind the empty line
    Str target;          // as it was sent, before anything was decoded
    const char *version; // NUL-terminated
} HttpHead;

// false: a line ends with a bare LF, is folded, or has a NUL. One is not seen: a NUL right before
// an LF, in the place of its CR.
bool http_head_is_plain(const HttpHead *head, const HttpField *fields, size_t count);
