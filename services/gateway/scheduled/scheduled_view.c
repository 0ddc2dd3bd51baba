// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/scheduled/scheduled_view.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/codec/event.h"
#include "common/model/enums.h"
#include "stentor/v1/request.pb-c.h"

typedef Stentor__V1__NotificationRequest Request;

static void set_text(json_t *object, const char *name, Str value)
{
    if (value.len > 0) {
        (void)json_object_set_new(object, name, json_stringn(value.ptr, value.len));
    }
}

static void set_time(json_t *object, const char *name, int64_t at_us)
{
    if (at_us > 0) {
        char text[CLOCK_RFC3339_SIZE];
        clock_format(at_us, text);
        (void)json_object_set_new(object, name, json_string(text));
    }
}

// "<trigger key>/<subject>"
static Str subject_of(const Request *request)
{
    const char *slash = strchr(request->cancel_key, '/');
    return slash == NULL ? STR_EMPTY : str_from(slash + 1);
}

static void add_request(json_t *object, const Request *request)
{
    set_text(object, "template", str_from(request->template_));
    set_text(object, "template_version", str_from(request->template_version));
    set_text(object, "priority", str_from(priority_name((Priority)request->priority)));
    set_text(object, "trigger", str_from(request->trigger_key));
    set_text(object, "subject", subject_of(request));
    set_text(object, "source_event_id", str_from(request->source_event_id));
    set_time(object, "source_event_at", request->source_event_at_us);
    set_text(object, "batch_id", str_from(request->batch_id));
    set_time(object, "accepted_at", request->accepted_at_us);
    set_time(object, "expires_at", request->expires_at_us);
    if (request->meta != NULL) {
        set_text(object, "correlation_id", str_from(request->meta->correlation_id));
    }
}

json_t *scheduled_view(const ScheduledRow *row, Arena *arena)
{
    json_t *object = json_object();
    set_text(object, "id", row->id);
    set_text(object, "reason", row->reason);
    set_time(object, "due_at", row->due_at_us);
    (void)json_object_set_new(object, "cancellable", json_boolean(row->cancellable));
    set_text(object, "channel", row->channel);
    set_text(object, "category", row->category);
    set_text(object, "recipient_id", row->recipient_id);
    set_text(object, "digest_window_id", row->window_id);
    if (row->attempt > 0) {
        (void)json_object_set_new(object, "attempt", json_integer(row->attempt));
    }
    const Request *request =
        row->request.len == 0
            ? NULL
            : (const Request *)event_unpack(
                  &stentor__v1__notification_request__descriptor, row->request, arena, NULL);
    if (request != NULL) {
        add_request(object, request);
    }
    return object;
}
