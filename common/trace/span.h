// SPDX-License-Identifier: Apache-2.0
// One span as the bytes of OTLP (proto/otlp/trace.proto), and many as the body of a request. Pure.
#pragma once

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/trace/context.h"

enum {
    SPAN_ATTRIBUTES_MAX = 24,
    SPAN_LINKS_MAX = 128, // beyond it they are counted
    SPAN_TEXT_MAX = 256,  // of a name, an attribute, a reason
};

typedef enum SpanKind { // the values of OTLP
    SPAN_INTERNAL = 1,
    SPAN_SERVER,
    SPAN_CLIENT,
    SPAN_PRODUCER,
    SPAN_CONSUMER,
} SpanKind;

// Nothing of a person: no address, no name, no content.
typedef struct SpanAttribute {
    const char *key; // "server.address"
    Str text;        // ptr NULL: the number counts; empty: the attribute is left out
    int64_t number;
} SpanAttribute;

#define SPAN_NUMBER(name, value) ((SpanAttribute){(name), {NULL, 0}, (value)})
#define SPAN_STR(name, value) ((SpanAttribute){(name), (value), 0})
#define SPAN_CSTR(name, value) SPAN_STR(name, str_from(value))

typedef struct Span {
    const char *name;
    SpanKind kind;
    TraceContext context;        // its trace, its own id
    uint8_t parent[SPAN_ID_LEN]; // all zero: none
    int64_t started_at_us, ended_at_us;
    bool failed;
    Str why; // of a failed one
    const SpanAttribute *attributes;
    size_t attribute_count;
    const TraceContext *links;
    size_t link_count;
} Span;

// In `arena`: a message Span.
Str span_pack(const Span *span, Arena *arena);

// "key=value,key=value", values percent-encoded: OTEL_RESOURCE_ATTRIBUTES, and headers. CONFIG
// names `option`. Keys and values in `arena`.
typedef struct TracePair {
    const char *key, *value;
} TracePair;
bool trace_pairs(
    const char *option, Str text, Arena *arena, TracePair *ret, size_t max, size_t *ret_count,
    Error *err);

// In `arena`: a message Resource. What comes first wins.
Str trace_resource_pack(const TracePair *pairs, size_t count, Arena *arena);
// Appends a TracesRequest of packed spans.
bool trace_request_pack(Buf *out, Str resource, Str version, const Str *spans, size_t count);
// Of the collector's answer; 0 when it is none, or says that it took all.
int64_t trace_rejected(Str answer);
