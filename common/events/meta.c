// SPDX-License-Identifier: Apache-2.0
#include "common/events/meta.h"

Stentor__V1__Meta meta_make(const MetaSpec *spec)
{
    Stentor__V1__Meta meta;
    stentor__v1__meta__init(&meta);
    meta.event_id = pb_borrow(spec->event_id);
    meta.tenant = pb_borrow(spec->tenant);
    meta.notification_id = pb_borrow(spec->notification_id);
    meta.correlation_id = pb_borrow(spec->correlation_id);
    meta.causation_id = pb_borrow(spec->causation_id);
    meta.occurred_at_us = spec->at_us;
    return meta;
}

Stentor__V1__Meta meta_follow(const Stentor__V1__Meta *cause, const char *event_id, int64_t at_us)
{
    MetaSpec spec = {
        .event_id = event_id,
        .tenant = cause->tenant,
        .notification_id = cause->notification_id,
        .correlation_id = cause->correlation_id,
        .causation_id = cause->event_id,
        .at_us = at_us,
    };
    return meta_make(&spec);
}

void meta_keep_trace(Stentor__V1__Meta *meta, Str traceparent, Arena *arena)
{
    meta->traceparent = pb_text(arena, traceparent);
}

Str meta_trace(const Stentor__V1__Meta *meta, Str header)
{
    return header.len > 0 || meta == NULL ? header : str_from(meta->traceparent);
}

const Stentor__V1__Meta *event_meta(const ProtobufCMessage *event)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(event->descriptor, "meta");
    return field == NULL ? NULL
                         : *(const Stentor__V1__Meta *const
                                 *)(const void *)((const char *)event + field->offset);
}
