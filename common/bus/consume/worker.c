// SPDX-License-Identifier: Apache-2.0
// The worker's inflow: pulls kept ahead, batches closed, what was handed over kept alive. The
// verdicts are delivery.c.
//
// Killed at any point before an ack reached the server: the input comes again after ack_wait, and
// its outputs, whose ids are derived from it, are dropped as duplicates or by id (worker_nats_test:
// an_unsettled_delivery_comes_again; tests/integration/faults/test_kill.py). Nothing is ever acked
// before its outputs are stored, so nothing is lost.
#include "common/bus/consume/worker.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/bus/consume/guard/guard.h"
#include "common/bus/consume/presence.h"
#include "common/bus/consume/worker_internal.h"

enum {
    BATCH_DEFAULT = 256,
    BATCH_WAIT_DEFAULT_MS = 2,
    IN_FLIGHT_DEFAULT = 1024,
    PULL_MAX = 4096,
};

static bool move(Worker *w, WorkerState next)
{
    return worker_state_move(&w->state, next, w->spec->name);
}

static bool learn(Worker *w, WorkerConsumer next)
{
    return worker_consumer_move(&w->known, next, w->spec->name);
}

// ---- pulling ----

static size_t held(const Worker *w)
{
    return w->in_flight + w->waiting.count + w->suspects.count + w->asked;
}

// Asks again when a quarter of the room is free, so that requests stay few and the server always
// has one.
static void pull(Worker *w)
{
    int64_t now = bus_now_ms(w->bus);
    if (w->state != WORKER_RUNNING || w->paused || !bus_connected(w->bus) ||
        now < w->pull_after_ms || held(w) >= w->options.in_flight_max) {
        return;
    }
    size_t room = w->options.in_flight_max - held(w);
    if (w->asked > 0 && room < (w->options.in_flight_max + 3) / 4) {
        return;
    }
    size_t batch = room < PULL_MAX ? room : PULL_MAX;
    if (endpoint_pull(w->bus, &w->endpoint, batch)) {
        w->asked += batch;
        w->heard_ms = now;
    }
}

static void handle_status(Worker *w, int code, const char *text, int64_t unfilled)
{
    w->heard_ms = bus_now_ms(w->bus);
    if (code == 100) {
        return; // heartbeat
    }
    size_t left = unfilled >= 0 && (size_t)unfilled < w->asked ? (size_t)unfilled : w->asked;
    w->asked -= left; // without a number: all of it; at worst the room is asked for twice
    if (code == 404 || code == 408) {
        return;
    }
    w->pull_after_ms = w->heard_ms + PULL_BACKOFF_MS;
    presence_doubt(w->bus->presence);
    if (!w->refusal_logged) {
        w->refusal_logged = true;
        LOG(LOG_WARN, "pull refused, trying again", log_text("stream", w->spec->stream),
            log_text("consumer", w->spec->name), log_int("status", code), log_text("reason", text));
    }
}

static void on_pull_status(void *ctx, int code, const char *text, int64_t unfilled)
{
    handle_status(ctx, code, text, unfilled);
}

// The consumer's own ack_wait decides when a delivery still in hand must be renewed.
static void read_consumer(Worker *w, Str reply, const Error *err)
{
    json_t *root = err == NULL ? json_loadb(reply.ptr, reply.len, 0, NULL) : NULL;
    json_t *ack_wait = json_object_get(json_object_get(root, "config"), "ack_wait");
    const char *problem =
        err != NULL
            ? err->text
            : json_string_value(json_object_get(json_object_get(root, "error"), "description"));
    bool was_missing = w->known == CONSUMER_ASKED_AGAIN;
    if (json_is_integer(ack_wait)) {
        w->ack_wait_ms = json_integer_value(ack_wait) / 1000000;
        w->asked =
            was_missing ? 0 : w->asked; // what was asked before it was made reached no consumer
        (void)learn(w, CONSUMER_KNOWN);
        bus_want_turn(w->bus);
    } else if (was_missing) {
        (void)learn(w, CONSUMER_MISSING); // which is logged already
    } else if (err != NULL && err->kind == ERROR_CANCELLED) {
        (void)learn(w, CONSUMER_UNKNOWN);
    } else if (learn(w, CONSUMER_MISSING)) {
        LOG(LOG_WARN, "consumer not found, trying again", log_text("stream", w->spec->stream),
            log_text("consumer", w->spec->name),
            log_text(
                "error",
                problem != NULL ? problem : "the answer is not a consumer's configuration"));
    }
    json_decref(root);
}

static void on_consumer_info(void *ctx, Str reply, const Error *err)
{
    read_consumer(ctx, reply, err);
}

static void ask_consumer(Worker *w)
{
    char subject[160];
    bool was_missing = w->known == CONSUMER_MISSING;
    if ((w->known != CONSUMER_UNKNOWN && !was_missing) || !bus_connected(w->bus) ||
        !learn(w, was_missing ? CONSUMER_ASKED_AGAIN : CONSUMER_ASKED)) {
        return;
    }
    snprintf(
        subject, sizeof subject, "$JS.API.CONSUMER.INFO.%s.%s", w->spec->stream, w->spec->name);
    bus_request(w->bus, subject, STR_EMPTY, API_TIMEOUT_MS, on_consumer_info, w);
}

// ---- arriving ----

static void push_waiting(Waiting *q, natsMsg *message, const AckSubject *ack, int64_t now_ms)
{
    if (q->count == q->cap) {
        size_t cap = q->cap == 0 ? 256 : 2 * q->cap;
        Arrived *at = xmalloc(cap * sizeof *at);
        for (size_t i = 0; i < q->count; i++) {
            at[i] = q->at[(q->first + i) % q->cap];
        }
        free(q->at);
        *q = (Waiting){at, 0, q->count, cap};
    }
    q->at[(q->first + q->count++) % q->cap] = (Arrived){message, *ack, now_ms};
}

static Arrived pop_waiting(Waiting *q)
{
    Arrived arrived = q->at[q->first];
    q->first = (q->first + 1) % q->cap;
    q->count--;
    return arrived;
}

static void return_all(Worker *w, Waiting *q)
{
    while (q->count > 0) {
        Arrived arrived = pop_waiting(q);
        bus_give_back(w->bus, arrived.message);
    }
}

// Later, for this process's own open pull requests would get it again.
static void yield_one(Worker *w, natsMsg *message)
{
    char text[64];
    int len =
        snprintf(text, sizeof text, "-NAK {\"delay\":%lld}", (PULL_BRIEF_S + 1) * 1000000000LL);
    bus_send(w->bus, natsMsg_GetReply(message), NULL, str_of(text, (size_t)len));
    link_discard(w->bus->link, message);
    w->stats.given_back++;
    w->bus->stats.given_back++;
}

static void return_waiting(Worker *w)
{
    return_all(w, &w->waiting);
    return_all(w, &w->suspects);
}

static void handle_delivery(Worker *w, natsMsg *message, const AckSubject *ack)
{
    w->heard_ms = bus_now_ms(w->bus);
    w->asked -= w->asked > 0 ? 1 : 0;
    w->refusal_logged = false;
    if (w->state >= WORKER_STOPPING) {
        bus_give_back(w->bus, message); // what the open requests bring still
        return;
    }
    w->stats.received++;
    w->stats.redelivered += ack->delivered > 1 ? 1 : 0;
    w->bus->stats.delivered++;
    w->bus->stats.redelivered += ack->delivered > 1 ? 1 : 0;
    if (w->yielding) {
        yield_one(w, message);
        return;
    }
    ack_guard_arrived(&w->ack_guard, ack);
    push_waiting(ack->delivered > 1 ? &w->suspects : &w->waiting, message, ack, w->heard_ms);
}

static void on_delivery(void *ctx, natsMsg *message, const AckSubject *ack)
{
    handle_delivery(ctx, message, ack);
}

// ---- handing over ----

static void fill_delivery(Worker *w, Batch *batch, DeliveryState *d, const Arrived *arrived)
{
    *d = (DeliveryState){
        .batch = batch,
        .nats = arrived->message,
        .renewed_ms = arrived->at_ms,
        .breaks = arrived->ack.breaks,
    };
    bus_message_fill(&d->public.message, arrived->message, &arrived->ack);
    d->public.message.stream = w->spec->stream;
    d->public.arena = batch->arena;
}

static Batch *make_batch(Worker *w, Waiting *queue, size_t count)
{
    Arena *arena = arena_new(16 * 1024);
    Batch *batch = arena_zalloc(arena, sizeof *batch);
    *batch =
        (Batch){.worker = w, .arena = arena, .count = count, .open = count, .undecided = count};
    batch->deliveries = arena_alloc(arena, count * sizeof *batch->deliveries);
    for (size_t i = 0; i < count; i++) {
        Arrived arrived = pop_waiting(queue);
        fill_delivery(w, batch, &batch->deliveries[i], &arrived);
    }
    batch->next = w->batches;
    if (w->batches != NULL) {
        w->batches->previous = batch;
    }
    w->batches = batch;
    w->in_flight += count;
    return batch;
}

static void call_handler(Worker *w, Batch *batch)
{
    Delivery **deliveries = arena_array(batch->arena, batch->count, sizeof *deliveries);
    size_t count = 0;
    for (size_t i = 0; i < batch->count; i++) {
        Delivery *delivery = &batch->deliveries[i].public;
        if (!CRASH_INPUT(delivery->message.event_id, delivery->message.payload)) {
            deliveries[count++] = delivery;
        }
    }
    if (count > 0) {
        w->handler(w->handler_ctx, deliveries, count);
    }
}

void worker_hand_over(Worker *worker, Waiting *queue, size_t max)
{
    size_t count = queue->count < max ? queue->count : max;
    count = count < worker->options.batch_max ? count : worker->options.batch_max;
    call_handler(worker, make_batch(worker, queue, count));
}

Batch *worker_take_group(Worker *worker, size_t count)
{
    Batch *group = make_batch(worker, &worker->suspects, count);
    for (size_t i = 0; i < count; i++) {
        group->deliveries[i].marked = true;
    }
    return group;
}

void worker_hand_group(Worker *worker, Batch *group)
{
    call_handler(worker, group);
}

// A full batch goes at once, and so does any when nothing is in hand: waiting would gain nothing.
// Otherwise what gathers while the last batch is in work goes after batch_wait_ms.
static bool batch_is_due(const Worker *w)
{
    if (w->waiting.count == 0 || w->paused || w->state != WORKER_RUNNING ||
        guard_is_closed(w->guard)) {
        return false;
    }
    return w->waiting.count >= w->options.batch_max || w->in_flight == 0 || w->wait_over;
}

static void on_timer_batch(uv_timer_t *timer)
{
    Worker *w = timer->data;
    w->wait_over = true; // the turn comes before the loop sleeps
}

static void watch_the_wait(Worker *w)
{
    if (w->waiting.count == 0 || w->paused || w->state != WORKER_RUNNING) {
        uv_timer_stop(&w->timer);
    } else if (!uv_is_active((uv_handle_t *)&w->timer)) {
        uv_timer_start(&w->timer, on_timer_batch, (uint64_t)w->options.batch_wait_ms, 0);
    }
}

static void on_timer_closed(uv_handle_t *handle)
{
    Worker *w = handle->data;
    void (*on_freed)(void *) = w->on_freed;
    void *ctx = w->freed_ctx;
    free(w->waiting.at);
    free(w->suspects.at);
    free(w);
    on_freed(ctx);
}

static void on_guard_left(void *ctx)
{
    Worker *w = ctx;
    uv_close((uv_handle_t *)&w->timer, on_timer_closed);
}

static void move_on(Worker *w)
{
    if (w->state < WORKER_STOPPING || w->in_flight > 0 || guard_holds(w->guard, w)) {
        return;
    }
    if (w->state == WORKER_STOPPING) {
        (void)move(w, WORKER_STOPPED);
    }
    // Once; a stop that is asked for is answered also when the worker is freed meanwhile.
    void (*on_stopped)(void *) = w->on_stopped;
    w->on_stopped = NULL;
    if (on_stopped != NULL) {
        on_stopped(w->stopped_ctx); // which may free it
    }
    if (w->state == WORKER_FREEING && w->done == NULL && move(w, WORKER_LEAVING)) {
        endpoint_remove(w->bus, &w->endpoint);
        bus_forget_requests(w->bus, w);
        ack_guard_done(&w->ack_guard);
        guard_leave(w->guard, w, on_guard_left, w);
    }
}

static bool run_turn(Worker *w)
{
    while (w->done != NULL) {
        Batch *batch = w->done;
        w->done = batch->next;
        arena_free(batch->arena); // holds the batch itself
    }
    while (batch_is_due(w)) {
        bool last = w->waiting.count <= w->options.batch_max;
        guard_note_hand_over(w->guard);
        worker_hand_over(w, &w->waiting, w->options.batch_max);
        if (last) {
            break;
        }
    }
    w->wait_over = false;
    watch_the_wait(w);
    pull(w);
    bool more = w->done != NULL;
    w->endpoint.holds = w->in_flight + w->waiting.count + w->suspects.count > 0;
    move_on(w); // perhaps the end of w's turns
    return more;
}

static bool on_turn(void *ctx)
{
    return run_turn(ctx);
}

// ---- time and connection ----

static void renew(Worker *w, natsMsg *message, int64_t *since_ms, int64_t now_ms)
{
    if (now_ms - *since_ms >= w->ack_wait_ms / 2 &&
        bus_send(w->bus, natsMsg_GetReply(message), NULL, STR("+WPI"))) {
        *since_ms = now_ms;
    }
}

static void renew_waiting(Worker *w, Waiting *q, int64_t now_ms)
{
    for (size_t i = 0; i < q->count; i++) {
        Arrived *arrived = waiting_at(q, i);
        renew(w, arrived->message, &arrived->at_ms, now_ms);
    }
}

// Deliveries in hand for half of ack_wait are renewed, or the server would deliver them to
// another process too.
static void renew_all(Worker *w, int64_t now_ms)
{
    for (Batch *batch = w->batches; batch != NULL; batch = batch->next) {
        for (size_t i = 0; i < batch->count; i++) {
            if (batch->deliveries[i].nats != NULL) {
                renew(w, batch->deliveries[i].nats, &batch->deliveries[i].renewed_ms, now_ms);
            }
        }
    }
    renew_waiting(w, &w->waiting, now_ms);
    renew_waiting(w, &w->suspects, now_ms);
}

static void handle_tick(Worker *w, int64_t now_ms)
{
    ack_guard_tick(&w->ack_guard);
    if (w->state == WORKER_RUNNING && now_ms >= w->ask_after_ms) {
        w->ask_after_ms = now_ms + PULL_BACKOFF_MS;
        ask_consumer(w);
    }
    if (w->asked > 0 && now_ms - w->heard_ms > PULL_SILENCE_MS) {
        w->asked = 0; // neither deliveries nor heartbeats: the requests are gone
    }
    if (w->ack_wait_ms > 0 && now_ms - w->renewed_ms >= w->ack_wait_ms / 8) {
        w->renewed_ms = now_ms;
        renew_all(w, now_ms);
    }
}

static void on_tick(void *ctx, int64_t now_ms)
{
    handle_tick(ctx, now_ms);
}

static void on_link(void *ctx, bool connected)
{
    Worker *w = ctx;
    w->asked = 0; // pull requests do not outlive the connection
    w->pull_after_ms = 0;
    if (connected) {
        ack_guard_tick(&w->ack_guard);
    }
}

// ---- start and stop ----

Worker *worker_new(Bus *bus, const WorkerOptions *options, WorkerHandler handler, void *ctx)
{
    static const EndpointHandlers handlers = {
        on_delivery, on_pull_status, on_turn, on_tick, on_link};
    assert(options->consumer != NULL);
    Worker *w = xcalloc(1, sizeof *w);
    w->bus = bus;
    w->options = *options;
    w->options.batch_max = options->batch_max > 0 ? options->batch_max : BATCH_DEFAULT;
    w->options.batch_wait_ms =
        options->batch_wait_ms > 0 ? options->batch_wait_ms : BATCH_WAIT_DEFAULT_MS;
    w->options.in_flight_max =
        options->in_flight_max > 0 ? options->in_flight_max : IN_FLIGHT_DEFAULT;
    w->spec = options->consumer;
    ack_guard_init(&w->ack_guard, bus, w->spec->stream);
    w->handler = handler;
    w->handler_ctx = ctx;
    w->endpoint.stream = str_from(w->spec->stream);
    w->endpoint.acks = true;
    w->endpoint.brief = options->yields;
    snprintf(w->endpoint.consumer, sizeof w->endpoint.consumer, "%s", w->spec->name);
    uv_timer_init(bus_loop(bus), &w->timer);
    w->timer.data = w;
    endpoint_add(bus, &w->endpoint, &handlers, w);
    guard_join(bus, w);
    return w;
}

void worker_start(Worker *worker)
{
    if (move(worker, WORKER_RUNNING)) {
        bus_want_turn(worker->bus);
    }
}

void worker_stop(Worker *worker, void (*on_stopped)(void *ctx), void *ctx)
{
    if (!move(worker, WORKER_STOPPING)) {
        return; // stopped twice: the first one is answered
    }
    worker->on_stopped = on_stopped;
    worker->stopped_ctx = ctx;
    return_waiting(worker);
    bus_want_turn(worker->bus);
}

void worker_free(Worker *worker, void (*on_freed)(void *ctx), void *ctx)
{
    if (!move(worker, WORKER_FREEING)) {
        return; // freed twice: once is enough
    }
    return_waiting(worker); // what is in hand is waited for
    worker->on_freed = on_freed;
    worker->freed_ctx = ctx;
    bus_want_turn(worker->bus);
}

void worker_pause(Worker *worker, bool paused)
{
    worker->paused = paused;
    worker->yielding = paused && worker->yielding;
    bus_want_turn(worker->bus);
}

void worker_yield(Worker *worker)
{
    assert(worker->options.yields);
    worker->paused = worker->yielding = true;
    Waiting *const queues[] = {&worker->waiting, &worker->suspects};
    for (size_t i = 0; i < 2; i++) {
        while (queues[i]->count > 0) {
            yield_one(worker, pop_waiting(queues[i]).message);
        }
    }
    bus_want_turn(worker->bus);
}

size_t worker_in_flight(const Worker *worker)
{
    return worker->in_flight;
}

const WorkerStats *worker_stats(const Worker *worker)
{
    return &worker->stats;
}
