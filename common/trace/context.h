// SPDX-License-Identifier: Apache-2.0
// Which trace a notification is in, and which of its spans it is: W3C trace context as a value, the
// ids that follow from a notification's own, and who is sampled. Pure. Law: every stage comes to
// the same ids and the same verdict from the same event, so nothing but the header `traceparent`
// travels, and work that is done twice makes the same span twice.
#pragma once

#include "common/base/error.h"
#include "common/base/str.h"

enum { TRACE_ID_LEN = 16, SPAN_ID_LEN = 8, TRACEPARENT_SIZE = 56 };

typedef struct TraceContext {
    uint8_t trace_id[TRACE_ID_LEN];
    uint8_t span_id[SPAN_ID_LEN]; // all zero: none
    bool sampled;
} TraceContext;

// Which spans are exported without a special reason (span.h: `keep`).
typedef struct TraceSampler {
    bool none;      // always_off: no spans at all, whatever the reason
    bool by_parent; // what the caller has decided counts, where there is a caller
    double ratio;   // of those without one: 0 to 1
} TraceSampler;

// "parentbased_traceidratio" and the five others of the OpenTelemetry specification; `argument`
// is the ratio. CONFIG.
bool trace_sampler_parse(Str name, Str argument, TraceSampler *ret, Error *err);
// By a hash of the last 8 bytes of the trace id.
bool trace_sampled(const TraceSampler *sampler, const uint8_t trace_id[TRACE_ID_LEN]);

// false: the text is no W3C traceparent (common/bus/jetstream/trace.h).
bool trace_parse(Str traceparent, TraceContext *ret);
// "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
void trace_format(const TraceContext *context, char out[TRACEPARENT_SIZE]);

// The span of a notification in which it was accepted: the parent of all its other spans.
void trace_accept_span(Str notification_id, uint8_t out[SPAN_ID_LEN]);
// The 8 bytes that stand for the event's id, which is derived from its cause (codec/hash.h). An id
// that is not of that form is hashed.
void trace_span_of_event(Str event_id, uint8_t out[SPAN_ID_LEN]);
// The 16 bytes of the ULID behind "ntf_"; false: it is no such id.
bool trace_id_of(Str notification_id, uint8_t out[TRACE_ID_LEN]);
// What a stage behind ingest works in: the message's own context, or, without one, the trace of
// the notification's id with its accept span as parent. false: there is neither.
bool trace_of_message(
    const TraceSampler *sampler, Str traceparent, Str notification_id, TraceContext *ret);
