// SPDX-License-Identifier: Apache-2.0
// A webhook subscription as the API shows it, and what a caller may set of it: each field checked.
// Pure; whether the name of its address leads to public addresses only is asked later
// (subscription_target.h).
#pragma once

#include "common/api/api_json.h"
#include "common/config/webhook_subscription.h"
#include "common/http/client/guard.h"

enum {
    SUBSCRIPTION_NAME_MAX = 100, // bytes
    SUBSCRIPTION_URL_MAX = 2000,
    SUBSCRIPTION_RATE_MAX = 1000,
    SUBSCRIPTION_IN_FLIGHT_MAX = 32,
    SUBSCRIPTION_DISABLE_AFTER_MAX = 1000,
    SUBSCRIPTION_REASON_MAX = 200,
};

const char *subscription_state_name(const WebhookSubscription *entry); // "active"
// Without secrets: when each was made and until when it signs.
json_t *subscription_json(const WebhookSubscription *entry, int64_t now_us);
// All that a caller sets; what the body does not have gets its default. false: body->problem.
bool subscription_take(
    ApiBody *body, const HttpGuard *guard, WebhookSubscription *entry, GuardedUrl *ret_url);
