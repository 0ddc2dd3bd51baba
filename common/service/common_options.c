// SPDX-License-Identifier: Apache-2.0
// The options that every service has.
#include "common/service/internal.h"

#include <assert.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/arena.h"

// clang-format off
#define AT(member) offsetof(CommonOptions, member)
static const Option base_rows[] = {
    {"STENTOR_NATS_URL", OPTION_TEXT, AT(nats_url), "nats://127.0.0.1:4222", 0, 0, false, "address of NATS; several are separated by commas"},
    {"STENTOR_NATS_USER", OPTION_TEXT, AT(nats_user), "", 0, 0, false, "user name at NATS"},
    {"STENTOR_NATS_PASSWORD", OPTION_TEXT, AT(nats_password), "", 0, 0, true, "password at NATS"},
    {"STENTOR_ADMIN_BIND", OPTION_TEXT, AT(admin_bind), "127.0.0.1", 0, 0, false, "address of /healthz, /readyz and /metrics"},
    {"STENTOR_ADMIN_PORT", OPTION_INT, AT(admin_port), "0", 0, 65535, false, "port of the same; 0: any free one, see 'started' in the log"},
    {"STENTOR_LOG_LEVEL", OPTION_TEXT, AT(log_level), "info", 0, 0, false, "debug, info, warn or error"},
    {"STENTOR_LOG_OUTPUT", OPTION_TEXT, AT(log_output), "stderr", 0, 0, false, "stderr or stdout"},
    {"STENTOR_LOG_FORMAT", OPTION_TEXT, AT(log_format), "auto", 0, 0, false, "json, logfmt, or auto: logfmt on a terminal, else json"},
    {"STENTOR_LOG_NOTIFICATIONS", OPTION_INT, AT(log_notifications), "50", 0, 1000000, false, "lines of the log about single notifications (accepted, attempted, failed) in a second, of each level; 0: none"},
    {"STENTOR_CORE_DUMPS", OPTION_BOOL, AT(core_dumps), "false", 0, 0, false, "for developers: allow core dumps and debuggers, which expose every key in memory"},
    {"STENTOR_DRAIN_MS", OPTION_INT, AT(drain_ms), "20000", 1, 3600000, false, "how long work in progress may take after SIGTERM, in milliseconds"},
    {"STENTOR_LOOP_LIMIT_MS", OPTION_INT, AT(loop_limit_ms), "30000", 0, 3600000, false, "processor time after which a process whose event loop is stuck ends itself, in milliseconds; 0: never"},
};
// The names are OpenTelemetry's, so that what is set for an application's SDK holds here too.
static const Option trace_rows[] = {
    {"OTEL_EXPORTER_OTLP_ENDPOINT", OPTION_TEXT, AT(otlp_endpoint), "", 0, 0, false, "URL of a collector of traces that takes OTLP over HTTP, such as http://127.0.0.1:4318; empty: no traces"},
    {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", OPTION_TEXT, AT(otlp_traces_endpoint), "", 0, 0, false, "the same with its path, which is /v1/traces otherwise"},
    {"OTEL_EXPORTER_OTLP_HEADERS", OPTION_TEXT, AT(otlp_headers), "", 0, 0, true, "headers for the collector: name=value,name=value"},
    {"OTEL_TRACES_SAMPLER", OPTION_TEXT, AT(otel_sampler), "parentbased_traceidratio", 0, 0, false, "which are traced: always_on, always_off (none), traceidratio; parentbased_ before it: the caller says"},
    {"OTEL_TRACES_SAMPLER_ARG", OPTION_TEXT, AT(otel_sampler_argument), "0.01", 0, 0, false, "the part of them, of traceidratio: 0 to 1"},
    {"OTEL_RESOURCE_ATTRIBUTES", OPTION_TEXT, AT(otel_resource), "", 0, 0, false, "what every span says of this process: key=value,key=value"},
    {"OTEL_SERVICE_NAME", OPTION_TEXT, AT(otel_service_name), "", 0, 0, false, "its service.name in traces; empty: the program's name"},
};
static const Option database_rows[] = {
    {"STENTOR_DATABASE_URL", OPTION_TEXT, AT(database_url), NULL, 0, 0, true, "address of Postgres: postgresql://user:password@host/database"},
    {"STENTOR_DATABASE_CONNECTIONS", OPTION_INT, AT(database_connections), "2", 1, 32, false, "number of open connections to Postgres"},
    {"STENTOR_DATABASE_NEWER", OPTION_BOOL, AT(database_newer), "false", 0, 0, false, "also start on the database of a newer release: for a rollback, if this release works with its migrations"},
};
static const Option master_key_rows[] = {
    {"STENTOR_MASTER_KEY_FILE", OPTION_TEXT, AT(master_key_file), NULL, 0, 0, false, "file of `stentor master-key`: wraps data keys and hashes addresses; compared with the registered keys at each start"},
};
static const Option epoch_rows[] = {
    {"STENTOR_EPOCH_KEYS_DIR", OPTION_TEXT, AT(epoch_keys_dir), "", 0, 0, false, "folder of the epoch keys, which wrap data keys and last two weeks (deploy/KEYS.md); empty: the master key wraps them"},
};
#undef AT
#define COUNT(array) (sizeof(array) / sizeof(array)[0])
// clang-format on

// ---- one table ----

// The service's values stand behind the common ones, in one block.
static size_t own_offset(void)
{
    size_t align = alignof(max_align_t);
    return (sizeof(CommonOptions) + align - 1) / align * align;
}

static void add_rows(ServiceOptions *options, const Option *rows, size_t count, size_t shift)
{
    assert(options->count + count <= SERVICE_ROWS_MAX);
    for (size_t i = 0; i < count; i++) {
        Option row = rows[i];
        row.offset += shift;
        options->rows[options->count++] = row;
    }
}

void service_options_init(ServiceOptions *options, const ServiceSpec *spec)
{
    *options = (ServiceOptions){.count = 0};
    add_rows(options, spec->options, spec->option_count, own_offset());
    add_rows(options, base_rows, COUNT(base_rows), 0);
    add_rows(options, trace_rows, COUNT(trace_rows), 0);
    if (spec->wants_database) {
        add_rows(options, database_rows, COUNT(database_rows), 0);
    }
    if (spec->wants_master_key) {
        add_rows(options, master_key_rows, COUNT(master_key_rows), 0);
    }
    if (spec->wants_master_key && spec->wants_database && !spec->opens_no_data_key) {
        add_rows(options, epoch_rows, COUNT(epoch_rows), 0);
    }
    char *values = xcalloc(1, own_offset() + spec->options_size);
    options->values = values;
    options->common = options->values;
    options->own = values + own_offset();
}

// ---- reading ----

static bool parse_log_level(ServiceOptions *options, Error *err)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    for (size_t i = 0; i < COUNT(names); i++) {
        if (str_eq(str_from(options->common->log_level), str_from(names[i]))) {
            options->log_level = (LogLevel)i;
            return true;
        }
    }
    return error_set(
        err, ERROR_CONFIG, "STENTOR_LOG_LEVEL is '%.80s': expected debug, info, warn or error",
        options->common->log_level);
}

static bool parse_log_output(ServiceOptions *options, Error *err)
{
    Str output = str_from(options->common->log_output);
    options->log_fd = str_eq(output, STR("stdout")) ? STDOUT_FILENO : STDERR_FILENO;
    return options->log_fd == STDOUT_FILENO || str_eq(output, STR("stderr")) ||
           error_set(
               err, ERROR_CONFIG, "STENTOR_LOG_OUTPUT is '%.80s': expected stderr or stdout",
               output.ptr);
}

static bool parse_log_format(ServiceOptions *options, Error *err)
{
    Str format = str_from(options->common->log_format);
    bool is_auto = str_eq(format, STR("auto"));
    options->log_json = str_eq(format, STR("json")) || (is_auto && !isatty(options->log_fd));
    return options->log_json || is_auto || str_eq(format, STR("logfmt")) ||
           error_set(
               err, ERROR_CONFIG, "STENTOR_LOG_FORMAT is '%.80s': expected auto, json or logfmt",
               format.ptr);
}

bool service_options_load(ServiceOptions *options, int argc, char **argv, Error *err)
{
    return options_load(options->rows, options->count, options->values, argc, argv, err) &&
           parse_log_level(options, err) && parse_log_output(options, err) &&
           parse_log_format(options, err);
}

void service_options_refuse(const char *service, const Error *err)
{
    const char *format = getenv("STENTOR_LOG_FORMAT"), *output = getenv("STENTOR_LOG_OUTPUT");
    if (format != NULL && strcmp(format, "json") == 0) {
        log_setup(service, LOG_INFO, true);
        log_output_set(
            output != NULL && strcmp(output, "stdout") == 0 ? STDOUT_FILENO : STDERR_FILENO);
        LOG(LOG_ERROR, "cannot start", log_error(err));
    } else {
        fprintf(stderr, "%s: %s\n", service, err->text);
    }
}

void service_options_done(ServiceOptions *options)
{
    options_free(options->rows, options->count, options->values);
    free(options->values);
    options->values = NULL;
}
