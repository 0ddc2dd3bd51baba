// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/relay.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/file.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "common/bus/consume/projector.h"
#include "common/bus/topology/accounts.h"
#include "common/bus/topology/topology.h"
#include "common/db/listen.h"
#include "services/outbox-relay/feedback/feedback.h"
#include "services/outbox-relay/feedback/feedback_retry.h"
#include "services/outbox-relay/maintenance.h"
#include "services/outbox-relay/publish/drain.h"
#include "services/outbox-relay/relay_internal.h"
#include "services/outbox-relay/relay_metrics.h"

enum {
    CHECK_MIN_MS = 200,
    CHECK_MAX_MS = 5000,
    KEEP_ROWS = 500,
    COUNT_MS = 10 * 1000,
};

// ---- reports of the parts ----

static void on_drain_claimed(void *ctx, const BatchClaim *claim)
{
    Relay *relay = ctx;
    relay_metrics_claimed(&relay->metrics, claim);
}

static void on_drain_ended(void *ctx, const BatchEnd *end)
{
    Relay *relay = ctx;
    relay_metrics_ended(&relay->metrics, end);
}

static void on_drain_trouble(void *ctx, const Error *err)
{
    Relay *relay = ctx;
    relay->trouble = err != NULL ? *err : (Error){0};
}

static void on_maintenance_counted(void *ctx, const MaintenanceBacklog *backlog)
{
    Relay *relay = ctx;
    relay_metrics_counted(&relay->metrics, backlog);
}

static void on_maintenance_tallied(void *ctx, const MaintenanceTally *tally)
{
    Relay *relay = ctx;
    relay_metrics_tallied(&relay->metrics, tally);
}

static void on_maintenance_deleted(void *ctx, size_t rows)
{
    Relay *relay = ctx;
    metric_add(relay->metrics.deleted, (double)rows);
}

// ---- wake-ups ----

// The payload is a mapping's name: another relay may be meant. Empty: every relay of the database.
static void on_listen_notified(void *ctx, Str payload)
{
    Relay *relay = ctx;
    if (payload.len == 0 || str_eq(payload, relay->mapping->name)) {
        metric_add(relay->metrics.woken, 1);
        drain_wake(relay->drain);
    }
}

// A NOTIFY that was sent while the connection was down is lost: look once.
static void on_listen_listening(void *ctx, bool listening)
{
    Relay *relay = ctx;
    if (listening) {
        drain_wake(relay->drain);
    }
}

static void on_bus_changed(void *ctx, bool connected)
{
    Relay *relay = ctx;
    if (connected && !relay->stopping) {
        drain_wake(relay->drain);
    }
}

// ---- checking the table before anything is claimed ----

static const DbStatement OLDEST_REQUEST = {
    "outbox_oldest_request", "SELECT min(made_at) FROM stentor_outbox.requests"
                             " WHERE mapping = $1::text AND ended_at IS NULL"};

static void on_check_timer(uv_timer_t *timer);
static void finish_stop(Relay *relay);

static void check_again(Relay *relay)
{
    uv_timer_start(&relay->check_timer, on_check_timer, (uint64_t)relay->check_ms, 0);
    relay->check_ms = 2 * relay->check_ms < CHECK_MAX_MS ? 2 * relay->check_ms : CHECK_MAX_MS;
}

static void begin(Relay *relay)
{
    relay->checked = true;
    LOG(LOG_INFO, "the outbox table matches its mapping", log_str("mapping", relay->mapping->name),
        log_str("table", relay->mapping->table),
        log_text("publishes", mapping_is_request(relay->mapping) ? "requests" : "events"));
    drain_start(relay->drain);
    maintenance_start(relay->maintenance);
    if (relay->projector != NULL) {
        feedback_retry_start(relay->feedback_retry);
    }
}

static void refuse(Relay *relay, const Error *err)
{
    service_wrong_options(relay->service);
    service_fail(relay->service, err);
}

// The pool logs the state of the connection. true: the answer may be used.
static bool take_check(Relay *relay, const Error *err)
{
    relay->checking = false;
    if (relay->stopping) {
        finish_stop(relay);
    } else if (err != NULL && err->kind != ERROR_CONFIG && err->kind != ERROR_PERMANENT) {
        check_again(relay);
    } else if (err != NULL) {
        refuse(relay, err);
    }
    return err == NULL && !relay->stopping;
}

static void on_oldest_request(void *ctx, DbTxn *txn, const Error *err)
{
    Relay *relay = ctx;
    if (take_check(relay, err)) {
        relay_open_projector(relay, db_get_time(db_txn_result(txn, 0), 0, 0));
        begin(relay);
    }
}

static void on_checked(void *ctx, DbTxn *txn, const Error *err)
{
    Relay *relay = ctx;
    Error wrong = {0};
    if (!take_check(relay, err)) {
        return;
    }
    if (!relay_sql_bind(relay->sql, db_txn_result(txn, 0), &wrong)) {
        refuse(relay, &wrong);
    } else if (mapping_is_request(relay->mapping)) {
        relay->checking = true;
        DbTxn *query = db_txn_new(service_pool(relay->service));
        db_text(db_txn_add(query, &OLDEST_REQUEST, NULL), relay->mapping->name);
        db_txn_submit(query, on_oldest_request, relay);
    } else {
        begin(relay);
    }
}

static void check_table(Relay *relay)
{
    if (!db_pool_ready(service_pool(relay->service))) {
        check_again(relay);
        return;
    }
    relay->checking = true;
    DbTxn *txn = db_txn_new(service_pool(relay->service));
    db_txn_add(txn, &relay->sql->check, NULL);
    db_txn_submit(txn, on_checked, relay);
}

static void on_check_timer(uv_timer_t *timer)
{
    check_table(timer->data);
}

// ---- starting ----

static bool read_mapping(Relay *relay, Error *err)
{
    Buf text;
    buf_init(&text, MAPPING_BYTES_MAX);
    bool ok = file_append(relay->options->mapping_file, &text, err);
    if (ok) {
        relay->mapping = mapping_read(buf_view(&text), err);
        ok = relay->mapping != NULL || error_wrap(err, "'%s'", relay->options->mapping_file);
    }
    buf_done(&text);
    return ok || error_wrap(err, "STENTOR_OUTBOX_MAPPING");
}

static void open_drain(Relay *relay)
{
    static const DrainHandlers handlers = {
        .claimed = on_drain_claimed, .ended = on_drain_ended, .trouble = on_drain_trouble};
    const DrainOptions options = {
        .batches_max = (int)relay->options->batches, .poll_max_ms = relay->options->poll_ms};
    relay->context = (BatchContext){
        // Ingest stores it, sealed, and answers for it; an account of its own is mapped there.
        .intake = relay->options->domain[0] == '\0' ? "in." : "",
        .bus = service_bus(relay->service),
        .pool = service_pool(relay->service),
        .sql = relay->sql,
        .relay = service_instance(relay->service),
        .lease_ms = relay->options->lease_ms,
        .rows_max = relay->options->batch_rows,
    };
    relay->drain = drain_new(&relay->context, &options, &handlers, relay);
}

static void open_maintenance(Relay *relay)
{
    static const MaintenanceHandlers handlers = {
        .counted = on_maintenance_counted,
        .tallied = on_maintenance_tallied,
        .deleted = on_maintenance_deleted,
    };
    const MaintenanceOptions options = {
        .pool = service_pool(relay->service),
        .sql = relay->sql,
        .keep_rows = KEEP_ROWS,
        .keep_ms = relay->options->keep_ms,
        .count_ms = COUNT_MS,
    };
    relay->maintenance = maintenance_new(service_loop(relay->service), &options, &handlers, relay);
}

static void open_parts(Relay *relay)
{
    static const DbListenEvents events = {
        .notified = on_listen_notified, .listening = on_listen_listening};
    Service *service = relay->service;
    relay->sql = relay_sql_new(relay->mapping);
    relay->feedback = feedback_new();
    relay_metrics_init(&relay->metrics, service_metrics(service));
    open_drain(relay);
    open_maintenance(relay);
    relay->feedback_retry = feedback_retry_new(service_pool(service), relay->sql);
    bus_watch(service_bus(service), on_bus_changed, relay);
    relay->listen = db_listen_new(
        service_loop(service), service_database_url(service), "stentor_outbox", &events, relay);
    relay->metrics.listen = relay->listen;
    relay->check_ms = CHECK_MIN_MS;
    uv_timer_init(service_loop(service), &relay->check_timer);
    relay->check_timer.data = relay;
    check_again(relay);
}

static bool start_relay(Service *service, const void *options, void **ret_state, Error *err)
{
    Relay *relay = xcalloc(1, sizeof(*relay));
    relay->service = service;
    relay->options = options;
    if (relay->options->domain[0] != '\0') {
        bus_use_domain(service_bus(service), relay->options->domain);
    }
    if (!read_mapping(relay, err) || !relay_plan_streams(relay, err)) {
        service_wrong_options(service);
        free(relay);
        return false;
    }
    open_parts(relay);
    *ret_state = relay;
    return true;
}

static bool check_ready(void *state, Buf *reason)
{
    const Relay *relay = state;
    const char *stands = relay->projector != NULL ? projector_failure(relay->projector) : NULL;
    if (!relay->checked) {
        buf_cstr(reason, "the outbox table has not been checked yet");
    } else if (relay->trouble.kind != ERROR_NONE) {
        buf_printf(reason, "outbox rows cannot be claimed: %s", relay->trouble.text);
    } else if (relay->context.stuck > 0) {
        buf_cstr(reason, "the outbox table rejects the marking of published rows");
    } else if (stands != NULL) {
        buf_printf(reason, "feedback cannot be written to the outbox table: %s", stands);
    } else if (relay->feedback_refused) {
        buf_cstr(reason, "feedback cannot be written to the outbox table: the database rejects it");
    } else if (feedback_retry_trouble(relay->feedback_retry) != NULL) {
        buf_printf(
            reason, "feedback cannot be written to the outbox table: %s",
            feedback_retry_trouble(relay->feedback_retry));
    } else {
        return true;
    }
    return false;
}

// ---- stopping, in this order: LISTEN, claims, maintenance, feedback ----

static void on_check_timer_closed(uv_handle_t *handle)
{
    Relay *relay = handle->data;
    service_stopped(relay->service);
}

static void finish_stop(Relay *relay)
{
    if (!relay->checking) {
        uv_close((uv_handle_t *)&relay->check_timer, on_check_timer_closed);
    }
}

static void on_part_stopped(void *ctx)
{
    Relay *relay = ctx;
    switch (relay->parts_stopped++) {
    case 0:
        relay->listen = NULL;
        drain_stop(relay->drain, on_part_stopped, relay);
        break;
    case 1:
        maintenance_stop(relay->maintenance, on_part_stopped, relay);
        break;
    case 2:
        feedback_retry_stop(relay->feedback_retry, on_part_stopped, relay);
        break;
    case 3:
        if (relay->projector != NULL) {
            projector_stop(relay->projector, on_part_stopped, relay);
            break;
        }
        finish_stop(relay);
        break;
    default:
        finish_stop(relay);
        break;
    }
}

static void stop_relay(void *state)
{
    Relay *relay = state;
    relay->stopping = true;
    relay->metrics.listen = NULL;
    uv_timer_stop(&relay->check_timer);
    db_listen_close(relay->listen, on_part_stopped, relay);
}

static void free_relay(void *state)
{
    Relay *relay = state;
    if (relay->projector != NULL) {
        projector_free(relay->projector);
    }
    feedback_retry_free(relay->feedback_retry);
    maintenance_free(relay->maintenance);
    drain_free(relay->drain);
    feedback_free(relay->feedback);
    relay_sql_free(relay->sql);
    mapping_free(relay->mapping);
    free(relay);
}

// clang-format off
static const Option options_table[] = {
    {"STENTOR_OUTBOX_MAPPING", OPTION_TEXT, offsetof(RelayOptions, mapping_file), NULL, 0, 0, false,
     "file that describes how the outbox table is read and written"},
    {"STENTOR_OUTBOX_TENANTS", OPTION_TEXT, offsetof(RelayOptions, tenants), "", 0, 0, false,
     "the application's tenants, separated by commas, as in the table of nats-config; empty: all tenants"},
    {"STENTOR_OUTBOX_NATS_DOMAIN", OPTION_TEXT, offsetof(RelayOptions, domain), "", 0, 0, false,
     "`stentor` if the NATS user is a relay in the table of nats-config; empty: JetStream is in the user's own account"},
    {"STENTOR_OUTBOX_BATCH", OPTION_INT, offsetof(RelayOptions, batch_rows), "1000", 1, 5000, false,
     "rows of one claim at most"},
    {"STENTOR_OUTBOX_BATCHES", OPTION_INT, offsetof(RelayOptions, batches), "2", 1, 8, false,
     "batches in progress at the same time at most"},
    {"STENTOR_OUTBOX_LEASE_MS", OPTION_INT, offsetof(RelayOptions, lease_ms), "30000", 3000, 600000, false,
     "how long a claim lasts without renewal before another relay may adopt it, in ms"},
    {"STENTOR_OUTBOX_POLL_MS", OPTION_INT, offsetof(RelayOptions, poll_ms), "1000", 20, 60000, false,
     "longest pause between two polls of an idle table, in ms; NOTIFY wakes the relay at once"},
    {"STENTOR_OUTBOX_KEEP_MS", OPTION_INT, offsetof(RelayOptions, keep_ms), "60000", 100, 86400000, false,
     "pause between two searches for rows that `keep` deletes, in ms"},
};
// clang-format on

const ServiceSpec relay_service = {
    .name = "stentor-outbox-relay",
    .summary = "publishes an application's outbox table and writes the outcome back into its rows",
    .options = options_table,
    .option_count = sizeof(options_table) / sizeof(options_table[0]),
    .options_size = sizeof(RelayOptions),
    .wants_database = true,
    .application_database = true,
    .start = start_relay,
    .ready = check_ready,
    .stop = stop_relay,
    .free = free_relay,
};
