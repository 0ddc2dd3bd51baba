// SPDX-License-Identifier: Apache-2.0
// What every service's main() is made of: options, loop, signals, connections, health, metrics,
// drain.
//   int main(int argc, char **argv) { return service_main(&ingest_service, argc, argv); }
// Order: options are read; bus and pool (when wanted) start to connect; start() builds the service;
// the admin endpoint answers /healthz /readyz /metrics. SIGTERM or SIGINT: readyz turns 503, stop()
// drains and calls service_stopped(); then everything is closed and the process ends with 0. A
// drain longer than STENTOR_DRAIN_MS, or a second signal, ends it at once with 1; wrong options end
// it with 2. --help, --version and --options-markdown print and end with 0; --ready and --routes
// ask the running process, by its options.
#pragma once

#include <uv.h>

#include "common/bus/jetstream/bus.h"
#include "common/codec/key_register.h"
#include "common/codec/seal.h"
#include "common/db/db.h"
#include "common/service/metrics.h"
#include "common/service/options.h"
#include "common/trace/tracer.h"

typedef struct Service Service;

typedef struct ServiceSpec {
    const char *name;      // "stentor-ingest"
    const char *summary;   // one line for --help
    const Option *options; // the service's own, next to the common ones (common_options.c)
    size_t option_count;
    size_t options_size; // of the struct that the offsets speak of
    bool wants_database;
    bool application_database; // an application's: its migrations are not this program's
    bool wants_master_key;     // compared with the registered one before NATS is spoken to
                               // (service_check_keys)
    bool opens_no_data_key;    // only what is sealed under tenants' own keys: it needs no epoch key
    // After a failure nothing of it is left but handles that are closing. The loop does not turn
    // yet.
    bool (*start)(Service *service, const void *options, void **ret_state, Error *err);
    bool (*ready)(void *state, Buf *reason); // next to the bus and the pool; NULL: always
    // What an operator should know though the service is ready and works on: appended to the answer
    // of /readyz, which stays 200. NULL: never anything.
    void (*warn)(void *state, Buf *warning);
    // The routes of its API, a line each, for /routes of the admin port. NULL: it has none.
    void (*routes)(void *state, Buf *out);
    // Begin to drain: close what was opened, then service_stopped(), now or later. NULL: nothing to
    // drain.
    void (*stop)(void *state);
    void (*free)(void *state); // after the loop has ended; bus and pool are gone already
} ServiceSpec;

// Runs the whole process; returns its exit status (above, and README.md).
int service_main(const ServiceSpec *spec, int argc, char **argv);

// Inside start() and later:
uv_loop_t *service_loop(Service *service);
Bus *service_bus(Service *service);
DbPool *service_pool(Service *service); // NULL unless wanted
const char *service_database_url(Service *service);
// Where the bus connects, for a child process of its own; borrowed from the options.
typedef struct ServiceNats {
    const char *url, *user, *password;
} ServiceNats;
ServiceNats service_nats(Service *service);
MasterKey *service_master_key(Service *service);
const char *service_master_key_file(Service *service);
const char *service_epoch_folder(Service *service); // "": no epoch keys
// For a service without Postgres, once it has read what CONFIG has registered (NULL: nothing).
// Before it uses the master key: is it the installation's? false: the process ends with 2.
bool service_check_keys(Service *service, const KeyRegister *keys);
Metrics *service_metrics(Service *service);
Tracer *service_tracer(Service *service);       // NULL: no traces
const char *service_instance(Service *service); // random per process start, 26 characters
// Once, in answer to stop(). Bus, pool and admin endpoint are closed from the next turn of the loop
// on.
void service_stopped(Service *service);
// A fault that only an operator can fix was met while running: logged as error, then drain and exit
// with 1.
void service_fail(Service *service, const Error *err);
// What is about to fail, in start() or later, is wrong in what the options name (a file, an
// application's table): the process then ends with 2 instead of 1.
void service_wrong_options(Service *service);
