// SPDX-License-Identifier: Apache-2.0
// Guard rails: the archiver, which folds every status, counts hard bounces and complaints by
// tenant, From domain and provider, warns, and pauses those marketing e-mails of which there are
// too many. A pause is a suppression (common/codec/suppressed.h), so ingest and the dispatcher have
// it in memory as any other, and an operator ends it by releasing it; what was before that counts
// no more. Law: a pause is stored only in the place of the entry that was read.
#pragma once

#include <uv.h>

#include "common/bus/jetstream/bus.h"
#include "common/db/db.h"
#include "common/model/rules/guard_rates.h"
#include "common/service/metrics.h"

typedef struct GuardRailsOptions {
    uv_loop_t *loop;
    Bus *bus;
    DbPool *pool;
    Metrics *metrics;
    GuardLimits limits;
    int64_t every_ms;
    bool (*is_active)(void *ctx); // this process folds
    void *ctx;
} GuardRailsOptions;

typedef struct GuardRails GuardRails;

GuardRails *guard_rails_new(const GuardRailsOptions *options); // begins at once
// A message of STATUS that was folded; others are passed over.
void guard_rails_note(GuardRails *guard, const BusMessage *message, Arena *arena);
void guard_rails_forget(
    GuardRails *guard); // what was folded was not committed: counted again from history
// on_stopped comes from the loop, when nothing of it is under way; then free.
void guard_rails_stop(GuardRails *guard, void (*on_stopped)(void *ctx), void *ctx);
void guard_rails_free(GuardRails *guard); // NULL-safe
