// SPDX-License-Identifier: Apache-2.0
#include "services/digest-flusher/status_emit.h"

#include "common/bus/events/status_event.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/events/meta.h"
#include "common/events/status.h"
#include "common/model/enums.h"
#include "stentor/v1/request.pb-c.h"

typedef Stentor__V1__NotificationRequest Request;

bool status_emit(const StatusEmit *emit, Arena *arena, BusOut *ret_out, Error *err)
{
    const Request *request = (const Request *)event_unpack(
        &stentor__v1__notification_request__descriptor, emit->payload, arena, err);
    Status value = STATUS_NONE;
    if (request == NULL) {
        return false;
    }
    if (request->meta == NULL || !status_from_name(emit->status, &value)) {
        return error_set(
            err, ERROR_PERMANENT, "work with status '" STR_FMT "' cannot be published",
            STR_ARG(emit->status));
    }
    char id[EVENT_ID_SIZE];
    Str discriminator = str_from(arena_printf(arena, STR_FMT "/0", STR_ARG(emit->status)));
    event_id_derive("status", str_from(request->meta->notification_id), discriminator, id);
    Stentor__V1__Meta meta = meta_follow(request->meta, id, emit->at_us);
    StatusSpec spec = {
        .meta = &meta,
        .status = value,
        .reason_code = arena_cstr(arena, emit->reason_code),
        .reason = arena_cstr(arena, emit->detail),
    };
    Stentor__V1__NotificationStatus status = status_of_request(&spec, request);
    status.digest_window_id = arena_cstr(arena, emit->window_id);
    Str traceparent = meta_trace(request->meta, STR_EMPTY);
    return status_event(&status, traceparent, arena, ret_out, err);
}
