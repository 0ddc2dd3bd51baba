// SPDX-License-Identifier: Apache-2.0
// What a status becomes for a subscription. Pure.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/model/enums.h"
#include "services/dispatcher/webhooks/subscriptions.h"
#include "stentor/v1/status.pb-c.h"
#include "stentor/v1/webhook.pb-c.h"

// NULL: it cannot be read, has no id, or is about another tenant than its subject's.
const Stentor__V1__NotificationStatus *match_read(
    const BusMessage *message, Arena *arena, Error *err);
// By its filters, and of what was stored since it was made, or turned on again: what was before is
// not for it, the tenant replays it if it wants it. category: the notification's, which a vendor's
// report does not say.
bool match_wants(
    const Subscription *subscription, const Stentor__V1__NotificationStatus *status,
    const char *type, Category category, int64_t stored_at_us);
// Without its payload. Lives in `arena`.
Stentor__V1__WebhookDelivery *match_event(
    const Subscription *subscription, const BusMessage *message,
    const Stentor__V1__NotificationStatus *status, const char *type, Arena *arena);
