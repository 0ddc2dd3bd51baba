// SPDX-License-Identifier: Apache-2.0
// The flow, in the order in which it happens: a batch arrives, its keys are fetched in one go
// (turns.c), each request is rendered, each is settled (one_request.c). This file has
// configuration, readiness, start and stop. Nothing is stored, so the only crash window is between
// an emitted event and the ack of its request. Killed there, the request is rendered again with the
// same event ids, and JetStream (within 120 s) or the dispatcher's ledger (later) drops the repeat.
// Killed before, it is rendered later. Nothing is lost in either case
// (tests/integration/faults/test_kill.py).
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/bus/events/suppression_event.h"
#include "common/template/helpers/format.h"
#include "services/renderer/renderer_internal.h"

typedef struct RendererOptions {
    int64_t batch;
    int64_t in_flight;
    int64_t compiled;
    int64_t cpu_ms;
    const char *public_url;
} RendererOptions;

// clang-format off
static const Option OPTIONS[] = {
    {"STENTOR_RENDERER_BATCH", OPTION_INT, offsetof(RendererOptions, batch), "256", 1, 4096, false,
     "requests rendered in one batch"},
    {"STENTOR_RENDERER_IN_FLIGHT", OPTION_INT, offsetof(RendererOptions, in_flight), "2048", 1, 65536, false,
     "most unsettled requests of one lane; pulling pauses there"},
    {"STENTOR_RENDERER_TEMPLATES", OPTION_INT, offsetof(RendererOptions, compiled), "1024", 1, 100000, false,
     "template versions kept compiled; others are compiled when used"},
    {"STENTOR_RENDERER_CPU_MS", OPTION_INT, offsetof(RendererOptions, cpu_ms), "100", 1, 60000, false,
     "CPU time in milliseconds that rendering one notification may take; beyond it `failed`, `render_limit`"},
    {"STENTOR_RENDERER_PUBLIC_URL", OPTION_TEXT, offsetof(RendererOptions, public_url), "", 0, 0, false,
     "public address of the API for unsubscribe links and template assets: https://notify.example.com; empty: neither"},
};
// clang-format on

// ---- configuration and readiness ----

static bool take_config(
    Renderer *renderer, Str kind, Str tenant, Str key, const BusMessage *message, Error *err)
{
    Str payload = message->payload;
    if (str_eq(kind, STR("template"))) {
        return template_cache_put(
            renderer->templates, tenant, key, payload, message->stored_at_us, err);
    }
    if (str_eq(kind, STR("tenant"))) {
        return senders_put(renderer->senders, tenant, payload, err);
    }
    if (str_eq(kind, STR("asset"))) {
        return assets_put(renderer->assets, tenant, key, payload, message->sequence, err);
    }
    if (str_eq(kind, STR(MAIL_DOMAIN_KIND))) {
        return mail_domains_put(renderer->tracked.domains, tenant, key, payload, err);
    }
    if (str_eq(kind, STR("suppression"))) {
        return suppression_apply(renderer->suppressions, tenant, key, message, err);
    }
    return true; // other services read the other kinds
}

static bool on_config_changed(
    void *ctx, Str kind, Str tenant, Str key, const BusMessage *message, Error *err)
{
    return take_config(ctx, kind, tenant, key, message, err);
}

static void on_config_unreadable(void *ctx, Str kind, Str tenant, Str key, uint64_t sequence)
{
    Renderer *renderer = ctx;
    if (str_eq(kind, STR("tenant"))) {
        senders_unreadable(renderer->senders, tenant);
    } else if (str_eq(kind, STR("suppression"))) {
        suppression_unreadable(renderer->suppressions, tenant, key, sequence);
    }
}

static bool is_ready(void *state, Buf *reason)
{
    const Renderer *renderer = state;
    return config_mirror_ready(renderer->mirror) ||
           (buf_cstr(reason, "the configuration has not been read yet") && false);
}

static double read_templates(void *ctx)
{
    const Renderer *renderer = ctx;
    return (double)template_cache_count(renderer->templates);
}

static double read_compiled(void *ctx)
{
    const Renderer *renderer = ctx;
    return (double)template_cache_compiled(renderer->templates);
}

// ---- start and stop ----

static void register_metrics(Renderer *renderer)
{
    static const double seconds[] = {0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1};
    static const double sizes[] = {1, 4, 16, 64, 128, 256, 512, 1024};
    Metrics *metrics = service_metrics(renderer->service);
    char labels[64];
    for (size_t i = 0; i < LANES; i++) {
        Lane *lane = &renderer->lanes[i];
        snprintf(labels, sizeof labels, "lane=\"%s\"", priority_name(lane->priority));
        lane->rendered = metrics_counter(
            metrics, "stentor_renderer_rendered_total", labels, "Notifications rendered");
    }
    for (FailureCode code = FAILURE_NONE + 1; code < FAILURE_COUNT; code++) {
        snprintf(labels, sizeof labels, "reason=\"%s\"", failure_code_name(code));
        renderer->failed[code] = metrics_counter(
            metrics, "stentor_renderer_failed_total", labels,
            "Notifications that cannot be rendered");
    }
    // clang-format off
    renderer->suppressed = metrics_counter(
        metrics, "stentor_renderer_suppressed_total", "",
        "Notifications other than e-mails whose address was suppressed or tenant suspended after "
        "they were accepted");
    renderer->unsafe_urls = metrics_counter(
        metrics, "stentor_renderer_unsafe_urls_total", "",
        "Values that were no safe URL where a URL is expected; " TEMPLATE_UNSAFE_URL
        " stands for them");
    renderer->tracked_links = metrics_counter(metrics, "stentor_renderer_tracked_links_total", "", "Links and pixels of mails that report clicks and opens");
    renderer->ignored = metrics_counter(metrics, "stentor_renderer_replay_failures_ignored_total", "", "Replayed requests that can no longer be rendered; they publish no status");
    renderer->seconds = metrics_histogram(metrics, "stentor_renderer_batch_seconds", "", "Time to render one batch", seconds, sizeof seconds / sizeof *seconds);
    renderer->batch_size = metrics_histogram(metrics, "stentor_renderer_batch_size", "", "Requests in one batch", sizes, sizeof sizes / sizeof *sizes);
    metrics_gauge_fn(metrics, "stentor_renderer_templates", "", "Template versions known", read_templates, renderer);
    metrics_gauge_fn(metrics, "stentor_renderer_templates_compiled", "", "Template versions kept compiled", read_compiled, renderer);
    // clang-format on
}

static void open_lane(Renderer *renderer, Lane *lane, const RendererOptions *options)
{
    const char *stream = topology_lane_stream("REQUEST", lane->priority);
    WorkerOptions worker = {
        .consumer = topology_consumer("stentor-renderer", stream),
        .batch_max = (size_t)options->batch,
        .in_flight_max = (size_t)options->in_flight,
        .stage = "renderer",
        .slack = lane->priority == PRIORITY_LOW,
    };
    lane->renderer = renderer;
    lane->worker = worker_new(service_bus(renderer->service), &worker, renderer_on_batch, lane);
}

// Not earlier: at each restart every waiting request would be returned because its template is
// missing.
static void start_lanes(Renderer *renderer)
{
    if (renderer->stopping) {
        return;
    }
    for (size_t i = 0; i < LANES; i++) {
        worker_start(renderer->lanes[i].worker);
    }
}

static void on_config_ready(void *ctx)
{
    start_lanes(ctx);
}

static bool start(Service *service, const void *options, void **ret_state, Error *err)
{
    const RendererOptions *o = options;
    Renderer *renderer = xcalloc(1, sizeof *renderer);
    renderer->service = service;
    renderer->tracer = service_tracer(service);
    renderer->arena = arena_new(0);
    if (!opt_out_links_init(
            &renderer->links, service_master_key(service), o->public_url, renderer->arena, err)) {
        arena_free(renderer->arena);
        free(renderer);
        return false;
    }
    if (renderer->links.public_url.len == 0) {
        LOG(LOG_WARN, "e-mails have no link to unsubscribe, which mailboxes require of bulk mail",
            log_text("hint", "set STENTOR_RENDERER_PUBLIC_URL"));
    }
    mail_link_key(service_master_key(service), &renderer->tracked.key);
    renderer->tracked.domains = mail_domains_new();
    renderer->tracked.public_url = renderer->links.public_url;
    renderer->suppressions = suppressions_new();
    renderer->templates = template_cache_new((size_t)o->compiled);
    renderer->senders = senders_new();
    renderer->assets = assets_new();
    renderer->keyring =
        keyring_new(service_pool(service), service_master_key(service), &(KeyringOptions){0});
    draft_init(&renderer->draft);
    renderer->tools = template_tools_new();
    renderer->cpu_max_us = o->cpu_ms * 1000;
    uv_idle_init(service_loop(service), &renderer->turn);
    renderer->turn.data = renderer;
    for (size_t i = 0; i < LANES; i++) {
        renderer->lanes[i].priority = (Priority)(PRIORITY_CRITICAL + i);
    }
    register_metrics(renderer);
    renderer->mirror = config_mirror_new(service_bus(service), on_config_changed, renderer);
    config_mirror_on_unreadable(renderer->mirror, on_config_unreadable);
    for (size_t i = 0; i < LANES; i++) {
        open_lane(renderer, &renderer->lanes[i], o);
    }
    config_mirror_on_ready(renderer->mirror, on_config_ready, renderer);
    *ret_state = renderer;
    return true;
}

static void part_freed(Renderer *renderer)
{
    if (--renderer->open == 0) {
        service_stopped(renderer->service);
    }
}

static void on_part_freed(void *ctx)
{
    part_freed(ctx);
}

static void on_turn_closed(uv_handle_t *handle)
{
    part_freed(handle->data);
}

static void worker_stopped(Renderer *renderer)
{
    if (--renderer->open > 0) {
        return;
    }
    renderer->open = LANES + 2;
    config_mirror_free(renderer->mirror, on_part_freed, renderer);
    uv_close((uv_handle_t *)&renderer->turn, on_turn_closed);
    for (size_t i = 0; i < LANES; i++) {
        worker_free(renderer->lanes[i].worker, on_part_freed, renderer);
    }
}

static void on_worker_stopped(void *ctx)
{
    worker_stopped(ctx);
}

static void begin_stop(void *state)
{
    Renderer *renderer = state;
    renderer->stopping = true;
    renderer->open = LANES;
    for (size_t i = 0; i < LANES; i++) {
        worker_stop(renderer->lanes[i].worker, on_worker_stopped, renderer);
    }
}

static void free_renderer(void *state)
{
    Renderer *renderer = state;
    keyring_free(renderer->keyring);
    template_cache_free(renderer->templates);
    senders_free(renderer->senders);
    assets_free(renderer->assets);
    mail_domains_free(renderer->tracked.domains);
    suppressions_free(renderer->suppressions);
    arena_free(renderer->arena);
    draft_done(&renderer->draft);
    template_tools_free(renderer->tools);
    free(renderer);
}

const ServiceSpec renderer_service = {
    .name = "stentor-renderer",
    .summary = "turns accepted requests and templates into mails that are ready to send",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof *OPTIONS,
    .options_size = sizeof(RendererOptions),
    .wants_database = true,
    .wants_master_key = true,
    .start = start,
    .ready = is_ready,
    .stop = begin_stop,
    .free = free_renderer,
};
