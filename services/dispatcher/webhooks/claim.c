// SPDX-License-Identifier: Apache-2.0
// The claim of what may be posted now, many in one statement, and what stands in the ledger of
// those that were not claimed.
#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"
#include "services/dispatcher/webhooks/hooks_internal.h"

static void on_claim_timer(uv_timer_t *timer)
{
    hook_claim_flush(timer->data);
}

void hook_claim(HookJob *job)
{
    Hooks *hooks = job->hooks;
    job_list_push(&hooks->claiming, job);
    if (!uv_is_active((uv_handle_t *)&hooks->claim_timer)) {
        (void)uv_timer_start(&hooks->claim_timer, on_claim_timer, HOOK_FLUSH_MS, 0);
    }
}

// CLAIMED: posts it, or records why it may not be posted any more.
static void begin(HookJob *job)
{
    int64_t now_us = clock_now_us();
    job->event->attempt += job->event->gone ? 0 : 1;
    if (job->refusal == NULL) {
        job->refusal = hook_refusal(job, now_us);
    }
    if (job->refusal != NULL) {
        job->outcome = (HookOutcome){.state = WEBHOOK_FAILED, .finished_at_us = now_us};
        (void)str_to_c(str_from(job->refusal), job->outcome.error, sizeof job->outcome.error);
        hook_record(job);
    } else {
        hook_post(job, now_us);
    }
}

// ---- conflicts ----

// An outcome of this turn is there already: it is published once more, because a crash may have
// come between its commit and its publication.
static void repeat(HookJob *job, const HookConflict *there)
{
    metric_add(job->hooks->metrics.repeated, 1);
    if (there->turn > job->event->turn || (job->event->gone && there->state != WEBHOOK_FAILED)) {
        // An older turn: what followed from it has come by already. Or it came after all.
        hook_end(job, NULL);
        return;
    }
    job->event->attempt = (uint32_t)there->attempt;
    job->gone = there->state == WEBHOOK_FAILED && there->status_code == HOOK_GONE;
    job->outcome = (HookOutcome){
        .state = there->state,
        .finished_at_us = there->finished_at_us,
        .next_attempt_at_us = there->next_attempt_at_us,
        .status_code = there->status_code,
    };
    (void)str_to_c(there->error, job->outcome.error, sizeof job->outcome.error);
    job->outcome.counts = (there->state == WEBHOOK_WAITING || there->state == WEBHOOK_FAILED) &&
                          there->status_code != HOOK_TOO_MANY;
    hook_judge(job, there->failures);
    hook_publish(job);
}

static void handle_conflict(HookJob *job, const HookConflict *there)
{
    bool ended = there->state == WEBHOOK_DELIVERED || there->state == WEBHOOK_FAILED ||
                 there->state == WEBHOOK_WAITING;
    bool newer = there->state != WEBHOOK_NONE && there->turn > job->event->turn;
    if (newer || (ended && there->turn == job->event->turn)) {
        repeat(job, there);
    } else if (there->state == WEBHOOK_CLAIMED && there->wait_ms > 0) {
        hook_redeliver(job, there->wait_ms + HOOK_RACE_MS); // another process has it in hand
    } else if (there->first.sequence > 0) {
        hook_wait_in_order(job, &there->first);
    } else {
        hook_redeliver(job, HOOK_RACE_MS); // another process is making the row
    }
}

static void handle_claimed(JobBatch *batch, const PGresult *res)
{
    bool conflicts[HOOK_BATCH_MAX] = {false};
    Hooks *hooks = batch->hooks;
    for (size_t n = 0; n < hook_ledger_conflicts(res); n++) {
        HookConflict there = hook_ledger_conflict(res, n);
        if (there.index < batch->count && !conflicts[there.index]) {
            conflicts[there.index] = true;
            handle_conflict(batch->jobs[there.index], &there);
        }
    }
    for (size_t i = 0; i < batch->count; i++) {
        if (!conflicts[i] && hooks->stopping) {
            // Its claim ends with its lease: the next process posts it.
            hook_end(batch->jobs[i], &(Error){.kind = ERROR_CANCELLED});
        } else if (!conflicts[i]) {
            begin(batch->jobs[i]);
        }
    }
}

static void submit(Hooks *hooks, HookJob *const *jobs, size_t count);

static void claim_failed(JobBatch *batch, const Error *err)
{
    if (err->kind == ERROR_PERMANENT && batch->count > 1) {
        for (size_t i = 0; i < batch->count; i++) {
            submit(batch->hooks, &batch->jobs[i], 1); // what Postgres rejects holds up no other
        }
        return;
    }
    if (err->kind != ERROR_CANCELLED) {
        LOG(LOG_WARN, "webhook deliveries were not claimed; they will be redelivered",
            log_int("count", (int64_t)batch->count), log_error(err));
    }
    for (size_t i = 0; i < batch->count; i++) {
        hook_end(batch->jobs[i], err);
    }
}

static void on_claimed(void *ctx, DbTxn *txn, const Error *err)
{
    JobBatch *batch = ctx;
    CRASH_POINT_IF("hook.claimed", err == NULL);
    if (err == NULL) {
        handle_claimed(batch, db_txn_result(txn, batch->statement));
    } else {
        claim_failed(batch, err);
    }
}

static void submit(Hooks *hooks, HookJob *const *jobs, size_t count)
{
    DbTxn *txn = db_txn_new(hooks->parts.pool);
    JobBatch *batch = arena_zalloc(db_txn_arena(txn), sizeof *batch);
    Stentor__V1__WebhookDelivery **events =
        arena_array(db_txn_arena(txn), count, sizeof(Stentor__V1__WebhookDelivery *));
    batch->hooks = hooks;
    batch->count = count;
    for (size_t i = 0; i < count; i++) {
        batch->jobs[i] = jobs[i];
        events[i] = jobs[i]->event;
    }
    batch->statement = hook_ledger_add_claim(
        txn, events, count, hooks->owner, hooks->parts.lease_ms, hook_round_ms(hooks));
    db_txn_submit(txn, on_claimed, batch);
}

void hook_claim_flush(Hooks *hooks)
{
    job_list_submit(&hooks->claiming, hooks, submit);
}
