// SPDX-License-Identifier: Apache-2.0
// What service.c (life cycle), common_options.c and admin.c (what operators and probes see) share.
// Not for other folders.
#pragma once

#include "common/base/id.h"
#include "common/base/log.h"
#include "common/epochs/epoch_folder.h"
#include "common/http/server.h"
#include "common/service/harden.h"
#include "common/service/health/certificates.h"
#include "common/service/health/clock_off.h"
#include "common/service/health/notify.h"
#include "common/service/health/steady.h"
#include "common/service/heartbeat.h"
#include "common/service/service.h"
#include "common/trace/tracer.h"

#ifndef STENTOR_VERSION // the build gives it
#define STENTOR_VERSION "unversioned"
#endif

// ---- options ----

typedef struct CommonOptions {
    const char *nats_url, *nats_user, *nats_password;
    const char *database_url; // NULL unless wanted, and so the next two
    int64_t database_connections;
    bool database_newer;
    const char *master_key_file;
    const char *epoch_keys_dir; // NULL without a database
    const char *admin_bind;
    int64_t admin_port;
    const char *log_level, *log_format, *log_output;
    int64_t log_notifications; // lines of a level in a second
    bool core_dumps;
    int64_t drain_ms;
    int64_t loop_limit_ms;
    const char *otlp_endpoint, *otlp_traces_endpoint, *otlp_headers;
    const char *otel_sampler, *otel_sampler_argument, *otel_resource, *otel_service_name;
} CommonOptions;

enum { SERVICE_ROWS_MAX = 96 };

// The service's own rows and the common ones as one table over one block of values.
typedef struct ServiceOptions {
    Option rows[SERVICE_ROWS_MAX];
    size_t count;
    void *values;
    const CommonOptions *common; // inside values
    const void *own;             // inside values
    LogLevel log_level;
    bool log_json;
    int log_fd;
} ServiceOptions;

void service_options_init(ServiceOptions *options, const ServiceSpec *spec);
bool service_options_load(ServiceOptions *options, int argc, char **argv, Error *err);
// Says why the options could not be read: as a line of the log where the environment asks for JSON,
// else as a command would.
void service_options_refuse(const char *service, const Error *err);
void service_options_done(ServiceOptions *options);

// ---- the service ----

typedef enum ServicePhase {
    PHASE_STARTING,
    PHASE_RUNNING,
    PHASE_DRAINING, // stop() was called
    PHASE_CLOSING,  // service_stopped() was called, or start() failed
} ServicePhase;

enum { HEARTBEAT_WINDOWS = 16 };

// What the last heartbeat counted.
typedef struct Heartbeat {
    uint64_t sent_ms;
    uint64_t at_ns; // 0: there was none
    double cpu_s;
    uint64_t acked, published;
    MetricWindow windows[HEARTBEAT_WINDOWS];
} Heartbeat;

enum { SERVICE_CLOCK_POSTGRES, SERVICE_CLOCK_NATS, SERVICE_CLOCKS };

struct Service {
    const ServiceSpec *spec;
    ServiceOptions options;
    char instance[ID_SIZE];
    char bus_name[128];
    int64_t started_at_us;
    uv_loop_t loop;
    // None of these keeps the loop alive: it ends when everything else is closed.
    uv_signal_t on_term, on_int;
    uv_timer_t step_timer, drain_timer, lag_timer;
    Metrics *metrics;
    bool memory_locked; // all of it
    MasterKey *master_key;
    EpochFolder *epochs;   // NULL: the master key wraps
    bool fits;             // the database is one for this program, or none of ours is wanted
    char fit_trouble[240]; // why not; "": not known yet
    int64_t fit_asked_us;
    uv_timer_t fit_timer; // asks again
    ClockCheck clocks[SERVICE_CLOCKS];
    Steady steady;
    Notify notify;
    bool keys_checked;    // the master key is the installation's, or none is wanted
    uv_timer_t key_timer; // asks again after Postgres could not answer
    Tracer *tracer;       // NULL: no traces
    HttpServer *admin;
    int admin_port;
    Bus *bus;
    DbPool *pool;
    void *state;
    ServicePhase phase;
    bool drain_wanted;
    bool stopped;
    int exit_code;
    int fail_code; // of a failure
    uint64_t lag_seen_ns;
    Heartbeat heartbeat;
    Certificates *certificates;
    Metric *lag;
    Metric *db_seconds;
};

// ---- the master key ----

// Reads the file and the folder of epoch keys.
bool keys_load(Service *service, Error *err);
// Compares it with what Postgres has registered, again and again until that answers. Until then the
// bus is held: without NATS a service does nothing. A wrong file ends the process with 2.
void keys_begin_check(Service *service);

// ---- health/database.c ----

// Compares the database's migrations with this program's, again and again until they fit; then the
// master key. Until then the bus is held.
void database_begin_check(Service *service);

// ---- admin endpoint ----

bool admin_open(Service *service, Error *err);
void trace_register_metrics(Service *service); // trace_metrics.c
void admin_register_metrics(Service *service);
void admin_time_database(Service *service); // once there is a pool
// Appends why the service is not ready; false when it is not.
bool admin_ready(Service *service, Buf *reasons);
// Twice a second: readiness for systemd, and the clocks.
void admin_tick(Service *service);
double admin_resident_bytes(void);
