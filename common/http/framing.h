// SPDX-License-Identifier: Apache-2.0
// Whether the headers of a request can be read in one way only. libmicrohttpd has split them; this
// refuses what a proxy in front may have read in another way (RFC 9112, sections 5.1 and 6.3): a
// length that is given twice or with chunks, an unknown transfer coding, a name with white space,
// no Host. Pure.
#pragma once

#include "common/base/error.h"
#include "common/base/str.h"

enum { HTTP_FIELDS_MAX = 100 };

typedef struct HttpField {
    Str name;
    Str value; // without the white space around it
} HttpField;

typedef struct HttpFraming {
    bool chunked;
    bool wants_100;  // the client waits for "100 Continue" before it sends its body
    uint64_t length; // of the body; 0 when chunked
} HttpFraming;

// Why a request is refused; the texts are literals.
typedef struct HttpRefusal {
    int status;
    const char *slug, *title, *detail;
} HttpRefusal;

// `version` is that of the request line, "HTTP/1.1". The refusal is 400 or 417.
bool http_framing_read(
    const HttpField *fields, size_t count, Str version, HttpFraming *ret, HttpRefusal *ret_refusal);
bool http_is_token(Str s); // what a method and the name of a header are
