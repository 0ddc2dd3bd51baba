// SPDX-License-Identifier: Apache-2.0
// Budgets: the limits of vendors' credentials that all dispatchers keep together, as leases in
// dispatcher.budget (common/routing/budget.h has the rules). Each lease is one statement for all
// keys that want one, in a transaction of its own: a row's lock never lasts as long as a claim.
// Law: without a lease nothing begins. While Postgres is away, nothing does; the mails wait in
// their vendor's queue, surely unsent.
//
// Killed between a lease and its use: its tokens are lost, and the vendor gets less than its limit
// for a moment, never more.
#pragma once

#include "common/db/db.h"
#include "common/model/enums.h"
#include "common/service/metrics.h"

enum {
    BUDGETS_MAX = 2048,
    BUDGETS_BEAT_MS = 3000, // how often a dispatcher says that it is there
    BUDGETS_SEEN_S = 10,    // and for how long it counts
    BUDGETS_KEY_MAX = 180,
};

typedef struct Budgets Budgets;

// instance: of the process. All is borrowed.
typedef struct BudgetsOptions {
    DbPool *pool;
    const char *instance;
    Metrics *metrics;
    const char *metrics_prefix; // "stentor_dispatcher_"
    const char *schema;         // NULL: dispatcher; another one with the same table and function
    size_t keys_max;            // 0: BUDGETS_MAX
} BudgetsOptions;
Budgets *budgets_new_of(const BudgetsOptions *options);
// Those of vendors' credentials.
Budgets *budgets_new(DbPool *pool, const char *instance, Metrics *metrics);
// May one mail of the lane go now? Takes a token of each limit or none. per_s, per_day: 0: no such
// limit. waiting: how many wait for this key here, this one included. false: *ret_at_us
// (clock_mono_us()) is when to ask again.
bool budgets_take(
    Budgets *budgets, Str key, int64_t per_s, int64_t per_day, Priority lane, uint32_t waiting,
    int64_t *ret_at_us);
// The vendor says that it was too much: all dispatchers slow down by a third, and none begins
// before retry_after_ms (at least a second) are over.
void budgets_throttled(Budgets *budgets, Str key, uint32_t retry_after_ms);
// The right to do something once in every_us of all dispatchers together: a key with one token in
// that time. It is taken although another has it when that one has it for longer than most_us from
// now. on_answer from the loop, once; refused: again_in_us is when the right is free, 0: Postgres
// did not answer.
void budgets_claim(
    Budgets *budgets, Str key, int64_t every_us, int64_t most_us,
    void (*on_answer)(void *ctx, bool granted, int64_t again_in_us), void *ctx);
uint32_t budgets_replicas(const Budgets *budgets); // with limits, seen lately, this one included
// on_closed from the loop, once no answer is awaited; then budgets_free().
void budgets_close(Budgets *budgets, void (*on_closed)(void *ctx), void *ctx);
void budgets_free(Budgets *budgets); // NULL-safe
