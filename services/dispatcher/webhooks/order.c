// SPDX-License-Identifier: Apache-2.0
// An event in order that has to wait for one before it, and what is done when that one does not
// come: a restored store or a lost stream may have lost its event, and its row would block those
// behind it for ever.
//
// Law: nothing that may still come is ended. An event that is put back says so in its row each
// third of gone_s. The one that waits goes the same way, by DEFERRED and HOOK, and counts its own
// rounds: while that way stands still, it does not come round either. What has given no sign in
// HOOK_MISSED_MAX rounds, together longer than gone_s, is gone: its end is put on HOOK and takes
// the way of every outcome. If it came after all, its claim finds the row, and it is posted, late
// and once.
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/codec/event.h"
#include "common/events/meta.h"
#include "common/webhooks/webhook_event.h"
#include "services/dispatcher/webhooks/hooks_internal.h"

typedef Stentor__V1__WebhookDelivery WebhookDelivery;

int64_t hook_round_ms(const Hooks *hooks)
{
    return hooks->parts.gone_s * 1000 / HOOK_MISSED_MAX;
}

static int64_t third_us(const Hooks *hooks)
{
    return hooks->parts.gone_s * 1000000 / 3;
}

// ---- the one that does not come ----

bool hook_is_gone(WebhookDelivery *waiting, const HookBlocker *first, int64_t round_ms)
{
    bool same =
        waiting->missed_sequence == first->sequence && waiting->missed_sign_us == first->sign_us;
    waiting->missed_sequence = first->sequence;
    waiting->missed_sign_us = first->sign_us;
    if (first->silent_ms <= round_ms) {
        waiting->missed = 0;
    } else {
        waiting->missed = same ? waiting->missed + 1 : 1;
    }
    return waiting->missed > HOOK_MISSED_MAX;
}

// The next turn of one that waits for its next attempt, else the same: what comes after all has
// that one, or a later one.
static bool emit_end(const HookJob *job, const HookBlocker *first, Error *err)
{
    Arena *arena = job->delivery->arena;
    const WebhookDelivery *waiting = job->event;
    char id[WEBHOOK_DELIVERY_ID_SIZE];
    BusOut out;
    WebhookDelivery end;
    stentor__v1__webhook_delivery__init(&end);
    Stentor__V1__Meta meta = meta_make(&(MetaSpec){
        .tenant = waiting->meta->tenant,
        .notification_id = waiting->meta->notification_id,
        .at_us = first->created_at_us,
    });
    webhook_delivery_id(str_from(waiting->subscription_id), first->event_id, id);
    end.meta = &meta;
    end.subscription_id = waiting->subscription_id;
    end.delivery_id = id;
    end.webhook_id = arena_cstr(arena, first->event_id);
    end.type = arena_cstr(arena, first->type);
    end.payload = pb_data(first->payload);
    end.sequence = first->sequence;
    end.previous_webhook_id = arena_cstr(arena, first->previous);
    end.in_order = true;
    end.matched_at_us = first->created_at_us;
    end.turn = first->turn + (first->state == WEBHOOK_WAITING ? 1 : 0);
    end.attempt = first->attempt;
    end.gone = true;
    if (!webhook_event(&end, job->delivery->message.traceparent, arena, &out, err)) {
        return false;
    }
    delivery_emit(job->delivery, &out);
    return true;
}

// When the one that waits comes again: soon, while the other one is on its way.
static int64_t again_at(const HookJob *job, const HookBlocker *first)
{
    int64_t now_us = clock_now_us();
    int64_t soon_us = now_us + HOOK_HOLD_MIN_S * INT64_C(1000000);
    bool ends = job->event->missed == HOOK_MISSED_MAX + 1; // just now
    if (job->event->missed > 0 && !ends) {
        double part = 1 + random_fraction() / 2;
        return now_us + (int64_t)((double)hook_round_ms(job->hooks) * 1000 * part);
    }
    if (ends || first->next_attempt_at_us <= now_us) {
        return soon_us;
    }
    // A replay may end that one earlier.
    int64_t due_us = first->next_attempt_at_us + HOOK_HOLD_MIN_S * INT64_C(1000000);
    int64_t latest_us = now_us + third_us(job->hooks);
    return due_us < latest_us ? due_us : latest_us;
}

void hook_wait_in_order(HookJob *job, const HookBlocker *first)
{
    Error err = {0};
    metric_add(job->hooks->metrics.held_order, 1);
    if (hook_is_gone(job->event, first, hook_round_ms(job->hooks)) && !emit_end(job, first, &err)) {
        hook_end(job, &err);
        return;
    }
    hook_hold(job, again_at(job, first), "order");
}

// ---- the sign ----

bool hook_wants_sign(const HookJob *job, int64_t now_us)
{
    const WebhookDelivery *event = job->event;
    int64_t last_us =
        event->noted_at_us > event->matched_at_us ? event->noted_at_us : event->matched_at_us;
    return event->in_order && last_us < now_us - third_us(job->hooks);
}

static void on_signed(void *ctx, DbTxn *txn, const Error *err)
{
    JobBatch *batch = ctx;
    (void)txn;
    for (size_t i = 0; i < batch->count; i++) {
        HookJob *job = batch->jobs[i];
        job->event->noted_at_us = err == NULL ? clock_now_us() : 0; // or the next time
        hook_put_back(job);
    }
}

static void submit(Hooks *hooks, HookJob *const *jobs, size_t count)
{
    DbTxn *txn = db_txn_new(hooks->parts.pool);
    Arena *arena = db_txn_arena(txn);
    JobBatch *batch = arena_zalloc(arena, sizeof *batch);
    WebhookDelivery **events = arena_array(arena, count, sizeof(WebhookDelivery *));
    batch->count = count;
    for (size_t i = 0; i < count; i++) {
        batch->jobs[i] = jobs[i];
        events[i] = jobs[i]->event;
    }
    hook_ledger_add_seen(txn, events, count);
    db_txn_submit(txn, on_signed, batch);
}

void hook_sign_flush(Hooks *hooks)
{
    job_list_submit(&hooks->signing, hooks, submit);
}
