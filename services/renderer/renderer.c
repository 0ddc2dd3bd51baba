// SPDX-License-Identifier: Apache-2.0
// The flow, in the order in which it happens: a batch arrives, its keys are fetched in one go, each
// request is rendered, each is settled. Nothing is stored, so the only crash window is between what
// was emitted and the ack of its request: killed there, the request is rendered again with the same
// event ids, and JetStream (within 120 s) or the dispatcher's ledger (later) drops the repeat;
// killed before, it is simply rendered later. Nothing is lost in either case:
// tests/integration/faults/test_kill.py.
#include "services/renderer/renderer.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/bus/consume/worker.h"
#include "common/bus/events/suppression_event.h"
#include "common/codec/event.h"
#include "common/config/config_mirror.h"
#include "common/db/keyring.h"
#include "common/events/sealed.h"
#include "common/render/render_events.h"
#include "common/render/template_cache.h"
#include "common/template/helpers/format.h"
#include "services/renderer/footer.h"
#include "services/renderer/second_check.h"

enum {
    LANES = PRIORITY_COUNT - 1,
    PATIENCE = 5,      // deliveries of a request before its template counts as unknown
    PATIENCE_MS = 200, // between them
    // Of one batch; then the loop has its turn: other lanes' requests come in, and deliveries in
    // hand are renewed. What a one-time code waits for at most is the lowest lane's.
    TURN_MS = 20,
    TURN_LOW_MS = 4,
};

typedef struct RendererOptions {
    int64_t batch;
    int64_t in_flight;
    int64_t compiled;
    int64_t cpu_ms;
    const char *public_url;
} RendererOptions;

typedef struct Renderer Renderer;

typedef struct Lane {
    Renderer *renderer;
    Priority priority;
    Worker *worker;
    Metric *rendered;
    struct Batch *waiting, *last_waiting; // for a turn of the loop
} Lane;

struct Renderer {
    Service *service;
    Keyring *keyring;
    ConfigMirror *mirror;
    TemplateCache *templates;
    Senders *senders;
    Suppressions *suppressions;
    OptOutLinks links;
    Arena *arena; // of the process
    Draft draft;
    TemplateTools *tools;
    int64_t cpu_max_us;
    Lane lanes[LANES];
    uv_idle_t turn; // of the batches that wait; a timer of 0 ms would not let the loop read
    Metric *failed[FAILURE_COUNT];
    Metric *suppressed;
    Metric *unsafe_urls;
    Metric *untold; // failures of replayed requests
    Metric *seconds;
    Metric *batch_size;
    bool stopping;
    int open; // parts that have not stopped, later not been freed
};

// One delivery that could be read. wants[i] of the batch belongs to items[i].
typedef struct Item {
    Delivery *delivery;
    const Request *request;
} Item;

typedef struct Batch {
    Lane *lane;
    Item *items;
    KeyWant *wants;
    size_t count;
    size_t done;
    struct Batch *next; // that waits for its turn
} Batch;

// clang-format off
static const Option OPTIONS[] = {
    {"STENTOR_RENDERER_BATCH", OPTION_INT, offsetof(RendererOptions, batch), "256", 1, 4096, false,
     "requests rendered at once"},
    {"STENTOR_RENDERER_IN_FLIGHT", OPTION_INT, offsetof(RendererOptions, in_flight), "2048", 1, 65536, false,
     "requests of one lane that were taken and are not settled yet; pulling pauses there"},
    {"STENTOR_RENDERER_TEMPLATES", OPTION_INT, offsetof(RendererOptions, compiled), "1024", 1, 100000, false,
     "template versions kept compiled; the others are compiled when they are used"},
    {"STENTOR_RENDERER_CPU_MS", OPTION_INT, offsetof(RendererOptions, cpu_ms), "100", 1, 60000, false,
     "CPU time in milliseconds that rendering one notification may take; beyond it `failed`, `render_limit`"},
    {"STENTOR_RENDERER_PUBLIC_URL", OPTION_TEXT, offsetof(RendererOptions, public_url), "", 0, 0, false,
     "where webhook-receiver's /v1/opt-out is reached from outside (https://notify.example.com), for unsubscribe links; empty: no links"},
};
// clang-format on

// ---- one request ----

typedef enum Result {
    RESULT_OUT,    // *out is to be emitted: rendered
    RESULT_FAILED, // *failure says why it never will be
    RESULT_LATER,  // its template may still be on its way
    RESULT_BURY,   // *err: unreadable
} Result;

static Result refuse(RenderFailure *failure, FailureCode code, const char *reason)
{
    (void)render_fail(failure, code, "%s", reason);
    return RESULT_FAILED;
}

// What needs neither template nor variables; RESULT_OUT: go on. What has expired goes on too: it
// may be seen again, sent long ago, and our `failed` would win over `sent`. The dispatcher says
// `expired` through its ledger. The count of deliveries is no help: after a crash the server may
// begin it anew (tests/integration/faults/test_seen_again.py). Of a replay nothing is told
// (report_failure).
static Result check_first(const Delivery *delivery, const Job *job, RenderFailure *failure)
{
    const Request *request = job->request;
    bool expired = request->expires_at_us != 0 && request->expires_at_us <= job->now_us;
    if (expired && delivery->message.replayed) {
        return refuse(failure, FAILURE_EXPIRED, "the request expired before it was rendered");
    }
    if (request->channel == STENTOR__V1__CHANNEL__CHANNEL_WEBHOOK) {
        (void)render_fail(
            failure, FAILURE_UNSUPPORTED_CHANNEL, "channel '%s' has no words to render",
            channel_name((Channel)request->channel));
        return RESULT_FAILED;
    }
    if (job->key == NULL) {
        return refuse(
            failure, FAILURE_RECIPIENT_ERASED, "the recipient's data was erased before rendering");
    }
    return RESULT_OUT;
}

// The version may come later than the request: CONFIG and REQUEST are two streams.
static Result find_version(
    const Lane *lane, const Item *item, const CompiledVersion **ret, RenderFailure *failure)
{
    const Request *request = item->request;
    const CompiledVersion *version = template_cache_get(
        lane->renderer->templates, str_from(request->meta->tenant), str_from(request->template_),
        str_from(request->template_version));
    *ret = version;
    if (version != NULL && version->broken.kind == ERROR_NONE) {
        return RESULT_OUT;
    }
    if (version != NULL) {
        return refuse(failure, FAILURE_INVALID_TEMPLATE, version->broken.text);
    }
    if (item->delivery->message.delivered < PATIENCE) {
        return RESULT_LATER;
    }
    (void)render_fail(
        failure, FAILURE_UNKNOWN_TEMPLATE, "template '%.64s' version '%.64s' is not known",
        request->template_, request->template_version);
    return RESULT_FAILED;
}

static Result write_words(
    const Lane *lane, const Job *job, const CompiledVersion *version, json_t *variables,
    BusOut *out, RenderFailure *failure)
{
    Renderer *renderer = lane->renderer;
    const Sender *sender = senders_get(renderer->senders, str_from(job->request->meta->tenant));
    Str wanted = str_from(job->request->locale);
    const CompiledLocale *locale =
        version_locale(version, wanted.len > 0 ? wanted : str_from(sender->locale));
    Str zone = str_from(job->request->time_zone);
    TemplateMeter meter = {.cpu_us = clock_thread_cpu_us, .max_us = renderer->cpu_max_us};
    // The zones that ingest knows are the system's, those of the dates are ICU's.
    WordsContext context = {
        .zone = format_zone_exists(zone) ? zone : str_from(sender->zone),
        .tools = renderer->tools,
        .meter = &meter,
    };
    Error err = {0};
    footer_variables(variables, job->unsubscribe_url, sender->physical_address);
    if (version->channel != (Channel)job->request->channel) {
        (void)render_fail(
            failure, FAILURE_INVALID_TEMPLATE, "it is a template of channel '%s', not of '%s'",
            channel_name(version->channel), channel_name((Channel)job->request->channel));
        return RESULT_FAILED;
    }
    if (!check_variables(version->source, variables, failure)) {
        return RESULT_FAILED;
    }
    add_surroundings(variables, locale, sender->theme, sender->names);
    bool ok = render_words(version, locale, variables, &context, &renderer->draft, failure);
    metric_add(renderer->unsafe_urls, meter.unsafe_urls);
    if (!ok) {
        return RESULT_FAILED;
    }
    if (job->unsubscribe_url[0] != '\0' &&
        !footer_add(
            &renderer->draft, version->source, locale->locale, sender->physical_address, failure)) {
        return RESULT_FAILED;
    }
    if (!rendered_event(job, version, locale, &renderer->draft, sender, out, &err)) {
        return refuse(failure, FAILURE_RENDER, err.text);
    }
    return RESULT_OUT;
}

static Result render(
    const Lane *lane, const Item *item, const Job *job, BusOut *out, RenderFailure *failure,
    Error *err)
{
    const CompiledVersion *version = NULL;
    Result result = check_first(item->delivery, job, failure);
    if (result == RESULT_OUT) {
        result = find_version(lane, item, &version, failure);
    }
    if (result != RESULT_OUT) {
        return result;
    }
    Str json;
    json_t *variables = NULL;
    if (!job_variables(job, &json, err)) {
        return RESULT_BURY;
    }
    if (!parse_variables(json, &variables, failure)) {
        return RESULT_FAILED;
    }
    bool is_digest = job->request->n_digest_items > 0;
    result = is_digest && !digest_variables(job, variables, err)
                 ? RESULT_BURY
                 : write_words(lane, job, version, variables, out, failure);
    json_decref(variables);
    return result;
}

static void report_failure(
    const Lane *lane, const Job *job, Delivery *delivery, const RenderFailure *failure)
{
    BusOut out;
    Error err = {0};
    if (delivery->message.replayed) {
        // The request was handled before; that it has expired or that its recipient was erased
        // since must not make a failure of what was sent.
        metric_add(lane->renderer->untold, 1);
        delivery_settle(delivery, NULL);
        return;
    }
    metric_add(lane->renderer->failed[failure->code], 1);
    if (failed_event(job, failure, &out, &err)) {
        delivery_emit(delivery, &out);
        delivery_settle(delivery, NULL);
        return;
    }
    delivery_settle(delivery, &err);
}

// false: the address or its tenant is barred since the request was accepted; it has been settled.
// A mail may be seen again, sent long ago, and then our `suppressed` would win over `sent`: it goes
// on to the dispatcher, which asks the same and decides through its ledger. On the other channels
// nothing was ever sent.
static bool pass_second_check(const Lane *lane, const Job *job, Delivery *delivery)
{
    Renderer *renderer = lane->renderer;
    const char *reason = "";
    HashKeys hash_keys = master_hash_keys(service_master_key(renderer->service));
    const char *code = second_check(
        renderer->suppressions,
        senders_get(renderer->senders, str_from(job->request->meta->tenant)), &hash_keys, job,
        &reason);
    bool mail = job->request->channel == STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    if (code == NULL || (mail && !delivery->message.replayed)) {
        return true;
    }
    BusOut out;
    Error err = {0};
    if (delivery->message.replayed) {
        metric_add(renderer->untold, 1);
        delivery_settle(delivery, NULL);
        return false;
    }
    metric_add(renderer->suppressed, 1);
    bool ok = suppressed_event(job, code, reason, &out, &err);
    if (ok) {
        delivery_emit(delivery, &out);
    }
    delivery_settle(delivery, ok ? NULL : &err);
    return false;
}

static void handle_item(const Lane *lane, const Item *item, DataKey *key, int64_t now_us)
{
    Delivery *delivery = item->delivery;
    BusOut out;
    RenderFailure failure = {.code = FAILURE_NONE};
    Error err = {0};
    Job job = {
        .request = item->request,
        .key = key,
        .lane = lane->priority,
        .traceparent = delivery->message.traceparent,
        .now_us = now_us,
        .arena = delivery->arena,
    };
    if (!pass_second_check(lane, &job, delivery)) {
        return;
    }
    job.unsubscribe_url = opt_out_link(&lane->renderer->links, &job);
    switch (render(lane, item, &job, &out, &failure, &err)) {
    case RESULT_OUT:
        metric_add(lane->rendered, 1);
        delivery_emit(delivery, &out);
        delivery_settle(delivery, NULL);
        break;
    case RESULT_FAILED:
        report_failure(lane, &job, delivery, &failure);
        break;
    case RESULT_LATER:
        delivery_again(delivery, PATIENCE_MS);
        break;
    case RESULT_BURY:
        delivery_settle(delivery, &err);
        break;
    }
}

// ---- a batch ----

static void on_turn(uv_idle_t *turn);

// One that has begun goes on before the others of its lane.
static void wait_for_turn(Batch *batch)
{
    Lane *lane = batch->lane;
    if (batch->done > 0 || lane->waiting == NULL) {
        batch->next = lane->waiting;
        lane->waiting = batch;
        lane->last_waiting = batch->next == NULL ? batch : lane->last_waiting;
    } else {
        batch->next = NULL;
        lane->last_waiting->next = batch;
        lane->last_waiting = batch;
    }
    uv_idle_start(&lane->renderer->turn, on_turn);
}

static int64_t turn_us(const Lane *lane)
{
    return (lane->priority == PRIORITY_LOW ? TURN_LOW_MS : TURN_MS) * INT64_C(1000);
}

// The batch lives in the deliveries' arena, which goes with the last settle: afterwards only locals
// are touched.
static void render_batch(Batch *batch, const Error *err)
{
    const Lane *lane = batch->lane;
    const Item *items = batch->items;
    const KeyWant *wants = batch->wants;
    size_t count = batch->count;
    int64_t started_us = clock_mono_us();
    int64_t now_us = clock_now_us();
    size_t first = batch->done;
    for (size_t i = first; i < count; i++) {
        if (err != NULL) {
            delivery_settle(items[i].delivery, err);
            continue;
        }
        if (i > first && clock_mono_us() - started_us > turn_us(lane)) {
            batch->done = i;
            wait_for_turn(batch);
            return;
        }
        handle_item(lane, &items[i], wants[i].key, now_us);
    }
    metric_observe(lane->renderer->seconds, (double)(clock_mono_us() - started_us) / 1e6);
    metric_observe(lane->renderer->batch_size, (double)count);
}

static void on_turn_resolved(void *ctx, const Error *err)
{
    render_batch(ctx, err);
}

static void on_keyring_resolved(void *ctx, const Error *err)
{
    Batch *batch = ctx;
    if (batch->lane->waiting == NULL) {
        render_batch(batch, err);
    } else {
        wait_for_turn(batch); // an error comes again when the keys are asked for again
    }
}

static Batch *take_waiting(Renderer *renderer, bool *ret_more)
{
    Batch *batch = NULL;
    *ret_more = false;
    for (size_t i = 0; i < LANES; i++) {
        Lane *lane = &renderer->lanes[i];
        if (batch == NULL && lane->waiting != NULL) {
            batch = lane->waiting;
            lane->waiting = batch->next;
        }
        *ret_more = *ret_more || lane->waiting != NULL;
    }
    return batch;
}

// One batch in each turn of the loop, of the highest lane that has one. Keys are good for one turn,
// so they are asked for again; they are in memory.
static void on_turn(uv_idle_t *turn)
{
    Renderer *renderer = turn->data;
    bool more = false;
    Batch *batch = take_waiting(renderer, &more);
    if (!more) {
        uv_idle_stop(turn);
    }
    if (batch != NULL) {
        keyring_resolve(
            renderer->keyring, batch->wants + batch->done, batch->count - batch->done,
            on_turn_resolved, batch);
    }
}

// NULL: the delivery has been buried.
static const Request *read_request(Delivery *delivery)
{
    Error err = {0};
    const Request *request = (const Request *)event_unpack(
        &stentor__v1__notification_request__descriptor, delivery->message.payload, delivery->arena,
        &err);
    if (request != NULL && render_request_check(request, delivery->message.subject, &err)) {
        return request;
    }
    delivery_settle(delivery, &err);
    return NULL;
}

static void take_batch(Lane *lane, Delivery **deliveries, size_t count)
{
    Arena *arena = deliveries[0]->arena;
    Batch *batch = arena_zalloc(arena, sizeof *batch);
    batch->lane = lane;
    batch->items = arena_array(arena, count, sizeof *batch->items);
    batch->wants = arena_array(arena, count, sizeof *batch->wants);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        Delivery *delivery = deliveries[i];
        const Request *request = read_request(delivery);
        if (request != NULL) {
            batch->wants[kept] = key_want_of(str_from(request->meta->tenant), request->address);
            batch->items[kept++] = (Item){delivery, request};
        }
    }
    // With nothing kept everything is settled and the batch may be gone.
    if (kept > 0) {
        batch->count = kept;
        keyring_resolve(lane->renderer->keyring, batch->wants, kept, on_keyring_resolved, batch);
    }
}

static void on_worker_batch(void *ctx, Delivery **deliveries, size_t count)
{
    take_batch(ctx, deliveries, count);
}

// ---- configuration and readiness ----

static bool take_config(
    Renderer *renderer, Str kind, Str tenant, Str key, const BusMessage *message, Error *err)
{
    Str payload = message->payload;
    if (str_eq(kind, STR("template"))) {
        return template_cache_put(renderer->templates, tenant, key, payload, err);
    }
    if (str_eq(kind, STR("tenant"))) {
        return senders_put(renderer->senders, tenant, payload, err);
    }
    if (str_eq(kind, STR("suppression"))) {
        return suppression_take(renderer->suppressions, tenant, key, message, err);
    }
    return true; // other kinds are other services'
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

// ---- life ----

static void register_metrics(Renderer *renderer)
{
    static const double seconds[] = {0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1};
    static const double sizes[] = {1, 4, 16, 64, 128, 256, 512, 1024};
    Metrics *metrics = service_metrics(renderer->service);
    char labels[64];
    for (size_t i = 0; i < LANES; i++) {
        Lane *lane = &renderer->lanes[i];
        snprintf(labels, sizeof labels, "lane=\"%s\"", priority_name(lane->priority));
        lane->rendered =
            metrics_counter(metrics, "stentor_rendered_total", labels, "Notifications rendered");
    }
    for (FailureCode code = FAILURE_NONE + 1; code < FAILURE_COUNT; code++) {
        snprintf(labels, sizeof labels, "reason=\"%s\"", failure_code_name(code));
        renderer->failed[code] = metrics_counter(
            metrics, "stentor_render_failed_total", labels,
            "Notifications that cannot be rendered");
    }
    renderer->suppressed = metrics_counter(
        metrics, "stentor_render_suppressed_total", "",
        "Notifications, other than mails, whose address or tenant was barred after they were "
        "accepted");
    renderer->unsafe_urls = metrics_counter(
        metrics, "stentor_render_unsafe_urls_total", "",
        "Values of variables that were no safe URL where one stands; " TEMPLATE_UNSAFE_URL
        " stands for them");
    renderer->untold = metrics_counter(
        metrics, "stentor_render_replays_untold_total", "",
        "Replayed requests that can be rendered no more; nothing is told of them");
    renderer->seconds = metrics_histogram(
        metrics, "stentor_render_batch_seconds", "", "Time to render one batch", seconds,
        sizeof seconds / sizeof *seconds);
    renderer->batch_size = metrics_histogram(
        metrics, "stentor_render_batch_size", "", "Requests in one batch", sizes,
        sizeof sizes / sizeof *sizes);
    metrics_gauge_fn(
        metrics, "stentor_renderer_templates", "", "Template versions known", read_templates,
        renderer);
    metrics_gauge_fn(
        metrics, "stentor_renderer_templates_compiled", "", "Template versions kept compiled",
        read_compiled, renderer);
}

static void open_lane(Renderer *renderer, Lane *lane, const RendererOptions *options)
{
    const char *stream = topology_lane_stream("REQUEST", lane->priority);
    WorkerOptions worker = {
        .consumer = topology_consumer("stentor-renderer", stream),
        .batch_max = (size_t)options->batch,
        .in_flight_max = (size_t)options->in_flight,
        .stage = "render",
        .slack = lane->priority == PRIORITY_LOW,
    };
    lane->renderer = renderer;
    lane->worker = worker_new(service_bus(renderer->service), &worker, on_worker_batch, lane);
}

// Not earlier: every request that waits would be given back for want of its template, once more
// at each restart.
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
    renderer->arena = arena_new(0);
    if (!opt_out_links_init(
            &renderer->links, service_master_key(service), o->public_url, renderer->arena, err)) {
        arena_free(renderer->arena);
        free(renderer);
        return false;
    }
    renderer->suppressions = suppressions_new();
    renderer->templates = template_cache_new((size_t)o->compiled);
    renderer->senders = senders_new();
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
