// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/subscriptions/delivery_view.h"

#include "common/base/clock.h"

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

// The last attempt that has ended; NULL: none has.
static json_t *last_attempt(const DeliveryRow *row)
{
    if (row->finished_at_us == 0) {
        return NULL;
    }
    json_t *last = json_object();
    set_time(last, "finished_at", row->finished_at_us);
    if (row->status_code > 0) {
        (void)json_object_set_new(last, "status_code", json_integer(row->status_code));
    }
    set_text(last, "error", row->error);
    (void)json_object_set_new(last, "duration_ms", json_integer(row->duration_ms));
    set_text(last, "response", row->response);
    return last;
}

json_t *delivery_view(const DeliveryRow *row)
{
    json_t *object = json_object();
    set_text(object, "id", row->id);
    set_text(object, "subscription_id", row->subscription_id);
    set_text(object, "webhook_id", row->event_id);
    set_text(object, "event", row->type);
    set_text(object, "notification_id", row->notification_id);
    set_text(object, "state", row->state);
    set_time(object, "created_at", row->created_at_us);
    (void)json_object_set_new(object, "attempts", json_integer(row->attempts));
    json_t *last = last_attempt(row);
    if (last != NULL) {
        (void)json_object_set_new(object, "last_attempt", last);
    }
    set_time(object, "next_attempt_at", row->next_attempt_at_us);
    return object;
}

json_t *delivery_view_whole(const DeliveryRow *row)
{
    json_error_t ignored;
    json_t *object = delivery_view(row);
    json_t *payload = json_loadb(row->payload.ptr, row->payload.len, 0, &ignored);
    if (payload != NULL) {
        (void)json_object_set_new(object, "payload", payload);
    }
    return object;
}
