// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/dispatcher.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "services/dispatcher/turns.h"

enum { START_POLL_MS = 20, PARTITIONS_EVERY_H = 12, TURN_MAX_MS = 5000 };

// ---- metrics ----

// Of whole mails, whatever number of attempts each took.
static void register_mails(DispatcherMetrics *ours, Metrics *metrics)
{
    static const double seconds[] = {0.1, 0.25, 0.5, 1,    2.5,  5,    10,    30,    60,
                                     120, 300,  900, 1800, 3600, 7200, 14400, 43200, 86400};
    static const double attempts[] = {1, 2, 3, 4, 5, 6, 8, 10, 20};
    static const char *const taken = "stentor_dispatcher_mail_attempts";
    static const char *const taken_help = "Attempts that a mail took until it was sent or failed";
    static const char *const mails = "stentor_dispatcher_mails_total";
    static const char *const mails_help = "Mails by how they ended here";
    size_t count = sizeof attempts / sizeof *attempts;
    ours->delivery_seconds = metrics_histogram(
        metrics, "stentor_dispatcher_delivery_seconds", "",
        "Seconds from when a mail was accepted, or from the time that it was to wait for, to the "
        "vendor's acceptance",
        seconds, sizeof seconds / sizeof *seconds);
    ours->mails_sent = metrics_counter(metrics, mails, "result=\"sent\"", mails_help);
    ours->mails_failed = metrics_counter(metrics, mails, "result=\"failed\"", mails_help);
    ours->mails_suppressed = metrics_counter(metrics, mails, "result=\"suppressed\"", mails_help);
    ours->attempts_sent =
        metrics_histogram(metrics, taken, "result=\"sent\"", taken_help, attempts, count);
    ours->attempts_failed =
        metrics_histogram(metrics, taken, "result=\"failed\"", taken_help, attempts, count);
}

static void register_metrics(DispatcherMetrics *ours, Metrics *metrics)
{
    static const double bounds[] = {0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                    0.5,   1,     2.5,   5,    10,    30,   60};
    const char *attempts = "stentor_dispatcher_attempts_total";
    const char *attempts_help = "Attempts by outcome";
    // clang-format off
    ours->sent      = metrics_counter(metrics, attempts, "outcome=\"sent\"", attempts_help);
    ours->deferred  = metrics_counter(metrics, attempts, "outcome=\"deferred\"", attempts_help);
    ours->rejected  = metrics_counter(metrics, attempts, "outcome=\"rejected\"", attempts_help);
    ours->exhausted = metrics_counter(metrics, attempts, "outcome=\"retries_exhausted\"", attempts_help);
    ours->decided   = metrics_counter(metrics, attempts, "outcome=\"not_sent\"", attempts_help);
    ours->unknown   = metrics_counter(metrics, "stentor_dispatcher_unknown_total", "", "Attempts whose outcome is unknown");
    ours->parked    = metrics_counter(metrics, "stentor_dispatcher_parked_total", "", "Unknown outcomes parked for an operator");
    ours->refused   = metrics_counter(metrics, "stentor_dispatcher_claims_refused_total", "", "Deliveries whose attempt the ledger had already");
    ours->returned  = metrics_counter(metrics, "stentor_dispatcher_redelivered_total", "", "Deliveries returned for redelivery");
    ours->released  = metrics_counter(metrics, "stentor_dispatcher_released_total", "", "Claims released while draining");
    ours->postponed = metrics_counter(metrics, "stentor_dispatcher_postponed_total", "", "Mails deferred because too many of their tenant's mails were waiting for a slow vendor");
    ours->waiting   = metrics_counter(metrics, "stentor_dispatcher_waiting_total", "", "Mails deferred without a rung because no vendor of their route works");
    ours->moved     = metrics_counter(metrics, "stentor_dispatcher_moved_total", "", "Mails that went to the next vendor of their route because the one before surely had not got them");
    ours->lost      = metrics_counter(metrics, "stentor_dispatcher_claims_lost_total", "", "Outcomes whose claim another process had taken over");
    const char *open = "stentor_dispatcher_unknown_open";
    const char *open_help = "Unknown outcomes in the ledger that are still open, over all tenants";
    ours->callbacks_late = metrics_counter(metrics, "stentor_dispatcher_callbacks_total", "kind=\"late\"", "Vendor events that the dispatcher found the mail of, or published");
    ours->callbacks_repeated = metrics_counter(metrics, "stentor_dispatcher_callbacks_total", "kind=\"repeated\"", "Vendor events that the dispatcher found the mail of, or published");
    ours->callbacks_unknown = metrics_counter(metrics, "stentor_dispatcher_callbacks_total", "kind=\"unknown\"", "Vendor events that the dispatcher found the mail of, or published");
    ours->callbacks_foreign = metrics_counter(metrics, "stentor_dispatcher_callbacks_total", "kind=\"foreign\"", "Vendor events that the dispatcher found the mail of, or published");
    ours->settled     = metrics_counter(metrics, "stentor_dispatcher_settled_total", "", "Unknown outcomes settled by a vendor's callback");
    ours->open_claimed = metrics_gauge(metrics, open, "state=\"claimed\"", open_help);
    ours->open_parked  = metrics_gauge(metrics, open, "state=\"parked\"", open_help);
    // clang-format on
    ours->send_seconds = metrics_histogram(
        metrics, "stentor_dispatcher_send_seconds", "",
        "Seconds from the claim to the vendor's acceptance", bounds,
        sizeof bounds / sizeof *bounds);
    register_mails(ours, metrics);
}

// ---- workers and timers ----

static void on_worker_batch(void *ctx, Delivery **deliveries, size_t count)
{
    intake_batch(ctx, deliveries, count);
}

static void on_settle_batch(void *ctx, Delivery **deliveries, size_t count)
{
    settle_batch(ctx, deliveries, count);
}

static void on_partitions_made(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    Dispatcher *dispatcher = ctx;
    if (err != NULL && err->kind != ERROR_CANCELLED) {
        LOG(LOG_WARN, "the ledger's monthly tables were not created; trying again", log_error(err));
        dispatcher->partitions_at_us = 0;
    }
}

static void ensure_partitions(Dispatcher *dispatcher)
{
    int64_t now = clock_now_us();
    if (!db_pool_ready(dispatcher->parts.pool) ||
        now - dispatcher->partitions_at_us < PARTITIONS_EVERY_H * 3600LL * 1000000) {
        return;
    }
    dispatcher->partitions_at_us = now;
    DbTxn *txn = db_txn_new(dispatcher->parts.pool);
    ledger_add_partitions(txn);
    db_txn_submit(txn, on_partitions_made, dispatcher);
}

static void work(Dispatcher *dispatcher)
{
    for (int lane = 0; lane < LANES; lane++) {
        DispatcherLane *at = &dispatcher->lanes[lane];
        at->dispatcher = dispatcher;
        at->lane = (Priority)(lane + PRIORITY_CRITICAL);
        turns_open(at);
        const char *stream = topology_lane_stream("RENDERED", at->lane);
        WorkerOptions options = {
            .consumer = topology_consumer(dispatcher->parts.service, stream),
            .batch_max = dispatcher->parts.batch_max,
            .in_flight_max = dispatcher->parts.in_flight_max,
            .stage = "dispatcher",
            .slack = at->lane == PRIORITY_LOW,
        };
        at->worker = worker_new(dispatcher->parts.bus, &options, on_worker_batch, at);
        worker_start(at->worker);
    }
    WorkerOptions settle = {
        .consumer = topology_consumer(dispatcher->parts.service, "SETTLE"),
        .stage = "dispatcher",
    };
    dispatcher->settler = worker_new(dispatcher->parts.bus, &settle, on_settle_batch, dispatcher);
    worker_start(dispatcher->settler);
    intake_watch(dispatcher);
    dispatcher->working = true;
    // From now on the timer renews leases, creates partitions and counts open unknown outcomes.
    uint64_t quarter_ms = (uint64_t)dispatcher->parts.lease_ms / 4;
    uv_timer_set_repeat(&dispatcher->tick, quarter_ms < TURN_MAX_MS ? quarter_ms : TURN_MAX_MS);
    uv_timer_again(&dispatcher->tick);
}

static void turn(Dispatcher *dispatcher)
{
    ensure_partitions(dispatcher);
    if (dispatcher->working) {
        record_renew(dispatcher);
        record_try_aside(dispatcher);
        settle_count_open(dispatcher);
        health_tick(dispatcher->health);
        if (dispatcher->parts.vendors != NULL) {
            vendors_tick(dispatcher->parts.vendors);
        }
    } else if (!dispatcher->stopping && config_mirror_ready(dispatcher->mirror)) {
        work(dispatcher);
    }
}

static void on_tick_timer(uv_timer_t *timer)
{
    turn(timer->data);
}

// ---- start and stop ----

static bool on_config_changed(
    void *ctx, Str kind, Str tenant, Str key, const BusMessage *message, Error *err)
{
    Dispatcher *dispatcher = ctx;
    Vendors *vendors = dispatcher->parts.vendors;
    return (vendors == NULL || vendors_changed(vendors, kind, tenant, key, message, err)) &&
           directory_changed(dispatcher->directory, kind, tenant, key, message, err);
}

static void on_config_unreadable(void *ctx, Str kind, Str tenant, Str key, uint64_t sequence)
{
    Dispatcher *dispatcher = ctx;
    directory_unreadable(dispatcher->directory, kind, tenant, key, sequence);
}

Dispatcher *dispatcher_new(const DispatcherParts *parts)
{
    Dispatcher *dispatcher = xcalloc(1, sizeof *dispatcher);
    dispatcher->parts = *parts;
    dispatcher->owner = str_from(parts->instance);
    dispatcher->directory =
        directory_new(parts->vendors != NULL ? vendors_secrets(parts->vendors) : NULL);
    dispatcher->health = health_new(
        parts->bus, dispatcher->directory, &dispatcher->parts.vendor, CHANNEL_EMAIL,
        parts->instance);
    dispatcher->keyring = keyring_new(parts->pool, parts->master, &(KeyringOptions){0});
    dispatcher->jobs = map_new(NULL);
    dispatcher->bulkhead = bulkhead_new();
    dispatcher->scratch = arena_new(64 * 1024);
    buf_init(&dispatcher->buf, MIME_BYTES_MAX);
    register_metrics(&dispatcher->metrics, parts->metrics);
    uv_timer_init(parts->loop, &dispatcher->flush_timer);
    uv_timer_init(parts->loop, &dispatcher->moves);
    uv_timer_init(parts->loop, &dispatcher->tick);
    uv_timer_init(parts->loop, &dispatcher->turns);
    dispatcher->turns.data = dispatcher;
    dispatcher->flush_timer.data = dispatcher;
    dispatcher->moves.data = dispatcher;
    dispatcher->tick.data = dispatcher;
    dispatcher->mirror = config_mirror_new(parts->bus, on_config_changed, dispatcher);
    config_mirror_on_unreadable(dispatcher->mirror, on_config_unreadable);
    uv_timer_start(&dispatcher->tick, on_tick_timer, 0, START_POLL_MS);
    return dispatcher;
}

bool dispatcher_ready(const Dispatcher *dispatcher, Buf *reason)
{
    if (!dispatcher->working) {
        buf_cstr(reason, "the configuration has not been read yet");
    }
    return dispatcher->working;
}

void dispatcher_warn(const Dispatcher *dispatcher, Buf *warning)
{
    const Vendor *vendor = &dispatcher->parts.vendor;
    VendorHealth own = vendor->health(vendor->self);
    if (own.down_since_us > 0) {
        health_describe(vendor->name, &own, warning);
    }
    send_domains_warn(directory_send_domains(dispatcher->directory), warning);
    if (dispatcher->parts.vendors != NULL) {
        vendors_warn(dispatcher->parts.vendors, warning);
    }
}

static void part_closed(Dispatcher *dispatcher)
{
    if (--dispatcher->open == 0) {
        dispatcher->on_stopped(dispatcher->stopped_ctx);
    }
}

static void on_handle_closed(uv_handle_t *handle)
{
    part_closed(handle->data);
}

static void on_part_freed(void *ctx)
{
    part_closed(ctx);
}

static void close_rest(Dispatcher *dispatcher)
{
    dispatcher->open = 6 + (dispatcher->working ? LANES + 1 : 0);
    for (int lane = 0; dispatcher->working && lane < LANES; lane++) {
        worker_free(dispatcher->lanes[lane].worker, on_part_freed, dispatcher);
    }
    if (dispatcher->working) {
        worker_free(dispatcher->settler, on_part_freed, dispatcher);
    }
    health_stop(dispatcher->health, on_part_freed, dispatcher);
    config_mirror_free(dispatcher->mirror, on_part_freed, dispatcher);
    uv_close((uv_handle_t *)&dispatcher->flush_timer, on_handle_closed);
    uv_close((uv_handle_t *)&dispatcher->moves, on_handle_closed);
    uv_close((uv_handle_t *)&dispatcher->tick, on_handle_closed);
    uv_close((uv_handle_t *)&dispatcher->turns, on_handle_closed);
}

static void on_worker_stopped(void *ctx)
{
    Dispatcher *dispatcher = ctx;
    if (--dispatcher->open == 0) {
        close_rest(dispatcher);
    }
}

void dispatcher_stop(Dispatcher *dispatcher, void (*on_stopped)(void *ctx), void *ctx)
{
    dispatcher->stopping = true;
    dispatcher->stopping_at_ms = uv_now(dispatcher->parts.loop);
    dispatcher->on_stopped = on_stopped;
    dispatcher->stopped_ctx = ctx;
    dispatcher->parts.vendor.drain(dispatcher->parts.vendor.self);
    if (dispatcher->parts.vendors != NULL) {
        vendors_drain(dispatcher->parts.vendors);
    }
    if (!dispatcher->working) {
        close_rest(dispatcher);
        return;
    }
    dispatcher->open = LANES + 1;
    worker_stop(dispatcher->settler, on_worker_stopped, dispatcher);
    for (int lane = 0; lane < LANES; lane++) {
        worker_stop(dispatcher->lanes[lane].worker, on_worker_stopped, dispatcher);
    }
    intake_give_up(dispatcher);
    record_all_aside(dispatcher);
}

void dispatcher_free(Dispatcher *dispatcher)
{
    if (dispatcher != NULL) {
        for (int lane = 0; lane < LANES; lane++) {
            turns_close(&dispatcher->lanes[lane]);
        }
        keyring_free(dispatcher->keyring);
        health_free(dispatcher->health);
        directory_free(dispatcher->directory);
        map_free(dispatcher->jobs);
        bulkhead_free(dispatcher->bulkhead);
        arena_free(dispatcher->scratch);
        buf_done(&dispatcher->buf);
        free(dispatcher);
    }
}
