// SPDX-License-Identifier: Apache-2.0
#include "common/base/clock.h"
#include "common/events/meta.h"
#include "services/renderer/renderer_internal.h"

void render_resume(Tracer *tracer, Delivery *delivery, const Request *request)
{
    BusMessage *message = &delivery->message;
    TraceWait wait = {
        .traceparent = meta_trace(request->meta, message->traceparent),
        .notification_id = str_from(request->meta->notification_id),
        .tenant = str_from(request->meta->tenant),
        .event_id = message->event_id,
        .since_us = request->meta->occurred_at_us,
        .until_us = message->stored_at_us,
    };
    message->traceparent = trace_resume(tracer, &wait, delivery->arena);
}

void render_trace(Tracer *tracer, TraceBatch *batch, const RenderSpan *span)
{
    if (tracer == NULL) {
        return;
    }
    const Request *request = span->request;
    const BusMessage *message = &span->delivery->message;
    const SpanAttribute attributes[] = {
        SPAN_CSTR("stentor.channel", channel_name((Channel)request->channel)),
        SPAN_CSTR("stentor.template", request->template_),
        SPAN_CSTR("stentor.template_version", request->template_version),
        SPAN_CSTR(
            "stentor.reason_code",
            span->failure->code == FAILURE_NONE ? "" : failure_code_name(span->failure->code)),
        SPAN_CSTR("messaging.destination.name", message->stream),
        SPAN_NUMBER("stentor.waited_ms", (span->started_at_us - message->stored_at_us) / 1000),
    };
    StageSpan stage = {
        .name = "render",
        .kind = SPAN_INTERNAL,
        .traceparent = message->traceparent,
        .notification_id = str_from(request->meta->notification_id),
        .tenant = str_from(request->meta->tenant),
        .event_id = span->out != NULL ? span->out->event_id : message->event_id,
        .started_at_us = span->started_at_us,
        .ended_at_us = clock_now_us(),
        .accepted_at_us = request->accepted_at_us,
        .failed = span->failure->code != FAILURE_NONE,
        .why = str_from(
            span->failure->code != FAILURE_NONE ? failure_code_name(span->failure->code) : ""),
        .attributes = attributes,
        .attribute_count = sizeof attributes / sizeof *attributes,
    };
    trace_stage(tracer, batch, &stage);
}
