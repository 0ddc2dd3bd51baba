// SPDX-License-Identifier: Apache-2.0
// A status on its way to a tenant's endpoint: which subscriptions want it, the JSON that is posted,
// and the event that carries it (webhook.proto). Pure. Law: what is said is what STATUS says, and
// nothing of it that finds an address (no hash of one). The ids are derived, so that a status that
// is read again makes no second delivery.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/model/enums.h"
#include "stentor/v1/config.pb-c.h"
#include "stentor/v1/deferred.pb-c.h"
#include "stentor/v1/status.pb-c.h"

enum {
    WEBHOOK_PAYLOAD_MAX = 20000, // bytes, as Standard Webhooks wants it
    WEBHOOK_TYPE_SIZE = 48,
    WEBHOOK_DELIVERY_ID_SIZE = 32, // "whd_" and an event id
    WEBHOOK_RATE_DEFAULT = 25,
    WEBHOOK_IN_FLIGHT_DEFAULT = 8,
    WEBHOOK_DISABLE_AFTER_DEFAULT = 20,
};

// "notification.sent"; "" for a status that has no name.
void webhook_type(const Stentor__V1__NotificationStatus *status, char out[WEBHOOK_TYPE_SIZE]);
// Whether the subscription is active and its filters let the status through: an event name fits
// itself, "notification.*" and "*" fit all; an empty list is all. category: the notification's,
// which not each of its statuses says; CATEGORY_NONE, not known, fits an empty list alone.
bool webhook_wants(
    const Stentor__V1__WebhookSubscription *subscription,
    const Stentor__V1__NotificationStatus *status, const char *type, Category category);

// The place of a status among those of a subscription in order. sequence 0: it is not in order.
typedef struct WebhookPlace {
    uint64_t sequence;
    Str previous; // webhook-id of the notification's event before it; empty: none, or not known
} WebhookPlace;

// {"type","timestamp","data"}; below WEBHOOK_PAYLOAD_MAX: texts for an operator are left out of one
// that would be longer. Empty: it is too long even so.
Str webhook_payload(
    const Stentor__V1__NotificationStatus *status, const WebhookPlace *place, Arena *arena);

void webhook_delivery_id(Str subscription_id, Str webhook_id, char out[WEBHOOK_DELIVERY_ID_SIZE]);
// Its event on HOOK, under the id of its delivery and turn. Everything lives in `arena`.
bool webhook_event(
    Stentor__V1__WebhookDelivery *delivery, Str traceparent, Arena *arena, BusOut *ret, Error *err);
// The same for later: on DEFERRED, with the turn raised. `delivery` is changed.
bool webhook_deferred(
    Stentor__V1__WebhookDelivery *delivery, int64_t due_at_us, const char *why, Str traceparent,
    Arena *arena, BusOut *ret, Error *err);
