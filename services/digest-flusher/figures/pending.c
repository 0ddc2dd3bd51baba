// SPDX-License-Identifier: Apache-2.0
// A pass asks one thing after the other: each consumer, the oldest message of those that carry
// mails, and Postgres for the retries. A mail is in one of three places: a REQUEST_* stream, a
// RENDERED_* stream, or a row that waits for its retry. What waits for the time that its sender
// chose (schedule, quiet hours, digests) is not pending.
#include "services/digest-flusher/figures/pending.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/bus/jetstream/get_message.h"
#include "common/bus/topology/topology.h"

enum { CONSUMERS_MAX = 32, API_TIMEOUT_MS = 5000, FIRST_MS = 1000 };

struct Pending {
    Bus *bus;
    DbPool *pool;
    Metric *waiting[CONSUMERS_MAX]; // of each consumer of the topology
    Metric *mails, *oldest;
    uv_timer_t timer;
    Arena *arena;
    bool busy;
    bool warned;
    bool stopping;
    // of the pass
    size_t consumer;
    int64_t sum;
    int64_t oldest_us; // when it was stored or was to be sent; 0: none
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

static const DbStatement retries_statement = {
    .name = "figures_retries",
    .sql = "SELECT waiting, oldest FROM digest_flusher.retries()",
};

static void next_consumer(Pending *pending);

static bool carries_mails(const ConsumerSpec *spec)
{
    Str stream = str_from(spec->stream);
    return str_starts(stream, STR("REQUEST_")) || str_starts(stream, STR("RENDERED_"));
}

static const ConsumerSpec *in_hand(const Pending *pending)
{
    size_t count;
    const ConsumerSpec *specs = topology_consumers(&count);
    return pending->consumer < count && pending->consumer < CONSUMERS_MAX
               ? &specs[pending->consumer]
               : NULL;
}

// ---- the end of a pass ----

static void on_timer_closed(uv_handle_t *handle)
{
    Pending *pending = handle->data;
    pending->on_stopped(pending->stopped_ctx);
}

// err: the pass has no result. One line for a row of them, for the next pass asks again.
static void end_pass(Pending *pending, const Error *err)
{
    if (err != NULL && err->kind != ERROR_CANCELLED && !pending->warned) {
        LOG(LOG_WARN, "what waits could not be counted; trying again", log_error(err));
    }
    pending->warned = err != NULL;
    pending->busy = false;
    if (pending->stopping) {
        uv_close((uv_handle_t *)&pending->timer, on_timer_closed);
    }
}

static void note_oldest(Pending *pending, int64_t at_us)
{
    if (at_us > 0 && (pending->oldest_us == 0 || at_us < pending->oldest_us)) {
        pending->oldest_us = at_us;
    }
}

static void on_retries(void *ctx, DbTxn *txn, const Error *err)
{
    Pending *pending = ctx;
    if (err != NULL) {
        end_pass(pending, err);
        return;
    }
    const PGresult *res = db_txn_result(txn, 0);
    pending->sum += db_get_int(res, 0, 0);
    note_oldest(pending, db_get_time(res, 0, 1));
    int64_t age_us = pending->oldest_us > 0 ? clock_now_us() - pending->oldest_us : 0;
    metric_set(pending->mails, (double)pending->sum);
    metric_set(pending->oldest, age_us > 0 ? (double)age_us / 1e6 : 0);
    end_pass(pending, NULL);
}

// ---- the consumers ----

// "{"error": ...}" too, which has no numbers: a missing consumer fails the pass.
static json_t *read_info(Str reply, const Error *failed, const ConsumerSpec *spec, Error *err)
{
    json_t *info = failed == NULL ? json_loadb(reply.ptr, reply.len, 0, NULL) : NULL;
    if (json_is_object(json_object_get(info, "ack_floor"))) {
        return info;
    }
    json_decref(info);
    if (failed != NULL) {
        *err = *failed;
    } else {
        error_set(err, ERROR_TRANSIENT, "no figures of %s on %s", spec->name, spec->stream);
    }
    return NULL;
}

static void on_oldest(void *ctx, Str reply, const Error *failed)
{
    Pending *pending = ctx;
    Error err = {0};
    BusMessage message = {0};
    bool found = false;
    arena_reset(pending->arena);
    if (failed != NULL || !get_message_reply(
                              reply, in_hand(pending)->stream, pending->arena, &message, &found,
                              &err)) {
        end_pass(pending, failed != NULL ? failed : &err);
        return;
    }
    note_oldest(pending, found ? message.stored_at_us : 0);
    pending->consumer++;
    next_consumer(pending);
}

static void on_consumer(void *ctx, Str reply, const Error *failed)
{
    Pending *pending = ctx;
    Error err = {0};
    const ConsumerSpec *spec = in_hand(pending);
    json_t *info = read_info(reply, failed, spec, &err);
    if (info == NULL) {
        end_pass(pending, &err);
        return;
    }
    json_int_t waits = json_integer_value(json_object_get(info, "num_pending")) +
                       json_integer_value(json_object_get(info, "num_ack_pending"));
    json_int_t floor =
        json_integer_value(json_object_get(json_object_get(info, "ack_floor"), "stream_seq"));
    json_decref(info);
    metric_set(pending->waiting[pending->consumer], (double)waits);
    if (!carries_mails(spec) || waits == 0) {
        pending->consumer++;
        next_consumer(pending);
        return;
    }
    pending->sum += waits;
    MessageQuery query = {
        .stream = spec->stream, .sequence = (uint64_t)floor + 1, .next_of = ">"};
    get_message(pending->bus, &query, on_oldest, pending);
}

static void next_consumer(Pending *pending)
{
    const ConsumerSpec *spec = in_hand(pending);
    if (pending->stopping) {
        end_pass(pending, NULL);
        return;
    }
    if (spec == NULL) {
        DbTxn *txn = db_txn_new(pending->pool);
        (void)db_txn_add(txn, &retries_statement, NULL);
        db_txn_submit(txn, on_retries, pending);
        return;
    }
    char subject[SUBJECT_SIZE];
    snprintf(
        subject, sizeof subject, "$JS.API.CONSUMER.INFO.%s.%s", spec->stream, spec->name);
    bus_request(pending->bus, subject, STR_EMPTY, API_TIMEOUT_MS, on_consumer, pending);
}

static void on_timer(uv_timer_t *timer)
{
    Pending *pending = timer->data;
    if (pending->busy || !bus_connected(pending->bus) || !db_pool_ready(pending->pool)) {
        return;
    }
    pending->busy = true;
    pending->consumer = 0;
    pending->sum = 0;
    pending->oldest_us = 0;
    next_consumer(pending);
}

// ---- starting and stopping ----

static void register_metrics(Pending *pending, Metrics *metrics)
{
    size_t count;
    const ConsumerSpec *specs = topology_consumers(&count);
    for (size_t i = 0; i < count && i < CONSUMERS_MAX; i++) {
        Buf labels;
        buf_init(&labels, 256);
        metrics_label(&labels, "consumer", str_from(specs[i].name));
        metrics_label(&labels, "stream", str_from(specs[i].stream));
        pending->waiting[i] = metrics_gauge(
            metrics, "stentor_digest_flusher_consumer_waiting", buf_c(&labels),
            "Messages of the stream that the service has not settled; the same from each replica");
        buf_done(&labels);
    }
    pending->mails = metrics_gauge(
        metrics, "stentor_digest_flusher_mails_pending", "",
        "Mails that are due and neither sent nor over: to be rendered, to be sent, or between two "
        "attempts; the same from each replica");
    pending->oldest = metrics_gauge(
        metrics, "stentor_digest_flusher_mails_oldest_seconds", "",
        "How long the oldest of them waits");
}

Pending *pending_new(Bus *bus, DbPool *pool, Metrics *metrics, int64_t period_ms)
{
    Pending *pending = xcalloc(1, sizeof *pending);
    pending->bus = bus;
    pending->pool = pool;
    pending->arena = arena_new(0);
    register_metrics(pending, metrics);
    uv_timer_init(bus_loop(bus), &pending->timer);
    pending->timer.data = pending;
    uv_timer_start(&pending->timer, on_timer, FIRST_MS, (uint64_t)period_ms);
    return pending;
}

void pending_stop(Pending *pending, void (*on_stopped)(void *ctx), void *ctx)
{
    pending->stopping = true;
    pending->on_stopped = on_stopped;
    pending->stopped_ctx = ctx;
    uv_timer_stop(&pending->timer);
    if (!pending->busy) {
        end_pass(pending, NULL);
    }
}

void pending_free(Pending *pending)
{
    if (pending != NULL) {
        arena_free(pending->arena);
        free(pending);
    }
}
