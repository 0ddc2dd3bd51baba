// SPDX-License-Identifier: Apache-2.0
#include "services/order-saga/saga_trace.h"

#include <stdio.h>
#include <string.h>

#include "common/base/id.h"
#include "common/codec/hash.h"
#include "common/trace/span.h"

typedef struct Place {
    TraceContext context; // with the saga's own span
    uint8_t parent[SPAN_ID_LEN];
} Place;

static Place place_of(const Tracer *tracer, const SagaInput *input)
{
    Place place = {.parent = {0}};
    char text[128], event_id[EVENT_ID_SIZE];
    if (input->traceparent.len > 0 && trace_parse(input->traceparent, &place.context)) {
        memcpy(place.parent, place.context.span_id, SPAN_ID_LEN);
    } else {
        uint8_t hash[SHA256_LEN];
        snprintf(
            text, sizeof text, "order|" STR_FMT "|%s", STR_ARG(input->tenant),
            input->correlation_id);
        sha256(str_from(text), hash);
        memcpy(place.context.trace_id, hash, TRACE_ID_LEN);
        place.context.sampled = trace_sampled(tracer_sampler(tracer), place.context.trace_id);
    }
    event_id_derive("saga", input->message_id, str_from(input->correlation_id), event_id);
    trace_span_of_event(str_from(event_id), place.context.span_id);
    return place;
}

Str saga_traceparent(const Tracer *tracer, const SagaInput *cause, Arena *arena)
{
    if (tracer == NULL) {
        return cause->traceparent;
    }
    Place place = place_of(tracer, cause);
    if (!place.context.sampled) {
        return cause->traceparent;
    }
    char *text = arena_alloc(arena, TRACEPARENT_SIZE);
    trace_format(&place.context, text);
    return str_from(text);
}

void saga_span(Tracer *tracer, const Entry *entry, int64_t now_us)
{
    const SagaInput *input = entry->input;
    if (tracer == NULL || entry->times == 0) {
        return; // it was read from the table, and has its span
    }
    Place place = place_of(tracer, input);
    bool failed = entry->verdict == VERDICT_CONFLICT ||
                  (entry->verdict == VERDICT_APPLIED && entry->to == ORDER_FAILED);
    bool slow = now_us - input->received_at_us > TRACER_SLOW_US;
    if (!tracer_wants(tracer, &place.context, failed || slow)) {
        return;
    }
    char name[64];
    snprintf(name, sizeof name, "order " STR_FMT, STR_ARG(str_slice(input->type, 0, 48)));
    const SpanAttribute attributes[] = {
        SPAN_STR("stentor.tenant", input->tenant),
        SPAN_CSTR("stentor.correlation_id", input->correlation_id),
        SPAN_CSTR("stentor.order_id", entry->order->order_id),
        SPAN_STR("stentor.message_id", input->message_id),
        SPAN_CSTR("stentor.order.verdict", verdict_name(entry->verdict)),
        SPAN_CSTR("stentor.order.from", order_state_name(entry->from)),
        SPAN_CSTR("stentor.order.to", order_state_name(entry->to)),
        SPAN_CSTR("stentor.reason", entry->reason != NULL ? entry->reason : ""),
    };
    Span span = {
        .name = name,
        .kind = SPAN_CONSUMER,
        .context = place.context,
        .started_at_us = input->received_at_us,
        .ended_at_us = now_us,
        .failed = failed,
        .why = str_from(entry->reason != NULL ? entry->reason : "the order has failed"),
        .attributes = attributes,
        .attribute_count = sizeof attributes / sizeof *attributes,
    };
    memcpy(span.parent, place.parent, SPAN_ID_LEN);
    tracer_add(tracer, &span);
}
