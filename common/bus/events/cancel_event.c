// SPDX-License-Identifier: Apache-2.0
#include "common/bus/events/cancel_event.h"

#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/events/meta.h"
#include "stentor/v1/deferred.pb-c.h"

bool cancel_event(const CancelEvent *event, Arena *arena, BusOut *ret_out, Error *err)
{
    static char reason[] = "cancel";
    char *subject = arena_alloc(arena, SUBJECT_SIZE);
    char *event_id = arena_cstr(arena, event->event_id);
    MetaSpec head = {
        .event_id = event_id,
        .tenant = arena_cstr(arena, event->tenant),
        .causation_id = arena_cstr(arena, event->causation_id),
        .at_us = event->at_us,
    };
    Stentor__V1__Meta meta = meta_make(&head);
    Stentor__V1__Cancel cancel;
    stentor__v1__cancel__init(&cancel);
    cancel.cancel_key = arena_cstr(arena, event->cancel_key);
    cancel.before_us = event->before_us;
    if (event->newer_event_id.len > 0) {
        // A digest-flusher of the version before compares the time in notifications' ids, in
        // milliseconds: of the newer event's own it must not be the later one.
        cancel.newer_at_us = event->before_us;
        cancel.before_us = event->before_us / 1000 * 1000;
    }
    cancel.reason = arena_cstr(arena, str_from(event->reason));
    cancel.newer_event_id = arena_cstr(arena, event->newer_event_id);
    Stentor__V1__Deferred deferred;
    stentor__v1__deferred__init(&deferred);
    deferred.meta = &meta;
    deferred.reason = reason;
    deferred.due_at_us = event->at_us;
    deferred.cancel_key = cancel.cancel_key;
    deferred.work_case = STENTOR__V1__DEFERRED__WORK_CANCEL;
    deferred.cancel = &cancel;
    subject_deferred(subject, reason, event->tenant);
    *ret_out = (BusOut){
        .subject = subject,
        .event_id = str_from(event_id),
        .traceparent = event->traceparent,
    };
    return event_pack(&deferred.base, arena, &ret_out->payload, err);
}
