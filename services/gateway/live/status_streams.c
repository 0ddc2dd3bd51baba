// SPDX-License-Identifier: Apache-2.0
// A stream waits until the hub knows where it stands, catches up where its client was there before,
// and is live then. What a client gets has rising sequences, whichever way it comes.
#include "services/gateway/live/status_streams.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/api/callers/stream_caller.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/ticks/ticks.h"
#include "services/gateway/live/catch_up.h"
#include "services/gateway/live/status_hub.h"

enum {
    TICK_MS = 1000,
    IDLE_TICKS = 10,  // without a stream, before nothing is heard any more
    PLACE_TICKS = 60, // between two events that say to a quiet client where it stands
};

typedef enum StreamPhase {
    PHASE_WAITING,  // for the hub
    PHASE_CATCHING, // gets what it missed
    PHASE_LIVE,
} StreamPhase;

typedef struct TenantStreams {
    struct StatusStream *first;
    size_t count;
} TenantStreams;

typedef struct StatusStream {
    StatusStreams *all;
    HttpStream *http;
    StreamPhase phase;
    LiveFilter filter;
    CatchUpClient missed; // position 0: it is new here
    uint64_t last;        // sequence that it was given
    char tenant[TENANT_SIZE];
    StreamCaller caller;
    bool operates; // it may see a tenant that is suspended
    TenantStreams *of_tenant;
    struct StatusStream *previous, *next; // of the tenant
} StatusStream;

struct StatusStreams {
    StatusStreamsOptions options;
    StatusHub *hub;
    CatchUps *ups;
    Map *tenants; // TenantStreams
    size_t count;
    uv_timer_t tick;
    unsigned ticks, idle_ticks;
    Metric *events, *resets;
    int stopping;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

// ---- notes to a client ----

static void send_note(StatusStream *s, uint64_t id, const char *name, const char *json)
{
    Buf text;
    buf_init(&text, 512);
    http_event_write(&text, id, name, str_from(json));
    (void)http_stream_write(s->http, buf_view(&text));
    buf_done(&text);
}

static void send_event(StatusStream *s, const LiveEvent *event)
{
    s->last = event->sequence;
    metric_add(s->all->events, 1);
    (void)http_stream_write(s->http, event->text);
}

// From here on, what comes is live.
static void go_live(StatusStream *s, const char *note, const char *json)
{
    uint64_t position = status_hub_position(s->all->hub);
    s->phase = PHASE_LIVE;
    s->last = position > s->last ? position : s->last;
    send_note(s, s->last, note, json); // where it comes back to
}

static void reset(StatusStream *s, const char *reason)
{
    char json[64];
    (void)snprintf(json, sizeof json, "{\"reason\":\"%s\"}", reason);
    metric_add(s->all->resets, 1);
    s->last = 0; // of a log that lost its tail the sequences come once more
    go_live(s, "reset", json);
}

static void end_stream(StatusStream *s, const char *reason)
{
    char json[64];
    (void)snprintf(json, sizeof json, "{\"reason\":\"%s\"}", reason);
    send_note(s, 0, "end", json);
    http_stream_close(s->http);
}

// ---- one stream ----

static void on_missed_event(void *owner, const LiveEvent *event)
{
    send_event(owner, event);
}

static size_t backlog(void *owner)
{
    return http_stream_unsent(((const StatusStream *)owner)->http);
}

static void on_missed_all(void *owner, bool whole)
{
    StatusStream *s = owner;
    if (whole) {
        go_live(s, "open", "{}");
    } else {
        reset(s, "behind");
    }
}

// The hub stands somewhere from now on.
static void begin(StatusStream *s)
{
    if (s->missed.position == 0 || s->missed.position == status_hub_position(s->all->hub)) {
        go_live(s, "open", "{}");
        return;
    }
    s->phase = PHASE_CATCHING;
    s->last = s->missed.position;
    catch_up_join(s->all->ups, &s->missed, str_from(s->tenant), uv_now(s->all->options.loop));
}

static void on_stream_ended(void *ctx)
{
    StatusStream *s = ctx;
    catch_up_leave(s->all->ups, &s->missed);
    *(s->previous != NULL ? &s->previous->next : &s->of_tenant->first) = s->next;
    if (s->next != NULL) {
        s->next->previous = s->previous;
    }
    s->all->count--;
    if (--s->of_tenant->count == 0) {
        (void)map_remove(s->all->tenants, str_from(s->tenant));
    }
    free(s);
}

static TenantStreams *tenant_streams(StatusStreams *all, Str tenant)
{
    TenantStreams *found = map_get(all->tenants, tenant);
    if (found == NULL) {
        found = xcalloc(1, sizeof *found);
        map_put(all->tenants, tenant, found);
    }
    return found;
}

static void link_stream(StatusStream *s)
{
    s->of_tenant = tenant_streams(s->all, str_from(s->tenant));
    s->next = s->of_tenant->first;
    if (s->next != NULL) {
        s->next->previous = s;
    }
    s->of_tenant->first = s;
    s->of_tenant->count++;
    s->all->count++;
}

// ---- the route ----

static bool refuse_names(ApiCall *call, const char *parameter, Str wrong)
{
    api_answer_parameter(
        call, parameter, "'" STR_FMT "' is none; give one, or several separated by commas",
        STR_ARG(str_slice(wrong, 0, 40)));
    return false;
}

static bool read_text(ApiCall *call, const char *name, char out[LIVE_TEXT_MAX])
{
    if (str_to_c(http_query(call->http, name), out, LIVE_TEXT_MAX)) {
        return true;
    }
    api_answer_parameter(call, name, "longer than any; at most %d bytes", LIVE_TEXT_MAX - 1);
    return false;
}

static bool read_filter(ApiCall *call, LiveFilter *ret)
{
    Str wrong = STR_EMPTY;
    if (!live_channels(http_query(call->http, "channel"), &ret->channels, &wrong)) {
        return refuse_names(call, "channel", wrong);
    }
    if (!live_statuses(http_query(call->http, "status"), &ret->statuses, &wrong)) {
        return refuse_names(call, "status", wrong);
    }
    return read_text(call, "template", ret->template_) &&
           read_text(call, "notification_id", ret->notification_id);
}

static bool read_last_id(ApiCall *call, uint64_t *ret)
{
    int64_t last = 0;
    Str text = http_header(call->http, "Last-Event-ID");
    *ret = 0;
    if (text.len == 0) {
        return true;
    }
    if (!str_to_i64(text, &last) || last <= 0) {
        http_problem(
            call->http, 400, "invalid-header", "A header is wrong", "Last-Event-ID",
            "it is the 'id' of the last event that came, a number; leave it out to begin now");
        return false;
    }
    *ret = (uint64_t)last;
    return true;
}

static bool has_room(ApiCall *call, const StatusStreams *all)
{
    const TenantStreams *of = map_get(all->tenants, str_from(call->tenant));
    if (of == NULL || of->count < STATUS_STREAMS_TENANT_MAX) {
        return true;
    }
    http_response_header(call->http, "Retry-After", STR("5"));
    http_problem(
        call->http, 429, "too-many-streams", "Too many streams", NULL,
        "the tenant has %d streams open, as many as it may", STATUS_STREAMS_TENANT_MAX);
    return false;
}

static void handle_status(ApiCall *call)
{
    StatusStreams *all = call->ctx;
    LiveFilter filter = {0};
    uint64_t last = 0;
    if (!read_filter(call, &filter) || !read_last_id(call, &last) || !has_room(call, all)) {
        return;
    }
    if (!bus_connected(all->options.bus)) {
        api_answer_unavailable(call, "NATS does not answer; come again in a moment");
        return;
    }
    StatusStream *s = xcalloc(1, sizeof *s);
    s->all = all;
    s->filter = filter;
    s->missed = (CatchUpClient){.owner = s, .filter = &s->filter, .position = last};
    s->operates = call->operates;
    memcpy(s->tenant, call->tenant, TENANT_SIZE);
    stream_caller_init(&s->caller, call, clock_now_us());
    s->http = http_stream_begin(call->http, on_stream_ended, s);
    if (s->http == NULL) {
        free(s);
        return;
    }
    link_stream(s);
    status_hub_want(all->hub, true);
    if (status_hub_ready(all->hub)) {
        begin(s);
    }
}

// ---- what is heard ----

static bool any_live(const TenantStreams *of, const LivePlace *place)
{
    const StatusStream *s = of != NULL ? of->first : NULL;
    while (s != NULL && !(s->phase == PHASE_LIVE && live_fits_place(&s->filter, place))) {
        s = s->next;
    }
    return s != NULL;
}

static void give_all(const TenantStreams *of, const LiveEvent *event)
{
    for (StatusStream *s = of != NULL ? of->first : NULL; s != NULL; s = s->next) {
        if (s->phase == PHASE_LIVE && event->sequence > s->last && live_fits(&s->filter, event)) {
            send_event(s, event);
        }
    }
}

static void on_status(void *ctx, const BusMessage *message, uint64_t sequence)
{
    StatusStreams *all = ctx;
    LivePlace place;
    if (!live_place(message->subject, &place)) {
        return;
    }
    const TenantStreams *of = map_get(all->tenants, place.tenant);
    if (!any_live(of, &place) && !catch_ups_want(all->ups, &place)) {
        return;
    }
    Arena *arena = arena_new(0);
    LiveEvent event;
    Error err = {0};
    if (live_event_read(message, sequence, arena, &event, &err)) {
        give_all(of, &event);
        catch_ups_heard(all->ups, &event);
    }
    arena_free(arena);
}

typedef void (*Visit)(StatusStream *s);

static void visit_all(StatusStreams *all, Visit visit)
{
    Str tenant;
    void *value = NULL;
    for (size_t i = 0; map_next(all->tenants, &i, &tenant, &value);) {
        for (StatusStream *s = ((TenantStreams *)value)->first; s != NULL; s = s->next) {
            visit(s);
        }
    }
}

static void begin_waiting(StatusStream *s)
{
    if (s->phase == PHASE_WAITING) {
        begin(s);
    }
}

static void reset_live(StatusStream *s)
{
    if (s->phase == PHASE_LIVE) {
        reset(s, "lost");
    }
}

static void on_hub_ready(void *ctx)
{
    visit_all(ctx, begin_waiting);
}

static void on_hub_lost(void *ctx)
{
    visit_all(ctx, reset_live);
}

// ---- time ----

// For a client whose filter fits little: where it comes back to.
static void say_place(StatusStream *s)
{
    char text[64];
    uint64_t position = status_hub_position(s->all->hub);
    if (s->phase == PHASE_LIVE && position > s->last) {
        s->last = position;
        (void)snprintf(text, sizeof text, "id: %" PRIu64 "\n\n", position);
        (void)http_stream_write(s->http, str_from(text));
    }
}

// A key may be revoked, a session end and a tenant be suspended, while its stream is open.
static void check_caller(StatusStream *s)
{
    const StatusStreamsOptions *o = &s->all->options;
    TenantStanding standing = catalog_standing(o->catalog, str_from(s->tenant));
    bool stands = s->operates || standing == STANDING_ACTIVE || standing == STANDING_UNKNOWN;
    StreamStanding caller = stream_caller_stands(&s->caller, o->auth, clock_now_us());
    if (caller == STREAM_OVER) {
        end_stream(s, "key");
    } else if (caller == STREAM_AGAIN) {
        say_place(s);
        http_stream_close(s->http);
    } else if (!stands) {
        end_stream(s, "tenant");
    }
}

static void on_tick(uv_timer_t *timer)
{
    ticks_keep(timer);
    StatusStreams *all = timer->data;
    visit_all(all, check_caller);
    catch_ups_tick(all->ups, uv_now(timer->loop));
    all->idle_ticks = all->count == 0 ? all->idle_ticks + 1 : 0;
    if (all->idle_ticks >= IDLE_TICKS) {
        status_hub_want(all->hub, false);
        return;
    }
    status_hub_tick(all->hub);
    if (++all->ticks % PLACE_TICKS == 0 && status_hub_ready(all->hub)) {
        visit_all(all, say_place);
    }
}

// ---- life ----

// clang-format off
static const ApiRoute ROUTES[] = {
    {"GET", "/v1/live/status", SCOPE_NOTIFICATIONS_READ, handle_status, "channel status template notification_id", false},
};
// clang-format on

void status_streams_add(Api *api, StatusStreams *streams)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof *ROUTES, streams);
}

static double read_count(void *ctx)
{
    return (double)((const StatusStreams *)ctx)->count;
}

static double read_filled(void *ctx)
{
    return (double)status_hub_filled_total(((const StatusStreams *)ctx)->hub);
}

static void register_metrics(StatusStreams *all, Metrics *metrics)
{
    // clang-format off
    all->events = metrics_counter(metrics, "stentor_gateway_live_events_total", "stream=\"status\"", "Events that were written to live streams");
    all->resets = metrics_counter(metrics, "stentor_gateway_live_resets_total", "stream=\"status\"", "Resets that clients of live streams got");
    metrics_gauge_fn(metrics, "stentor_gateway_live_streams", "stream=\"status\"", "Live streams that are open", read_count, all);
    metrics_counter_fn(metrics, "stentor_gateway_live_filled_total", "", "Statuses that were not heard and were read from STATUS", read_filled, all);
    // clang-format on
}

StatusStreams *status_streams_new(const StatusStreamsOptions *options)
{
    static const StatusHubHandlers hub = {on_status, on_hub_ready, on_hub_lost};
    static const CatchUpHandlers ups = {on_missed_event, backlog, on_missed_all};
    StatusStreams *all = xcalloc(1, sizeof *all);
    all->options = *options;
    all->hub = status_hub_new(options->bus, &hub, all);
    all->ups = catch_ups_new(options->bus, options->loop, &ups);
    all->tenants = map_new(free);
    register_metrics(all, options->metrics);
    (void)uv_timer_init(options->loop, &all->tick);
    all->tick.data = all;
    ticks_start(&all->tick, on_tick, TICK_MS);
    return all;
}

static void on_part_stopped(void *ctx)
{
    StatusStreams *all = ctx;
    if (--all->stopping == 0) {
        all->on_stopped(all->stopped_ctx);
    }
}

static void on_tick_closed(uv_handle_t *handle)
{
    on_part_stopped(handle->data);
}

void status_streams_stop(StatusStreams *all, void (*on_stopped)(void *ctx), void *ctx)
{
    all->stopping = 3;
    all->on_stopped = on_stopped;
    all->stopped_ctx = ctx;
    uv_close((uv_handle_t *)&all->tick, on_tick_closed);
    catch_ups_stop(all->ups, on_part_stopped, all);
    status_hub_stop(all->hub, on_part_stopped, all);
}

void status_streams_free(StatusStreams *all)
{
    if (all != NULL) {
        status_hub_free(all->hub);
        catch_ups_free(all->ups);
        map_free(all->tenants);
        free(all);
    }
}
