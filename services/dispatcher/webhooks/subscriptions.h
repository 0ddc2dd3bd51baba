// SPDX-License-Identifier: Apache-2.0
// Tenants' webhook subscriptions, a copy of CONFIG in memory: by tenant for the match, by id for
// the delivery. An entry of which no secret opens is kept: its deliveries fail as 'secret', nothing
// is posted unsigned. Its address is judged at each post, by the HTTP client's guard.
#pragma once

#include "common/codec/seal.h"
#include "common/config/config_mirror.h"
#include "common/config/webhook_subscription.h"
#include "common/webhooks/webhook_signature.h"

typedef struct SubscriptionSecret {
    WebhookKey key;
    const Stentor__V1__WebhookSecret *sealed; // in the entry: how long it signs
} SubscriptionSecret;

typedef struct Subscription {
    Arena *arena; // of all below
    const WebhookSubscription *entry;
    uint64_t sequence; // of the entry in CONFIG
    SubscriptionSecret secrets[WEBHOOK_SECRETS_MAX];
    size_t secret_count;
    uint32_t rate_per_s, in_flight, disable_after; // defaults filled in
} Subscription;

typedef struct Subscriptions Subscriptions;

Subscriptions *subscriptions_new(MasterKey *master);
void subscriptions_free(Subscriptions *subscriptions); // NULL-safe
// A ConfigChanged; ctx is the Subscriptions.
bool subscriptions_changed(
    void *ctx, Str kind, Str tenant, Str key, const BusMessage *message, Error *err);
// NULL: there is none such. All pointers are valid until the next change.
const Subscription *subscription_get(const Subscriptions *subscriptions, Str tenant, Str id);
// Those of a tenant; 0: none, with no look at anything else.
size_t subscriptions_of(const Subscriptions *subscriptions, Str tenant, Subscription *const **ret);
size_t subscriptions_count(const Subscriptions *subscriptions);
// The earliest time at which one of them was made, or turned on or off last; 0: there is none.
int64_t subscriptions_since(const Subscriptions *subscriptions);
