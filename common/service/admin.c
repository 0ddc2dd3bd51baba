// SPDX-License-Identifier: Apache-2.0
// What probes and operators see of a running service: /healthz (the loop turns), /readyz (it can
// work; else why not), /metrics, /routes (of its API).
#include "common/service/internal.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/service/health/probe.h"

enum { REASONS_MAX = 4096, CONNECTIONS_MAX = 64 };

// ---- readiness ----

static void add_reason(Buf *reasons, const char *text)
{
    buf_cstr(reasons, reasons->len > 0 ? "; " : "");
    buf_cstr(reasons, text);
}

static void ask_service(Service *service, Buf *reasons)
{
    Buf own;
    buf_init(&own, REASONS_MAX / 2);
    if (!service->spec->ready(service->state, &own)) {
        add_reason(reasons, own.len > 0 ? buf_c(&own) : "the service is not ready");
    }
    buf_done(&own);
}

static void ask_database(const DbPool *pool, Buf *reasons)
{
    const char *trouble = db_pool_trouble(pool);
    bool connected = db_pool_ready(pool);
    if (!connected || trouble != NULL) {
        add_reason(reasons, connected ? "postgres takes no writes" : "not connected to postgres");
    }
    if (trouble != NULL) {
        buf_cstr(reasons, " (");
        buf_cstr(reasons, trouble);
        buf_cstr(reasons, ")");
    }
}

static void ask_bus(const Bus *bus, Buf *reasons)
{
    const char *trouble = bus_trouble(bus);
    if (bus_connected(bus)) {
        return;
    }
    add_reason(reasons, "not connected to nats");
    if (trouble != NULL) {
        buf_printf(reasons, " (%s)", trouble);
    }
}

// What is wrong now, however short.
static void ask_all(Service *service, Buf *reasons)
{
    ask_bus(service->bus, reasons);
    const char *denied = bus_permission_error(service->bus);
    if (denied != NULL) {
        add_reason(reasons, denied);
    }
    const char *missing = bus_missing(service->bus);
    if (missing != NULL) {
        add_reason(reasons, missing);
    }
    if (service->pool != NULL) {
        ask_database(service->pool, reasons);
    }
    if (!service->fits) {
        add_reason(
            reasons, service->fit_trouble[0] != '\0'
                         ? service->fit_trouble
                         : "the database has not been compared with this release yet");
    }
    if (!service->keys_checked) {
        add_reason(reasons, "the master key has not been compared with the registered one yet");
    }
    if (service->spec->ready != NULL) {
        ask_service(service, reasons);
    }
}

bool admin_ready(Service *service, Buf *reasons)
{
    if (service->phase != PHASE_RUNNING || service->drain_wanted) {
        add_reason(reasons, "the service is stopping");
        return false;
    }
    ask_all(service, reasons);
    int64_t now_ms = (int64_t)uv_now(&service->loop);
    bool ready = steady_update(&service->steady, reasons->len == 0, now_ms);
    if (!ready && reasons->len == 0) {
        buf_printf(reasons, "it was not ready within the last %d ms", STEADY_MS);
    }
    return ready;
}

// What the server's clock said when it made a consumer of ours.
static void note_nats_clock(Service *service)
{
    BusClock clock;
    if (bus_server_clock(service->bus, &clock)) {
        int64_t now_us = clock_now_us(), now_ns = (int64_t)uv_hrtime();
        clock_check_note(
            &service->clocks[SERVICE_CLOCK_NATS],
            clock_off_us(
                clock.server_us, now_us - (now_ns - clock.asked_ns) / 1000,
                now_us - (now_ns - clock.heard_ns) / 1000));
    }
}

void admin_tick(Service *service)
{
    Buf reasons;
    if (service->phase != PHASE_RUNNING || service->drain_wanted) {
        return;
    }
    buf_init(&reasons, REASONS_MAX);
    bool ready = admin_ready(service, &reasons);
    notify_tick(&service->notify, ready, buf_c(&reasons), (int64_t)uv_now(&service->loop));
    buf_done(&reasons);
    note_nats_clock(service);
}

// ---- requests ----

// A second line. Whoever restarts or replaces a process that is not ready must not do so because of
// it: another process would meet the same.
static void add_warning(Service *service, Buf *text)
{
    Buf warning;
    buf_init(&warning, REASONS_MAX / 2);
    if (service->spec->warn != NULL) {
        service->spec->warn(service->state, &warning);
    }
    if (warning.len > 0) {
        buf_printf(text, "\nwarning: %s", buf_c(&warning));
    }
    buf_done(&warning);
}

static void answer_ready(Service *service, HttpRequest *request)
{
    Buf text;
    buf_init(&text, REASONS_MAX);
    bool ready = admin_ready(service, &text);
    if (ready) {
        buf_cstr(&text, "ready");
        add_warning(service, &text);
    }
    buf_char(&text, '\n');
    http_respond(request, ready ? 200 : 503, "text/plain; charset=utf-8", buf_view(&text));
    buf_done(&text);
}

static void answer_metrics(Service *service, HttpRequest *request)
{
    Buf text;
    Str accept = http_header(request, "Accept");
    bool open = str_contains_nocase(accept, STR("application/openmetrics-text"));
    const char *type = open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                            : "text/plain; version=0.0.4; charset=utf-8";
    buf_init(&text, METRICS_TEXT_MAX);
    if (open ? metrics_print_open(service->metrics, &text)
             : metrics_print(service->metrics, &text)) {
        http_respond(request, 200, type, buf_view(&text));
    } else {
        http_problem(
            request, 500, "metrics-too-large", "The metrics are too large", NULL,
            "they have over %d bytes", METRICS_TEXT_MAX);
    }
    buf_done(&text);
}

static void answer_routes(Service *service, HttpRequest *request)
{
    Buf text;
    buf_init(&text, PROBE_SAID_MAX);
    service->spec->routes(service->state, &text);
    http_respond(request, 200, "text/plain; charset=utf-8", buf_view(&text));
    buf_done(&text);
}

static void on_admin_request(void *ctx, HttpRequest *request)
{
    Service *service = ctx;
    if (!str_eq(request->method, STR("GET")) && !str_eq(request->method, STR("HEAD"))) {
        http_response_header(request, "Allow", STR("GET, HEAD"));
        http_problem(
            request, 405, "method-not-allowed", "Method not allowed", NULL, "expected GET or HEAD");
    } else if (str_eq(request->path, STR("/healthz"))) {
        http_respond(request, 200, "text/plain; charset=utf-8", STR("ok\n"));
    } else if (str_eq(request->path, STR("/readyz"))) {
        answer_ready(service, request);
    } else if (str_eq(request->path, STR("/metrics"))) {
        answer_metrics(service, request);
    } else if (
        str_eq(request->path, STR("/routes")) && service->spec->routes != NULL &&
        service->phase == PHASE_RUNNING) {
        answer_routes(service, request);
    } else {
        http_problem(
            request, 404, "not-found", "Not found", NULL,
            "expected /healthz, /readyz or /metrics, or /routes of a service with an API");
    }
}

bool admin_open(Service *service, Error *err)
{
    const CommonOptions *o = service->options.common;
    HttpServerOptions options = {
        .bind = o->admin_bind,
        .port = (int)o->admin_port,
        .limits = {.connections = CONNECTIONS_MAX},
        .handler = on_admin_request,
        .ctx = service,
    };
    service->admin = http_server_new(&service->loop, &options, err);
    if (service->admin == NULL) {
        return error_wrap(err, "admin endpoint (STENTOR_ADMIN_BIND, STENTOR_ADMIN_PORT)");
    }
    service->admin_port = http_server_port(service->admin);
    return true;
}

// ---- metrics of the process ----

static double read_cpu_seconds(void *ctx)
{
    (void)ctx;
    struct timespec used = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

double admin_resident_bytes(void)
{
    long long total = 0;
    long long resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL) {
        return 0;
    }
    int found = fscanf(file, "%lld %lld", &total, &resident);
    fclose(file);
    return found == 2 ? (double)resident * (double)sysconf(_SC_PAGESIZE) : 0;
}

static double read_resident_bytes(void *ctx)
{
    (void)ctx;
    return admin_resident_bytes();
}

static double read_bus_pending(void *ctx)
{
    const Service *service = ctx;
    return service->bus != NULL ? (double)bus_pending(service->bus) : 0;
}

static double read_bus_connected(void *ctx)
{
    const Service *service = ctx;
    return service->bus != NULL && bus_connected(service->bus) ? 1 : 0;
}

static double read_db_pending(void *ctx)
{
    const Service *service = ctx;
    return service->pool != NULL ? db_pool_pending(service->pool) : 0;
}

// ---- how often things happened more than once ----

static double read_published(void *ctx)
{
    const Service *service = ctx;
    return (double)bus_stats(service->bus).published;
}

static double read_duplicates(void *ctx)
{
    const Service *service = ctx;
    return (double)bus_stats(service->bus).duplicates;
}

static double read_delivered(void *ctx)
{
    const Service *service = ctx;
    return (double)bus_stats(service->bus).delivered;
}

static double read_withheld(void *ctx)
{
    const Service *service = ctx;
    return (double)bus_stats(service->bus).withheld;
}

static double read_redelivered(void *ctx)
{
    const Service *service = ctx;
    return (double)bus_stats(service->bus).redelivered;
}

static double read_again(void *ctx)
{
    const Service *service = ctx;
    return (double)bus_stats(service->bus).given_back;
}

static double read_dead_letters(void *ctx)
{
    const Service *service = ctx;
    return (double)bus_stats(service->bus).dead_letters;
}

static double read_poisoned(void *ctx)
{
    const Service *service = ctx;
    return (double)bus_stats(service->bus).poisoned;
}

static double read_unreadable(void *ctx)
{
    const Service *service = ctx;
    return (double)bus_stats(service->bus).unreadable;
}

static double read_duplicate_ratio(void *ctx)
{
    const Service *service = ctx;
    BusStats stats = bus_stats(service->bus);
    return stats.published > 0 ? (double)stats.duplicates / (double)stats.published : 0;
}

static double read_deliveries_per_event(void *ctx)
{
    const Service *service = ctx;
    BusStats stats = bus_stats(service->bus);
    uint64_t events = stats.delivered - stats.redelivered;
    return events > 0 ? (double)stats.delivered / (double)events : 0;
}

static void register_repeats(Service *service)
{
    Metrics *m = service->metrics;
    metrics_counter_fn(
        m, "stentor_bus_published_total", "", "Publishes that JetStream acknowledged.",
        read_published, service);
    metrics_counter_fn(
        m, "stentor_bus_duplicates_total", "", "Of these, the duplicates that it dropped.",
        read_duplicates, service);
    metrics_gauge_fn(
        m, "stentor_bus_duplicate_ratio", "", "Duplicates by publishes, since the start.",
        read_duplicate_ratio, service);
    metrics_counter_fn(
        m, "stentor_bus_deliveries_total", "", "Deliveries to workers, repeats included.",
        read_delivered, service);
    metrics_counter_fn(
        m, "stentor_bus_redeliveries_total", "", "Of these, the redeliveries.", read_redelivered,
        service);
    metrics_gauge_fn(
        m, "stentor_bus_deliveries_per_event", "",
        "Deliveries by events delivered for the first time, since the start.",
        read_deliveries_per_event, service);
    metrics_counter_fn(
        m, "stentor_bus_acks_withheld_total", "",
        "Deliveries that were done when their connection was lost: they are redelivered.",
        read_withheld, service);
    metrics_counter_fn(
        m, "stentor_bus_given_back_total", "", "Deliveries given back, to be redelivered.",
        read_again, service);
    metrics_counter_fn(
        m, "stentor_bus_dead_letters_total", "", "Deliveries that ended as a dead letter.",
        read_dead_letters, service);
    metrics_counter_fn(
        m, "stentor_bus_poisoned_total", "",
        "Of these, poison messages, quarantined unread: every process that handled them died or "
        "hung.",
        read_poisoned, service);
    metrics_gauge_fn(
        m, "stentor_config_unreadable", "",
        "Subjects of CONFIG whose last message is not a valid entry; stentor doctor names them.",
        read_unreadable, service);
}

static double read_clock_off(void *ctx)
{
    return (double)((const ClockCheck *)ctx)->off_us / 1e6;
}

static void register_clocks(Service *service)
{
    static const char *const labels[] = {"server=\"postgres\"", "server=\"nats\""};
    for (size_t i = 0; i < SERVICE_CLOCKS; i++) {
        metrics_gauge_fn(
            service->metrics, "stentor_clock_off_seconds", labels[i],
            "How far a server's clock is ahead of this machine's, beyond the time of the question.",
            read_clock_off, &service->clocks[i]);
    }
}

static double read_db_ready(void *ctx)
{
    const Service *service = ctx;
    return service->pool != NULL && db_pool_ready(service->pool) ? 1 : 0;
}

static void register_build_info(Service *service)
{
    Buf labels;
    buf_init(&labels, 512);
    metrics_label(&labels, "service", str_from(service->spec->name));
    metrics_label(&labels, "version", STR(STENTOR_VERSION));
    metrics_label(&labels, "instance_id", str_from(service->instance));
    Metric *info = metrics_gauge(
        service->metrics, "stentor_build_info", buf_c(&labels), "The version that runs; always 1.");
    metric_set(info, 1);
    buf_done(&labels);
}

static double read_db_busy(void *ctx)
{
    const Service *service = ctx;
    return service->pool != NULL ? db_pool_stats(service->pool).busy : 0;
}

static double read_db_idle(void *ctx)
{
    const Service *service = ctx;
    return service->pool != NULL ? db_pool_stats(service->pool).idle : 0;
}

static double read_db_absent(void *ctx)
{
    const Service *service = ctx;
    return service->pool != NULL ? db_pool_stats(service->pool).absent : 0;
}

static double read_db_waiting(void *ctx)
{
    const Service *service = ctx;
    return service->pool != NULL ? db_pool_stats(service->pool).waiting : 0;
}

static void on_db_timed(void *ctx, double seconds)
{
    metric_observe(((const Service *)ctx)->db_seconds, seconds);
}

void admin_time_database(Service *service)
{
    db_pool_on_timed(service->pool, on_db_timed, service);
}

static void register_database(Service *service)
{
    static const double bounds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                    0.1,    0.25,  0.5,    1,     2.5,  5,     10};
    static const char *const name = "stentor_db_connections";
    static const char *const help = "Connections to Postgres by what they do";
    Metrics *m = service->metrics;
    metrics_gauge_fn(
        m, "stentor_db_ready", "", "1 while connected to Postgres.", read_db_ready, service);
    metrics_gauge_fn(
        m, "stentor_db_pending", "", "Transactions that wait for their answer.", read_db_pending,
        service);
    metrics_gauge_fn(
        m, "stentor_db_waiting", "", "Of these, those that wait for a connection.", read_db_waiting,
        service);
    metrics_gauge_fn(m, name, "state=\"busy\"", help, read_db_busy, service);
    metrics_gauge_fn(m, name, "state=\"idle\"", help, read_db_idle, service);
    metrics_gauge_fn(m, name, "state=\"absent\"", help, read_db_absent, service);
    service->db_seconds = metrics_histogram(
        m, "stentor_db_transaction_seconds", "",
        "From sending a transaction to Postgres to its answer; one carries a whole batch.", bounds,
        sizeof bounds / sizeof *bounds);
}

void admin_register_metrics(Service *service)
{
    static const double bounds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                    0.1,   0.25,   0.5,   1,    2.5};
    Metrics *m = service->metrics;
    register_build_info(service);
    metrics_counter_fn(
        m, "process_cpu_seconds_total", "", "User and system CPU time.", read_cpu_seconds, NULL);
    metrics_gauge_fn(
        m, "process_resident_memory_bytes", "", "Resident memory.", read_resident_bytes, NULL);
    metric_set(
        metrics_gauge(m, "process_start_time_seconds", "", "When the process was started."),
        (double)service->started_at_us / 1e6);
    metrics_gauge_fn(
        m, "stentor_bus_connected", "", "1 while connected to NATS.", read_bus_connected, service);
    metrics_gauge_fn(
        m, "stentor_bus_pending", "", "Publishes that wait for their acknowledgement.",
        read_bus_pending, service);
    register_repeats(service);
    register_clocks(service);
    trace_register_metrics(service);
    if (service->spec->wants_database) {
        register_database(service);
    }
    service->lag = metrics_histogram(
        m, "stentor_loop_lag_seconds", "", "How late the event loop was, sampled twice a second.",
        bounds, sizeof bounds / sizeof *bounds);
}
