// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/webhooks/webhook_service.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/http/client/dns.h"
#include "common/service/cleanup.h"
#include "common/tls/tls.h"
#include "services/dispatcher/webhooks/hooks.h"

enum { DROP_ROWS = 1000, POSTS_MAX = 8192 };

#define COMPOSITION "webhook"

typedef struct Options {
    const char *channels, *ladder, *addresses, *ca_file, *dns;
    int64_t calls, call_ms, lease_ms, queue_ms, gone_s, in_flight, kept_days, cleanup_every_s;
} Options;

// clang-format off
static const Option table[] = {
    {"STENTOR_CHANNELS",              OPTION_TEXT, offsetof(Options, channels),        COMPOSITION, 0, 0, false,
     "webhook: tenants' webhooks, and nothing else"},
    {"STENTOR_WEBHOOK_LADDER",        OPTION_TEXT, offsetof(Options, ladder),          "5,300,1800,7200,18000,36000,36000", 0, 0, false,
     "seconds to wait before each retry, each up to 10 % longer"},
    {"STENTOR_WEBHOOK_ADDRESSES",     OPTION_TEXT, offsetof(Options, addresses),       "", 0, 0, false,
     "addresses that endpoints may have beside public ones: private, loopback (http too), or both with a ','"},
    {"STENTOR_WEBHOOK_CA_FILE",       OPTION_TEXT, offsetof(Options, ca_file),         "", 0, 0, false,
     "certificates of endpoints to trust instead of the system's"},
    {"STENTOR_WEBHOOK_DNS",           OPTION_TEXT, offsetof(Options, dns),             "", 0, 0, false,
     "servers to ask for endpoints' names, such as 192.0.2.1:53; empty: the system's"},
    {"STENTOR_WEBHOOK_CALLS",         OPTION_INT,  offsetof(Options, calls),           "1024", 1, POSTS_MAX, false,
     "most posts on their way at once, to all endpoints together"},
    {"STENTOR_WEBHOOK_CALL_MS",       OPTION_INT,  offsetof(Options, call_ms),         "15000", 100, 30000, false,
     "longest wait for the end of a post"},
    {"STENTOR_WEBHOOK_QUEUE_MS",      OPTION_INT,  offsetof(Options, queue_ms),        "10000", 100, 20000, false,
     "longest wait in memory for an endpoint's turn; then it waits in DEFERRED"},
    {"STENTOR_WEBHOOK_LEASE_MS",      OPTION_INT,  offsetof(Options, lease_ms),        "60000", 1000, 3600000, false,
     "a claim without an outcome is taken over after this time"},
    {"STENTOR_WEBHOOK_GONE_S",        OPTION_INT,  offsetof(Options, gone_s),          "900", 10, 86400, false,
     "seconds after which an event in order that does not come is gone, and those behind it go on"},
    {"STENTOR_WEBHOOK_IN_FLIGHT",     OPTION_INT,  offsetof(Options, in_flight),       "4096", 1, 8192, false,
     "most deliveries in hand"},
    {"STENTOR_WEBHOOK_KEPT_DAYS",     OPTION_INT,  offsetof(Options, kept_days),       "90", 1, 36500, false,
     "days that the ledger keeps a delivery, and a notification's category for filters"},
    {"STENTOR_CLEANUP_EVERY_S",       OPTION_INT,  offsetof(Options, cleanup_every_s), "86400", 1, 604800, false,
     "seconds between two removals of rows past their retention"},
};
// clang-format on

typedef struct State {
    Service *service;
    Hooks *hooks;
    Cleanup *cleanup;
    char keep[32];
    int stopped_count;
} State;

bool webhook_is_wanted(int argc, char *const *argv, const char *environment)
{
    Str program = str_from(argc > 0 ? argv[0] : "");
    bool wanted = environment != NULL && str_eq(str_from(environment), STR(COMPOSITION));
    for (int i = 1; i < argc; i++) {
        Str word = str_from(argv[i]);
        bool apart = str_eq(word, STR("--channels")) && i + 1 < argc;
        if (apart || str_starts(word, STR("--channels="))) {
            wanted = str_ends(apart ? str_from(argv[i + 1]) : word, STR(COMPOSITION));
        }
    }
    return wanted || str_ends(program, STR("stentor-" COMPOSITION));
}

static const DbStatement drop_deliveries = {
    .name = "webhook_drop_deliveries",
    .sql = "SELECT dropped, go_on FROM webhooks.drop_deliveries($1::text, $2::text, $3::text, "
           "$4::int4)",
};

static const DbStatement drop_endpoints = {
    .name = "webhook_drop_endpoints",
    .sql = "SELECT dropped, go_on FROM webhooks.drop_endpoints($1::text, $2::text, $3::text, "
           "$4::int4)",
};

static const DbStatement drop_categories = {
    .name = "webhook_drop_categories",
    .sql = "SELECT dropped, go_on FROM webhooks.drop_categories($1::text, $2::text, $3::text, "
           "$4::int4)",
};

static void open_cleanup(State *state, const Options *options)
{
    (void)snprintf(state->keep, sizeof state->keep, "%lld days", (long long)options->kept_days);
    const CleanupRule rules[] = {
        {"webhook_deliveries", &drop_deliveries, state->keep, DROP_ROWS},
        {"webhook_endpoints", &drop_endpoints, state->keep, DROP_ROWS},
        {"webhook_categories", &drop_categories, state->keep, DROP_ROWS},
    };
    state->cleanup = cleanup_new(&(CleanupOptions){
        .bus = service_bus(state->service),
        .pool = service_pool(state->service),
        .metrics = service_metrics(state->service),
        .rules = rules,
        .rule_count = sizeof rules / sizeof *rules,
        .every_s = options->cleanup_every_s,
    });
}

static bool read_parts(const Options *options, HooksParts *parts, Error *err)
{
    if (!str_eq(str_from(options->channels), STR(COMPOSITION))) {
        return error_set(
            err, ERROR_CONFIG, "STENTOR_CHANNELS is '%.80s': expected '" COMPOSITION "'",
            options->channels);
    }
    if (!ladder_parse(str_from(options->ladder), &parts->ladder)) {
        return error_set(
            err, ERROR_CONFIG,
            "STENTOR_WEBHOOK_LADDER is '%.80s': expected 1 to %d waits of 1 to %d seconds",
            options->ladder, (int)LADDER_MAX, (int)LADDER_WAIT_MAX_S);
    }
    parts->guard.tenant = true;
    return guard_allow(&parts->guard, str_from(options->addresses), err) ||
           error_wrap(err, "STENTOR_WEBHOOK_ADDRESSES");
}

static void on_dns_freed(void *ctx)
{
    (void)ctx;
}

// What each call needs is tried before the first one: a wrong value would fail every call, and end
// every tenant's subscription.
static bool try_client(const HooksParts *parts, Error *err)
{
    if (parts->ca_file != NULL) {
        TlsContext *tls = tls_context_new(parts->ca_file, true, NULL, err);
        if (tls == NULL) {
            return error_wrap(err, "STENTOR_WEBHOOK_CA_FILE");
        }
        tls_context_free(tls);
    }
    if (parts->dns_servers != NULL) {
        Dns *dns = dns_new(parts->loop, parts->dns_servers, err);
        if (dns == NULL) {
            return error_wrap(err, "STENTOR_WEBHOOK_DNS");
        }
        dns_free(dns, on_dns_freed, NULL);
    }
    return true;
}

static bool start(Service *service, const void *given, void **ret_state, Error *err)
{
    const Options *options = given;
    HooksParts parts = {
        .loop = service_loop(service),
        .bus = service_bus(service),
        .pool = service_pool(service),
        .database_url = service_database_url(service),
        .master = service_master_key(service),
        .metrics = service_metrics(service),
        .instance = service_instance(service),
        .service = webhook_service.name,
        .ca_file = options->ca_file[0] != '\0' ? options->ca_file : NULL,
        .dns_servers = options->dns[0] != '\0' ? options->dns : NULL,
        .calls = options->calls,
        .call_ms = options->call_ms,
        .lease_ms = options->lease_ms,
        .queue_ms = options->queue_ms,
        .gone_s = options->gone_s,
        .in_flight_max = (size_t)options->in_flight,
    };
    if (!read_parts(options, &parts, err) || !try_client(&parts, err)) {
        return false;
    }
    Hooks *hooks = hooks_new(&parts, err);
    if (hooks == NULL) {
        return false;
    }
    State *state = xcalloc(1, sizeof *state);
    *state = (State){.service = service, .hooks = hooks};
    open_cleanup(state, options);
    *ret_state = state;
    return true;
}

static bool ready(void *ctx, Buf *reason)
{
    return hooks_ready(((const State *)ctx)->hooks, reason);
}

static void on_part_stopped(void *ctx)
{
    State *state = ctx;
    if (++state->stopped_count == 1) {
        cleanup_stop(state->cleanup, on_part_stopped, state);
    } else {
        service_stopped(state->service);
    }
}

static void stop(void *ctx)
{
    State *state = ctx;
    hooks_stop(state->hooks, on_part_stopped, state);
}

static void free_state(void *ctx)
{
    State *state = ctx;
    cleanup_free(state->cleanup);
    hooks_free(state->hooks);
    free(state);
}

const ServiceSpec webhook_service = {
    .name = "stentor-webhook",
    .summary = "posts statuses to tenants' endpoints as signed webhooks (stentor-dispatcher "
               "--channels webhook)",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .options_size = sizeof(Options),
    .wants_database = true,
    .wants_master_key = true,
    .opens_no_data_key = true,
    .start = start,
    .ready = ready,
    .stop = stop,
    .free = free_state,
};
