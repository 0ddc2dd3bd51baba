// SPDX-License-Identifier: Apache-2.0
// Verdicts: what becomes of a delivery. An answer is sent once, when the delivery is settled and
// everything emitted for it is stored or has failed.
//
// Killed between the last output's ack and the input's ack: the input comes again, its outputs are
// published again with the same ids (duplicates); nothing is lost. Killed between a dead letter's
// ack and the input's: the same, the dead letter's id is derived from the input
// (dead_letter_place), as is that of the `failed` status which a poison message gets.
// (worker_nats_test: an_unsettled_delivery_comes_again, the_unreadable_has_one_dead_letter)
#include <assert.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/bus/consume/dead_letter.h"
#include "common/bus/consume/guard/guard.h"
#include "common/bus/consume/guard/quarantine.h"
#include "common/bus/consume/worker_internal.h"

enum { REDELIVER_MIN_MS = 1000, REDELIVER_MAX_MS = 60000 };

static DeliveryState *state_of(Delivery *delivery)
{
    return (DeliveryState *)delivery;
}

// ---- the answer ----

static int redeliver_delay(uint32_t delivered)
{
    uint32_t shift = delivered > 0 ? delivered - 1 : 0;
    return shift >= 6 ? REDELIVER_MAX_MS : REDELIVER_MIN_MS << shift;
}

static void give_back(Worker *w, DeliveryState *d, int delay_ms)
{
    char text[64];
    int len = delay_ms <= 0 ? snprintf(text, sizeof text, "-NAK")
                            : snprintf(text, sizeof text, "-NAK {\"delay\":%d000000}", delay_ms);
    bus_send(w->bus, natsMsg_GetReply(d->nats), NULL, str_of(text, (size_t)len));
    w->stats.given_back++;
    w->bus->stats.given_back++;
}

static void unlink_batch(Worker *w, Batch *batch)
{
    *(batch->previous != NULL ? &batch->previous->next : &w->batches) = batch->next;
    if (batch->next != NULL) {
        batch->next->previous = batch->previous;
    }
    batch->next = w->done;
    w->done = batch;
    bus_want_turn(w->bus);
}

static void acknowledge(Worker *w, const DeliveryState *d)
{
    CRASH_POINT("worker.unacked");
    ack_guard_ack(&w->ack_guard, natsMsg_GetReply(d->nats), d->breaks);
    w->stats.acked++;
    w->stats.dead_letters += d->verdict == VERDICT_DEAD_LETTER ? 1 : 0;
    w->bus->stats.dead_letters += d->verdict == VERDICT_DEAD_LETTER ? 1 : 0;
    w->stats.poisoned += d->poison ? 1 : 0;
    w->bus->stats.poisoned += d->poison ? 1 : 0;
}

static void answer(DeliveryState *d)
{
    Batch *batch = d->batch;
    Worker *w = batch->worker;
    if (d->verdict == VERDICT_REDELIVER && d->delay_ms <= 0 && w->state != WORKER_RUNNING) {
        // At once, but not to this process again when it is the one that stops.
        bus_give_back(w->bus, d->nats);
        d->nats = NULL;
        w->stats.given_back++;
        w->bus->stats.given_back++;
    } else if (d->verdict == VERDICT_REDELIVER) {
        give_back(w, d, d->delay_ms);
    } else if (d->emit_failed || d->refused != NULL) {
        give_back(w, d, redeliver_delay(d->public.message.delivered));
    } else {
        acknowledge(w, d);
    }
    link_discard(w->bus->link, d->nats);
    d->nats = NULL;
    w->in_flight--;
    if (--batch->open == 0) {
        unlink_batch(w, batch);
    }
}

static void write_dead_letter(DeliveryState *d, const char *reason, Str reason_code);

static void answer_if_ready(DeliveryState *d)
{
    bool ready = d->verdict != VERDICT_NONE && d->emits == 0 && !d->marked;
    if (ready && d->verdict == VERDICT_ACK && d->refused != NULL && !d->emit_failed) {
        // An input whose output can never be published can never succeed: it would be redelivered
        // for ever.
        const char *reason = d->refused;
        d->verdict = VERDICT_NONE;
        d->refused = NULL;
        write_dead_letter(d, reason, STR_EMPTY);
        ready = d->emits == 0; // else the dead letter's ack comes back here
    }
    if (ready) {
        answer(d);
    }
}

// ---- outputs ----

static void note_emitted(DeliveryState *d, const Error *err)
{
    d->emits--;
    CRASH_POINT_IF("worker.letter_stored", err == NULL && d->verdict == VERDICT_DEAD_LETTER);
    d->emit_failed = d->emit_failed || (err != NULL && err->kind != ERROR_PERMANENT);
    if (err != NULL && err->kind == ERROR_PERMANENT) {
        d->refused = arena_cstr(d->public.arena, str_from(err->text));
        LOG(LOG_ERROR, "output cannot be published, the input becomes a dead letter",
            log_text("stream", d->public.message.stream),
            log_int("sequence", (int64_t)d->public.message.sequence), log_error(err));
    }
    answer_if_ready(d);
}

static void on_publish_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate;
    note_emitted(ctx, err);
}

void delivery_emit(Delivery *delivery, const BusOut *out)
{
    DeliveryState *d = state_of(delivery);
    assert(d->verdict == VERDICT_NONE);
    BusOut emitted = *out;
    emitted.slack = d->batch->worker->options.slack;
    d->emits++;
    bus_publish(d->batch->worker->bus, &emitted, on_publish_acked, d);
}

void delivery_hold(Delivery *delivery)
{
    DeliveryState *d = state_of(delivery);
    assert(d->verdict == VERDICT_NONE);
    d->emits++;
}

void delivery_held(Delivery *delivery, const Error *err)
{
    note_emitted(state_of(delivery), err);
}

// ---- dead letters ----

static void write_dead_letter(DeliveryState *d, const char *reason, Str reason_code)
{
    const BusMessage *message = &d->public.message;
    const char *stage = d->batch->worker->options.stage;
    BusOut out;
    if (message->replayed) {
        // Its original has a dead letter, or will have one when its turn comes: two dead letters of
        // one event could both be resent.
        LOG(LOG_WARN, "replayed message refused; its original has, or gets, the dead letter",
            log_text("stream", message->stream), log_int("sequence", (int64_t)message->sequence),
            log_text("error", reason));
        d->verdict = VERDICT_ACK;
        return;
    }
    LOG(LOG_WARN, "input moved to the dead letters", log_text("stream", message->stream),
        log_int("sequence", (int64_t)message->sequence), log_text("error", reason));
    DeadLetterSpec letter = {
        .stage = stage != NULL ? stage : "unknown",
        .reason = reason,
        .reason_code = reason_code,
        .last_attempt = d->public.last_attempt,
        .produced_at_us = d->public.produced_at_us,
    };
    if (dead_letter_pack(message, &letter, d->public.arena, &out)) {
        delivery_emit(&d->public, &out);
        d->verdict = VERDICT_DEAD_LETTER;
    } else {
        d->verdict = VERDICT_REDELIVER; // cannot happen by size; losing it would be worse
        d->delay_ms = REDELIVER_MAX_MS;
    }
}

// ---- verdicts ----

// A process that reaches a verdict has survived the input.
static void decide(DeliveryState *d)
{
    d->batch->undecided--;
    if (d->public.message.delivered > 1) {
        guard_acquit(d->batch->worker->guard, &d->public.message);
        bus_want_turn(d->batch->worker->bus); // perhaps the group is through
    }
    answer_if_ready(d);
}

void delivery_settle(Delivery *delivery, const Error *err)
{
    DeliveryState *d = state_of(delivery);
    assert(d->verdict == VERDICT_NONE && "the delivery has its verdict already");
    switch (err == NULL ? ERROR_NONE : err->kind) {
    case ERROR_NONE:
    case ERROR_CONFLICT:
        d->verdict = VERDICT_ACK;
        break;
    case ERROR_PERMANENT:
        write_dead_letter(d, err->text, delivery->reason_code);
        break;
    case ERROR_TRANSIENT:
    case ERROR_CONFIG:
        d->verdict = VERDICT_REDELIVER;
        d->delay_ms = redeliver_delay(delivery->message.delivered);
        break;
    case ERROR_USAGE:
    case ERROR_CANCELLED:
        d->verdict = VERDICT_REDELIVER;
        break;
    }
    decide(d);
}

void delivery_redeliver(Delivery *delivery, int delay_ms)
{
    DeliveryState *d = state_of(delivery);
    assert(d->verdict == VERDICT_NONE && "the delivery has its verdict already");
    d->verdict = VERDICT_REDELIVER;
    d->delay_ms = delay_ms;
    decide(d);
}

// ---- the guard's ----

void delivery_quarantine(Batch *group, uint32_t deaths)
{
    DeliveryState *d = &group->deliveries[0];
    const BusMessage *message = &d->public.message;
    const char *stage = group->worker->options.stage;
    Quarantine left;
    assert(group->count == 1 && d->verdict == VERDICT_NONE);
    if (group->worker->options.keep != NULL) {
        group->worker->options.keep(group->worker->handler_ctx, &d->public.message, group->arena);
    }
    // Its size fits: what is too long is cut, and there are no attempts.
    bool packed = quarantine_pack(
        message, stage != NULL ? stage : "unknown", deaths, clock_now_us(), group->arena, &left);
    assert(packed);
    LOG(LOG_ERROR, "poison message quarantined: every process that handled it died or hung",
        log_text("stream", message->stream), log_int("sequence", (int64_t)message->sequence),
        log_str("subject", message->subject), log_int("processes", deaths),
        log_text(
            "hint", arena_printf(
                        group->arena, "stentor dlq show --all-tenants " STR_FMT,
                        STR_ARG(left.letter.event_id))));
    if (message->replayed) { // its original has a dead letter, or will have one
        d->verdict = VERDICT_ACK;
    } else {
        delivery_emit(&d->public, &left.letter);
        if (left.has_end) {
            delivery_emit(&d->public, &left.end);
        }
        d->verdict = VERDICT_DEAD_LETTER;
    }
    d->poison = true;
    decide(d);
}

void delivery_group_lifted(Batch *group, bool all)
{
    for (size_t i = 0; i < group->count; i++) {
        DeliveryState *d = &group->deliveries[i];
        bool free_to_go = d->marked && (all || d->verdict != VERDICT_NONE);
        d->marked = d->marked && !free_to_go;
        if (free_to_go && d->nats != NULL) {
            answer_if_ready(d);
        }
    }
}
