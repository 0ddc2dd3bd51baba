// SPDX-License-Identifier: Apache-2.0
#include "services/digest-flusher/told.h"

#include "common/bus/events/status_event.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/model/enums.h"
#include "stentor/v1/request.pb-c.h"

typedef Stentor__V1__NotificationRequest Request;

static void fill_meta(
    const Told *told, const Request *request, Arena *arena, Stentor__V1__Meta *meta)
{
    const Stentor__V1__Meta *cause = request->meta;
    stentor__v1__meta__init(meta);
    char *id = arena_alloc(arena, EVENT_ID_SIZE);
    Str discriminator = str_from(arena_printf(arena, STR_FMT "/0", STR_ARG(told->status)));
    event_id_derive("status", str_from(cause->notification_id), discriminator, id);
    meta->event_id = id;
    meta->tenant = cause->tenant;
    meta->notification_id = cause->notification_id;
    meta->correlation_id = cause->correlation_id;
    meta->causation_id = cause->event_id;
    meta->occurred_at_us = told->at_us;
}

static void fill_status(
    const Told *told, const Request *request, Arena *arena, Stentor__V1__NotificationStatus *status)
{
    status->channel = request->channel;
    status->category = request->category;
    status->priority = request->priority;
    status->reason_code = arena_cstr(arena, told->reason_code);
    status->reason = arena_cstr(arena, told->detail);
    status->template_ = request->template_;
    status->template_version = request->template_version;
    status->recipient_id = request->recipient_id;
    status->address_hash = request->address_hash;
    status->accepted_at_us = request->accepted_at_us;
    status->scheduled_for_us = request->scheduled_for_us;
    status->batch_id = request->batch_id;
    status->resends = request->resends;
    status->digest_window_id = arena_cstr(arena, told->window_id);
}

bool told_event(const Told *told, Arena *arena, BusOut *ret_out, Error *err)
{
    const Request *request = (const Request *)event_unpack(
        &stentor__v1__notification_request__descriptor, told->payload, arena, err);
    Status value = STATUS_NONE;
    if (request == NULL) {
        return false;
    }
    if (request->meta == NULL || !status_from_name(told->status, &value)) {
        return error_set(
            err, ERROR_PERMANENT, "work with status '" STR_FMT "' cannot be told",
            STR_ARG(told->status));
    }
    Stentor__V1__Meta meta;
    Stentor__V1__NotificationStatus status;
    stentor__v1__notification_status__init(&status);
    fill_meta(told, request, arena, &meta);
    fill_status(told, request, arena, &status);
    status.meta = &meta;
    status.status = (Stentor__V1__Status)value;
    return status_event(&status, STR_EMPTY, arena, ret_out, err);
}
