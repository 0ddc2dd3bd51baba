// SPDX-License-Identifier: Apache-2.0
// An entry cfg.webhook.<tenant>.<id>: an endpoint of a tenant that gets the tenant's events as
// signed webhooks (Standard Webhooks), as every process reads it. Its secrets are sealed under the
// tenant's key of the master key (seal.h, generation 0), each for its subscription's id.
#pragma once

#include "common/base/id.h"
#include "common/codec/seal.h"
#include "stentor/v1/config.pb-c.h"

#define WEBHOOK_KIND "webhook"
#define WEBHOOK_ID_PREFIX "whs_"

enum {
    SUBSCRIPTIONS_OF_TENANT_MAX = 100,
    WEBHOOK_EVENTS_MAX = 32,
    WEBHOOK_SECRETS_MAX = 2,
    WEBHOOK_SECRET_LEN = 32,  // bytes of one that is made here
    WEBHOOK_SECRET_SIZE = 64, // its text, "whsec_" and base64, with NUL
};

typedef Stentor__V1__WebhookSubscription WebhookSubscription;

// In `arena`. NULL: ERROR_PERMANENT, it is no WebhookSubscription, has no id or address, or is
// another tenant's.
WebhookSubscription *webhook_subscription_read(Str tenant, Str payload, Arena *arena, Error *err);

// May it be posted to? It was not turned off.
bool webhook_is_active(const WebhookSubscription *entry);
// "notification.<status>", "notification.*": what a subscription can ask for.
bool webhook_is_filter(Str filter);

// A new secret becomes the first; the one before signs with it for overlap_us (0: no longer), any
// earlier one does not. *ret is the new one's text, which is in no other place.
void webhook_secret_add(
    WebhookSubscription *entry, MasterKey *master, int64_t now_us, int64_t overlap_us, Arena *arena,
    char ret[WEBHOOK_SECRET_SIZE]);
// All of them sealed again, under the current master key: of an entry that is stored anyway, so
// that the key of before can leave the file. One that does not open stays as it is.
void webhook_secrets_seal_again(WebhookSubscription *entry, MasterKey *master, Arena *arena);
// false: it is over.
bool webhook_secret_signs(const Stentor__V1__WebhookSecret *secret, int64_t now_us);
// Its text, in `arena`. `key` is the tenant's (data_key_for_tenant). ERROR_PERMANENT: sealed under
// a key that is not in the file, for another subscription, or altered.
bool webhook_secret_open(
    DataKey *key, const WebhookSubscription *entry, const Stentor__V1__WebhookSecret *secret,
    Arena *arena, Str *ret_text, Error *err);
