// SPDX-License-Identifier: Apache-2.0
// The states of a delivery to a tenant's endpoint (webhooks.deliveries): the dispatcher writes
// them, the gateway shows them and reads them as a filter. Pure.
#pragma once

#include "common/base/str.h"

typedef enum WebhookState {
    WEBHOOK_NONE,
    WEBHOOK_QUEUED,
    WEBHOOK_CLAIMED,
    WEBHOOK_WAITING,
    WEBHOOK_DELIVERED,
    WEBHOOK_FAILED,
} WebhookState;

#define WEBHOOK_STATES "queued, claimed, waiting, delivered, failed" // for what refuses another one

// The error of a delivery in order whose event is in no stream any more. A row whose event was
// never claimed has no payload: "{}".
#define WEBHOOK_GONE "gone"
#define WEBHOOK_NO_PAYLOAD "{}"

const char *webhook_state_name(WebhookState state); // "" for WEBHOOK_NONE
WebhookState webhook_state_from_name(Str name);     // WEBHOOK_NONE: it is none
