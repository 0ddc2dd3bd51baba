// SPDX-License-Identifier: Apache-2.0
// A service process, in the order of what happens: options, parts, start, run,
// drain, close, free.
#include "common/service/internal.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/arena.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/service/health/probe.h"
#include "common/service/watchdog.h"
#include "common/ticks/ticks.h"

enum {
    EXIT_FAILED = 1,
    EXIT_OPTIONS = 2,
    LAG_SAMPLE_MS = 500,
    HELP_MAX = 64 * 1024,
    VALUE_MAX = 1024,
};

// ---- --help and its like ----

static bool print_what(const ServiceSpec *spec, const ServiceOptions *options, Str word, Buf *out)
{
#ifdef STENTOR_CRASH_POINTS
    if (str_eq(word, STR("--crash-points"))) {
        return crash_points_print(spec->name + sizeof "stentor-" - 1, out);
    }
#endif
    if (str_eq(word, STR("--help")) || str_eq(word, STR("-h"))) {
        return options_help(options->rows, options->count, spec->name, spec->summary, out);
    }
    if (str_eq(word, STR("--version"))) {
        return buf_printf(out, "%s %s\n", spec->name, STENTOR_VERSION);
    }
    if (str_eq(word, STR("--options-markdown"))) {
        return options_markdown(options->rows, options->count, out);
    }
    return false;
}

// true when that was all that was asked for.
static bool print_and_leave(
    const ServiceSpec *spec, const ServiceOptions *options, int argc, char **argv)
{
    Buf out;
    buf_init(&out, HELP_MAX);
    bool done = false;
    for (int i = 1; i < argc && !done; i++) {
        done = print_what(spec, options, str_from(argv[i]), &out);
    }
    if (done) {
        fputs(buf_c(&out), stdout);
    }
    buf_done(&out);
    return done;
}

// ---- closing ----

static void close_next(Service *service);

static void on_part_closed(void *ctx)
{
    close_next(ctx);
}

// One after the other, the bus before the pool: nothing arrives any more that would want to be
// written.
static void close_next(Service *service)
{
    if (service->admin != NULL) {
        http_server_free(TAKE(service->admin), on_part_closed, service);
    } else if (service->bus != NULL) {
        bus_close(TAKE(service->bus), on_part_closed, service);
    } else if (service->pool != NULL) {
        db_pool_close(TAKE(service->pool), on_part_closed, service);
    } else if (service->tracer != NULL) {
        tracer_free(TAKE(service->tracer), on_part_closed, service);
    }
}

static const char *phase_name(ServicePhase phase)
{
    switch (phase) {
    case PHASE_STARTING:
        return "starting";
    case PHASE_RUNNING:
        return "running";
    case PHASE_DRAINING:
        return "draining";
    case PHASE_CLOSING:
        return "closing";
    }
    return "unknown";
}

// What was accepted is durable, and what was not acknowledged is delivered again: a process may end
// at any point. The kill test of tests/integration covers it.
static void end_now(Service *service, const char *why)
{
    LOG(LOG_ERROR, why, log_text("phase", phase_name(service->phase)),
        log_int("bus_pending", service->bus != NULL ? (int64_t)bus_pending(service->bus) : 0),
        log_int("db_pending", service->pool != NULL ? db_pool_pending(service->pool) : 0));
    _exit(EXIT_FAILED);
}

static void on_drain_timeout(uv_timer_t *timer)
{
    end_now(
        timer->data, "shutdown took longer than STENTOR_DRAIN_MS, the process ends now; unfinished "
                     "work is redelivered");
}

static void start_deadline(Service *service)
{
    if (!uv_is_active((uv_handle_t *)&service->drain_timer)) {
        uv_timer_start(
            &service->drain_timer, on_drain_timeout, (uint64_t)service->options.common->drain_ms,
            0);
    }
}

static void close_all(Service *service)
{
    service->phase = PHASE_CLOSING;
    start_deadline(service);
    close_next(service);
}

// ---- draining ----

static void drain(Service *service)
{
    notify_stopping();
    LOG(LOG_INFO, "draining", log_int("drain_ms", service->options.common->drain_ms));
    service->phase = PHASE_DRAINING;
    start_deadline(service);
    metrics_freeze(service->metrics);
    if (service->spec->stop != NULL) {
        service->spec->stop(service->state);
    } else {
        service_stopped(service);
    }
}

static void step(Service *service)
{
    if (service->phase == PHASE_RUNNING && service->drain_wanted) {
        drain(service);
    }
    if (service->phase == PHASE_DRAINING && service->stopped) {
        close_all(service);
    }
}

static void on_step(uv_timer_t *timer)
{
    step(timer->data);
}

// Not at once: the caller may be deep inside a callback of what is to be closed.
static void step_soon(Service *service)
{
    uv_timer_start(&service->step_timer, on_step, 0, 0);
}

void service_stopped(Service *service)
{
    assert(service->phase == PHASE_DRAINING && !service->stopped);
    service->stopped = true;
    step_soon(service);
}

void service_fail(Service *service, const Error *err)
{
    LOG(LOG_ERROR, "service failed", log_error(err));
    service->exit_code = service->fail_code;
    service->drain_wanted = true;
    step_soon(service);
}

void service_wrong_options(Service *service)
{
    service->fail_code = EXIT_OPTIONS;
}

static void take_signal(Service *service, int number)
{
    if (service->phase != PHASE_RUNNING || service->drain_wanted) {
        end_now(service, "second signal, the process ends now; unfinished work is redelivered");
    }
    LOG(LOG_INFO, "signal", log_int("number", number));
    service->drain_wanted = true;
    step(service);
}

static void on_signal(uv_signal_t *handle, int number)
{
    take_signal(handle->data, number);
}

// ---- starting ----

static void on_lag_tick(uv_timer_t *timer)
{
    ticks_keep(timer);
    Service *service = timer->data;
    uint64_t now_ns = uv_hrtime();
    double late_ms = (double)(now_ns - service->lag_seen_ns) / 1e6 - LAG_SAMPLE_MS;
    service->lag_seen_ns = now_ns;
    metric_observe(service->lag, late_ms > 0 ? late_ms / 1000 : 0);
    watchdog_feed();
    log_notifications_tick();
    admin_tick(service);
    heartbeat_tick(service);
}

static uv_handle_t *own_handle(Service *service, size_t index)
{
    uv_handle_t *const handles[] = {
        (uv_handle_t *)&service->on_term,    (uv_handle_t *)&service->on_int,
        (uv_handle_t *)&service->step_timer, (uv_handle_t *)&service->drain_timer,
        (uv_handle_t *)&service->lag_timer,  (uv_handle_t *)&service->key_timer,
        (uv_handle_t *)&service->fit_timer,
    };
    return index < sizeof handles / sizeof *handles ? handles[index] : NULL;
}

static void start_handles(Service *service)
{
    uv_loop_init(&service->loop);
    uv_signal_init(&service->loop, &service->on_term);
    uv_signal_init(&service->loop, &service->on_int);
    uv_timer_init(&service->loop, &service->step_timer);
    uv_timer_init(&service->loop, &service->drain_timer);
    uv_timer_init(&service->loop, &service->lag_timer);
    uv_timer_init(&service->loop, &service->key_timer);
    uv_timer_init(&service->loop, &service->fit_timer);
    for (size_t i = 0; own_handle(service, i) != NULL; i++) {
        own_handle(service, i)->data = service;
        uv_unref(own_handle(service, i));
    }
    uv_signal_start(&service->on_term, on_signal, SIGTERM);
    uv_signal_start(&service->on_int, on_signal, SIGINT);
    service->lag_seen_ns = uv_hrtime();
    ticks_start(&service->lag_timer, on_lag_tick, LAG_SAMPLE_MS);
}

static bool open_tracer(Service *service, Error *err)
{
    const CommonOptions *o = service->options.common;
    TracerOptions options = {
        .endpoint = o->otlp_endpoint,
        .traces_endpoint = o->otlp_traces_endpoint,
        .headers = o->otlp_headers,
        .sampler = o->otel_sampler,
        .sampler_argument = o->otel_sampler_argument,
        .resource_attributes = o->otel_resource,
        .service_name = o->otel_service_name,
        .program = service->spec->name,
        .version = STENTOR_VERSION,
        .instance = service->instance,
    };
    if (!tracer_new(&service->loop, &options, &service->tracer, err)) {
        service_wrong_options(service);
        return false;
    }
    return true;
}

static bool open_parts(Service *service, Error *err)
{
    const CommonOptions *o = service->options.common;
    if (o->loop_limit_ms > 0 && !watchdog_start(service->spec->name, o->loop_limit_ms, err)) {
        return false;
    }
    if (service->spec->wants_master_key && !keys_load(service, err)) {
        return false;
    }
    if (!admin_open(service, err) || !open_tracer(service, err)) {
        return false;
    }
    snprintf(
        service->bus_name, sizeof service->bus_name, "%s/%s", service->spec->name,
        service->instance);
    BusOptions bus = {
        .url = o->nats_url,
        .user = o->nats_user,
        .password = o->nats_password,
        .name = service->bus_name,
        .service = service->spec->name,
        .held = service->spec->wants_database && !service->spec->application_database,
    };
    service->bus = bus_open(&service->loop, &bus, err);
    if (service->bus != NULL) {
        bus_watch_streams(service->bus);
    }
    if (service->bus != NULL && service->spec->wants_database) {
        DbPoolOptions pool = {
            .url = o->database_url,
            .application_name = service->spec->name,
            .connections = (int)o->database_connections,
        };
        service->pool = db_pool_new(&service->loop, &pool);
        admin_time_database(service);
    }
    return service->bus != NULL;
}

static void log_started(const Service *service)
{
    Arena *arena = arena_new(0);
    const ServiceOptions *o = &service->options;
    bool keys = service->master_key != NULL && master_key_is_locked(service->master_key);
    const char *locked = service->memory_locked ? "all" : keys ? "master keys" : "none";
    LogField *fields = arena_array(arena, o->count + 5, sizeof *fields);
    size_t count = 0;
    fields[count++] = log_text("version", STENTOR_VERSION);
    fields[count++] = log_text("instance", service->instance);
    fields[count++] = log_int("admin_port", service->admin_port);
    fields[count++] = log_text("locked_memory", locked);
    Buf value;
    buf_init(&value, OPTION_TEXT_MAX + VALUE_MAX);
    for (size_t i = 0; i < o->count; i++) {
        buf_clear(&value);
        options_print(&o->rows[i], o->values, &value);
        fields[count++] = log_str(o->rows[i].name, arena_str(arena, buf_view(&value)));
    }
    log_line(LOG_INFO, "started", fields);
    buf_done(&value);
    arena_free(arena);
}

static bool start(Service *service, Error *err)
{
    if (!open_parts(service, err)) {
        return false;
    }
    const ServiceSpec *spec = service->spec;
    if (!spec->start(service, service->options.own, &service->state, err)) {
        service->state = NULL;
        return false;
    }
    service->phase = PHASE_RUNNING;
    log_started(service);
    notify_init(&service->notify, (int64_t)uv_now(&service->loop));
    database_begin_check(service);
    return true;
}

static Service *new_service(const ServiceSpec *spec)
{
    Service *service = xcalloc(1, sizeof *service);
    service->spec = spec;
    service->fail_code = EXIT_FAILED;
    service->started_at_us = clock_now_us();
    service->clocks[SERVICE_CLOCK_POSTGRES].server = "Postgres";
    service->clocks[SERVICE_CLOCK_NATS].server = "NATS";
    id_new("", service->started_at_us, service->instance);
    service_options_init(&service->options, spec);
    return service;
}

// ---- running and ending ----

// false: a part or the service left a handle open, which is a bug of theirs.
static bool end_loop(Service *service)
{
    for (size_t i = 0; own_handle(service, i) != NULL; i++) {
        uv_close(own_handle(service, i), NULL);
    }
    uv_run(&service->loop, UV_RUN_DEFAULT);
    int left = uv_loop_close(&service->loop);
    assert(left == 0);
    return left == 0;
}

static int run(Service *service)
{
    // Threads inherit the mask: a signal is the loop thread's business alone, however many nats.c
    // starts.
    sigset_t ours, before;
    sigemptyset(&ours);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    start_handles(service);
    service->metrics = metrics_new();
    admin_register_metrics(service);
    service->certificates = certificates_watch(
        service->metrics, service->options.rows, service->options.count, service->options.values);
    Error err = {0};
    if (!start(service, &err)) {
        LOG(LOG_ERROR, "cannot start", log_error(&err));
        service->exit_code = service->fail_code;
        close_all(service);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    uv_run(&service->loop, UV_RUN_DEFAULT);
    watchdog_stop();
    bool clean = end_loop(service);
    if (service->state != NULL && service->spec->free != NULL) {
        service->spec->free(service->state);
    }
    LOG(LOG_INFO, "stopped", log_int("exit_code", service->exit_code));
    return clean ? service->exit_code : EXIT_FAILED;
}

// ---- --ready, --routes ----

// What is asked of the running process, and its path on the admin port.
static const struct {
    const char *word;
    const char *path;
} QUESTIONS[] = {{"--ready", "/readyz"}, {"--routes", "/routes"}};

// Takes the word away, so that what is left are the options that the running process has. The path
// to ask; NULL: nothing.
static const char *take_question(int *argc, char **argv)
{
    const char *path = NULL;
    int kept = 1;
    for (int i = 1; i < *argc; i++) {
        const char *found = NULL;
        for (size_t q = 0; q < sizeof QUESTIONS / sizeof *QUESTIONS; q++) {
            found = strcmp(argv[i], QUESTIONS[q].word) == 0 ? QUESTIONS[q].path : found;
        }
        if (found != NULL) {
            path = found;
        } else {
            argv[kept++] = argv[i];
        }
    }
    *argc = kept;
    return path;
}

static int ask(const Service *service, const char *path)
{
    const CommonOptions *o = service->options.common;
    const char *name = service->spec->name;
    bool ok = false;
    Error err = {0};
    Buf said;
    if (o->admin_port == 0) {
        fprintf(
            stderr,
            "%s: STENTOR_ADMIN_PORT is 0, so the port to ask is unknown (HINT: set it for "
            "the service and for this command)\n",
            name);
        return EXIT_OPTIONS;
    }
    buf_init(&said, PROBE_SAID_MAX);
    bool answered = probe_ask(o->admin_bind, (int)o->admin_port, path, &ok, &said, &err);
    printf("%s\n", answered ? buf_c(&said) : err.text);
    buf_done(&said);
    return answered && ok ? 0 : EXIT_FAILED;
}

int service_main(const ServiceSpec *spec, int argc, char **argv)
{
    Service *service = new_service(spec);
    Error err = {0};
    int code = 0;
    const char *question = take_question(&argc, argv);
    if (print_and_leave(spec, &service->options, argc, argv)) {
        code = 0;
    } else if (!service_options_load(&service->options, argc, argv, &err)) {
        service_options_refuse(spec->name, &err);
        code = EXIT_OPTIONS;
    } else if (question != NULL) {
        code = ask(service, question);
    } else {
        log_setup(spec->name, service->options.log_level, service->options.log_json);
        log_output_set(service->options.log_fd);
        log_notifications_limit(service->options.common->log_notifications);
        if (!service->options.common->core_dumps) {
            process_forbid_dumps();
        }
        service->memory_locked = spec->wants_master_key && process_lock_memory();
        code = run(service);
    }
    metrics_free(service->metrics);
    certificates_free(service->certificates);
    epoch_folder_close(service->epochs);
    master_key_free(service->master_key);
    service_options_done(&service->options);
    free(service);
    return code;
}

// ---- for the service ----

uv_loop_t *service_loop(Service *service)
{
    return &service->loop;
}

Bus *service_bus(Service *service)
{
    return service->bus;
}

DbPool *service_pool(Service *service)
{
    return service->pool;
}

const char *service_database_url(Service *service)
{
    return service->options.common->database_url;
}

ServiceNats service_nats(Service *service)
{
    const CommonOptions *o = service->options.common;
    return (ServiceNats){o->nats_url, o->nats_user, o->nats_password};
}

const char *service_master_key_file(Service *service)
{
    return service->options.common->master_key_file;
}

const char *service_epoch_folder(Service *service)
{
    const char *folder = service->options.common->epoch_keys_dir;
    return folder != NULL ? folder : "";
}

MasterKey *service_master_key(Service *service)
{
    return service->master_key;
}

Metrics *service_metrics(Service *service)
{
    return service->metrics;
}

Tracer *service_tracer(Service *service)
{
    return service->tracer;
}

const char *service_instance(Service *service)
{
    return service->instance;
}
