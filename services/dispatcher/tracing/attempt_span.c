// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/tracing/attempt_span.h"

#include <stdio.h>

#include "common/base/id.h"
#include "common/base/log.h"
#include "common/codec/hash.h"
#include "common/events/meta.h"

void attempt_resume(Tracer *tracer, const Job *job)
{
    BusMessage *message = &job->delivery->message;
    const Stentor__V1__Meta *meta = job->rendered->meta;
    TraceWait wait = {
        .traceparent = meta_trace(meta, message->traceparent),
        .notification_id = job->key->notification_id,
        .tenant = job->key->tenant,
        .event_id = message->event_id,
        .since_us = meta->occurred_at_us,
        .until_us = message->stored_at_us,
    };
    message->traceparent = trace_resume(tracer, &wait, job->delivery->arena);
}

const char *attempt_trace(const Tracer *tracer, const Job *job, char out[ATTEMPT_TRACE_SIZE])
{
    TraceContext context;
    if (tracer == NULL ||
        !trace_of_message(
            tracer_sampler(tracer), job->delivery->message.traceparent, job->key->notification_id,
            &context) ||
        !context.sampled) {
        return NULL;
    }
    hex_encode(context.trace_id, TRACE_ID_LEN, out);
    return out;
}

static bool has_failed(const LedgerRow *row)
{
    return row->state == LEDGER_FAILED || row->state == LEDGER_DEFERRED ||
           row->state == LEDGER_PARKED;
}

static void add(Tracer *tracer, const Job *job, StageSpan *stage)
{
    const LedgerRow *row = &job->row;
    const Stentor__V1__Rendered *rendered = job->rendered;
    const BusMessage *message = &job->delivery->message;
    int64_t due_us = rendered->due_at_us > 0 ? rendered->due_at_us : message->stored_at_us;
    int64_t waited_us = row->claimed_at_us - due_us;
    const SpanAttribute attributes[] = {
        SPAN_CSTR("server.address", job->mail.server),
        SPAN_STR("stentor.vendor", row->vendor),
        SPAN_STR("stentor.credential", row->credential),
        SPAN_CSTR("stentor.route", job->route.routed ? job->route.name : rendered->route),
        SPAN_CSTR("stentor.channel", channel_name((Channel)rendered->channel)),
        SPAN_NUMBER("stentor.attempt", job->row_key->attempt),
        SPAN_CSTR("stentor.outcome", ledger_state_name(row->state)),
        SPAN_STR("stentor.code", row->code),
        SPAN_STR("stentor.enhanced_code", row->enhanced),
        SPAN_STR("stentor.vendor_message_id", row->vendor_message_id),
        SPAN_STR("stentor.next_step", row->next_step),
        SPAN_NUMBER("stentor.unknown_count", row->unknown_count),
        SPAN_NUMBER("stentor.waited_ms", waited_us > 0 ? waited_us / 1000 : 0),
        SPAN_CSTR("messaging.destination.name", message->stream),
    };
    stage->attributes = attributes;
    stage->attribute_count = sizeof attributes / sizeof *attributes;
    trace_stage(tracer, NULL, stage);
}

void attempt_span(Tracer *tracer, const Job *job)
{
    if (tracer == NULL) {
        return;
    }
    const LedgerRow *row = &job->row;
    const LedgerKey *key = job->row_key;
    char name[32], number[16], event_id[EVENT_ID_SIZE], why[JOB_REPLY_MAX];
    snprintf(name, sizeof name, "attempt %d", key->attempt);
    snprintf(number, sizeof number, "%d", key->attempt);
    event_id_derive("attempt", key->notification_id, str_from(number), event_id);
    mask_addresses(row->reply, why, sizeof why);
    StageSpan stage = {
        .name = name,
        .kind = row->vendor.len > 0 ? SPAN_CLIENT : SPAN_INTERNAL,
        .traceparent = job->delivery->message.traceparent,
        .notification_id = key->notification_id,
        .tenant = key->tenant,
        .event_id = str_from(event_id),
        .started_at_us = row->claimed_at_us,
        .ended_at_us = row->finished_at_us,
        .accepted_at_us = job->rendered->accepted_at_us,
        .failed = has_failed(row),
        .keep = key->attempt > 1 || row->unknown_count > 0,
        .why = str_from(why),
    };
    add(tracer, job, &stage);
}
