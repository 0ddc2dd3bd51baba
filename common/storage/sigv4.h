// SPDX-License-Identifier: Apache-2.0
// AWS Signature Version 4 over headers, as S3 wants it: the path is encoded once and kept as it is
// ("/./" too). Pure; the time is an argument. Law: what is signed is what is sent, so the caller
// gives exactly the headers that it sends and that are to be signed, `host` and the date among
// them; values are trimmed and inner blanks folded here, as the server does. The vendor's words are
// a parameter: Google's are the same algorithm.
// Source: docs.aws.amazon.com, "Create a signed AWS API request".
#pragma once

#include "common/base/buf.h"
#include "common/codec/hash.h"

enum { SIGV4_HEADERS_MAX = 24, SIGV4_QUERY_MAX = 12, SIGV4_STAMP_SIZE = 17 };

typedef struct SigV4Words {
    const char *algorithm; // "AWS4-HMAC-SHA256"
    const char *key;       // "AWS4": before the secret
    const char *end;       // "aws4_request": of the scope
    const char *prefix;    // "x-amz-": of the vendor's headers
} SigV4Words;

extern const SigV4Words sigv4_aws, sigv4_goog;

typedef struct SigV4Pair {
    Str name;  // of a header: lower-case
    Str value; // not encoded
} SigV4Pair;

typedef struct SigV4Request {
    Str method;
    Str path; // not encoded, begins with '/'
    const SigV4Pair *query;
    size_t query_count; // at most SIGV4_QUERY_MAX
    const SigV4Pair *headers;
    size_t header_count; // at most SIGV4_HEADERS_MAX; a name may come more than once
    Str payload;         // hex of the body's SHA-256
    int64_t at_us;
} SigV4Request;

typedef struct SigV4Key {
    const SigV4Words *words;
    Str id, secret, region, service;
} SigV4Key;

// "20150830T123600Z": of the date header.
void sigv4_stamp(int64_t at_us, char out[SIGV4_STAMP_SIZE]);
// Every byte but A-Z a-z 0-9 - _ . ~ as %XX; with keep_slash '/' stays.
void sigv4_encode(Str text, bool keep_slash, Buf *out);
// "a=b&c=": encoded and sorted, as it is signed and to be sent.
void sigv4_query(const SigV4Request *request, Buf *out);
// What is hashed and signed; for tests and for the message of a refused signature.
void sigv4_canonical(const SigV4Request *request, Buf *out);
// The value of the Authorization header. Appends; a full Buf says so itself.
void sigv4_authorization(const SigV4Key *key, const SigV4Request *request, Buf *out);
