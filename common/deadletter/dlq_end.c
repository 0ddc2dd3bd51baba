// SPDX-License-Identifier: Apache-2.0
#include "common/deadletter/dlq_end.h"

#include "common/bus/events/status_event.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/model/status.h"
#include "stentor/v1/deferred.pb-c.h"

typedef Stentor__V1__NotificationRequest Request;
typedef Stentor__V1__Rendered Rendered;
typedef Stentor__V1__NotificationStatus StatusEvent;

static char *text_of(const char *text)
{
    return (char *)(uintptr_t)text; // strings of events are char * though nobody writes to them
}

static void describe_request(const Request *request, StatusEvent *event)
{
    event->meta = request->meta;
    event->channel = request->channel;
    event->category = request->category;
    event->priority = request->priority;
    event->template_ = request->template_;
    event->template_version = request->template_version;
    event->recipient_id = request->recipient_id;
    event->address_hash = request->address_hash;
    event->accepted_at_us = request->accepted_at_us;
    event->scheduled_for_us = request->scheduled_for_us;
    event->resends = request->resends;
}

static uint32_t describe_rendered(const Rendered *rendered, StatusEvent *event)
{
    event->meta = rendered->meta;
    event->channel = rendered->channel;
    event->category = rendered->category;
    event->priority = rendered->priority;
    event->template_ = rendered->template_;
    event->template_version = rendered->template_version;
    event->recipient_id = rendered->recipient_id;
    event->address_hash = rendered->address_hash;
    event->accepted_at_us = rendered->accepted_at_us;
    event->rendered_at_us = rendered->rendered_at_us;
    event->content_checksum = rendered->content_checksum;
    event->resends = rendered->resends;
    return rendered->attempt;
}

// event->meta stays NULL: about no notification. Returns the attempt that the letter ended.
static uint32_t describe(const ProtobufCMessage *work, StatusEvent *event)
{
    if (work == NULL) {
        return 0;
    }
    if (work->descriptor == &stentor__v1__notification_request__descriptor) {
        describe_request((const Request *)(const void *)work, event);
    } else if (work->descriptor == &stentor__v1__rendered__descriptor) {
        return describe_rendered((const Rendered *)(const void *)work, event);
    } else if (work->descriptor == &stentor__v1__deferred__descriptor) {
        const Stentor__V1__Deferred *deferred = (const void *)work;
        return deferred->work_case == STENTOR__V1__DEFERRED__WORK_RENDERED
                   ? describe(&deferred->rendered->base, event)
               : deferred->work_case == STENTOR__V1__DEFERRED__WORK_REQUEST
                   ? describe(&deferred->request->base, event)
                   : 0;
    }
    return 0;
}

static bool is_needed(const Letter *letter, const StatusEvent *event)
{
    return event->meta != NULL && id_is_tenant(str_from(event->meta->tenant)) &&
           id_parse(str_from(event->meta->notification_id), "ntf_", NULL) &&
           !str_eq(letter->stage, STR("history")) && // the stage itself goes on with the event
           !letter_told_end(letter);
}

bool letter_end(const Letter *letter, Arena *arena, BusOut *ret, bool *ret_needed, Error *err)
{
    StatusEvent event;
    stentor__v1__notification_status__init(&event);
    uint32_t attempt = letter->body != NULL ? describe(letter->event, &event) : 0;
    *ret_needed = letter->body != NULL && is_needed(letter, &event);
    if (!*ret_needed) {
        return true;
    }
    Stentor__V1__Meta meta;
    stentor__v1__meta__init(&meta);
    char *id = arena_alloc(arena, EVENT_ID_SIZE);
    const char *place = arena_printf(arena, "%s/%u", status_name(STATUS_FAILED), attempt);
    event_id_derive("status", str_from(event.meta->notification_id), str_from(place), id);
    meta.event_id = id;
    meta.tenant = event.meta->tenant;
    meta.notification_id = event.meta->notification_id;
    meta.correlation_id = event.meta->correlation_id;
    meta.causation_id = letter->body->meta != NULL ? letter->body->meta->event_id : text_of("");
    meta.occurred_at_us = letter->stored_at_us;
    event.meta = &meta;
    event.status = STENTOR__V1__STATUS__STATUS_FAILED;
    event.reason_code = text_of("dropped");
    event.reason = text_of("a person dropped its dead letter");
    return status_event(&event, letter->traceparent, arena, ret, err);
}
