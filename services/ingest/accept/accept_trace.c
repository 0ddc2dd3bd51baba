// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/accept/accept_trace.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/codec/hash.h"
#include "common/model/status.h"
#include "services/ingest/accept/events.h"

// Where a notification is, and whose child its `accept` is.
typedef struct Beginning {
    TraceContext context; // with the span `accept`
    uint8_t parent[SPAN_ID_LEN];
    bool called; // the trace is the caller's
} Beginning;

static bool begin(const Tracer *tracer, Str callers, Str id, Beginning *ret)
{
    const TraceSampler *sampler = tracer_sampler(tracer);
    *ret = (Beginning){.called = false};
    ret->called = callers.len > 0 && trace_parse(callers, &ret->context);
    TraceContext *context = &ret->context;
    if (ret->called) {
        memcpy(ret->parent, context->span_id, SPAN_ID_LEN);
        context->sampled =
            sampler->by_parent ? context->sampled : trace_sampled(sampler, context->trace_id);
    } else if (trace_id_of(id, context->trace_id)) {
        context->sampled = trace_sampled(sampler, context->trace_id);
    } else {
        return false;
    }
    return true;
}

Str accept_traceparent(const Tracer *tracer, Str callers, const char *id, Arena *arena)
{
    Beginning b;
    if (tracer == NULL || !begin(tracer, callers, str_from(id), &b)) {
        return callers;
    }
    if (!b.called && !b.context.sampled) {
        return STR_EMPTY; // every stage finds the same without it
    }
    char *text = arena_alloc(arena, TRACEPARENT_SIZE);
    trace_accept_span(str_from(id), b.context.span_id);
    trace_format(&b.context, text);
    return str_from(text);
}

// ---- spans ----

// The trace of the notification's own id says where the caller's is: for whoever has the id, and
// for a callback that brings no trace.
static void add_pointer(Tracer *tracer, const Span *accept, Str id)
{
    Span pointer = *accept;
    pointer.links = &accept->context;
    pointer.link_count = 1;
    memset(pointer.parent, 0, SPAN_ID_LEN);
    if (trace_id_of(id, pointer.context.trace_id)) {
        tracer_add(tracer, &pointer);
    }
}

static void add_gate(
    Tracer *tracer, const Group *g, const Notice *notice, const TraceContext *accept)
{
    char event_id[EVENT_ID_SIZE], discriminator[64];
    Status status = events_status(&notice->decision);
    Str id = str_from(notice->id);
    size_t len = strlen(status_name(status));
    memcpy(discriminator, status_name(status), len);
    memcpy(discriminator + len, "/0", 3);
    event_id_derive("status", id, str_from(discriminator), event_id);
    const SpanAttribute attributes[] = {
        SPAN_STR("stentor.notification_id", id),
        SPAN_CSTR("stentor.status", status_name(status)),
        SPAN_CSTR("stentor.reason", gate_reason_name(notice->decision.reason)),
    };
    Span gate = {
        .name = "gate",
        .kind = SPAN_INTERNAL,
        .context = *accept,
        .started_at_us = g->accepted_at_us,
        .ended_at_us = g->accepted_at_us + g->gated_after_us,
        .attributes = attributes,
        .attribute_count = sizeof attributes / sizeof *attributes,
    };
    memcpy(gate.parent, accept->span_id, SPAN_ID_LEN);
    trace_span_of_event(str_from(event_id), gate.context.span_id);
    tracer_add(tracer, &gate);
}

static void trace_notice(
    Tracer *tracer, const Group *g, const Notice *notice, int64_t waited_us, int64_t now_us)
{
    Beginning b;
    Str id = str_from(notice->id);
    if (!begin(tracer, notice->traceparent, id, &b) ||
        !tracer_wants(
            tracer, &b.context, now_us - g->gathered_at_us + waited_us > TRACER_SLOW_US)) {
        return;
    }
    trace_accept_span(id, b.context.span_id);
    const Request *request = &notice->request;
    const SpanAttribute attributes[] = {
        SPAN_STR("stentor.notification_id", id),
        SPAN_STR("stentor.tenant", notice->tenant),
        SPAN_CSTR("stentor.channel", channel_name(request->channel)),
        SPAN_CSTR("stentor.category", category_name(request->category)),
        SPAN_STR("stentor.template", request->template_key),
        SPAN_STR("stentor.batch_id", request->batch_id),
        SPAN_STR("stentor.correlation_id", request->correlation_id),
        SPAN_STR("stentor.source_event_type", request->source_event_type),
        SPAN_NUMBER("stentor.waited_ms", waited_us / 1000),
    };
    Span accept = {
        .name = "accept",
        .kind = SPAN_SERVER,
        .context = b.context,
        .started_at_us = g->accepted_at_us - waited_us,
        .ended_at_us = g->accepted_at_us + now_us - g->gathered_at_us,
        .attributes = attributes,
        .attribute_count = sizeof attributes / sizeof *attributes,
    };
    memcpy(accept.parent, b.parent, SPAN_ID_LEN);
    tracer_add(tracer, &accept);
    add_gate(tracer, g, notice, &b.context);
    if (b.called) {
        add_pointer(tracer, &accept, id);
    }
}

void accept_trace_group(Tracer *tracer, const Group *g)
{
    if (tracer == NULL) {
        return;
    }
    int64_t now_us = clock_mono_us();
    const Notice *notices = g->gate.notices;
    size_t n = 0;
    for (const Submission *s = g->first; s != NULL; s = s->next) {
        for (size_t i = 0; i < s->count; i++, n++) {
            if (g->parts[notices[n].part].accept_id != 0) {
                trace_notice(tracer, g, &notices[n], g->gathered_at_us - s->queued_at_us, now_us);
            }
        }
    }
    for (; n < g->gate.count; n++) { // copies for guardians
        if (g->parts[notices[n].part].accept_id != 0) {
            trace_notice(tracer, g, &notices[n], 0, now_us);
        }
    }
}
