// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/webhooks/match_event.h"

#include "common/base/clock.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/events/meta.h"
#include "common/webhooks/webhook_event.h"

typedef Stentor__V1__NotificationStatus NotificationStatus;
typedef Stentor__V1__WebhookDelivery WebhookDelivery;

enum { TENANT_TOKEN = 2 };

const NotificationStatus *match_read(const BusMessage *message, Arena *arena, Error *err)
{
    const NotificationStatus *status = (const NotificationStatus *)event_unpack(
        &stentor__v1__notification_status__descriptor, message->payload, arena, err);
    if (status == NULL) {
        return NULL;
    }
    if (status->meta == NULL || status->meta->event_id[0] == '\0') {
        (void)error_set(err, ERROR_PERMANENT, "'meta.event_id' is missing");
        return NULL;
    }
    if (!str_eq(str_from(status->meta->tenant), subject_token(message->subject, TENANT_TOKEN))) {
        (void)error_set(
            err, ERROR_PERMANENT, "'meta.tenant' is '%.80s', which is not the subject's",
            status->meta->tenant);
        return NULL;
    }
    return status;
}

bool match_wants(
    const Subscription *subscription, const NotificationStatus *status, const char *type,
    Category category, int64_t stored_at_us)
{
    const WebhookSubscription *entry = subscription->entry;
    return webhook_wants(entry, status, type, category) && stored_at_us >= entry->created_at_us &&
           stored_at_us >= entry->state_changed_at_us;
}

WebhookDelivery *match_event(
    const Subscription *subscription, const BusMessage *message, const NotificationStatus *status,
    const char *type, Arena *arena)
{
    char id[WEBHOOK_DELIVERY_ID_SIZE];
    WebhookDelivery *event = arena_alloc(arena, sizeof *event);
    Stentor__V1__Meta *meta = arena_alloc(arena, sizeof *meta);
    stentor__v1__webhook_delivery__init(event);
    *meta = meta_follow(status->meta, "", status->meta->occurred_at_us);
    webhook_delivery_id(str_from(subscription->entry->id), str_from(status->meta->event_id), id);
    event->meta = meta;
    event->subscription_id = arena_cstr(arena, str_from(subscription->entry->id));
    event->delivery_id = arena_cstr(arena, str_from(id));
    event->webhook_id = status->meta->event_id;
    event->type = arena_cstr(arena, str_from(type));
    event->sequence = bus_message_place(message);
    event->previous_webhook_id = pb_borrow("");
    event->in_order = subscription->entry->in_order;
    event->matched_at_us = clock_now_us();
    event->turn = 1;
    return event;
}
