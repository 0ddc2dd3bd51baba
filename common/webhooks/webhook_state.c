// SPDX-License-Identifier: Apache-2.0
#include "common/webhooks/webhook_state.h"

const char *webhook_state_name(WebhookState state)
{
    static const char *const names[] = {"", "queued", "claimed", "waiting", "delivered", "failed"};
    return names[state];
}

WebhookState webhook_state_from_name(Str name)
{
    for (WebhookState state = WEBHOOK_QUEUED; state <= WEBHOOK_FAILED; state++) {
        if (str_eq(name, str_from(webhook_state_name(state)))) {
            return state;
        }
    }
    return WEBHOOK_NONE;
}
