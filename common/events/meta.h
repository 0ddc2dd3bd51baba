// SPDX-License-Identifier: Apache-2.0
// The head of every event. The only place that fills a Meta (tests/lint), so that what an event
// says of its cause is decided once.
#pragma once

#include "common/codec/event.h"
#include "stentor/v1/common.pb-c.h"

// Absent strings are NULL or "". The strings are borrowed and must live as long as the meta.
typedef struct MetaSpec {
    const char *event_id;
    const char *tenant;
    const char *notification_id;
    const char *correlation_id;
    const char *causation_id; // event_id of the cause
    int64_t at_us;
} MetaSpec;

Stentor__V1__Meta meta_make(const MetaSpec *spec);

// The head of an event that another one causes: the same tenant, notification and correlation.
Stentor__V1__Meta meta_follow(const Stentor__V1__Meta *cause, const char *event_id, int64_t at_us);

// For an event that waits inside another one, where it has no header of its own.
void meta_keep_trace(Stentor__V1__Meta *meta, Str traceparent, Arena *arena);
// The header, or without one what the event kept while it waited. meta: NULL is allowed.
Str meta_trace(const Stentor__V1__Meta *meta, Str header);

// The head of any event that has one; NULL: its type has none, or it is missing.
const Stentor__V1__Meta *event_meta(const ProtobufCMessage *event);
