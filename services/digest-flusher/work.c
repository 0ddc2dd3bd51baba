// SPDX-License-Identifier: Apache-2.0
#include "services/digest-flusher/work.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "stentor/v1/deferred.pb-c.h"

typedef Stentor__V1__Deferred Deferred;
typedef Stentor__V1__Meta Meta;

static const int64_t time_max_us = INT64_C(253402300800000000); // 10000-01-01

static bool read_meta(const Deferred *deferred, DueWork *work, Error *err)
{
    const Meta *meta = deferred->meta;
    if (meta == NULL) {
        return error_set(err, ERROR_PERMANENT, "meta is missing");
    }
    work->work_id = str_from(meta->event_id);
    work->tenant = str_from(meta->tenant);
    work->notification_id = str_from(meta->notification_id);
    work->reason = str_from(deferred->reason);
    work->due_at_us = deferred->due_at_us;
    if (work->work_id.len != EVENT_ID_LEN) {
        return error_set(err, ERROR_PERMANENT, "meta.event_id is not an event id");
    }
    if (!id_is_tenant(work->tenant)) {
        return error_set(err, ERROR_PERMANENT, "meta.tenant is not a tenant id");
    }
    if (!id_parse(work->notification_id, "ntf_", NULL)) {
        return error_set(err, ERROR_PERMANENT, "meta.notification_id is not a notification id");
    }
    if (work->due_at_us <= 0 || work->due_at_us >= time_max_us) {
        return error_set(err, ERROR_PERMANENT, "due_at_us is outside 1970..9999");
    }
    return true;
}

// What is embedded has to be about the same notification, on a lane that exists.
static bool check_embedded(
    const Meta *meta, unsigned priority, const DueWork *work, const char *field, Error *err)
{
    if (meta == NULL) {
        return error_set(err, ERROR_PERMANENT, "%s.meta is missing", field);
    }
    if (!str_eq(str_from(meta->tenant), work->tenant) ||
        !str_eq(str_from(meta->notification_id), work->notification_id)) {
        return error_set(err, ERROR_PERMANENT, "%s.meta is about another notification", field);
    }
    if (priority == PRIORITY_NONE || priority >= PRIORITY_COUNT) {
        return error_set(err, ERROR_PERMANENT, "%s.priority %u is unknown", field, priority);
    }
    return true;
}

static bool read_request(const Deferred *deferred, Arena *arena, DueWork *work, Error *err)
{
    if (deferred->work_case != STENTOR__V1__DEFERRED__WORK_REQUEST) {
        return error_set(err, ERROR_PERMANENT, "reason is 'schedule', and request is missing");
    }
    const Stentor__V1__NotificationRequest *request = deferred->request;
    if (!check_embedded(request->meta, (unsigned)request->priority, work, "request", err)) {
        return false;
    }
    Str event_id = str_from(request->meta->event_id);
    if (event_id.len != EVENT_ID_LEN ||
        !str_to_c(event_id, work->event_id, sizeof(work->event_id))) {
        return error_set(err, ERROR_PERMANENT, "request.meta.event_id is not an event id");
    }
    subject_request(work->subject, (Priority)request->priority, work->tenant);
    return event_pack(&request->base, arena, &work->payload, err);
}

static bool read_rendered(const Deferred *deferred, Arena *arena, DueWork *work, Error *err)
{
    if (deferred->work_case != STENTOR__V1__DEFERRED__WORK_RENDERED) {
        return error_set(err, ERROR_PERMANENT, "reason is 'retry', and rendered is missing");
    }
    Stentor__V1__Rendered *rendered = deferred->rendered;
    if (!check_embedded(rendered->meta, (unsigned)rendered->priority, work, "rendered", err)) {
        return false;
    }
    if (rendered->attempt == 0) {
        return error_set(err, ERROR_PERMANENT, "rendered.attempt is 0");
    }
    char attempt[12];
    snprintf(attempt, sizeof(attempt), "%" PRIu32, rendered->attempt);
    event_id_derive("rendered", work->notification_id, str_from(attempt), work->event_id);
    rendered->meta->event_id =
        work->event_id; // packed below: a message and its header have the same id
    subject_rendered(work->subject, (Priority)rendered->priority, work->tenant);
    return event_pack(&rendered->base, arena, &work->payload, err);
}

bool due_work_read(Str payload, Arena *arena, DueWork *ret_work, Error *err)
{
    ProtobufCMessage *message =
        event_unpack(&stentor__v1__deferred__descriptor, payload, arena, err);
    if (message == NULL) {
        return false;
    }
    const Deferred *deferred = (const Deferred *)message;
    DueWork work = {0};
    if (!read_meta(deferred, &work, err)) {
        return false;
    }
    bool read = false;
    if (str_eq(work.reason, STR("schedule"))) {
        read = read_request(deferred, arena, &work, err);
    } else if (str_eq(work.reason, STR("retry"))) {
        read = read_rendered(deferred, arena, &work, err);
    } else {
        error_set(err, ERROR_PERMANENT, "reason '%.32s' is unknown", deferred->reason);
    }
    if (read) {
        *ret_work = work;
    }
    return read;
}
