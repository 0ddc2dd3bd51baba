// SPDX-License-Identifier: Apache-2.0
#include "common/trace/stage.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/id.h"
#include "common/codec/hash.h"

enum { OWN_ATTRIBUTES = 2 };

// ---- one notification ----

// The same span as ingest's, but for what only ingest knew; a viewer has one of them by its id.
static void add_accept(Tracer *tracer, const StageSpan *span, const TraceContext *context)
{
    int64_t at_ms = 0;
    int64_t at_us = span->accepted_at_us;
    if (at_us == 0 && id_parse(span->notification_id, "ntf_", &at_ms)) {
        at_us = at_ms * 1000;
    }
    const SpanAttribute attributes[] = {
        SPAN_STR("stentor.notification_id", span->notification_id),
        SPAN_STR("stentor.tenant", span->tenant),
    };
    Span accept = {
        .name = "accept",
        .kind = SPAN_SERVER,
        .context = *context,
        .started_at_us = at_us,
        .ended_at_us = at_us,
        .attributes = attributes,
        .attribute_count = OWN_ATTRIBUTES,
    };
    tracer_add(tracer, &accept);
}

static void add_stage(Tracer *tracer, const StageSpan *span, const TraceContext *context)
{
    SpanAttribute attributes[SPAN_ATTRIBUTES_MAX] = {
        SPAN_STR("stentor.notification_id", span->notification_id),
        SPAN_STR("stentor.tenant", span->tenant),
    };
    size_t count = OWN_ATTRIBUTES;
    for (size_t i = 0; i < span->attribute_count && count < SPAN_ATTRIBUTES_MAX; i++) {
        attributes[count++] = span->attributes[i];
    }
    Span out = {
        .name = span->name,
        .kind = span->kind,
        .context = *context,
        .started_at_us = span->started_at_us,
        .ended_at_us = span->ended_at_us,
        .failed = span->failed,
        .why = span->why,
        .attributes = attributes,
        .attribute_count = count,
    };
    memcpy(out.parent, context->span_id, SPAN_ID_LEN);
    trace_span_of_event(span->event_id, out.context.span_id);
    tracer_add(tracer, &out);
}

void trace_stage(Tracer *tracer, TraceBatch *batch, const StageSpan *span)
{
    TraceContext context;
    if (tracer == NULL ||
        !trace_of_message(
            tracer_sampler(tracer), span->traceparent, span->notification_id, &context)) {
        return;
    }
    bool slow = span->ended_at_us - span->started_at_us > TRACER_SLOW_US;
    if (!tracer_wants(tracer, &context, span->keep || span->failed || slow)) {
        return;
    }
    if (!context.sampled) {
        add_accept(tracer, span, &context);
    }
    add_stage(tracer, span, &context);
    if (batch != NULL) {
        if (batch->count < SPAN_LINKS_MAX) {
            batch->links[batch->count] = context;
        }
        batch->count++;
    }
}

// ---- a batch ----

void trace_batch(Tracer *tracer, const TraceBatch *batch, const BatchSpan *span)
{
    if (tracer == NULL || batch->count == 0) {
        return;
    }
    char cause[128];
    uint8_t hash[SHA256_LEN];
    snprintf(cause, sizeof cause, "batch|%s|%" PRIu64, span->stream, span->sequence);
    sha256(str_from(cause), hash);
    const SpanAttribute attributes[] = {
        SPAN_CSTR("messaging.system", "nats"),
        SPAN_CSTR("messaging.operation.type", "process"),
        SPAN_CSTR("messaging.destination.name", span->stream),
        SPAN_NUMBER("messaging.batch.message_count", (int64_t)span->messages),
    };
    Span out = {
        .name = span->name,
        .kind = SPAN_CONSUMER,
        .context = {.sampled = true},
        .started_at_us = span->started_at_us,
        .ended_at_us = span->ended_at_us,
        .attributes = attributes,
        .attribute_count = sizeof attributes / sizeof *attributes,
        .links = batch->links,
        .link_count = batch->count,
    };
    memcpy(out.context.trace_id, hash, TRACE_ID_LEN);
    memcpy(out.context.span_id, hash + TRACE_ID_LEN, SPAN_ID_LEN);
    tracer_add(tracer, &out);
}

// ---- after a wait ----

static void add_due(
    Tracer *tracer, const TraceWait *wait, const TraceContext *before, const TraceContext *now)
{
    const SpanAttribute attributes[] = {
        SPAN_STR("stentor.notification_id", wait->notification_id),
        SPAN_STR("stentor.tenant", wait->tenant),
        SPAN_NUMBER("stentor.waited_ms", (wait->until_us - wait->since_us) / 1000),
    };
    Span due = {
        .name = "due",
        .kind = SPAN_INTERNAL,
        .context = *now,
        .started_at_us = wait->until_us,
        .ended_at_us = wait->until_us,
        .attributes = attributes,
        .attribute_count = sizeof attributes / sizeof *attributes,
        .links = before,
        .link_count = 1,
    };
    tracer_add(tracer, &due);
}

Str trace_resume(Tracer *tracer, const TraceWait *wait, Arena *arena)
{
    TraceContext before;
    bool same = wait->until_us - wait->since_us <= TRACE_WAIT_MAX_S * INT64_C(1000000);
    if (tracer == NULL || same ||
        !trace_of_message(
            tracer_sampler(tracer), wait->traceparent, wait->notification_id, &before) ||
        !before.sampled) {
        return wait->traceparent;
    }
    uint8_t hash[SHA256_LEN];
    TraceContext now = before;
    char *text = arena_alloc(arena, TRACEPARENT_SIZE);
    sha256(wait->event_id, hash);
    memcpy(now.trace_id, hash, TRACE_ID_LEN);
    trace_span_of_event(wait->event_id, now.span_id);
    trace_format(&now, text);
    add_due(tracer, wait, &before, &now);
    return str_from(text);
}
