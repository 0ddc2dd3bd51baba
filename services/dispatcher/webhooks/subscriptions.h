// SPDX-License-Identifier: Apache-2.0
// Tenants' webhook subscriptions, a copy of CONFIG in memory: by tenant for the match, by id for
// the delivery. Law: an entry that cannot be used (a secret that does not open, a URL that the
// guard refuses by its form) is kept with the reason: its deliveries fail and say so, nothing is
// posted.
#pragma once

#include "common/codec/seal.h"
#include "common/config/config_mirror.h"
#include "common/webhooks/webhook_signature.h"
#include "stentor/v1/config.pb-c.h"

enum { SUBSCRIPTION_SECRETS_MAX = 2, SUBSCRIPTIONS_OF_TENANT_MAX = 100 };

typedef struct SubscriptionSecret {
    WebhookKey key;
    int64_t not_after_us; // 0: until it is replaced
} SubscriptionSecret;

typedef struct Subscription {
    Arena *arena; // of all below
    const Stentor__V1__WebhookSubscription *entry;
    uint64_t sequence; // of the entry in CONFIG
    SubscriptionSecret secrets[SUBSCRIPTION_SECRETS_MAX];
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
// May it be posted to? It was not turned off.
bool subscription_is_active(const Subscription *subscription);
