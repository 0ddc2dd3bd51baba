// SPDX-License-Identifier: Apache-2.0
// Where a subscription's name leads: every address of it must be one that a tenant may send to
// (common/http/client/guard.h). Asked when it is registered, so that a caller learns of it at once;
// the delivering process asks again at each call, because names move.
#pragma once

#include "common/api/api.h"
#include "common/http/client/dns.h"

typedef struct SubscriptionTarget {
    HttpGuard guard;
    Dns *dns;
} SubscriptionTarget;

// The target of a call's body, in the request's arena. Calls `good` once, now or from the loop, or
// answers 422 with the field `target_url`.
void subscription_target_check(
    const SubscriptionTarget *target, ApiCall *call, const GuardedUrl *url, void (*good)(void *ctx),
    void *ctx);
