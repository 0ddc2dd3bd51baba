// SPDX-License-Identifier: Apache-2.0
// What a stage does for one notification, and for the batch that it came in, as spans. Off, or with
// nothing to say about a notification that is not sampled, it costs a comparison of its id's hash.
#pragma once

#include "common/trace/tracer.h"

typedef struct StageSpan {
    const char *name; // "render", "attempt 1"
    SpanKind kind;
    Str traceparent; // of the event that the stage works on
    Str notification_id, tenant;
    Str event_id; // whose first bytes are the span's id
    int64_t started_at_us, ended_at_us;
    int64_t accepted_at_us; // of the notification, as far as known; 0: the time in its id
    bool failed;
    bool keep; // unknown, or not the first attempt. What failed or took over a second is kept too
    Str why;
    const SpanAttribute *attributes;
    size_t attribute_count;
} StageSpan;

// The links of a batch's own span, gathered by trace_stage. All zero: nothing yet.
typedef struct TraceBatch {
    TraceContext links[SPAN_LINKS_MAX];
    size_t count; // of spans that were exported; links has the first of them
} TraceBatch;

// Adds the span, and for one that is kept though its trace is not sampled an `accept` as ingest
// makes it, so that it has a parent. batch NULL: it came in none.
void trace_stage(Tracer *tracer, TraceBatch *batch, const StageSpan *span);

// One span with links to what was in it, in a trace of its own. Nothing when no span of it was
// exported. `cause` makes its ids: the stream and the sequence of its first message.
typedef struct BatchSpan {
    const char *name; // "process REQUEST_NORMAL"
    const char *stream;
    uint64_t sequence; // of its first message
    size_t messages;
    int64_t started_at_us, ended_at_us;
} BatchSpan;
void trace_batch(Tracer *tracer, const TraceBatch *batch, const BatchSpan *span);

// An event that a stage begins to work on, and perhaps one that waited at digest-flusher.
typedef struct TraceWait {
    Str traceparent; // its header, or what it kept while it waited (meta_trace)
    Str notification_id, tenant;
    Str event_id;
    int64_t since_us; // when its cause was: the acceptance, the attempt before
    int64_t until_us; // when it was stored
} TraceWait;
enum { TRACE_WAIT_MAX_S = 3600 };
// The traceparent in which the work goes on: the same up to TRACE_WAIT_MAX_S of waiting, then that
// of a new trace, which follows from the event's id and begins with a span `due` that links to the
// old one. In `arena`.
Str trace_resume(Tracer *tracer, const TraceWait *wait, Arena *arena);
