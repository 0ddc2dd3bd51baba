// SPDX-License-Identifier: Apache-2.0
// An event's way: plan (what it means, no I/O) -> look-up of recipients (one statement for the
// batch) -> submit (each notification, each with its key) -> settle.
#include "services/ingest/triggers/triggers.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/bus/consume/dead_letter.h"
#include "services/ingest/triggers/recipient_lookup.h"

enum {
    WAITS = 5, // deliveries granted to a tenant, template or recipient put just before the event
    WAIT_MS = 300,
};

struct Triggers {
    TriggersOptions options;
};

typedef struct Work Work;

// One notification on its way to the commit.
typedef struct Item {
    Work *work;
    Request request;
    Submission submission;
} Item;

// What became of one trigger.
typedef struct Answer {
    const char *key;
    TriggerPlan plan;
    const char *failed; // the first reason; NULL: none
} Answer;

// One event.
struct Work {
    Triggers *triggers;
    Delivery *delivery;
    DomainEvent event;
    Answer *answers;
    size_t count;
    size_t open;  // submissions under way, and one while they are being made
    bool wait;    // something may be here soon
    Error error;  // why the whole event must come again
    bool settled; // it never came to a plan
};

typedef struct BatchOfWork {
    Triggers *triggers;
    Arena *arena;
    Work *works;
    size_t count;
    int64_t now_us;
    TriggerWant *wants;
    size_t want_count;
} BatchOfWork;

// ---- the end ----

// A dead letter for each trigger, under its own id, with the event for this trigger alone.
static bool emit_letter(Work *w, const Answer *answer)
{
    const IngestMetrics *metrics = w->triggers->options.metrics;
    Delivery *delivery = w->delivery;
    Arena *arena = delivery->arena;
    BusMessage message = delivery->message;
    message.payload = domain_event_letter(&w->event, str_from(answer->key), arena);
    message.event_id = w->event.identity;
    event_keep_letter(w->triggers->options.keys, clock_mono_us(), &message, arena);
    BusOut out;
    const char *stage = w->triggers->options.stage;
    DeadLetterSpec letter = {.stage = stage, .reason = answer->failed};
    if (!dead_letter_pack(&message, &letter, arena, &out)) {
        return false;
    }
    char *place = arena_printf(
        arena, "%s/%llu/%s", stage, (unsigned long long)bus_message_place(&message), answer->key);
    char *id = arena_alloc(arena, EVENT_ID_SIZE);
    event_id_derive("dead", str_from(message.stream), str_from(place), id);
    out.event_id = str_from(id);
    LOG(LOG_WARN, "trigger failed, its dead letter has the event",
        log_str("tenant", w->event.tenant), log_text("trigger", answer->key),
        log_str("event_id", w->event.identity), log_int("sequence", (int64_t)message.sequence),
        log_text("error", answer->failed));
    metric_add(metrics->trigger_failed, 1);
    if (!message.replayed) { // its original has one
        delivery_emit(delivery, &out);
    }
    return true;
}

static void finish(Work *w)
{
    bool packed = true;
    if (w->error.kind == ERROR_NONE && w->wait) {
        domain_event_free(&w->event);
        delivery_redeliver(w->delivery, WAIT_MS);
        return;
    }
    for (size_t i = 0; i < w->count && w->error.kind == ERROR_NONE; i++) {
        packed = (w->answers[i].failed == NULL || emit_letter(w, &w->answers[i])) && packed;
    }
    if (!packed) {
        (void)error_set(
            &w->error, ERROR_PERMANENT, "the dead letter of a trigger is too large to store");
    }
    domain_event_free(&w->event);
    delivery_settle(w->delivery, w->error.kind == ERROR_NONE ? NULL : &w->error);
}

static void release(Work *w)
{
    if (--w->open == 0) {
        finish(w);
    }
}

static void fail(Answer *answer, const char *reason)
{
    answer->failed = answer->failed == NULL ? reason : answer->failed;
}

static void fail_text(const Work *w, Answer *answer, const Error *err)
{
    fail(answer, arena_cstr(w->delivery->arena, str_from(err->text)));
}

// It may be on its way: a template or a recipient that was put just before the event.
static void fail_or_wait(Work *w, Answer *answer, const Error *err)
{
    if (w->delivery->message.delivered < WAITS) {
        w->wait = true;
    } else {
        fail_text(w, answer, err);
    }
}

// ---- submitting ----

static void on_accept_done(void *ctx, const AcceptResult *result)
{
    Item *item = ctx;
    Work *w = item->work;
    const IngestMetrics *metrics = w->triggers->options.metrics;
    metric_add(metrics->triggered, result->verdict == ACCEPT_STORED ? 1 : 0);
    metric_add(metrics->replayed, result->verdict == ACCEPT_REPLAYED ? 1 : 0);
    if (result->verdict == ACCEPT_UNAVAILABLE) {
        w->error = result->error;
    }
    release(w);
}

static void submit(Work *w, const TriggerPlan *plan, Item *item)
{
    Arena *arena = w->delivery->arena;
    Str key = STR_EMPTY;
    trigger_identify(plan, &w->event, &item->request, arena, &key);
    item->work = w;
    item->submission = (Submission){
        .tenant = w->event.tenant,
        .scope = STR("trigger"),
        .key = key,
        .traceparent = w->delivery->message.traceparent,
        .requests = &item->request,
        .count = 1,
        .single = true,
        .bytes = w->event.variables.len,
        .done = on_accept_done,
        .ctx = item,
    };
    // The key is all that makes two of them the same.
    sha256(key, item->submission.body_hash);
    w->open++;
    if (!accept_submit(w->triggers->options.accept, &item->submission, arena, &w->error)) {
        w->open--;
    }
}

static bool is_found(const Work *w, const Answer *answer, const Target *target, Error *err)
{
    if (target->kind == TARGET_ADDRESS || target->recipient_id.len > 0) {
        return true;
    }
    bool by_id = target->kind == TARGET_RECIPIENT;
    return error_set(
        err, ERROR_PERMANENT,
        "trigger '%s': tenant '" STR_FMT "' has no %s '" STR_FMT "' (path '" STR_FMT "')",
        answer->key, STR_ARG(w->event.tenant),
        by_id ? "recipient" : identity_name(target->identity),
        STR_ARG(str_slice(target->value, 0, 64)), STR_ARG(target->path));
}

static void make_one(Work *w, Answer *answer, const Target *target, int64_t now_us)
{
    Arena *arena = w->delivery->arena;
    Item *item = arena_zalloc(arena, sizeof *item);
    Error err = {0};
    FieldError wrong = {.field = ""};
    if (!is_found(w, answer, target, &err)) {
        fail_or_wait(w, answer, &err);
        return;
    }
    if (!trigger_request(&answer->plan, target, now_us, arena, &item->request, &err)) {
        fail_text(w, answer, &err);
        return;
    }
    if (!catalog_freeze(
            w->triggers->options.catalog, w->event.tenant, &item->request, arena, &wrong)) {
        (void)error_set(
            &err, ERROR_PERMANENT, "trigger '%s': field '%s': %s", answer->key, wrong.field,
            wrong.text);
        fail_or_wait(w, answer, &err);
        return;
    }
    submit(w, &answer->plan, item);
}

// false: no recipient is found.
static bool choose(Work *w, Answer *answer)
{
    Error err = {0};
    switch (trigger_choose(&answer->plan, &w->event, w->delivery->arena, &err)) {
    case TRIGGER_CHOSEN:
        return true;
    case TRIGGER_NOT_FOUND:
        fail_or_wait(w, answer, &err);
        break;
    case TRIGGER_TOO_MANY:
        fail_text(w, answer, &err);
        break;
    }
    return false;
}

static void make_all(Work *w, int64_t now_us)
{
    for (size_t i = 0; i < w->count; i++) {
        Answer *answer = &w->answers[i];
        if (!choose(w, answer)) {
            continue;
        }
        for (size_t n = 0; n < answer->plan.count; n++) {
            if (w->error.kind == ERROR_NONE) {
                make_one(w, answer, &answer->plan.targets[n], now_us);
            }
        }
    }
    release(w);
}

static void submit_batch(BatchOfWork *batch, const Error *err)
{
    for (size_t i = 0; i < batch->count; i++) {
        Work *w = &batch->works[i];
        if (w->settled) {
            continue;
        }
        if (err != NULL) {
            w->error = *err;
            release(w);
        } else {
            make_all(w, batch->now_us);
        }
    }
}

// ---- looking up ----

static void on_db_found(void *ctx, DbTxn *txn, const Error *err)
{
    BatchOfWork *batch = ctx;
    if (err == NULL) {
        recipient_lookup_read(txn, batch->wants, batch->want_count, batch->arena);
    }
    submit_batch(batch, err);
}

static void gather_wants(BatchOfWork *batch, const Work *w)
{
    for (size_t i = 0; i < w->count; i++) {
        const TriggerPlan *plan = &w->answers[i].plan;
        for (size_t n = 0; n < plan->count; n++) {
            if (plan->targets[n].kind != TARGET_ADDRESS) {
                batch->wants[batch->want_count++] =
                    (TriggerWant){w->event.tenant, &plan->targets[n]};
            }
        }
    }
}

static size_t count_targets(const BatchOfWork *batch)
{
    size_t count = 0;
    for (size_t i = 0; i < batch->count; i++) {
        for (size_t n = 0; n < batch->works[i].count; n++) {
            count += batch->works[i].answers[n].plan.count;
        }
    }
    return count;
}

static void look_up(BatchOfWork *batch)
{
    batch->wants = arena_array(batch->arena, count_targets(batch) + 1, sizeof *batch->wants);
    for (size_t i = 0; i < batch->count; i++) {
        gather_wants(batch, &batch->works[i]);
    }
    if (batch->want_count == 0) {
        submit_batch(batch, NULL);
        return;
    }
    DbTxn *txn = db_txn_new(batch->triggers->options.pool);
    recipient_lookup_add(txn, batch->wants, batch->want_count);
    db_txn_submit(txn, on_db_found, batch);
}

// ---- planning ----

static bool is_wanted(const Work *w, const Stentor__V1__Trigger *trigger)
{
    return w->event.only.len == 0 || str_eq(w->event.only, str_from(trigger->key));
}

static Answer *add_answer(Work *w, const Stentor__V1__Trigger *trigger)
{
    Answer *answer = &w->answers[w->count++];
    answer->key = arena_cstr(w->delivery->arena, str_from(trigger->key));
    return answer;
}

// What makes a notification brings it with that, once: a repeat, which makes none, supersedes
// nothing (services/ingest/accept/events.c).
static void supersede_alone(Work *w, const Answer *answer)
{
    Error err = {0};
    BusOut out;
    Delivery *delivery = w->delivery;
    if (answer->plan.draft.supersedes &&
        trigger_supersede(
            &answer->plan, &w->event, delivery->message.traceparent, delivery->arena, &out, &err)) {
        delivery_emit(delivery, &out);
    }
}

static void plan_one(Work *w, const Stentor__V1__Trigger *trigger, int64_t now_us)
{
    const IngestMetrics *metrics = w->triggers->options.metrics;
    Answer *answer = add_answer(w, trigger);
    Error err = {0};
    const NamedResolvers *resolvers = w->triggers->options.resolvers;
    if (!trigger_plan(
            trigger, resolvers, &w->event, now_us, w->delivery->arena, &answer->plan, &err)) {
        bool may_come = answer->plan.unknown;
        answer->plan = (TriggerPlan){.unknown = may_come};
        if (may_come) {
            fail_or_wait(w, answer, &err);
        } else {
            fail_text(w, answer, &err);
        }
        return;
    }
    if (answer->plan.bad_target != NULL) {
        fail(answer, answer->plan.bad_target);
    }
    if (answer->plan.count == 0 && answer->failed == NULL) { // late, or its list is empty
        supersede_alone(w, answer);
    }
    if (answer->plan.late) {
        metric_add(metrics->trigger_late, 1);
        LOG(LOG_WARN, "trigger is more than a day late, its notifications are not sent",
            log_str("tenant", w->event.tenant), log_text("trigger", answer->key),
            log_str("event_id", w->event.identity),
            log_int("hours", (now_us - answer->plan.at_us) / (INT64_C(3600) * 1000000)));
    }
}

static void cancel_one(Work *w, const Stentor__V1__Trigger *trigger)
{
    Error err = {0};
    BusOut out;
    Delivery *delivery = w->delivery;
    if (trigger_cancel(
            trigger, &w->event, delivery->message.traceparent, delivery->arena, &out, &err)) {
        delivery_emit(delivery, &out);
        metric_add(w->triggers->options.metrics->trigger_cancels, 1);
    } else {
        fail_text(w, add_answer(w, trigger), &err);
    }
}

static bool is_unknown(const Work *w, Str tenant)
{
    return catalog_standing(w->triggers->options.catalog, tenant) == STANDING_UNKNOWN;
}

// A trigger of the platform and a tenant that no operator has made: nothing is sent for it.
static void refuse_one(Work *w, const Stentor__V1__Trigger *trigger)
{
    Error err = {0};
    const TriggersOptions *o = &w->triggers->options;
    metric_add(o->metrics->api.refused[REFUSED_UNKNOWN_TENANT], 1);
    (void)catalog_may_send(o->catalog, w->event.tenant, &err);
    fail_text(w, add_answer(w, trigger), &err);
}

typedef struct Matches {
    const Stentor__V1__Trigger **making, **cancelling;
    size_t makes, cancels;
} Matches;

static void plan_matches(Work *w, const Matches *found, bool unknown, int64_t now_us)
{
    w->answers = arena_array(w->delivery->arena, found->makes + found->cancels, sizeof *w->answers);
    for (size_t i = 0; i < found->cancels; i++) {
        if (is_wanted(w, found->cancelling[i])) {
            cancel_one(w, found->cancelling[i]);
        }
    }
    for (size_t i = 0; i < found->makes; i++) {
        if (is_wanted(w, found->making[i]) && unknown) {
            refuse_one(w, found->making[i]);
        } else if (is_wanted(w, found->making[i])) {
            plan_one(w, found->making[i], now_us);
        }
    }
}

// Only what some trigger wants is opened.
static bool open_event(const TriggersOptions *o, const EventDelivery *event, Error *err)
{
    BusMessage *message = &event->delivery->message;
    int64_t now_us = clock_mono_us();
    bool ok = event_open(o->keys, now_us, message, event->delivery->arena, err);
    if (ok && !catalog_tenant(o->catalog, event->tenant)->events_in_clear) {
        event_keep(o->keys, now_us, message, event->delivery->arena);
    }
    return ok;
}

static bool plan_event(Work *w, const EventDelivery *event, int64_t now_us, Error *err)
{
    const TriggersOptions *o = &w->triggers->options;
    Arena *arena = event->delivery->arena;
    Matches found = {0};
    found.making =
        trigger_match_find(o->map, event->tenant, event->type, TRIGGER_MAKES, arena, &found.makes);
    found.cancelling = trigger_match_find(
        o->map, event->tenant, event->type, TRIGGER_CANCELS, arena, &found.cancels);
    if (found.makes + found.cancels == 0) {
        metric_add(o->metrics->commands_ignored, 1);
        delivery_settle(event->delivery, NULL);
        w->settled = true;
        return true;
    }
    bool unknown = found.makes > 0 && is_unknown(w, event->tenant);
    if (unknown && event->delivery->message.delivered < WAITS) { // its entry may be on its way
        w->settled = true;
        delivery_redeliver(event->delivery, WAIT_MS);
        return true;
    }
    if (!open_event(o, event, err)) {
        return false;
    }
    Zone *zone = catalog_tenant(o->catalog, event->tenant)->gate.zone;
    DomainInput input = domain_input(&event->delivery->message, event->tenant, event->type, zone);
    if (!domain_event_read(&input, event->delivery->arena, &w->event, err)) {
        return false;
    }
    metric_add(o->metrics->trigger_events, 1);
    plan_matches(w, &found, unknown, now_us);
    return true;
}

void triggers_take(Triggers *triggers, const EventDelivery *events, size_t count, int64_t now_us)
{
    Arena *arena = events[0].delivery->arena;
    BatchOfWork *batch = arena_zalloc(arena, sizeof *batch);
    *batch = (BatchOfWork){.triggers = triggers, .arena = arena, .count = count, .now_us = now_us};
    batch->works = arena_array(arena, count, sizeof *batch->works);
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        Work *w = &batch->works[i];
        *w = (Work){.triggers = triggers, .delivery = events[i].delivery, .open = 1};
        Error err = {0};
        if (!plan_event(w, &events[i], now_us, &err)) {
            metric_add(triggers->options.metrics->api.refused[REFUSED_INVALID], 1);
            w->settled = true;
            delivery_settle(w->delivery, &err);
        }
        left += w->settled ? 0 : 1;
    }
    if (left > 0) { // else the batch's arena may be on its way out
        look_up(batch);
    }
}

// ---- life ----

Triggers *triggers_new(const TriggersOptions *options)
{
    Triggers *triggers = xcalloc(1, sizeof *triggers);
    triggers->options = *options;
    return triggers;
}

void triggers_free(Triggers *triggers)
{
    free(triggers);
}
