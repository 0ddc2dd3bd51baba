// SPDX-License-Identifier: Apache-2.0
// A round asks for every stream and consumer at once; for a consumer that is behind, also for the
// oldest event that it has not done, which says since when. The picture is whole when all have
// answered, or not answered in time.
#include "services/gateway/ops/ops_poller.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/bus/jetstream/get_message.h"

enum {
    TICK_MS = 1000,
    WANTED_MS = 10 * 1000, // after the last who asked
    FRESH_MS = 2000,
    ASK_TIMEOUT_MS = 2000,
    SUBJECT_MAX = 160,
};

typedef struct Ask {
    OpsPoller *poller;
    size_t row;
} Ask;

struct OpsPoller {
    Bus *bus;
    uv_timer_t tick;
    void (*on_picture)(void *ctx);
    void *ctx;
    uint64_t wanted_ms; // until then
    uint64_t made_ms;   // when the picture was made; 0: there is none
    OpsPicture picture;
    OpsPicture next; // being made
    OpsHistory history;
    size_t awaited;
    bool closing;
    Ask streams[OPS_STREAMS_MAX], consumers[OPS_CONSUMERS_MAX];
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

static void end_ask(OpsPoller *p)
{
    if (--p->awaited > 0 || p->closing) {
        return;
    }
    p->next.at_us = clock_now_us();
    ops_history_add(&p->history, &p->next);
    p->picture = p->next;
    p->made_ms = uv_now(p->tick.loop);
    if (p->history.count > 1) {
        p->on_picture(p->ctx);
    }
}

// ---- answers ----

static void on_stream(void *ctx, Str reply, const Error *err)
{
    const Ask *ask = ctx;
    json_t *info = err == NULL ? json_loadb(reply.ptr, reply.len, 0, NULL) : NULL;
    (void)ops_stream_read(&ask->poller->next.streams[ask->row], info);
    json_decref(info);
    end_ask(ask->poller);
}

static void on_oldest(void *ctx, Str reply, const Error *err)
{
    const Ask *ask = ctx;
    OpsConsumer *consumer = &ask->poller->next.consumers[ask->row];
    Arena *arena = arena_new(0);
    BusMessage message;
    bool found = false;
    Error ignored = {0};
    if (err == NULL &&
        get_message_reply(reply, consumer->spec->stream, arena, &message, &found, &ignored) &&
        found) {
        consumer->oldest_at_us = message.stored_at_us;
    }
    arena_free(arena);
    end_ask(ask->poller);
}

static void on_consumer(void *ctx, Str reply, const Error *err)
{
    Ask *ask = ctx;
    OpsPoller *p = ask->poller;
    OpsConsumer *consumer = &p->next.consumers[ask->row];
    json_t *info = err == NULL ? json_loadb(reply.ptr, reply.len, 0, NULL) : NULL;
    if (ops_consumer_read(consumer, info) && ops_lag(consumer) > 0 && !p->closing) {
        MessageQuery query = {
            .stream = consumer->spec->stream, .sequence = consumer->floor + 1, .next_of = ">"};
        p->awaited++;
        get_message(p->bus, &query, on_oldest, ask);
    }
    json_decref(info);
    end_ask(p);
}

// ---- a round ----

static void ask_streams(OpsPoller *p)
{
    for (size_t i = 0; i < p->next.stream_count; i++) {
        char subject[SUBJECT_MAX];
        (void)snprintf(
            subject, sizeof subject, "$JS.API.STREAM.INFO.%s", p->next.streams[i].spec->name);
        p->awaited++;
        bus_request(p->bus, subject, STR_EMPTY, ASK_TIMEOUT_MS, on_stream, &p->streams[i]);
    }
}

static void ask_consumers(OpsPoller *p)
{
    for (size_t i = 0; i < p->next.consumer_count; i++) {
        const ConsumerSpec *spec = p->next.consumers[i].spec;
        char subject[SUBJECT_MAX];
        (void)snprintf(
            subject, sizeof subject, "$JS.API.CONSUMER.INFO.%s.%s", spec->stream, spec->name);
        p->awaited++;
        bus_request(p->bus, subject, STR_EMPTY, ASK_TIMEOUT_MS, on_consumer, &p->consumers[i]);
    }
}

static void begin_round(OpsPoller *p)
{
    ops_picture_init(&p->next);
    ask_streams(p);
    ask_consumers(p);
}

static void on_tick(uv_timer_t *timer)
{
    OpsPoller *p = timer->data;
    if (uv_now(timer->loop) >= p->wanted_ms) {
        (void)uv_timer_stop(timer);
        p->history.count = p->history.next = 0; // rates begin again
    } else if (p->awaited == 0 && bus_connected(p->bus)) {
        begin_round(p);
    }
}

void ops_poller_want(OpsPoller *p)
{
    p->wanted_ms = uv_now(p->tick.loop) + WANTED_MS;
    if (!p->closing && !uv_is_active((uv_handle_t *)&p->tick)) {
        (void)uv_timer_start(&p->tick, on_tick, 0, TICK_MS);
    }
}

const OpsPicture *ops_poller_picture(const OpsPoller *p)
{
    bool fresh = p->history.count > 1 && uv_now(p->tick.loop) - p->made_ms <= FRESH_MS;
    return fresh ? &p->picture : NULL;
}

// ---- life ----

OpsPoller *ops_poller_new(Bus *bus, uv_loop_t *loop, void (*on_picture)(void *ctx), void *ctx)
{
    OpsPoller *p = xcalloc(1, sizeof *p);
    p->bus = bus;
    p->on_picture = on_picture;
    p->ctx = ctx;
    for (size_t i = 0; i < OPS_STREAMS_MAX; i++) {
        p->streams[i] = (Ask){p, i};
    }
    for (size_t i = 0; i < OPS_CONSUMERS_MAX; i++) {
        p->consumers[i] = (Ask){p, i};
    }
    (void)uv_timer_init(loop, &p->tick);
    p->tick.data = p;
    return p;
}

static void on_tick_closed(uv_handle_t *handle)
{
    OpsPoller *p = handle->data;
    p->on_stopped(p->stopped_ctx);
}

void ops_poller_stop(OpsPoller *p, void (*on_stopped)(void *ctx), void *ctx)
{
    p->closing = true;
    p->on_stopped = on_stopped;
    p->stopped_ctx = ctx;
    uv_close((uv_handle_t *)&p->tick, on_tick_closed);
}

void ops_poller_free(OpsPoller *p)
{
    free(p);
}
