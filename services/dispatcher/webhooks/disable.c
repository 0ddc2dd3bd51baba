// SPDX-License-Identifier: Apache-2.0
// An endpoint that fails too often is turned off: the event to the tenant is stored first, then the
// subscription's state in CONFIG, in the place of just the entry that was judged, both before the
// failure's input is acked. Killed in between, its redelivery does both again, the event under the
// same id.
#include <inttypes.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/config/config_store.h"
#include "services/dispatcher/webhooks/hooks_internal.h"

typedef struct Ending {
    Hooks *hooks;
    Delivery *delivery;
    Endpoint *endpoint;
    ConfigStore store;
} Ending;

// A JSON object on evt.<tenant>.<type>, for the tenant's triggers and applications.
bool hook_event_out(
    const HookJob *job, const char *type, const char *error, const char *id, BusOut *ret,
    Error *err)
{
    enum { EVENT_MAX = 2048 };
    const Stentor__V1__WebhookDelivery *event = job->event;
    Arena *arena = job->delivery->arena;
    char subject[SUBJECT_SIZE], at[CLOCK_RFC3339_SIZE];
    Buf out;
    buf_init(&out, EVENT_MAX);
    clock_format(job->outcome.finished_at_us, at);
    buf_printf(
        &out,
        "{\"subscription_id\":\"%s\",\"occurred_at\":\"%s\",\"error\":", event->subscription_id,
        at);
    buf_json(&out, str_from(error));
    buf_printf(
        &out,
        ",\"delivery_id\":\"%s\",\"event_id\":\"%s\",\"notification_id\":\"%s\",\"type\":\"%s\","
        "\"attempts\":%" PRIu32 ",\"status_code\":%d}",
        event->delivery_id, event->webhook_id, event->meta->notification_id, event->type,
        event->attempt, job->outcome.status_code);
    bool fits = !out.full;
    subject_event(subject, str_from(event->meta->tenant), str_from(type));
    *ret = (BusOut){
        .subject = arena_cstr(arena, str_from(subject)),
        .event_id = arena_str(arena, str_from(id)),
        .payload = arena_str(arena, buf_view(&out)),
        .traceparent = job->delivery->message.traceparent,
    };
    buf_done(&out);
    return fits || error_set(err, ERROR_PERMANENT, "the event about a failed webhook is too long");
}

static void on_stored(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    Ending *ending = ctx;
    (void)sequence;
    (void)duplicate;
    if (err == NULL) {
        metric_add(ending->hooks->metrics.disabled, 1);
    } else {
        ending->endpoint->disabling = 0;
        LOG(LOG_WARN, "a failing endpoint was not turned off; its next failure tries again",
            log_error(err));
    }
    delivery_held(ending->delivery, err);
}

// Someone else changed the entry meanwhile: it is judged again by its next failure.
static ConfigVerdict leave(void *ctx, uint64_t there)
{
    (void)ctx;
    (void)there;
    return CONFIG_LEAVE;
}

static void on_announced(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    Ending *ending = ctx;
    (void)sequence;
    (void)duplicate;
    if (err != NULL) {
        ending->endpoint->disabling = 0;
        delivery_held(ending->delivery, err);
        return;
    }
    CRASH_POINT("hook.announced");
    config_store(ending->hooks->parts.bus, &ending->store, ending->delivery->arena);
}

static bool make_entry(
    Ending *ending, const Subscription *subscription, const char *reason, Str id, Error *err)
{
    Arena *arena = ending->delivery->arena;
    char subject[SUBJECT_SIZE];
    Stentor__V1__WebhookSubscription entry = *subscription->entry;
    entry.state = STENTOR__V1__WEBHOOK_STATE__WEBHOOK_STATE_FAILING;
    entry.state_reason = arena_cstr(arena, str_from(reason));
    entry.state_changed_at_us = clock_now_us();
    entry.updated_at_us = entry.state_changed_at_us;
    entry.updated_by = pb_borrow("stentor-webhook");
    subject_config(subject, WEBHOOK_KIND, str_from(entry.tenant), str_from(entry.id));
    ending->store = (ConfigStore){
        .out = {.subject = arena_cstr(arena, str_from(subject)), .event_id = arena_str(arena, id)},
        .replaces = subscription->sequence,
        .decide = leave,
        .done = on_stored,
        .ctx = ending,
    };
    return event_pack(&entry.base, arena, &ending->store.out.payload, err);
}

void hook_disable(HookJob *job, const char *reason)
{
    Hooks *hooks = job->hooks;
    Error err = {0};
    BusOut out;
    char id[EVENT_ID_SIZE];
    const Subscription *subscription = hook_subscription(job);
    if (subscription == NULL || !webhook_is_active(subscription->entry) ||
        job->outcome.finished_at_us < subscription->entry->state_changed_at_us) {
        return; // or it was turned on again behind this outcome
    }
    Endpoint *endpoint = endpoint_of(hooks, subscription);
    Ending *ending = arena_zalloc(job->delivery->arena, sizeof *ending);
    *ending = (Ending){.hooks = hooks, .delivery = job->delivery, .endpoint = endpoint};
    // Derived from the entry that is judged: whoever judges it says the same.
    event_id_derive(
        "webhook", str_from(subscription->entry->id),
        str_from(arena_printf(job->delivery->arena, "failing/%" PRIu64, subscription->sequence)),
        id);
    if (endpoint->disabling == subscription->sequence ||
        !make_entry(ending, subscription, reason, str_from(id), &err) ||
        !hook_event_out(
            job, "notification.webhook.subscription_failing.v1", reason, id, &out, &err)) {
        return;
    }
    endpoint->disabling = subscription->sequence;
    LOG(LOG_WARN,
        "a subscription was turned off, its endpoint fails (HINT: its tenant turns it on again)",
        log_text("tenant", subscription->entry->tenant),
        log_text("subscription", subscription->entry->id), log_text("reason", reason));
    delivery_hold(job->delivery);
    bus_publish(hooks->parts.bus, &out, on_announced, ending);
}
