// SPDX-License-Identifier: Apache-2.0
// Start and stop: the configuration first, then the two workers. Of all processes one matches, so
// that events in order are seen in order; all deliver.
#include "services/dispatcher/webhooks/hooks.h"

#include <stdlib.h>

#include "services/dispatcher/webhooks/hooks_internal.h"

enum { START_POLL_MS = 20, ENDPOINTS_MAX = 65536 };

#define STAGE "webhook"

// ---- metrics ----

static double read_posts(void *ctx)
{
    return (double)((const Hooks *)ctx)->posts;
}

static double read_subscriptions(void *ctx)
{
    return (double)subscriptions_count(((const Hooks *)ctx)->subscriptions);
}

static double read_in_hand(void *ctx)
{
    return (double)map_count(((const Hooks *)ctx)->jobs);
}

static void register_metrics(Hooks *hooks, Metrics *metrics)
{
    static const double seconds[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15};
    static const char *const attempts = "stentor_webhook_attempts_total";
    static const char *const attempts_help = "Attempts to deliver a webhook by their outcome";
    static const char *const holds = "stentor_webhook_holds_total";
    static const char *const holds_help = "Deliveries put back for a moment, which uses no attempt";
    HookMetrics *ours = &hooks->metrics;
    // clang-format off
    ours->matched     = metrics_counter(metrics, "stentor_webhook_matched_total", "", "Deliveries made of statuses, repeats included");
    ours->delivered   = metrics_counter(metrics, attempts, "outcome=\"delivered\"", attempts_help);
    ours->retried     = metrics_counter(metrics, attempts, "outcome=\"retried\"", attempts_help);
    ours->failed      = metrics_counter(metrics, attempts, "outcome=\"failed\"", attempts_help);
    ours->held_full   = metrics_counter(metrics, holds, "reason=\"full\"", holds_help);
    ours->held_late   = metrics_counter(metrics, holds, "reason=\"late\"", holds_help);
    ours->held_order  = metrics_counter(metrics, holds, "reason=\"order\"", holds_help);
    ours->uncategorised = metrics_counter(metrics, "stentor_webhook_uncategorised_total", "", "Statuses that no filter by category lets through, because nothing said their notification's, repeats included");
    ours->gone        = metrics_counter(metrics, "stentor_webhook_gone_total", "", "Deliveries in order that ended because their event is in no stream any more");
    ours->disabled    = metrics_counter(metrics, "stentor_webhook_disabled_total", "", "Subscriptions turned off because their endpoint failed");
    ours->repeated    = metrics_counter(metrics, "stentor_webhook_repeats_total", "", "Deliveries whose outcome the ledger had already");
    // clang-format on
    ours->post_seconds = metrics_histogram(
        metrics, "stentor_webhook_post_seconds", "", "Seconds that a post took", seconds,
        sizeof seconds / sizeof *seconds);
    metrics_gauge_fn(metrics, "stentor_webhook_posts", "", "Posts on their way", read_posts, hooks);
    metrics_gauge_fn(
        metrics, "stentor_webhook_in_hand", "", "Deliveries in hand, those on their way included",
        read_in_hand, hooks);
    metrics_gauge_fn(
        metrics, "stentor_webhook_subscriptions", "", "Subscriptions of all tenants",
        read_subscriptions, hooks);
}

// ---- workers ----

static void on_status_batch(void *ctx, Delivery **deliveries, size_t count)
{
    match_batch(ctx, deliveries, count);
}

static void on_hook_batch(void *ctx, Delivery **deliveries, size_t count)
{
    hook_intake(ctx, deliveries, count);
}

static void work(Hooks *hooks)
{
    const HooksParts *parts = &hooks->parts;
    WorkerOptions match = {
        .consumer = topology_consumer(parts->service, "STATUS"),
        .batch_max = HOOK_BATCH_MAX,
        .yields = true,
        .stage = STAGE,
    };
    WorkerOptions deliver = {
        .consumer = topology_consumer(parts->service, "HOOK"),
        .batch_max = HOOK_BATCH_MAX,
        .in_flight_max = parts->in_flight_max,
        .stage = STAGE,
    };
    hooks->matcher = worker_new(parts->bus, &match, on_status_batch, hooks);
    hooks->deliverer = worker_new(parts->bus, &deliver, on_hook_batch, hooks);
    match_begin(hooks);
    worker_start(hooks->deliverer);
    hooks->working = true;
    uv_timer_set_repeat(&hooks->tick, HOOK_STAGE_TICK_MS);
    (void)uv_timer_again(&hooks->tick);
}

static void on_tick_timer(uv_timer_t *timer)
{
    Hooks *hooks = timer->data;
    if (hooks->working) {
        hook_tick(hooks);
        match_tick(hooks);
    } else if (!hooks->stopping && config_mirror_ready(hooks->mirror)) {
        work(hooks);
    }
}

// ---- start ----

static void free_endpoint(void *value)
{
    Endpoint *endpoint = value;
    free(endpoint->key);
    free(endpoint);
}

static bool open_client(Hooks *hooks, Error *err)
{
    const HooksParts *parts = &hooks->parts;
    hooks->client = http_client_new(
        parts->loop,
        &(HttpClientOptions){
            .calls = parts->calls,
            .ca_file = parts->ca_file,
            .agent = "Stentor-Webhooks",
            .guard = &parts->guard,
            .dns_servers = parts->dns_servers,
            // An endpoint's limit is its subscription's: several may be at one origin.
            .calls_per_origin = parts->calls,
        },
        err);
    return hooks->client != NULL;
}

static void init_timer(Hooks *hooks, uv_timer_t *timer)
{
    (void)uv_timer_init(hooks->parts.loop, timer);
    timer->data = hooks;
}

Hooks *hooks_new(const HooksParts *parts, Error *err)
{
    Hooks *hooks = xcalloc(1, sizeof *hooks);
    hooks->parts = *parts;
    if (!open_client(hooks, err)) {
        free(hooks);
        return NULL;
    }
    hooks->owner = str_from(parts->instance);
    hooks->subscriptions = subscriptions_new(parts->master);
    hooks->tenants = map_new(free);
    hooks->endpoints = map_new(free_endpoint);
    hooks->jobs = map_new(NULL);
    hooks->chains = map_new(NULL);
    hooks->budgets = budgets_new_of(&(BudgetsOptions){
        .pool = parts->pool,
        .instance = parts->instance,
        .metrics = parts->metrics,
        .metrics_prefix = "stentor_webhook_",
        .schema = "webhooks",
        .keys_max = ENDPOINTS_MAX,
    });
    register_metrics(hooks, parts->metrics);
    init_timer(hooks, &hooks->tick);
    init_timer(hooks, &hooks->claim_timer);
    init_timer(hooks, &hooks->record_timer);
    init_timer(hooks, &hooks->starved_timer);
    init_timer(hooks, &hooks->turn_timer);
    init_timer(hooks, &hooks->match_timer);
    hooks->mirror = config_mirror_new(parts->bus, subscriptions_changed, hooks->subscriptions);
    (void)uv_timer_start(&hooks->tick, on_tick_timer, 0, START_POLL_MS);
    return hooks;
}

bool hooks_ready(const Hooks *hooks, Buf *reason)
{
    if (!hooks->working) {
        buf_cstr(reason, "the configuration has not been read yet");
    }
    return hooks->working;
}

// ---- stop ----
// The workers first, whose deliveries are all settled then; the rest side by side.

static void part_closed(Hooks *hooks)
{
    if (--hooks->open == 0) {
        hooks->on_stopped(hooks->stopped_ctx);
    }
}

static void on_part_closed(void *ctx)
{
    part_closed(ctx);
}

static void on_timer_closed(uv_handle_t *handle)
{
    part_closed(handle->data);
}

static void close_rest(Hooks *hooks)
{
    hooks->open = 9 + (hooks->working ? 3 : 0);
    if (hooks->working) {
        worker_free(hooks->matcher, on_part_closed, hooks);
        worker_free(hooks->deliverer, on_part_closed, hooks);
        db_lock_close(hooks->match_lock, on_part_closed, hooks);
    }
    config_mirror_free(hooks->mirror, on_part_closed, hooks);
    budgets_close(hooks->budgets, on_part_closed, hooks);
    http_client_free(hooks->client, on_part_closed, hooks);
    uv_close((uv_handle_t *)&hooks->tick, on_timer_closed);
    uv_close((uv_handle_t *)&hooks->claim_timer, on_timer_closed);
    uv_close((uv_handle_t *)&hooks->record_timer, on_timer_closed);
    uv_close((uv_handle_t *)&hooks->starved_timer, on_timer_closed);
    uv_close((uv_handle_t *)&hooks->turn_timer, on_timer_closed);
    uv_close((uv_handle_t *)&hooks->match_timer, on_timer_closed);
}

static void on_worker_stopped(void *ctx)
{
    Hooks *hooks = ctx;
    if (--hooks->open == 0) {
        close_rest(hooks);
    }
}

void hooks_stop(Hooks *hooks, void (*on_stopped)(void *ctx), void *ctx)
{
    hooks->stopping = true;
    hooks->stopping_at_ms = uv_now(hooks->parts.loop);
    hooks->on_stopped = on_stopped;
    hooks->stopped_ctx = ctx;
    if (!hooks->working) {
        close_rest(hooks);
        return;
    }
    hooks->open = 2;
    worker_stop(hooks->matcher, on_worker_stopped, hooks);
    worker_stop(hooks->deliverer, on_worker_stopped, hooks);
    hook_give_up(hooks);
    match_give_up(hooks);
}

void hooks_free(Hooks *hooks)
{
    if (hooks != NULL) {
        budgets_free(hooks->budgets);
        map_free(hooks->endpoints);
        map_free(hooks->tenants);
        map_free(hooks->jobs);
        map_free(hooks->chains);
        subscriptions_free(hooks->subscriptions);
        free((void *)hooks->starved);
        free(hooks);
    }
}
