// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/webhooks/subscriptions.h"

#include <openssl/crypto.h>
#include <stdlib.h>

#include "common/base/map.h"
#include "common/webhooks/webhook_event.h"

typedef struct TenantList {
    Subscription **at;
    size_t count;
} TenantList;

struct Subscriptions {
    MasterKey *master;
    Map *tenants; // tenant -> TenantList
    size_t count;
};

static void free_subscription(Subscription *subscription)
{
    Arena *arena = subscription->arena;
    OPENSSL_cleanse(subscription->secrets, sizeof subscription->secrets);
    arena_free(arena); // it lives in it
}

static void free_list(void *value)
{
    TenantList *list = value;
    for (size_t i = 0; i < list->count; i++) {
        free_subscription(list->at[i]);
    }
    free((void *)list->at);
    free(list);
}

Subscriptions *subscriptions_new(MasterKey *master)
{
    Subscriptions *subscriptions = xcalloc(1, sizeof *subscriptions);
    subscriptions->master = master;
    subscriptions->tenants = map_new(free_list);
    return subscriptions;
}

void subscriptions_free(Subscriptions *subscriptions)
{
    if (subscriptions != NULL) {
        map_free(subscriptions->tenants);
        free(subscriptions);
    }
}

// ---- reading ----

static bool open_secret(
    DataKey *key, const WebhookSubscription *entry, const Stentor__V1__WebhookSecret *secret,
    Subscription *subscription, Error *err)
{
    Str plain = STR_EMPTY;
    SubscriptionSecret *at = &subscription->secrets[subscription->secret_count];
    bool fits = webhook_secret_open(key, entry, secret, subscription->arena, &plain, err) &&
                webhook_key_parse(plain, &at->key, err);
    if (plain.len > 0) {
        OPENSSL_cleanse((void *)(uintptr_t)plain.ptr, plain.len);
    }
    if (fits) {
        at->sealed = secret;
        subscription->secret_count++;
    }
    return fits;
}

// Those that open. An error of another one is the operator's to see; the entry is used.
static bool open_secrets(
    Subscriptions *subscriptions, const WebhookSubscription *entry, Subscription *subscription,
    Error *err)
{
    DataKey *key = data_key_for_tenant(subscriptions->master, str_from(entry->tenant));
    bool all = true;
    for (size_t i = 0; i < entry->n_secrets && i < WEBHOOK_SECRETS_MAX; i++) {
        all = open_secret(key, entry, entry->secrets[i], subscription, err) && all;
    }
    data_key_free(key);
    if (!all && err != NULL) {
        err->kind = ERROR_CONFIG;
    }
    return all;
}

static uint32_t given_or(uint32_t value, uint32_t otherwise)
{
    return value > 0 ? value : otherwise;
}

static Subscription *read_entry(
    Subscriptions *subscriptions, Str tenant, const BusMessage *message, bool *ret_whole,
    Error *err)
{
    Arena *arena = arena_new(0);
    Subscription *subscription = arena_zalloc(arena, sizeof *subscription);
    const WebhookSubscription *entry =
        webhook_subscription_read(tenant, arena_str(arena, message->payload), arena, err);
    if (entry == NULL) {
        arena_free(arena);
        return NULL;
    }
    *subscription = (Subscription){
        .arena = arena,
        .entry = entry,
        .sequence = message->sequence,
        .rate_per_s = given_or(entry->rate_per_s, WEBHOOK_RATE_DEFAULT),
        .in_flight = given_or(entry->in_flight, WEBHOOK_IN_FLIGHT_DEFAULT),
        .disable_after = given_or(entry->disable_after, WEBHOOK_DISABLE_AFTER_DEFAULT),
    };
    *ret_whole = open_secrets(subscriptions, entry, subscription, err);
    return subscription;
}

// ---- the lists ----

static size_t find(const TenantList *list, Str id)
{
    size_t at = 0;
    while (at < list->count && !str_eq(str_from(list->at[at]->entry->id), id)) {
        at++;
    }
    return at;
}

static void remove_one(Subscriptions *subscriptions, Str tenant, Str id)
{
    TenantList *list = map_get(subscriptions->tenants, tenant);
    size_t at = list != NULL ? find(list, id) : 0;
    if (list == NULL || at == list->count) {
        return;
    }
    free_subscription(list->at[at]);
    list->at[at] = list->at[--list->count];
    subscriptions->count--;
    if (list->count == 0) {
        (void)map_remove(subscriptions->tenants, tenant);
    }
}

static bool put_one(
    Subscriptions *subscriptions, Str tenant, Subscription *subscription, Error *err)
{
    Str id = str_from(subscription->entry->id);
    remove_one(subscriptions, tenant, id);
    TenantList *list = map_get(subscriptions->tenants, tenant);
    if (list == NULL) {
        list = xcalloc(1, sizeof *list);
        map_put(subscriptions->tenants, tenant, list);
    }
    if (list->count == SUBSCRIPTIONS_OF_TENANT_MAX) {
        free_subscription(subscription);
        return error_set(
            err, ERROR_PERMANENT, "the tenant has %d subscriptions already",
            SUBSCRIPTIONS_OF_TENANT_MAX);
    }
    list->at = xrealloc((void *)list->at, (list->count + 1) * sizeof(Subscription *));
    list->at[list->count++] = subscription;
    subscriptions->count++;
    return true;
}

bool subscriptions_changed(
    void *ctx, Str kind, Str tenant, Str key, const BusMessage *message, Error *err)
{
    Subscriptions *subscriptions = ctx;
    bool whole = true;
    if (!str_eq(kind, STR(WEBHOOK_KIND))) {
        return true;
    }
    if (message->payload.len == 0) {
        remove_one(subscriptions, tenant, key);
        return true;
    }
    Subscription *read = read_entry(subscriptions, tenant, message, &whole, err);
    return read != NULL && put_one(subscriptions, tenant, read, err) && whole;
}

// ---- asking ----

const Subscription *subscription_get(const Subscriptions *subscriptions, Str tenant, Str id)
{
    const TenantList *list = map_get(subscriptions->tenants, tenant);
    size_t at = list != NULL ? find(list, id) : 0;
    return list != NULL && at < list->count ? list->at[at] : NULL;
}

size_t subscriptions_of(const Subscriptions *subscriptions, Str tenant, Subscription *const **ret)
{
    const TenantList *list = map_get(subscriptions->tenants, tenant);
    if (list == NULL) {
        return 0;
    }
    *ret = list->at;
    return list->count;
}

size_t subscriptions_count(const Subscriptions *subscriptions)
{
    return subscriptions->count;
}

int64_t subscriptions_since(const Subscriptions *subscriptions)
{
    Str tenant;
    void *value;
    int64_t since_us = 0;
    for (size_t i = 0; map_next(subscriptions->tenants, &i, &tenant, &value);) {
        const TenantList *list = value;
        for (size_t k = 0; k < list->count; k++) {
            const WebhookSubscription *entry = list->at[k]->entry;
            int64_t made_us = entry->created_at_us > entry->state_changed_at_us
                                  ? entry->created_at_us
                                  : entry->state_changed_at_us;
            since_us = since_us == 0 || made_us < since_us ? made_us : since_us;
        }
    }
    return since_us;
}
