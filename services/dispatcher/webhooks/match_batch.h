// SPDX-License-Identifier: Apache-2.0
// A batch of statuses on its way to HOOK, which match.c and match_category.c share. Batches are
// handled one after the other.
#pragma once

#include "common/model/enums.h"
#include "services/dispatcher/webhooks/hooks_internal.h"
#include "stentor/v1/status.pb-c.h"

// A status of a tenant that has subscriptions.
typedef struct MatchInput {
    Delivery *delivery;
    const Stentor__V1__NotificationStatus *status;
    Category category;  // its notification's; CATEGORY_NONE: not known
    const Error *error; // what becomes of it besides its matches; NULL: nothing
} MatchInput;

typedef struct Match {
    const MatchInput *input;
    Stentor__V1__WebhookDelivery *event;
    const Error *refused; // its row cannot be made; NULL: it can
} Match;

// In the arena of its deliveries, which ends when the last of them is settled. At most
// HOOK_BATCH_MAX statuses, each for SUBSCRIPTIONS_OF_TENANT_MAX subscriptions: 25,600 matches.
struct MatchBatch {
    Hooks *hooks;
    MatchBatch *next;
    MatchInput *inputs; // that are settled with it
    size_t input_count;
    size_t categorised; // inputs whose category was asked for, or need not be
    bool categories_alone;
    bool matched;
    Match *matches;
    size_t count, room;
    size_t queried;               // ordered matches that have asked for a row
    size_t alone_until;           // before this place each asks by itself
    size_t asked[HOOK_BATCH_MAX]; // of the statement under way: places in `inputs`, or `matches`
    size_t asked_count;
    int statement;
    void (*submit)(MatchBatch *batch); // the statement under way, once more
    Map *latest; // "<subscription id>|<notification id>" -> the last event in order; NULL: none yet
};

// match.c
void match_go_on(MatchBatch *batch);
// The statement under way failed, not for what was asked: it is tried again, or the batch ends.
void match_again(MatchBatch *batch, const Error *err);

// match_category.c
// Keeps and finds categories of notifications; match_go_on follows. false: no more are needed.
bool match_categorise(MatchBatch *batch);
