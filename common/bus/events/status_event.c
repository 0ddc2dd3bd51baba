// SPDX-License-Identifier: Apache-2.0
#include "common/bus/events/status_event.h"

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"

enum { HEADERS = 7 };

static bool check_status(const Stentor__V1__NotificationStatus *status, Error *err)
{
    const Stentor__V1__Meta *meta = status->meta;
    if (meta == NULL || meta->event_id[0] == '\0') {
        return error_set(err, ERROR_PERMANENT, "status without meta.event_id");
    }
    if (!id_is_tenant(str_from(meta->tenant))) {
        return error_set(
            err, ERROR_PERMANENT, "status: meta.tenant '%.40s' is not a tenant id", meta->tenant);
    }
    if (channel_name((Channel)status->channel)[0] == '\0') {
        return error_set(
            err, ERROR_PERMANENT, "status: channel %d is unknown", (int)status->channel);
    }
    if (status_name((Status)status->status)[0] == '\0') {
        return error_set(err, ERROR_PERMANENT, "status: status %d is unknown", (int)status->status);
    }
    return true;
}

static Str join(Arena *arena, const char *before, const char *middle, const char *after)
{
    return str_from(arena_printf(arena, "%s%s%s", before, middle, after));
}

bool status_event(
    const Stentor__V1__NotificationStatus *status, Str traceparent, Arena *arena, BusOut *ret_out,
    Error *err)
{
    Str payload;
    if (!check_status(status, err) || !event_pack(&status->base, arena, &payload, err)) {
        return false;
    }
    const Stentor__V1__Meta *meta = status->meta;
    const char *name = status_name((Status)status->status);
    char *subject = arena_alloc(arena, SUBJECT_SIZE);
    char *time = arena_alloc(arena, CLOCK_RFC3339_SIZE);
    subject_status(
        subject, str_from(meta->tenant), (Channel)status->channel, (Status)status->status);
    clock_format(meta->occurred_at_us, time);
    BusHeader *headers = arena_array(arena, HEADERS, sizeof *headers);
    headers[0] = (BusHeader){"ce-specversion", STR("1.0")};
    headers[1] = (BusHeader){"ce-id", arena_str(arena, str_from(meta->event_id))};
    headers[2] = (BusHeader){"ce-source", join(arena, "/stentor/", meta->tenant, "")};
    headers[3] = (BusHeader){"ce-type", join(arena, "stentor.notification.", name, ".v1")};
    headers[4] = (BusHeader){"ce-time", str_from(time)};
    headers[5] = (BusHeader){"ce-subject", arena_str(arena, str_from(meta->notification_id))};
    headers[6] = (BusHeader){"content-type", STR("application/protobuf")};
    *ret_out = (BusOut){
        .subject = subject,
        .event_id = headers[1].value,
        .payload = payload,
        .traceparent = traceparent,
        .headers = headers,
        .header_count = HEADERS};
    return true;
}
