// SPDX-License-Identifier: Apache-2.0
#include "common/deadletter/dlq_end.h"

#include "common/bus/events/status_event.h"
#include "common/codec/hash.h"
#include "common/events/meta.h"
#include "common/events/status.h"
#include "common/model/status.h"
#include "stentor/v1/deferred.pb-c.h"

typedef Stentor__V1__NotificationRequest Request;
typedef Stentor__V1__Rendered Rendered;

// What a notification still waited for when it died; both NULL: the dead letter is about none.
typedef struct Work {
    const Request *request;
    const Rendered *rendered;
} Work;

static Work work_of(const ProtobufCMessage *event)
{
    if (event == NULL) {
        return (Work){0};
    }
    if (event->descriptor == &stentor__v1__notification_request__descriptor) {
        return (Work){.request = (const void *)event};
    }
    if (event->descriptor == &stentor__v1__rendered__descriptor) {
        return (Work){.rendered = (const void *)event};
    }
    if (event->descriptor == &stentor__v1__deferred__descriptor) {
        const Stentor__V1__Deferred *deferred = (const void *)event;
        switch (deferred->work_case) {
        case STENTOR__V1__DEFERRED__WORK_RENDERED:
            return (Work){.rendered = deferred->rendered};
        case STENTOR__V1__DEFERRED__WORK_REQUEST:
            return (Work){.request = deferred->request};
        default:
            break;
        }
    }
    return (Work){0};
}

static bool is_needed(const Letter *letter, const Stentor__V1__Meta *meta)
{
    return meta != NULL && id_is_tenant(str_from(meta->tenant)) &&
           id_parse(str_from(meta->notification_id), "ntf_", NULL) &&
           !str_eq(letter->stage, STR("archiver")) && // the stage itself goes on with the event
           !letter_end_reported(letter);
}

bool letter_end(const Letter *letter, Arena *arena, BusOut *ret, bool *ret_needed, Error *err)
{
    Work work = work_of(letter->body != NULL ? letter->event : NULL);
    const Stentor__V1__Meta *of = work.request != NULL    ? work.request->meta
                                  : work.rendered != NULL ? work.rendered->meta
                                                          : NULL;
    *ret_needed = is_needed(letter, of);
    if (!*ret_needed) {
        return true;
    }
    char *id = arena_alloc(arena, EVENT_ID_SIZE);
    uint32_t attempt = work.rendered != NULL ? work.rendered->attempt : 0;
    const char *place = arena_printf(arena, "%s/%u", status_name(STATUS_FAILED), attempt);
    event_id_derive("status", str_from(of->notification_id), str_from(place), id);
    const Stentor__V1__Meta *cause = letter->body->meta;
    MetaSpec head = {
        .event_id = id,
        .tenant = of->tenant,
        .notification_id = of->notification_id,
        .correlation_id = of->correlation_id,
        .causation_id = cause != NULL ? cause->event_id : "",
        .at_us = letter->stored_at_us,
    };
    Stentor__V1__Meta meta = meta_make(&head);
    StatusSpec spec = {&meta, STATUS_FAILED, "dropped", "an operator dropped its dead letter"};
    Stentor__V1__NotificationStatus status = work.request != NULL
                                                 ? status_of_request(&spec, work.request)
                                                 : status_of_rendered(&spec, work.rendered);
    return status_event(&status, letter->traceparent, arena, ret, err);
}
