// SPDX-License-Identifier: Apache-2.0
// What became of an attempt: recorded, many in one statement, and then published. Outcomes that
// Postgres does not take are kept and tried again: without its row the endpoint would be called
// again.
#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "common/codec/hash.h"
#include "common/webhooks/webhook_event.h"
#include "services/dispatcher/webhooks/hooks_internal.h"

void hook_failed(HookJob *job, const char *error, int status_code, uint32_t retry_after_ms)
{
    int64_t due_at_us = 0;
    bool again = ladder_next(
        &job->hooks->parts.ladder, job->event->attempt - 1, clock_now_us(), retry_after_ms,
        random_fraction(), &due_at_us);
    job->outcome.state = again ? WEBHOOK_WAITING : WEBHOOK_FAILED;
    job->outcome.next_attempt_at_us = again ? due_at_us : 0;
    job->outcome.status_code = status_code;
    (void)str_to_c(str_from(error), job->outcome.error, sizeof job->outcome.error);
}

// ---- publishing ----

static bool is_own_end(const HookJob *job)
{
    Str error = str_from(job->outcome.error);
    return str_eq(error, STR("removed")) || str_eq(error, STR("disabled"));
}

static bool is_gone(const HookJob *job)
{
    return str_eq(str_from(job->outcome.error), STR(WEBHOOK_GONE));
}

static void publish_waiting(HookJob *job)
{
    Error err = {0};
    BusOut out;
    job->event->holds = 0;
    bool made = webhook_deferred(
        job->event, job->outcome.next_attempt_at_us, job->outcome.error,
        job->delivery->message.traceparent, job->delivery->arena, &out, &err);
    if (made) {
        delivery_emit(job->delivery, &out);
    }
    hook_end(job, made ? NULL : &err);
}

// A dead letter, and an event to the tenant; not for what its tenant turned off or removed.
static void publish_failed(HookJob *job)
{
    Error err = {0}, verdict = {0};
    BusOut out;
    char id[EVENT_ID_SIZE];
    if (is_own_end(job)) {
        hook_end(job, NULL);
        return;
    }
    error_set(
        &verdict, ERROR_PERMANENT, "webhook.delivery_failed: '%s' after %u attempts (HINT: %s)",
        job->outcome.error, job->event->attempt,
        is_gone(job) ? "its event is gone from the stream, and what waited behind it goes on"
                     : "the tenant replays it");
    event_id_derive(
        "webhook", str_from(job->event->delivery_id),
        str_from(arena_printf(job->delivery->arena, "failed/%u", job->event->turn)), id);
    if (!hook_event_out(
            job, "notification.webhook.delivery_failed.v1", job->outcome.error, id, &out, &err)) {
        hook_end(job, &err);
        return;
    }
    delivery_emit(job->delivery, &out);
    if (job->gone) {
        hook_disable(job, "the endpoint answered 410 Gone");
    }
    hook_end(job, &verdict);
}

void hook_publish(HookJob *job)
{
    switch (job->outcome.state) {
    case WEBHOOK_WAITING:
        publish_waiting(job);
        break;
    case WEBHOOK_FAILED:
        publish_failed(job);
        break;
    case WEBHOOK_DELIVERED:
    case WEBHOOK_QUEUED:
    case WEBHOOK_CLAIMED:
    case WEBHOOK_NONE:
        hook_end(job, NULL);
        break;
    }
}

// ---- recording ----

static void on_record_timer(uv_timer_t *timer)
{
    hook_record_flush(timer->data);
}

static void record_in(Hooks *hooks, uint64_t ms)
{
    if (!uv_is_active((uv_handle_t *)&hooks->record_timer)) {
        (void)uv_timer_start(&hooks->record_timer, on_record_timer, ms, 0);
    }
}

void hook_record(HookJob *job)
{
    const Subscription *subscription = hook_subscription(job);
    job->outcome.since_us = subscription != NULL && webhook_is_active(subscription->entry)
                                ? subscription->entry->state_changed_at_us
                                : 0;
    job_list_push(&job->hooks->recording, job);
    record_in(job->hooks, HOOK_FLUSH_MS);
}

static void count_outcome(Hooks *hooks, const HookJob *job)
{
    WebhookState state = job->outcome.state;
    metric_add(
        state == WEBHOOK_DELIVERED ? hooks->metrics.delivered
        : state == WEBHOOK_WAITING ? hooks->metrics.retried
                                   : hooks->metrics.failed,
        1);
    if (is_gone(job)) {
        metric_add(hooks->metrics.gone, 1);
        LOG(LOG_WARN,
            "a webhook in order ended: its event is gone from the stream (was a store restored?); "
            "what waited behind it goes on",
            log_str("tenant", str_from(job->event->meta->tenant)),
            log_text("subscription", job->event->subscription_id),
            log_text("delivery", job->event->delivery_id),
            log_text("notification", job->event->meta->notification_id));
    }
    if (log_takes_notification(state == WEBHOOK_FAILED ? LOG_WARN : LOG_INFO)) {
        LOG(state == WEBHOOK_FAILED ? LOG_WARN : LOG_INFO, "a webhook was attempted",
            log_str("tenant", str_from(job->event->meta->tenant)),
            log_text("subscription", job->event->subscription_id),
            log_text("delivery", job->event->delivery_id),
            log_text("state", webhook_state_name(state)), log_text("error", job->outcome.error),
            log_int("attempt", (int64_t)job->event->attempt));
    }
}

// Warned at half of the way, ended at its end.
void hook_judge(HookJob *job, int64_t failures)
{
    const Subscription *subscription = hook_subscription(job);
    if (subscription == NULL || !job->outcome.counts ||
        job->outcome.finished_at_us < subscription->entry->state_changed_at_us) {
        return;
    }
    int64_t most = (int64_t)subscription->disable_after;
    if (failures >= most) {
        char reason[96];
        Buf text;
        buf_init(&text, sizeof reason);
        buf_printf(
            &text, "%lld failures in a row, the last one '%s'", (long long)failures,
            job->outcome.error);
        hook_disable(job, buf_c(&text));
        buf_done(&text);
    } else if (failures == (most + 1) / 2) {
        LOG(LOG_WARN, "an endpoint fails; at twice as many failures in a row it is turned off",
            log_text("tenant", subscription->entry->tenant),
            log_text("subscription", subscription->entry->id), log_int("failures", failures),
            log_text("error", job->outcome.error));
    }
}

static void submit(Hooks *hooks, HookJob *const *jobs, size_t count);

// Its claim ends with its lease, and the endpoint gets the event again.
static void give_up(JobBatch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        hook_end(batch->jobs[i], &(Error){.kind = ERROR_TRANSIENT});
    }
}

// One that Postgres refuses holds up no other. It stays in hand with its claim until its table is
// mended: redelivered, its endpoint would be called again and again.
static void handle_refused(JobBatch *batch)
{
    Hooks *hooks = batch->hooks;
    if (batch->count == 1) {
        batch->jobs[0]->refused = true;
        job_list_push(&hooks->refused, batch->jobs[0]);
        return;
    }
    for (size_t i = 0; i < batch->count; i++) {
        submit(hooks, &batch->jobs[i], 1);
    }
}

static void keep(JobBatch *batch, const Error *err)
{
    Hooks *hooks = batch->hooks;
    bool alone = err->kind == ERROR_PERMANENT && batch->count == 1;
    bool over = hooks->stopping &&
                uv_now(hooks->parts.loop) - hooks->stopping_at_ms > HOOK_STOP_PATIENCE_MS;
    LOG(LOG_WARN, "outcomes of webhooks were not recorded", log_int("count", (int64_t)batch->count),
        log_error(err));
    if (err->kind == ERROR_CANCELLED || over || (alone && hooks->stopping)) {
        give_up(batch);
    } else if (err->kind == ERROR_PERMANENT) {
        handle_refused(batch);
    } else {
        for (size_t i = 0; i < batch->count; i++) {
            job_list_push(&hooks->recording, batch->jobs[i]);
        }
        record_in(hooks, HOOK_FLUSH_AGAIN_MS);
    }
}

void hook_record_refused(Hooks *hooks)
{
    HookJob *job = job_list_pop(&hooks->refused);
    if (job != NULL) {
        submit(hooks, &job, 1);
    }
}

// One of those that were refused is recorded: the others may be, too.
static void record_refused_ones(Hooks *hooks)
{
    HookJob *job;
    while ((job = job_list_pop(&hooks->refused)) != NULL) {
        job_list_push(&hooks->recording, job);
    }
    record_in(hooks, 0);
}

static void handle_recorded(JobBatch *batch, const PGresult *res)
{
    bool recorded[HOOK_BATCH_MAX] = {false};
    for (size_t n = 0; n < hook_ledger_recorded_count(res); n++) {
        HookRecorded row = hook_ledger_recorded(res, n);
        if (row.index < batch->count) {
            recorded[row.index] = true;
            if (batch->jobs[row.index]->refused) {
                record_refused_ones(batch->hooks);
            }
            count_outcome(batch->hooks, batch->jobs[row.index]);
            hook_judge(batch->jobs[row.index], row.failures);
        }
    }
    for (size_t i = 0; i < batch->count; i++) {
        if (recorded[i]) {
            hook_publish(batch->jobs[i]);
        } else {
            hook_redeliver(batch->jobs[i], HOOK_RACE_MS); // recorded before, or taken over
        }
    }
}

static void on_recorded(void *ctx, DbTxn *txn, const Error *err)
{
    JobBatch *batch = ctx;
    CRASH_POINT_IF("hook.recorded", err == NULL);
    if (err == NULL) {
        handle_recorded(batch, db_txn_result(txn, batch->statement));
    } else {
        keep(batch, err);
    }
}

static void submit(Hooks *hooks, HookJob *const *jobs, size_t count)
{
    DbTxn *txn = db_txn_new(hooks->parts.pool);
    Arena *arena = db_txn_arena(txn);
    JobBatch *batch = arena_zalloc(arena, sizeof *batch);
    Stentor__V1__WebhookDelivery **events =
        arena_array(arena, count, sizeof(Stentor__V1__WebhookDelivery *));
    const HookOutcome **outcomes = arena_array(arena, count, sizeof(HookOutcome *));
    batch->hooks = hooks;
    batch->count = count;
    for (size_t i = 0; i < count; i++) {
        batch->jobs[i] = jobs[i];
        events[i] = jobs[i]->event;
        outcomes[i] = &jobs[i]->outcome;
    }
    batch->statement = hook_ledger_add_outcomes(txn, events, outcomes, count, hooks->owner);
    db_txn_submit(txn, on_recorded, batch);
}

void hook_record_flush(Hooks *hooks)
{
    job_list_submit(&hooks->recording, hooks, submit);
}
