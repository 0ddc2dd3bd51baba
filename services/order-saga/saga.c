// SPDX-License-Identifier: Apache-2.0
#include "services/order-saga/saga.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "services/order-saga/consumer.h"
#include "services/order-saga/retention.h"
#include "services/order-saga/waits.h"

enum { DUPLICATE_WINDOW_MS = 120000 }; // common/bus/topology/topology.c

typedef struct SagaOptions {
    int64_t retry_timeout_ms;
    int64_t max_attempts;
    int64_t lost_wait_ms;
    int64_t stalled_s;
    int64_t sweep_ms;
    int64_t sweep_age_ms;
    int64_t kpi_ms;
    int64_t clean_up_s;
    int64_t outbox_days, inbox_days, archive_days, drop_days;
    bool events_sealed;
} SagaOptions;

typedef struct Saga {
    Service *service;
    const SagaOptions *options;
    SagaMetrics metrics;
    Keyring *keyring;
    EventKeys *event_keys;
    Outbox *outbox;
    Retention *retention;
    Waits *waits;
    Consumer *consumer;
    uv_timer_t kpi_timer;
    bool counting, parts_stopped;
    int stopped_count; // of on_part_stopped
    SagaKpis kpis;
} Saga;

// ---- counts for the metrics ----

static void finish_stop(Saga *saga);

static void log_stalled(int64_t before, int64_t now)
{
    if (now > 0 && before == 0) {
        LOG(LOG_WARN, "orders are stalled: placed for longer than STENTOR_SAGA_STALLED_S",
            log_int("count", now));
    } else if (now == 0 && before > 0) {
        LOG(LOG_INFO, "no order is stalled any more", log_int("count", before));
    }
}

static void on_db_counted(void *ctx, DbTxn *txn, const Error *err)
{
    Saga *saga = ctx;
    saga->counting = false;
    if (err == NULL) {
        int64_t before = saga->kpis.stalled;
        saga_sql_kpis_read(txn, &saga->kpis);
        log_stalled(before, saga->kpis.stalled);
    }
    if (saga->parts_stopped) {
        finish_stop(saga);
    }
}

static void on_timer_kpis(uv_timer_t *timer)
{
    Saga *saga = timer->data;
    DbPool *pool = service_pool(saga->service);
    if (saga->counting || !db_pool_ready(pool)) {
        return;
    }
    saga->counting = true;
    DbTxn *txn = db_txn_new(pool);
    saga_sql_kpis(txn, saga->options->stalled_s);
    db_txn_submit(txn, on_db_counted, saga);
}

static double read_active(void *ctx)
{
    return (double)((const Saga *)ctx)->kpis.active;
}

static double read_stalled(void *ctx)
{
    return (double)((const Saga *)ctx)->kpis.stalled;
}

static double read_unmatched(void *ctx)
{
    return (double)((const Saga *)ctx)->kpis.unmatched;
}

static double read_backlog(void *ctx)
{
    return (double)((const Saga *)ctx)->kpis.backlog;
}

static double read_oldest(void *ctx)
{
    int64_t oldest_us = ((const Saga *)ctx)->kpis.oldest_unsent_us;
    int64_t age_us = oldest_us == 0 ? 0 : clock_now_us() - oldest_us;
    return age_us > 0 ? (double)age_us / 1e6 : 0;
}

static void register_metrics(Saga *saga, Metrics *metrics)
{
    saga_metrics_register(&saga->metrics, metrics);
    metrics_gauge_fn(
        metrics, "stentor_order_saga_active", "",
        "Open orders, counted every STENTOR_SAGA_KPI_MS; the same from each replica", read_active,
        saga);
    // clang-format off
    metrics_gauge_fn(metrics, "stentor_order_saga_stalled", "", "Open orders placed for longer than STENTOR_SAGA_STALLED_S", read_stalled, saga);
    metrics_gauge_fn(metrics, "stentor_order_saga_unmatched", "", "Events that wait for their order", read_unmatched, saga);
    metrics_gauge_fn(metrics, "stentor_order_saga_outbox_backlog", "", "Commands and time-outs not sent yet", read_backlog, saga);
    // clang-format on
    metrics_gauge_fn(
        metrics, "stentor_order_saga_outbox_oldest_seconds", "",
        "Age of the oldest command or time-out not sent yet; 0: there is none", read_oldest, saga);
}

// ---- starting ----

static void on_clean_up(void *ctx, Delivery *delivery, Str tenant)
{
    Saga *saga = ctx;
    retention_take(saga->retention, delivery, tenant);
}

static void open_parts(Saga *saga)
{
    Service *service = saga->service;
    const SagaOptions *own = saga->options;
    saga->keyring =
        keyring_new(service_pool(service), service_master_key(service), &(KeyringOptions){0});
    saga->event_keys = event_keys_new(service_master_key(service));
    saga->outbox = outbox_new(&(OutboxOptions){
        .bus = service_bus(service),
        .pool = service_pool(service),
        .keyring = saga->keyring,
        .event_keys = own->events_sealed ? saga->event_keys : NULL,
        .metrics = &saga->metrics,
        .every_ms = own->sweep_ms,
        .older_than_ms = own->sweep_age_ms,
    });
    saga->waits = waits_new(&(WaitsOptions){
        .bus = service_bus(service),
        .pool = service_pool(service),
        .metrics = &saga->metrics,
        .lost_after_ms = own->lost_wait_ms,
    });
    saga->retention = retention_new(&(RetentionOptions){
        .bus = service_bus(service),
        .pool = service_pool(service),
        .metrics = &saga->metrics,
        .ages = {own->outbox_days, own->inbox_days, own->archive_days, own->drop_days},
        .period_s = own->clean_up_s,
    });
}

// A repeated PlaceOrder has the id of the first.
static void warn_of_short_wait(int64_t wait_ms)
{
    if (wait_ms < DUPLICATE_WINDOW_MS) {
        LOG(LOG_WARN,
            "STENTOR_SAGA_RETRY_TIMEOUT_MS is shorter than the duplicate window of EVENTS: the "
            "stream drops orders that are placed again within it, and the attempt is lost",
            log_int("wait_ms", wait_ms), log_int("window_ms", DUPLICATE_WINDOW_MS));
    }
}

static bool start_saga(Service *service, const void *options, void **ret_state, Error *err)
{
    if (topology_consumer("stentor-order-saga", "EVENTS") == NULL) {
        return error_set(
            err, ERROR_CONFIG, "the topology has no consumer of 'EVENTS' for this service");
    }
    Saga *saga = xcalloc(1, sizeof *saga);
    saga->service = service;
    saga->options = options;
    register_metrics(saga, service_metrics(service));
    open_parts(saga);
    warn_of_short_wait(saga->options->retry_timeout_ms);
    saga->consumer = consumer_new(&(ConsumerOptions){
        .bus = service_bus(service),
        .pool = service_pool(service),
        .keyring = saga->keyring,
        .event_keys = saga->event_keys,
        .seals = saga->options->events_sealed,
        .hash_key = master_hash_key(service_master_key(service)),
        .outbox = saga->outbox,
        .metrics = &saga->metrics,
        .tracer = service_tracer(saga->service),
        .retry_timeout_ms = saga->options->retry_timeout_ms,
        .max_attempts = saga->options->max_attempts,
        .on_clean_up = on_clean_up,
        .ctx = saga,
    });
    uv_timer_init(service_loop(service), &saga->kpi_timer);
    saga->kpi_timer.data = saga;
    uint64_t every_ms = (uint64_t)saga->options->kpi_ms;
    uv_timer_start(&saga->kpi_timer, on_timer_kpis, every_ms < 1000 ? every_ms : 1000, every_ms);
    *ret_state = saga;
    return true;
}

// ---- stopping: retention (the worker waits for its events), waits, worker, outbox, timer ----

static void on_timer_closed(uv_handle_t *handle)
{
    Saga *saga = handle->data;
    service_stopped(saga->service);
}

static void finish_stop(Saga *saga)
{
    if (!saga->counting) {
        uv_close((uv_handle_t *)&saga->kpi_timer, on_timer_closed);
    }
}

static void on_part_stopped(void *ctx)
{
    Saga *saga = ctx;
    switch (saga->stopped_count++) {
    case 0:
        waits_stop(saga->waits, on_part_stopped, saga);
        break;
    case 1:
        consumer_stop(saga->consumer, on_part_stopped, saga);
        break;
    case 2:
        outbox_stop(saga->outbox, on_part_stopped, saga);
        break;
    default:
        saga->parts_stopped = true;
        uv_timer_stop(&saga->kpi_timer);
        finish_stop(saga);
        break;
    }
}

static void stop_saga(void *state)
{
    Saga *saga = state;
    retention_stop(saga->retention, on_part_stopped, saga);
}

static void free_saga(void *state)
{
    Saga *saga = state;
    consumer_free(saga->consumer);
    waits_free(saga->waits);
    retention_free(saga->retention);
    outbox_free(saga->outbox);
    keyring_free(saga->keyring);
    event_keys_free(saga->event_keys);
    free(saga);
}

// clang-format off
static const Option options_table[] = {
    {"STENTOR_SAGA_RETRY_TIMEOUT_MS", OPTION_INT, offsetof(SagaOptions, retry_timeout_ms), "300000", 10, 86400000, false,
     "how long an order waits before it is placed again, in ms; longer than the duplicate window of EVENTS (2 min)"},
    {"STENTOR_SAGA_MAX_ATTEMPTS", OPTION_INT, offsetof(SagaOptions, max_attempts), "3", 1, 10, false,
     "number of time-outs after which an order has failed"},
    {"STENTOR_SAGA_LOST_WAIT_MS", OPTION_INT, offsetof(SagaOptions, lost_wait_ms), "600000", 100, 86400000, false,
     "how long after its time a missing time-out is requested again, in ms"},
    {"STENTOR_SAGA_STALLED_S", OPTION_INT, offsetof(SagaOptions, stalled_s), "3600", 1, 31536000, false,
     "how long an order may stay placed before it counts as stalled, in s"},
    {"STENTOR_SAGA_KPI_MS", OPTION_INT, offsetof(SagaOptions, kpi_ms), "15000", 100, 3600000, false,
     "pause between two counts of orders and outbox rows for the metrics, in ms"},
    {"STENTOR_SAGA_SWEEP_MS", OPTION_INT, offsetof(SagaOptions, sweep_ms), "1000", 50, 3600000, false,
     "pause between two searches for outbox rows that no process has published, in ms"},
    {"STENTOR_SAGA_SWEEP_AGE_MS", OPTION_INT, offsetof(SagaOptions, sweep_age_ms), "5000", 100, 3600000, false,
     "the sweep leaves younger outbox rows to the process that wrote them, in ms"},
    {"STENTOR_SAGA_CLEAN_UP_S", OPTION_INT, offsetof(SagaOptions, clean_up_s), "86400", 1, 2592000, false,
     "period of the retention, in s"},
    {"STENTOR_SAGA_OUTBOX_DAYS", OPTION_INT, offsetof(SagaOptions, outbox_days), "7", 1, 36500, false,
     "days after which sent outbox rows are deleted"},
    {"STENTOR_SAGA_INBOX_DAYS", OPTION_INT, offsetof(SagaOptions, inbox_days), "30", 8, 36500, false,
     "days for which consumed messages are remembered; longer than EVENTS keeps them"},
    {"STENTOR_SAGA_ARCHIVE_DAYS", OPTION_INT, offsetof(SagaOptions, archive_days), "30", 1, 36500, false,
     "days after its end at which an order is moved to the tables by month that are archived; less than records are hot"},
    {"STENTOR_SAGA_DROP_DAYS", OPTION_INT, offsetof(SagaOptions, drop_days), "2557", 1, 36500, false,
     "days after its end at which an archived order is deleted"},
    {"STENTOR_EVENTS_SEALED", OPTION_BOOL, offsetof(SagaOptions, events_sealed), "true", 0, 0, false,
     "commands, unmatched events and dead letters are kept encrypted; false: for a rollback to a release that opens none"},
};
// clang-format on

const ServiceSpec saga_service = {
    .name = "stentor-order-saga",
    .summary = "follows orders from check-out to their end: commands, time-outs, retries",
    .options = options_table,
    .option_count = sizeof(options_table) / sizeof(options_table[0]),
    .options_size = sizeof(SagaOptions),
    .wants_database = true,
    .wants_master_key = true,
    .start = start_saga,
    .stop = stop_saga,
    .free = free_saga,
};
