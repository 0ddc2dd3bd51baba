// SPDX-License-Identifier: Apache-2.0
#include "common/webhooks/webhook_event.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/config/webhook_subscription.h"
#include "common/events/meta.h"

typedef Stentor__V1__NotificationStatus NotificationStatus;
typedef Stentor__V1__WebhookDelivery WebhookDelivery;

// ---- which subscriptions ----

void webhook_type(const NotificationStatus *status, char out[WEBHOOK_TYPE_SIZE])
{
    const char *name = status_name((Status)status->status);
    (void)snprintf(out, WEBHOOK_TYPE_SIZE, "%s%s", name[0] != '\0' ? "notification." : "", name);
}

static bool wants_event(const Stentor__V1__WebhookSubscription *subscription, Str type)
{
    for (size_t i = 0; i < subscription->n_events; i++) {
        Str event = str_from(subscription->events[i]);
        bool all = str_eq(event, STR("*")) || str_eq(event, STR("notification.*"));
        if (all || str_eq(event, type)) {
            return true;
        }
    }
    return subscription->n_events == 0;
}

static bool wants_channel(const Stentor__V1__WebhookSubscription *subscription, int channel)
{
    for (size_t i = 0; i < subscription->n_channels; i++) {
        if ((int)subscription->channels[i] == channel) {
            return true;
        }
    }
    return subscription->n_channels == 0;
}

static bool wants_category(const Stentor__V1__WebhookSubscription *subscription, Category category)
{
    for (size_t i = 0; i < subscription->n_categories; i++) {
        if (category != CATEGORY_NONE && (Category)subscription->categories[i] == category) {
            return true;
        }
    }
    return subscription->n_categories == 0;
}

bool webhook_wants(
    const Stentor__V1__WebhookSubscription *subscription, const NotificationStatus *status,
    const char *type, Category category)
{
    return webhook_is_active(subscription) && type[0] != '\0' &&
           wants_event(subscription, str_from(type)) &&
           wants_channel(subscription, (int)status->channel) &&
           wants_category(subscription, category);
}

// ---- the body ----

static void put_text(Buf *out, const char *name, const char *value)
{
    if (value != NULL && value[0] != '\0') {
        buf_printf(out, ",\"%s\":", name);
        buf_json(out, str_from(value));
    }
}

static void put_number(Buf *out, const char *name, uint64_t value)
{
    if (value != 0) {
        buf_printf(out, ",\"%s\":%" PRIu64, name, value);
    }
}

static void put_time(Buf *out, const char *name, int64_t at_us)
{
    char text[CLOCK_RFC3339_SIZE];
    if (at_us > 0) {
        clock_format(at_us, text);
        put_text(out, name, text);
    }
}

static void put_attempt(Buf *out, const Stentor__V1__Attempt *attempt, bool texts)
{
    if (attempt == NULL) {
        return;
    }
    buf_printf(out, ",\"attempt\":{\"number\":%" PRIu32, attempt->number);
    put_text(out, "id", attempt->attempt_id);
    put_text(out, "vendor", attempt->vendor);
    put_text(out, "vendor_message_id", attempt->vendor_message_id);
    put_text(out, "outcome", outcome_name((Outcome)attempt->outcome));
    put_text(out, "code", attempt->code);
    put_text(out, "enhanced_code", attempt->enhanced_code);
    put_text(out, "text", texts ? attempt->text : NULL);
    put_time(out, "finished_at", attempt->finished_at_us);
    put_number(out, "link", attempt->link);
    if (attempt->machine) {
        buf_cstr(out, ",\"machine\":true");
    }
    buf_char(out, '}');
}

static void put_place(Buf *out, const WebhookPlace *place)
{
    if (place->sequence > 0) {
        put_number(out, "sequence", place->sequence);
        buf_cstr(out, ",\"previous_id\":");
        if (place->previous.len > 0) {
            buf_json(out, place->previous);
        } else {
            buf_cstr(out, "null");
        }
    }
}

static void put_data(
    Buf *out, const NotificationStatus *status, const WebhookPlace *place, bool texts)
{
    const Stentor__V1__Meta *meta = status->meta;
    buf_cstr(out, "{\"id\":");
    buf_json(out, str_from(meta->notification_id));
    put_text(out, "tenant", meta->tenant);
    put_text(out, "status", status_name((Status)status->status));
    put_text(out, "channel", channel_name((Channel)status->channel));
    put_text(out, "category", category_name((Category)status->category));
    put_text(out, "priority", priority_name((Priority)status->priority));
    put_text(out, "reason_code", status->reason_code);
    put_text(out, "reason", texts ? status->reason : NULL);
    put_text(out, "template", status->template_);
    put_text(out, "template_version", status->template_version);
    put_text(out, "recipient_id", status->recipient_id);
    put_text(out, "correlation_id", meta->correlation_id);
    put_text(out, "batch_id", status->batch_id);
    put_text(out, "digest_window_id", status->digest_window_id);
    put_time(out, "accepted_at", status->accepted_at_us);
    put_time(out, "scheduled_for", status->scheduled_for_us);
    put_number(out, "resends", status->resends);
    put_attempt(out, status->attempt, texts);
    put_place(out, place);
    buf_char(out, '}');
}

static Str write_payload(
    const NotificationStatus *status, const WebhookPlace *place, bool texts, Arena *arena)
{
    char type[WEBHOOK_TYPE_SIZE], at[CLOCK_RFC3339_SIZE];
    Buf out;
    webhook_type(status, type);
    clock_format(status->meta->occurred_at_us, at);
    buf_init(&out, WEBHOOK_PAYLOAD_MAX);
    buf_printf(&out, "{\"type\":\"%s\",\"timestamp\":\"%s\",\"data\":", type, at);
    put_data(&out, status, place, texts);
    buf_char(&out, '}');
    Str payload = out.full ? STR_EMPTY : arena_str(arena, buf_view(&out));
    buf_done(&out);
    return payload;
}

Str webhook_payload(const NotificationStatus *status, const WebhookPlace *place, Arena *arena)
{
    Str whole = write_payload(status, place, true, arena);
    return whole.len > 0 ? whole : write_payload(status, place, false, arena);
}

// ---- the event ----

void webhook_delivery_id(Str subscription_id, Str webhook_id, char out[WEBHOOK_DELIVERY_ID_SIZE])
{
    char id[EVENT_ID_SIZE];
    event_id_derive("webhook", subscription_id, webhook_id, id);
    (void)snprintf(out, WEBHOOK_DELIVERY_ID_SIZE, "whd_%s", id);
}

static void derive(const char *stage, const WebhookDelivery *delivery, char out[EVENT_ID_SIZE])
{
    char turn[16];
    (void)snprintf(turn, sizeof turn, "%" PRIu32, delivery->turn);
    event_id_derive(stage, str_from(delivery->delivery_id), str_from(turn), out);
}

static void set_id(WebhookDelivery *delivery, Arena *arena)
{
    char id[EVENT_ID_SIZE];
    derive(delivery->gone ? "hook_gone" : "hook", delivery, id);
    delivery->meta->event_id = arena_cstr(arena, str_from(id));
}

bool webhook_event(
    WebhookDelivery *delivery, Str traceparent, Arena *arena, BusOut *ret, Error *err)
{
    char subject[SUBJECT_SIZE];
    BusOut out = {.traceparent = traceparent};
    set_id(delivery, arena);
    subject_hook(subject, str_from(delivery->meta->tenant));
    out.subject = arena_cstr(arena, str_from(subject));
    out.event_id = str_from(delivery->meta->event_id);
    if (!event_pack(&delivery->base, arena, &out.payload, err)) {
        return false;
    }
    *ret = out;
    return true;
}

bool webhook_deferred(
    WebhookDelivery *delivery, int64_t due_at_us, const char *why, Str traceparent, Arena *arena,
    BusOut *ret, Error *err)
{
    char id[EVENT_ID_SIZE], subject[SUBJECT_SIZE];
    BusOut out = {.traceparent = traceparent};
    delivery->turn++;
    set_id(delivery, arena);
    derive("deferred", delivery, id);
    Stentor__V1__Deferred event;
    stentor__v1__deferred__init(&event);
    Stentor__V1__Meta meta = meta_follow(
        delivery->meta, arena_cstr(arena, str_from(id)), delivery->meta->occurred_at_us);
    event.meta = &meta;
    event.reason = pb_borrow("hook");
    event.due_at_us = due_at_us;
    event.last_error = pb_borrow(why);
    event.work_case = STENTOR__V1__DEFERRED__WORK_WEBHOOK;
    event.webhook = delivery;
    meta_keep_trace(delivery->meta, traceparent, arena);
    subject_deferred(subject, "hook", str_from(delivery->meta->tenant));
    out.subject = arena_cstr(arena, str_from(subject));
    out.event_id = str_from(meta.event_id);
    if (!event_pack(&event.base, arena, &out.payload, err)) {
        return false;
    }
    *ret = out;
    return true;
}
