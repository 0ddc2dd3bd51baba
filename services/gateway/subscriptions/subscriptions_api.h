// SPDX-License-Identifier: Apache-2.0
// /v1/subscriptions: the endpoints of a tenant that get its events as signed webhooks. They are
// entries of CONFIG, kept in memory as the mirror brings them. A secret is shown when it is made,
// and again only to a repeat under the same Idempotency-Key within a day.
#pragma once

#include "common/api/config_change.h"
#include "common/base/map.h"
#include "common/codec/seal.h"
#include "common/config/webhook_subscription.h"
#include "common/db/db.h"
#include "services/gateway/subscriptions/subscription_target.h"

#define WEBHOOK_TEST "webhook.test" // the event that a caller asks for, to any endpoint

typedef struct SubscriptionsApi {
    Bus *bus;
    DbPool *pool;
    MasterKey *master;
    SubscriptionTarget target;
    Map *entries; // "<tenant>/<id>" -> the packed entry and its sequence
} SubscriptionsApi;

void subscriptions_api_init(
    SubscriptionsApi *subscriptions, Bus *bus, DbPool *pool, MasterKey *master);
void subscriptions_api_done(SubscriptionsApi *subscriptions);
// Borrows `subscriptions`, which must live as long as `api`.
void subscriptions_api_add(Api *api, SubscriptionsApi *subscriptions);
// The entry as it is now in CONFIG; payload empty: removed.
void subscriptions_api_changed(
    SubscriptionsApi *subscriptions, Str tenant, Str id, Str payload, uint64_t sequence);

// ---- the files' own ----

typedef struct SubscriptionChange {
    ConfigChange base; // first
    WebhookSubscription entry;
    bool replayed;                    // it stood there already, made under the same key
    char secret[WEBHOOK_SECRET_SIZE]; // that was made; empty: none
} SubscriptionChange;

// In the request's arena, `size` of what begins with a SubscriptionChange; 409 without a
// precondition.
SubscriptionChange *subscription_change_new(ApiCall *call, size_t size, Str id);
void subscription_answer_unknown(ApiCall *call); // 404 of the id in the path
// A `make` begins with what stands. NULL: answered, 404.
WebhookSubscription *subscription_stands(const ConfigChange *base, Str there);
// It is changed: by whom, when; and its secrets are sealed under the current key.
void subscription_note_update(const ApiCall *call, WebhookSubscription *entry);
// false: answered, 404: the path names no subscription's id. For changes, which read the entry
// itself: another replica may have stored it a moment ago.
bool subscription_is_named(ApiCall *call);
// false: answered, 404: the tenant has none of this id, as far as this process knows.
bool subscription_is_known(ApiCall *call, Str id);
// Idempotency-Key; empty: not there. false: answered.
bool subscription_key_read(ApiCall *call, Str *ret);
// The text of the newest secret for a repeat, and the header that says so; empty: a day has passed.
// false: answered.
bool subscription_show_again(SubscriptionChange *change, const WebhookSubscription *entry);
// The same, and 409 when it is disabled: nothing would be posted.
bool subscription_is_active_now(ApiCall *call, Str id);
void delivery_answer_unknown(ApiCall *call); // 404 of the id in the path
void deliveries_api_add(Api *api, SubscriptionsApi *subscriptions);
void delivery_replay_add(Api *api, SubscriptionsApi *subscriptions);
extern const ApiRoute subscription_state_routes[]; // subscription_states.c
extern const size_t subscription_state_route_count;
