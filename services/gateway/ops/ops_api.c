// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/ops/ops_api.h"

#include <stdlib.h>
#include <string.h>

#include "common/api/callers/stream_caller.h"
#include "common/base/clock.h"
#include "common/bus/jetstream/listen.h"
#include "common/http/stream.h"
#include "common/ticks/ticks.h"
#include "services/gateway/ops/ops_poller.h"
#include "services/gateway/ops/ops_view.h"

enum {
    CALLS_MAX = 64,    // that wait for the first picture
    STREAMS_MAX = 200, // of the pipeline
    TICK_MS = 1000,
    PATIENCE_MS = 5000,
};

#define HEARD_SUBJECT "live.process.*.*"

typedef struct PipelineStream {
    OpsApi *ops;
    HttpStream *http;
    StreamCaller caller;
    struct PipelineStream *next;
} PipelineStream;

struct OpsApi {
    Bus *bus;
    const Auth *auth;
    OpsPoller *poller;
    OpsProcesses *processes;
    struct {
        ApiCall *call;
        uint64_t until_ms;
    } calls[CALLS_MAX];
    size_t call_count;
    PipelineStream *streams;
    size_t stream_count;
    uv_timer_t tick;
    Metric *events;
    bool closed; // a request that still comes gets 503
    int stopping;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

// ---- answers ----

static json_t *picture_json(const ApiCall *call, const OpsApi *ops, const OpsPicture *picture)
{
    Str word = api_route_word(call);
    if (str_eq(word, STR("streams"))) {
        return ops_streams_json(picture);
    }
    return str_eq(word, STR("consumers"))
               ? ops_consumers_json(picture)
               : ops_pipeline_json(picture, ops->processes, clock_now_us());
}

static void answer(ApiCall *call, json_t *json)
{
    http_response_header(call->http, "Cache-Control", STR("no-store"));
    api_answer_json(call, 200, json);
}

static void write_pipeline(OpsApi *ops, const OpsPicture *picture)
{
    if (ops->streams == NULL) {
        return;
    }
    json_t *json = ops_pipeline_json(picture, ops->processes, clock_now_us());
    char *text = json_dumps(json, JSON_COMPACT);
    Buf event;
    buf_init(&event, HTTP_EVENT_MAX);
    http_event_write(&event, 0, "pipeline", str_from(text));
    for (PipelineStream *s = ops->streams; s != NULL; s = s->next) {
        metric_add(ops->events, 1);
        (void)http_stream_write(s->http, buf_view(&event));
    }
    buf_done(&event);
    free(text);
    json_decref(json);
}

static void on_picture(void *ctx)
{
    OpsApi *ops = ctx;
    const OpsPicture *picture = ops_poller_picture(ops->poller);
    for (size_t i = 0; i < ops->call_count; i++) {
        answer(ops->calls[i].call, picture_json(ops->calls[i].call, ops, picture));
    }
    ops->call_count = 0;
    write_pipeline(ops, picture);
}

static bool can_look(ApiCall *call, const OpsApi *ops)
{
    if (!bus_connected(ops->bus) || ops->closed) {
        api_answer_unavailable(call, "NATS does not answer; come again in a moment");
        return false;
    }
    return true;
}

static void handle_picture(ApiCall *call)
{
    OpsApi *ops = call->ctx;
    if (!can_look(call, ops)) {
        return;
    }
    ops_poller_want(ops->poller);
    const OpsPicture *picture = ops_poller_picture(ops->poller);
    if (picture != NULL) {
        answer(call, picture_json(call, ops, picture));
    } else if (ops->call_count == CALLS_MAX) {
        api_answer_unavailable(call, "too many wait for the same; come again in a moment");
    } else {
        ops->calls[ops->call_count].call = call;
        ops->calls[ops->call_count++].until_ms = uv_now(ops->tick.loop) + PATIENCE_MS;
    }
}

static void handle_processes(ApiCall *call)
{
    const OpsApi *ops = call->ctx;
    int64_t now_us = clock_now_us();
    char at[CLOCK_RFC3339_SIZE];
    clock_format(now_us, at);
    answer(
        call,
        json_pack("{s:s, s:o}", "at", at, "data", ops_processes_json(ops->processes, now_us)));
}

// ---- the stream ----

static void on_stream_ended(void *ctx)
{
    PipelineStream *s = ctx;
    PipelineStream **at = &s->ops->streams;
    while (*at != s) {
        at = &(*at)->next;
    }
    *at = s->next;
    s->ops->stream_count--;
    free(s);
}

static void handle_stream(ApiCall *call)
{
    OpsApi *ops = call->ctx;
    if (!can_look(call, ops)) {
        return;
    }
    if (ops->stream_count >= STREAMS_MAX) {
        http_response_header(call->http, "Retry-After", STR("5"));
        http_problem(
            call->http, 503, "too-many-streams", "Too many streams", NULL,
            "%d look at the pipeline, as many as may", STREAMS_MAX);
        return;
    }
    PipelineStream *s = xcalloc(1, sizeof *s);
    s->ops = ops;
    stream_caller_init(&s->caller, call, clock_now_us());
    s->http = http_stream_begin(call->http, on_stream_ended, s);
    if (s->http == NULL) {
        free(s);
        return;
    }
    s->next = ops->streams;
    ops->streams = s;
    ops->stream_count++;
    ops_poller_want(ops->poller);
}

// ---- time ----

static void check_callers(OpsApi *ops)
{
    for (PipelineStream *s = ops->streams; s != NULL; s = s->next) {
        StreamStanding standing = stream_caller_stands(&s->caller, ops->auth, clock_now_us());
        if (standing == STREAM_OVER) {
            (void)http_stream_write(s->http, STR("event: end\ndata: {\"reason\":\"key\"}\n\n"));
        }
        if (standing != STREAM_STANDS) {
            http_stream_close(s->http);
        }
    }
}

static void give_up_late(OpsApi *ops, uint64_t now_ms)
{
    size_t kept = 0;
    for (size_t i = 0; i < ops->call_count; i++) {
        if (now_ms > ops->calls[i].until_ms || ops->closed) {
            api_answer_unavailable(
                ops->calls[i].call, "JetStream does not answer; come again in a moment");
        } else {
            ops->calls[kept++] = ops->calls[i];
        }
    }
    ops->call_count = kept;
}

static void on_tick(uv_timer_t *timer)
{
    ticks_keep(timer);
    OpsApi *ops = timer->data;
    ops_processes_forget(ops->processes, clock_now_us());
    check_callers(ops);
    give_up_late(ops, uv_now(timer->loop));
    if (ops->streams != NULL) {
        ops_poller_want(ops->poller);
    }
}

static void on_heard(void *ctx, const BusMessage *message)
{
    OpsApi *ops = ctx;
    (void)ops_processes_heard(ops->processes, message->payload, clock_now_us());
}

// ---- life ----

// clang-format off
static const ApiRoute ROUTES[] = {
    {"GET", "/v1/ops/pipeline",  SCOPE_OPS_READ, handle_picture,   NULL, false},
    {"GET", "/v1/ops/streams",   SCOPE_OPS_READ, handle_picture,   NULL, false},
    {"GET", "/v1/ops/consumers", SCOPE_OPS_READ, handle_picture,   NULL, false},
    {"GET", "/v1/ops/processes", SCOPE_OPS_READ, handle_processes, NULL, false},
    {"GET", "/v1/live/pipeline", SCOPE_OPS_READ, handle_stream,    NULL, false},
};
// clang-format on

void ops_api_add(Api *api, OpsApi *ops)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof *ROUTES, ops);
}

static double read_count(void *ctx)
{
    return (double)((const OpsApi *)ctx)->stream_count;
}

OpsApi *ops_api_new(Bus *bus, const Auth *auth, Metrics *metrics, uv_loop_t *loop)
{
    OpsApi *ops = xcalloc(1, sizeof *ops);
    ops->bus = bus;
    ops->auth = auth;
    ops->poller = ops_poller_new(bus, loop, on_picture, ops);
    ops->processes = ops_processes_new();
    // clang-format off
    ops->events = metrics_counter(metrics, "stentor_gateway_live_events_total", "stream=\"pipeline\"", "Events that were written to live streams");
    metrics_gauge_fn(metrics, "stentor_gateway_live_streams", "stream=\"pipeline\"", "Live streams that are open", read_count, ops);
    // clang-format on
    (void)uv_timer_init(loop, &ops->tick);
    ops->tick.data = ops;
    ticks_start(&ops->tick, on_tick, TICK_MS);
    bus_listen(bus, HEARD_SUBJECT, on_heard, ops);
    return ops;
}

static void on_part_stopped(void *ctx)
{
    OpsApi *ops = ctx;
    if (--ops->stopping == 0) {
        ops->on_stopped(ops->stopped_ctx);
    }
}

static void on_tick_closed(uv_handle_t *handle)
{
    on_part_stopped(handle->data);
}

void ops_api_stop(OpsApi *ops, void (*on_stopped)(void *ctx), void *ctx)
{
    ops->closed = true;
    ops->stopping = 2;
    ops->on_stopped = on_stopped;
    ops->stopped_ctx = ctx;
    bus_unlisten(ops->bus, HEARD_SUBJECT);
    give_up_late(ops, 0);
    uv_close((uv_handle_t *)&ops->tick, on_tick_closed);
    ops_poller_stop(ops->poller, on_part_stopped, ops);
}

void ops_api_free(OpsApi *ops)
{
    if (ops != NULL) {
        ops_poller_free(ops->poller);
        ops_processes_free(ops->processes);
        free(ops);
    }
}
