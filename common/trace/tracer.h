// SPDX-License-Identifier: Apache-2.0
// Spans to a collector: OTLP over HTTP, protobuf, gzip. Law: the pipeline never waits for it. A
// span is packed and put into a ring of TRACER_SPANS_MAX; a batch of TRACER_BATCH_MAX, or what is
// there after 5 s, is posted; one batch is on the way at a time, tried again as the collector asks,
// five times at most; what finds no place is dropped and counted. Everything on the loop thread.
// A Tracer * of NULL is one that is off: all calls take it and do nothing.
#pragma once

#include <uv.h>

#include "common/trace/span.h"

enum {
    TRACER_SPANS_MAX = 8192,
    TRACER_BYTES_MAX = 8 * 1024 * 1024, // of these
    TRACER_BATCH_MAX = 512,
    TRACER_BATCH_MS = 5000,
    TRACER_TRIES_MAX = 5,
    TRACER_SLOW_US = 1000000, // what took longer is kept
};

typedef struct Tracer Tracer;

typedef struct TracerOptions {
    const char *endpoint;            // OTEL_EXPORTER_OTLP_ENDPOINT: "/v1/traces" is added; "": none
    const char *traces_endpoint;     // OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: as it is; "": none
    const char *headers;             // OTEL_EXPORTER_OTLP_HEADERS
    const char *sampler;             // OTEL_TRACES_SAMPLER
    const char *sampler_argument;    // OTEL_TRACES_SAMPLER_ARG
    const char *resource_attributes; // OTEL_RESOURCE_ATTRIBUTES
    const char *service_name;        // OTEL_SERVICE_NAME; "": the program's
    const char *program, *version, *instance;
} TracerOptions;

// Since it began.
typedef struct TracerStats {
    uint64_t exported; // the collector took them
    uint64_t full;     // dropped: no place in the ring
    uint64_t refused;  // dropped: the collector did not want them
    uint64_t given_up; // dropped: it did not answer, or asked to wait too often
    uint64_t failures; // posts that did not succeed, those that were tried again included
    size_t waiting;    // spans in the ring and on the way
} TracerStats;

// *ret NULL: no endpoint is set, or the sampler is always_off. CONFIG names the option.
bool tracer_new(uv_loop_t *loop, const TracerOptions *options, Tracer **ret, Error *err)
    __attribute__((warn_unused_result));
// Posts what waits, for 2 s at most, then on_freed, from the loop. Not NULL.
void tracer_free(Tracer *tracer, void (*on_freed)(void *ctx), void *ctx);

const TraceSampler *tracer_sampler(const Tracer *tracer); // not NULL
// Is a span of this trace exported? keep: it failed, is unknown, was a repeat, took over a second.
bool tracer_wants(const Tracer *tracer, const TraceContext *context, bool keep);
// Copies; for what tracer_wants.
void tracer_add(Tracer *tracer, const Span *span);
TracerStats tracer_stats(const Tracer *tracer);
