// SPDX-License-Identifier: Apache-2.0
// Batches: keys are fetched in one query, and a long batch yields to the loop.
#include "common/base/clock.h"
#include "common/codec/event.h"
#include "common/events/sealed.h"
#include "services/renderer/renderer_internal.h"

// Time for one batch; then it yields to the loop, so that other lanes' requests come in and
// deliveries in hand are renewed. A one-time code waits at most for the lowest lane's.
enum { TURN_MS = 20, TURN_LOW_MS = 4 };

typedef struct Batch {
    Lane *lane;
    Item *items;
    KeyWant *wants;
    size_t count;
    size_t done;
    struct Batch *next; // waiting for the loop
} Batch;

static void on_turn(uv_idle_t *turn);

// A started batch goes on before the others of its lane.
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

// Of what is rendered in one turn.
static BatchSpan begin_span(const Item *first, int64_t now_us)
{
    const BusMessage *message = &first->delivery->message;
    return (BatchSpan){
        .name = "render batch",
        .stream = message->stream,
        .sequence = message->sequence,
        .started_at_us = now_us,
    };
}

static void end_span(Tracer *tracer, const TraceBatch *traced, BatchSpan *span, size_t messages)
{
    if (tracer != NULL && traced->count > 0) {
        span->messages = messages;
        span->ended_at_us = clock_now_us();
        trace_batch(tracer, traced, span);
    }
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
    int64_t turn_us = (lane->priority == PRIORITY_LOW ? TURN_LOW_MS : TURN_MS) * INT64_C(1000);
    size_t first = batch->done;
    Tracer *tracer = lane->renderer->tracer;
    TraceBatch traced = {.count = 0};
    BatchSpan span = begin_span(&items[first], now_us);
    for (size_t i = first; i < count; i++) {
        if (err != NULL) {
            delivery_settle(items[i].delivery, err);
            continue;
        }
        if (i > first && clock_mono_us() - started_us > turn_us) {
            batch->done = i;
            end_span(tracer, &traced, &span, i - first);
            wait_for_turn(batch);
            return;
        }
        renderer_handle(lane, &items[i], wants[i].key, &traced, now_us);
    }
    end_span(tracer, &traced, &span, count - first);
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
        wait_for_turn(batch); // an error recurs when the keys are requested again
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

// One batch in each turn of the loop, of the highest lane that has one. Keys are valid for one
// turn, so they are requested again; they are in memory.
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

// NULL: the delivery went to the dead letters.
static const Request *read_request(const Lane *lane, Delivery *delivery)
{
    Error err = {0};
    const Request *request = (const Request *)event_unpack(
        &stentor__v1__notification_request__descriptor, delivery->message.payload, delivery->arena,
        &err);
    if (request != NULL && render_request_check(request, delivery->message.subject, &err)) {
        render_resume(lane->renderer->tracer, delivery, request);
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
        const Request *request = read_request(lane, delivery);
        if (request != NULL) {
            batch->wants[kept] = key_want_of(str_from(request->meta->tenant), request->address);
            batch->items[kept++] = (Item){delivery, request};
        }
    }
    // When none is kept, all are settled and the batch may be freed.
    if (kept > 0) {
        batch->count = kept;
        keyring_resolve(lane->renderer->keyring, batch->wants, kept, on_keyring_resolved, batch);
    }
}

void renderer_on_batch(void *ctx, Delivery **deliveries, size_t count)
{
    take_batch(ctx, deliveries, count);
}
