// SPDX-License-Identifier: Apache-2.0
// Subscriptions as CONFIG brings them, for the tests of this folder.
#pragma once

#include <stdio.h>

#include "common/codec/event.h"
#include "services/dispatcher/webhooks/subscriptions.h"

enum { MADE_US = 1000000 };

typedef struct SubscriptionsStage {
    Arena *arena;
    MasterKey *master;
    Subscriptions *subscriptions;
    WebhookSubscription entry; // the next one that is put
    uint64_t sequence;
    Error err;
} SubscriptionsStage;

static inline void subscriptions_stage_open(SubscriptionsStage *stage)
{
    char text[132];
    *stage = (SubscriptionsStage){.arena = arena_new(0)};
    master_key_generate(text);
    stage->master = master_key_parse(str_from(text), &stage->err);
    stage->subscriptions = subscriptions_new(stage->master);
}

static inline void subscriptions_stage_close(SubscriptionsStage *stage)
{
    subscriptions_free(stage->subscriptions);
    master_key_free(stage->master);
    arena_free(stage->arena);
}

// "whs_01M8CV94BD1WA5N61NYRNKS000" and on.
static inline const char *subscriptions_stage_id(const SubscriptionsStage *stage, unsigned number)
{
    return arena_printf(stage->arena, "whs_01M8CV94BD1WA5N61NYRNKS%03u", number);
}

// A new entry of the tenant, with a secret.
static inline void subscriptions_stage_make(
    SubscriptionsStage *stage, const char *tenant, unsigned number)
{
    char secret[WEBHOOK_SECRET_SIZE];
    stentor__v1__webhook_subscription__init(&stage->entry);
    stage->entry.tenant = arena_cstr(stage->arena, str_from(tenant));
    stage->entry.id = arena_cstr(stage->arena, str_from(subscriptions_stage_id(stage, number)));
    stage->entry.target_url = pb_borrow("https://hooks.example.com/");
    stage->entry.created_at_us = MADE_US;
    webhook_secret_add(&stage->entry, stage->master, MADE_US, 0, stage->arena, secret);
}

static inline bool subscriptions_stage_put(SubscriptionsStage *stage)
{
    BusMessage message = {.sequence = ++stage->sequence};
    return event_pack(&stage->entry.base, stage->arena, &message.payload, &stage->err) &&
           subscriptions_changed(
               stage->subscriptions, STR(WEBHOOK_KIND), str_from(stage->entry.tenant),
               str_from(stage->entry.id), &message, &stage->err);
}

static inline bool subscriptions_stage_remove(SubscriptionsStage *stage)
{
    BusMessage message = {.sequence = ++stage->sequence};
    return subscriptions_changed(
        stage->subscriptions, STR(WEBHOOK_KIND), str_from(stage->entry.tenant),
        str_from(stage->entry.id), &message, &stage->err);
}
