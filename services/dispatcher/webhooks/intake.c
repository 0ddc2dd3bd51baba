// SPDX-License-Identifier: Apache-2.0
// From HOOK to an endpoint's queue, and every end of a job. The order of things: read, wait for the
// notification's event before it (in order), the endpoint's queue, claim, post, record, publish.
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "common/codec/event.h"
#include "common/events/meta.h"
#include "common/webhooks/webhook_event.h"
#include "services/dispatcher/webhooks/hooks_internal.h"

typedef Stentor__V1__WebhookDelivery WebhookDelivery;

// ---- reading ----

static bool check_event(const WebhookDelivery *event, Str subject, Error *err)
{
    const Stentor__V1__Meta *meta = event->meta;
    if (meta == NULL || !id_is_tenant(str_from(meta->tenant))) {
        return error_set(err, ERROR_PERMANENT, "'meta.tenant' is not a tenant's id");
    }
    if (!str_eq(str_from(meta->tenant), subject_last(subject))) {
        return error_set(
            err, ERROR_PERMANENT, "'meta.tenant' is '%.80s', which is not the subject's",
            meta->tenant);
    }
    if (!id_parse(str_from(event->subscription_id), WEBHOOK_ID_PREFIX, NULL)) {
        return error_set(err, ERROR_PERMANENT, "'subscription_id' is not a subscription's id");
    }
    char id[WEBHOOK_DELIVERY_ID_SIZE];
    webhook_delivery_id(str_from(event->subscription_id), str_from(event->webhook_id), id);
    if (!str_eq(str_from(event->delivery_id), str_from(id))) {
        return error_set(
            err, ERROR_PERMANENT,
            "'delivery_id' is not that of 'subscription_id' and 'webhook_id'");
    }
    if (event->webhook_id[0] == '\0' || str_has_control(str_from(event->webhook_id)) ||
        str_find(str_from(event->webhook_id), '.') >= 0) {
        return error_set(err, ERROR_PERMANENT, "'webhook_id' is empty or has a '.'");
    }
    if (event->payload.len == 0 || event->payload.len >= WEBHOOK_PAYLOAD_MAX ||
        !str_is_utf8(pb_bytes(event->payload))) {
        return error_set(
            err, ERROR_PERMANENT, "'payload' is not text of 1 to %d bytes",
            WEBHOOK_PAYLOAD_MAX - 1);
    }
    if (event->turn == 0 || event->turn > INT32_MAX || event->attempt > INT16_MAX - 1 ||
        event->sequence > INT64_MAX || event->matched_at_us <= 0) {
        return error_set(
            err, ERROR_PERMANENT,
            "'turn', 'attempt', 'sequence' or 'matched_at_us' is out of range");
    }
    return true;
}

static HookJob *read_job(Hooks *hooks, Delivery *delivery, Error *err)
{
    WebhookDelivery *event = (WebhookDelivery *)event_unpack(
        &stentor__v1__webhook_delivery__descriptor, delivery->message.payload, delivery->arena,
        err);
    if (event == NULL || !check_event(event, delivery->message.subject, err)) {
        return NULL;
    }
    HookJob *job = arena_zalloc(delivery->arena, sizeof *job);
    job->hooks = hooks;
    job->delivery = delivery;
    job->event = event;
    delivery->message.traceparent = meta_trace(event->meta, delivery->message.traceparent);
    job->read_us = clock_mono_us();
    return job;
}

// ---- in order ----

static Str chain_key(const HookJob *job)
{
    return str_from(arena_printf(
        job->delivery->arena, "%s|%s", job->event->subscription_id,
        job->event->meta->notification_id));
}

static void admit(HookJob *job);

// The next one of the notification takes the first place, those behind it with it.
static void pass_on(HookJob *job)
{
    Hooks *hooks = job->hooks;
    HookJob *next = job_list_pop(&job->chain);
    (void)map_remove(hooks->chains, chain_key(job));
    if (next != NULL) {
        next->chain = job->chain;
        map_put(hooks->chains, chain_key(next), next);
        admit(next);
    }
}

// ---- ends ----

static void leave(HookJob *job)
{
    Hooks *hooks = job->hooks;
    Endpoint *endpoint = job->endpoint;
    (void)map_remove(hooks->jobs, str_from(job->event->delivery_id));
    job->tenant->in_hand--;
    if (job->event->in_order && map_get(hooks->chains, chain_key(job)) == job) {
        pass_on(job);
    }
    if (endpoint != NULL) {
        endpoint->posting -= job->counted ? 1 : 0;
        endpoint->tenant->posting -= job->counted ? 1 : 0;
        job->endpoint = NULL;
        endpoint_pump(hooks, endpoint);
    }
}

void hook_end(HookJob *job, const Error *err)
{
    leave(job);
    delivery_settle(job->delivery, err);
}

void hook_redeliver(HookJob *job, int64_t delay_ms)
{
    leave(job);
    delivery_redeliver(job->delivery, (int)delay_ms);
}

// 1, 2, 4 ... 60 s, each up to half as long again: what was held together comes back apart.
static int64_t hold_until(const HookJob *job)
{
    uint32_t holds = job->event->holds < 6 ? job->event->holds : 6;
    int64_t wait_ms = INT64_C(1000) << holds, most_ms = HOOK_HOLD_MAX_S * 1000;
    if (job->event->in_order && hook_round_ms(job->hooks) < most_ms) {
        most_ms = hook_round_ms(job->hooks);
    }
    wait_ms = wait_ms > most_ms ? most_ms : wait_ms;
    return clock_now_us() + (int64_t)((double)wait_ms * 1e3 * (1 + random_fraction() / 2));
}

void hook_put_back(HookJob *job)
{
    Error err = {0};
    BusOut out;
    bool made = webhook_deferred(
        job->event, job->hold_at_us, job->hold_why, job->delivery->message.traceparent,
        job->delivery->arena, &out, &err);
    if (made) {
        delivery_emit(job->delivery, &out);
    }
    hook_end(job, made ? NULL : &err);
}

void hook_hold(HookJob *job, int64_t at_us, const char *why)
{
    bool known = at_us > 0;
    job->hold_at_us = known ? at_us : hold_until(job);
    job->hold_why = why;
    job->event->holds = known ? 0 : job->event->holds + 1;
    if (job->event->gone) {
        hook_end(job, NULL); // what waits for it says so again
    } else if (!known && hook_wants_sign(job, clock_now_us())) {
        job_list_push(&job->hooks->signing, job);
    } else {
        hook_put_back(job);
    }
}

// ---- admission ----

const Subscription *hook_subscription(const HookJob *job)
{
    return subscription_get(
        job->hooks->subscriptions, str_from(job->event->meta->tenant),
        str_from(job->event->subscription_id));
}

static bool has_secret(const Subscription *subscription, int64_t now_us)
{
    bool signs = false;
    for (size_t i = 0; i < subscription->secret_count; i++) {
        signs = signs || webhook_secret_signs(subscription->secrets[i].sealed, now_us);
    }
    return signs;
}

const char *hook_refusal(const HookJob *job, int64_t now_us)
{
    const Subscription *subscription = hook_subscription(job);
    if (subscription == NULL) {
        return "removed";
    }
    if (!webhook_is_active(subscription->entry)) {
        return "disabled";
    }
    if (job->event->gone) {
        return WEBHOOK_GONE;
    }
    return has_secret(subscription, now_us) ? NULL : "secret";
}

static bool is_late(const HookJob *job)
{
    return clock_mono_us() - job->read_us > job->hooks->parts.queue_ms * 1000;
}

static void admit(HookJob *job)
{
    Hooks *hooks = job->hooks;
    job->refusal = hook_refusal(job, clock_now_us());
    if (hooks->stopping) {
        hook_end(job, &(Error){.kind = ERROR_CANCELLED});
    } else if (job->refusal != NULL) {
        hook_claim(job);
    } else if (is_late(job)) {
        metric_add(hooks->metrics.held_late, 1);
        hook_hold(job, 0, "late");
    } else {
        const Subscription *subscription = hook_subscription(job);
        Endpoint *endpoint = endpoint_of(hooks, subscription);
        if (endpoint_take(endpoint, subscription, job)) {
            endpoint_pump(hooks, endpoint);
        } else {
            metric_add(hooks->metrics.held_full, 1);
            hook_hold(job, 0, "full");
        }
    }
}

// true: it waits behind the one that goes first, or is gone.
static bool chained(HookJob *job)
{
    Hooks *hooks = job->hooks;
    HookJob *first = map_get(hooks->chains, chain_key(job));
    if (first == NULL) {
        map_put(hooks->chains, chain_key(job), job);
        return false;
    }
    if (first->chain.count < HOOK_CHAIN_MAX) {
        job_list_push(&first->chain, job);
    } else {
        metric_add(hooks->metrics.held_full, 1);
        hook_hold(job, 0, "order");
    }
    return true;
}

static void take(HookJob *job)
{
    Hooks *hooks = job->hooks;
    job->tenant = tenant_of(hooks, str_from(job->event->meta->tenant));
    bool room = tenant_has_room(hooks, job->tenant);
    map_put(hooks->jobs, str_from(job->event->delivery_id), job);
    job->tenant->in_hand++;
    if (!room && !job->event->gone) {
        metric_add(hooks->metrics.held_full, 1);
        hook_hold(job, 0, "full");
    } else if (!job->event->in_order || !chained(job)) {
        admit(job);
    }
}

void hook_intake(Hooks *hooks, Delivery **deliveries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        Error err = {0};
        HookJob *job = read_job(hooks, deliveries[i], &err);
        if (job == NULL) {
            LOG(LOG_WARN, "an event that cannot be read was moved to the dead letters",
                log_text("stream", deliveries[i]->message.stream),
                log_int("sequence", (int64_t)deliveries[i]->message.sequence), log_error(&err));
            delivery_settle(deliveries[i], &err);
            continue;
        }
        if (map_get(hooks->jobs, str_from(job->event->delivery_id)) != NULL) {
            delivery_redeliver(deliveries[i], HOOK_SELF_MS); // its first delivery is in hand here
            continue;
        }
        take(job);
    }
}

// ---- from time to time ----

static void hold_late(Hooks *hooks, Endpoint *endpoint)
{
    while (endpoint->queue.head != NULL && is_late(endpoint->queue.head)) {
        HookJob *job = job_list_pop(&endpoint->queue);
        metric_add(hooks->metrics.held_late, 1);
        hook_hold(job, 0, "late");
    }
}

// One at each tick, so that the walk never changes the map under itself.
static void forget_one(Hooks *hooks, int64_t now_us)
{
    Str key, idle = STR_EMPTY;
    void *value;
    for (size_t i = 0; map_next(hooks->endpoints, &i, &key, &value);) {
        const Endpoint *endpoint = value;
        bool works = endpoint->queue.count > 0 || endpoint->posting > 0 || endpoint->starved;
        if (!works && now_us - endpoint->used_us > HOOK_IDLE_S * INT64_C(1000000)) {
            idle = key;
        }
    }
    if (idle.len > 0) {
        (void)map_remove(hooks->endpoints, idle);
    }
}

void hook_tick(Hooks *hooks)
{
    Str key;
    void *value;
    size_t count = 0;
    Endpoint **late = xcalloc(map_count(hooks->endpoints) + 1, sizeof *late);
    for (size_t i = 0; map_next(hooks->endpoints, &i, &key, &value);) {
        Endpoint *endpoint = value;
        if (endpoint->queue.head != NULL && is_late(endpoint->queue.head)) {
            late[count++] = endpoint;
        }
    }
    for (size_t i = 0; i < count; i++) {
        hold_late(hooks, late[i]);
    }
    free((void *)late);
    forget_one(hooks, clock_mono_us());
    hook_record_refused(hooks);
    hook_sign_flush(hooks);
}

void hook_give_up(Hooks *hooks)
{
    Error err = {.kind = ERROR_CANCELLED};
    Str key;
    void *value;
    for (size_t i = 0; map_next(hooks->endpoints, &i, &key, &value);) {
        Endpoint *endpoint = value;
        HookJob *job;
        while ((job = job_list_pop(&endpoint->queue)) != NULL) {
            hook_end(job, &err);
        }
    }
    HookJob *refused;
    while ((refused = job_list_pop(&hooks->refused)) != NULL) {
        hook_end(refused, &err);
    }
}
