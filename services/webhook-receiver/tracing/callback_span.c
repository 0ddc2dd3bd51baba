// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/tracing/callback_span.h"

#include <stdio.h>

#include "common/model/status.h"

static bool is_bad(Status status)
{
    return status == STATUS_BOUNCED || status == STATUS_COMPLAINED || status == STATUS_FAILED;
}

void callback_span(
    Tracer *tracer, const CallbackEvent *event, const CallbackOrigin *origin, Str cause_id,
    Str traceparent, int64_t now_us)
{
    if (tracer == NULL || event->notification_id.len == 0) {
        return;
    }
    char name[48];
    snprintf(name, sizeof name, "status %s", status_name(event->status));
    int64_t on_the_way_us = event->at_us > 0 ? origin->received_at_us - event->at_us : 0;
    const SpanAttribute attributes[] = {
        SPAN_CSTR("stentor.status", status_name(event->status)),
        SPAN_CSTR("stentor.reason_code", event->reason_code),
        SPAN_STR("stentor.vendor", origin->vendor),
        SPAN_STR("stentor.vendor_message_id", event->message_id),
        SPAN_STR("stentor.enhanced_code", event->enhanced_code),
        SPAN_NUMBER("stentor.attempt", event->attempt),
        SPAN_NUMBER("stentor.waited_ms", on_the_way_us > 0 ? on_the_way_us / 1000 : 0),
    };
    StageSpan stage = {
        .name = name,
        .kind = SPAN_CONSUMER,
        .traceparent = traceparent,
        .notification_id = event->notification_id,
        .tenant = origin->tenant,
        .event_id = cause_id,
        .started_at_us = origin->received_at_us,
        .ended_at_us = now_us,
        .failed = is_bad(event->status),
        .why = str_from(event->reason_code),
        .attributes = attributes,
        .attribute_count = sizeof attributes / sizeof *attributes,
    };
    trace_stage(tracer, NULL, &stage);
}
