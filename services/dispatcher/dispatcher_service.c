// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/dispatcher_service.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/render/public_url.h"
#include "common/service/cleanup.h"
#include "common/service/storage_rows.h"
#include "services/dispatcher/dispatcher.h"
#include "services/dispatcher/routing/vendors.h"
#include "services/dispatcher/vendor/smtp/smtp_pool.h"

// Claimed mails that wait per connection: as many as it sends while the next batch is claimed and
// the last outcomes are recorded.
enum { CLAIMS_PER_CONNECTION = 8, DROP_ROWS = 1000 };

typedef struct Options {
    const char *smtp_url, *smtp_password, *smtp_tls, *smtp_ca_file, *smtp_helo;
    int64_t smtp_connections, smtp_mails, smtp_connect_ms, smtp_command_ms, smtp_data_ms,
        smtp_idle_ms, smtp_per_s, smtp_per_day;
    int64_t vendor_calls, vendor_connect_ms, vendor_call_ms;
    const char *vendor_ca_file, *vendor_addresses, *secret_dirs, *public_url;
    const char *mail_from, *mail_domain, *feedback_sender;
    const char *unknown, *ladder;
    int64_t lease_ms, batch, in_flight, tenant_percent;
    int64_t kept_days, cleanup_every_s, late_s;
    bool keep_foreign;
    StorageOptions storage;
} Options;

// clang-format off
static const Option table[] = {
    {"STENTOR_SMTP_URL",              OPTION_TEXT, offsetof(Options, smtp_url),         "smtp://127.0.0.1:25", 0, 0, true,
     "smtp://user:pass@host:port, or smtps:// for TLS from the first byte"},
    {"STENTOR_SMTP_PASSWORD",         OPTION_TEXT, offsetof(Options, smtp_password),    "", 0, 0, true,
     "the user's password, when the URL has none"},
    {"STENTOR_SMTP_TLS",              OPTION_TEXT, offsetof(Options, smtp_tls),         "auto", 0, 0, false,
     "auto (required with a user, else opportunistic), off, opportunistic, required, insecure-unverified or insecure-plaintext"},
    {"STENTOR_SMTP_CA_FILE",          OPTION_TEXT, offsetof(Options, smtp_ca_file),     "", 0, 0, false,
     "certificates to trust instead of the system's"},
    {"STENTOR_SMTP_HELO",             OPTION_TEXT, offsetof(Options, smtp_helo),        "localhost", 0, 0, false,
     "this host's name in EHLO"},
    {"STENTOR_SMTP_CONNECTIONS",      OPTION_INT,  offsetof(Options, smtp_connections), "8", 1, SMTP_CONNECTIONS_MAX, false,
     "most connections to the server"},
    {"STENTOR_SMTP_MAILS",            OPTION_INT,  offsetof(Options, smtp_mails),       "1000", 1, 1000000, false,
     "mails per connection, then a new one"},
    {"STENTOR_SMTP_CONNECT_MS",       OPTION_INT,  offsetof(Options, smtp_connect_ms),  "10000", 10, 300000, false,
     "longest wait for a connection"},
    {"STENTOR_SMTP_COMMAND_MS",       OPTION_INT,  offsetof(Options, smtp_command_ms),  "30000", 10, 300000, false,
     "longest wait for the answer to a command"},
    {"STENTOR_SMTP_DATA_MS",          OPTION_INT,  offsetof(Options, smtp_data_ms),     "60000", 10, 600000, false,
     "longest wait for the answer to a whole mail"},
    {"STENTOR_SMTP_IDLE_MS",          OPTION_INT,  offsetof(Options, smtp_idle_ms),     "30000", 100, 3600000, false,
     "an idle connection is closed after this time"},
    {"STENTOR_SMTP_RATE_PER_S",       OPTION_INT,  offsetof(Options, smtp_per_s),       "0", 0, 1000000, false,
     "most mails a second over the server, of all dispatchers together; 0: no limit"},
    {"STENTOR_SMTP_RATE_PER_DAY",     OPTION_INT,  offsetof(Options, smtp_per_day),     "0", 0, 1000000000, false,
     "most mails a day, likewise"},
    {"STENTOR_VENDOR_CALLS",          OPTION_INT,  offsetof(Options, vendor_calls),     "64", 1, HTTP_VENDOR_CALLS_MAX, false,
     "most calls at once to the HTTP API of one credential"},
    {"STENTOR_VENDOR_CONNECT_MS",     OPTION_INT,  offsetof(Options, vendor_connect_ms), "5000", 10, 60000, false,
     "longest wait for a connection to a vendor's HTTP API"},
    {"STENTOR_VENDOR_CALL_MS",        OPTION_INT,  offsetof(Options, vendor_call_ms),   "10000", 100, 120000, false,
     "longest wait for the end of a call; a mail that went out then has an unknown outcome"},
    {"STENTOR_VENDOR_CA_FILE",        OPTION_TEXT, offsetof(Options, vendor_ca_file),   "", 0, 0, false,
     "certificates of vendors' HTTP APIs to trust instead of the system's"},
    {"STENTOR_VENDOR_ADDRESSES",      OPTION_TEXT, offsetof(Options, vendor_addresses), "", 0, 0, false,
     "addresses that vendors' HTTP APIs may have beside public ones: private, loopback (http too), or both with a ','"},
    {PUBLIC_URL_OPTION,               OPTION_TEXT, offsetof(Options, public_url),       "", 0, 0, false,
     "the same as the renderer's: where vendors of other channels than e-mail report to; empty: as their own console says"},
    {SECRET_DIRS_OPTION,              OPTION_TEXT, offsetof(Options, secret_dirs),      SECRET_DIRS_DEFAULT, 0, 0, false,
     SECRET_DIRS_HELP},
    {"STENTOR_MAIL_FROM",             OPTION_TEXT, offsetof(Options, mail_from),        "Stentor <no-reply@localhost>", 0, 0, false,
     "From of mails whose tenant has no sender"},
    {"STENTOR_MAIL_DOMAIN",           OPTION_TEXT, offsetof(Options, mail_domain),      "localhost", 0, 0, false,
     "domain of the Message-ID, such as example.com"},
    {"STENTOR_MAIL_FEEDBACK_SENDER",  OPTION_TEXT, offsetof(Options, feedback_sender),  "stentor", 0, 0, false,
     "last field of Feedback-ID, by which Gmail counts complaints: 5 to 15 of a-z 0-9 '-'"},
    {"STENTOR_DISPATCHER_UNKNOWN",    OPTION_TEXT, offsetof(Options, unknown),          "resend", 0, 0, false,
     "a mail that may have been sent: resend (same Message-ID) or park; or by channel: email=park,sms=resend"},
    {"STENTOR_RETRY_LADDER",          OPTION_TEXT, offsetof(Options, ladder),           "email=300,900,3600,14400,43200;voice=120,600", 0, 0, false,
     "seconds to wait before each retry, of all channels (300,900) or by channel"},
    {"STENTOR_DISPATCHER_LEASE_MS",   OPTION_INT,  offsetof(Options, lease_ms),         "60000", 1000, 3600000, false,
     "a claim without an outcome is taken over after this time"},
    {"STENTOR_DISPATCHER_BATCH",      OPTION_INT,  offsetof(Options, batch),            "64", 1, LEDGER_BATCH_MAX, false,
     "most deliveries claimed by one statement"},
    {"STENTOR_DISPATCHER_IN_FLIGHT",  OPTION_INT,  offsetof(Options, in_flight),        "2048", 1, 8192, false,
     "most unsettled deliveries of one lane"},
    {"STENTOR_DISPATCHER_TENANT_PERCENT", OPTION_INT, offsetof(Options, tenant_percent), "75", 1, 100, false,
     "percent of a lane's connections (of its claims, when it is slow) for one tenant while others send"},
    {"STENTOR_DISPATCHER_KEPT_DAYS",  OPTION_INT,  offsetof(Options, kept_days),        "100", 95, 36500, false,
     "days that the ledger keeps an ended attempt; dead letters can be resent for 90"},
    {"STENTOR_DISPATCHER_LATE_S",     OPTION_INT,  offsetof(Options, late_s),           "900", 1, 86400, false,
     "seconds that a vendor's event about an unknown mail is kept for it, then a dead letter"},
    {"STENTOR_DISPATCHER_KEEP_FOREIGN", OPTION_BOOL, offsetof(Options, keep_foreign),   "true", 0, 0, false,
     "a vendor's event about no mail of ours is a dead letter; false: counted and dropped"},
    {"STENTOR_CLEANUP_EVERY_S",       OPTION_INT,  offsetof(Options, cleanup_every_s),  "86400", 1, 604800, false,
     "seconds between two removals of rows past their retention"},
    STORAGE_ROWS(Options, "no attachments"),
};
// clang-format on

typedef struct State {
    Service *service;
    SmtpPool *smtp;
    Vendors *vendors;
    Dispatcher *dispatcher;
    Attachments *attachments;
    Cleanup *cleanup;
    int stopped_count; // of the parts
    char keep[32];
    char *from; // the sender option, cut into name and address
    Zones *zones;
    Arena *arena; // of options, cut and cleaned
} State;

// ---- options ----

static bool read_smtp(const Options *options, SmtpOptions *smtp, Error *err)
{
    *smtp = (SmtpOptions){
        .ca_file = options->smtp_ca_file,
        .helo = options->smtp_helo,
        .connections = (unsigned)options->smtp_connections,
        .mails_max = (unsigned)options->smtp_mails,
        .tenant_percent = (unsigned)options->tenant_percent,
        .connect_ms = (unsigned)options->smtp_connect_ms,
        .command_ms = (unsigned)options->smtp_command_ms,
        .data_ms = (unsigned)options->smtp_data_ms,
        .idle_ms = (unsigned)options->smtp_idle_ms,
    };
    if (!smtp_url_parse(str_from(options->smtp_url), smtp, err) ||
        !smtp_tls_mode_parse(str_from(options->smtp_tls), smtp, err)) {
        return false;
    }
    Str password = str_from(options->smtp_password);
    if (password.len > 0 && !str_to_c(password, smtp->password, sizeof smtp->password)) {
        return error_set(
            err, ERROR_CONFIG, "STENTOR_SMTP_PASSWORD is longer than %d bytes",
            (int)SMTP_CREDENTIAL_MAX);
    }
    Str helo = str_from(options->smtp_helo);
    if (helo.len == 0 || helo.len > 255 || str_has_control(helo) || str_find(helo, ' ') >= 0) {
        return error_set(err, ERROR_CONFIG, "STENTOR_SMTP_HELO is not a host name");
    }
    return true;
}

// "Name <address>" or "address".
static bool read_from(Str text, JobRules *rules, Error *err)
{
    ptrdiff_t open = str_find(text, '<');
    rules->from = text;
    rules->from_name = STR_EMPTY;
    if (open >= 0 && str_ends(text, STR(">"))) {
        rules->from = str_slice(text, (size_t)open + 1, text.len - 1);
        rules->from_name = str_trim(str_slice(text, 0, (size_t)open));
    }
    if (str_has_control(text) || str_has_bidi(text) ||
        !mail_address_check("STENTOR_MAIL_FROM", rules->from, NULL, err)) {
        return error_set(
            err, ERROR_CONFIG,
            "STENTOR_MAIL_FROM is '" STR_FMT "': expected 'Name <name@example.com>'",
            STR_ARG(text));
    }
    return true;
}

static bool is_domain_option(Str domain)
{
    Buf text;
    buf_init(&text, MAIL_ADDRESS_MAX);
    buf_str(&text, STR("x@"));
    buf_str(&text, domain);
    bool utf8 = false;
    bool fine = mail_address_check("domain", buf_view(&text), &utf8, NULL) && !utf8;
    buf_done(&text);
    return fine;
}

static bool is_feedback_sender(Str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!(c >= 'a' && c <= 'z') && !ascii_is_digit(c) && c != '-') {
            return false;
        }
    }
    return text.len >= FEEDBACK_SENDER_MIN && text.len <= FEEDBACK_SENDER_MAX;
}

static bool read_rules(const Options *options, Str from, JobRules *rules, Error *err)
{
    rules->vendor = "smtp";
    rules->mail_domain = str_from(options->mail_domain);
    if (!ladders_parse(str_from(options->ladder), &rules->ladders, err)) {
        return error_wrap(err, "STENTOR_RETRY_LADDER");
    }
    if (!is_domain_option(rules->mail_domain)) {
        return error_set(
            err, ERROR_CONFIG, "STENTOR_MAIL_DOMAIN is '%s': expected a domain like example.com",
            options->mail_domain);
    }
    rules->dress.feedback_sender = str_from(options->feedback_sender);
    if (!is_feedback_sender(rules->dress.feedback_sender)) {
        return error_set(
            err, ERROR_CONFIG,
            "STENTOR_MAIL_FEEDBACK_SENDER is '%s': expected %d to %d of a-z 0-9 '-'",
            options->feedback_sender, (int)FEEDBACK_SENDER_MIN, (int)FEEDBACK_SENDER_MAX);
    }
    return read_from(from, rules, err);
}

// ---- metrics of the vendor ----

static double read_connections(void *ctx)
{
    const State *state = ctx;
    return state->smtp != NULL ? (double)smtp_pool_stats(state->smtp).connections : 0;
}

static double read_queued(void *ctx)
{
    const State *state = ctx;
    return state->smtp != NULL ? (double)smtp_pool_stats(state->smtp).queued : 0;
}

static double read_up(void *ctx)
{
    const State *state = ctx;
    return state->smtp != NULL && smtp_pool_health(state->smtp).down_since_us == 0 ? 1 : 0;
}

static double read_down_seconds(void *ctx)
{
    const State *state = ctx;
    int64_t since = state->smtp != NULL ? smtp_pool_health(state->smtp).down_since_us : 0;
    return since > 0 ? (double)(clock_now_us() - since) / 1e6 : 0;
}

static void register_smtp_metrics(State *state, Metrics *metrics)
{
    metrics_gauge_fn(
        metrics, "stentor_dispatcher_smtp_connections", "", "Open connections to the SMTP server",
        read_connections, state);
    metrics_gauge_fn(
        metrics, "stentor_dispatcher_smtp_queued", "", "Mails that wait for a connection",
        read_queued, state);
    metrics_gauge_fn(
        metrics, "stentor_dispatcher_smtp_up", "",
        "1: the SMTP server could be reached at the last attempt", read_up, state);
    metrics_gauge_fn(
        metrics, "stentor_dispatcher_smtp_down_seconds", "",
        "How long the SMTP server cannot be reached; 0: it can", read_down_seconds, state);
}

// ---- start and stop ----

static const DbStatement drop_statement = {
    .name = "dispatch_drop_ended",
    .sql =
        "SELECT dropped, go_on FROM dispatcher.drop_ended($1::text, $2::text, $3::text, $4::int4)",
};

static const DbStatement drop_events_statement = {
    .name = "dispatch_drop_callback_events",
    .sql = "SELECT dropped, go_on FROM dispatcher.drop_callback_events($1::text, $2::text, "
           "$3::text, $4::int4)",
};

static void open_cleanup(State *state, const Options *options)
{
    (void)snprintf(state->keep, sizeof state->keep, "%lld days", (long long)options->kept_days);
    const CleanupRule rules[] = {
        {"ledger", &drop_statement, state->keep, DROP_ROWS},
        {"callback_events", &drop_events_statement, "7 days", DROP_ROWS},
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

static Vendors *open_vendors(const DispatcherParts *parts, const Options *options, Error *err)
{
    const char *ca_file = options->vendor_ca_file;
    HttpGuard guard = {0};
    if (!guard_allow(&guard, str_from(options->vendor_addresses), err)) {
        (void)error_wrap(err, "STENTOR_VENDOR_ADDRESSES");
        return NULL;
    }
    return vendors_new(
        &(VendorsParts){
            .loop = parts->loop,
            .bus = parts->bus,
            .pool = parts->pool,
            .smtp = parts->vendor,
            .smtp_per_s = options->smtp_per_s,
            .smtp_per_day = options->smtp_per_day,
            .instance = parts->instance,
            .calls = (unsigned)options->vendor_calls,
            .connect_ms = options->vendor_connect_ms,
            .call_ms = options->vendor_call_ms,
            .ca_file = ca_file[0] != '\0' ? ca_file : NULL,
            .guard = guard,
            .metrics = parts->metrics,
            .secret_dirs = options->secret_dirs,
        },
        err);
}

static void on_attachments_closed(void *ctx)
{
    attachments_free(ctx);
}

static bool assemble(State *state, const Options *options, Error *err)
{
    Service *service = state->service;
    SmtpOptions smtp;
    DispatcherParts parts = {
        .loop = service_loop(service),
        .bus = service_bus(service),
        .pool = service_pool(service),
        .master = service_master_key(service),
        .metrics = service_metrics(service),
        .tracer = service_tracer(service),
        .instance = service_instance(service),
        .lease_ms = options->lease_ms,
        .late_s = options->late_s,
        .keep_foreign = options->keep_foreign,
        .batch_max = (size_t)options->batch,
        .claims_max = (size_t)options->smtp_connections * CLAIMS_PER_CONNECTION,
        .in_flight_max = (size_t)options->in_flight,
        .tenant_percent = (size_t)options->tenant_percent,
        .service = dispatcher_service.name,
    };
    if (!read_smtp(options, &smtp, err) ||
        !read_rules(options, str_from(state->from), &parts.rules, err) ||
        !unknown_policies_parse(str_from(options->unknown), &parts.unknown, err)) {
        return false;
    }
    parts.rules.hash_keys = master_hash_keys(parts.master);
    bounce_key(parts.master, &parts.rules.dress.bounce_key);
    parts.rules.master = parts.master;
    parts.rules.zones = state->zones = zones_new();
    if (!public_url_read(options->public_url, state->arena, &parts.rules.public_url, err)) {
        return false;
    }
    state->attachments = attachments_new(parts.loop, &options->storage, err);
    if (state->attachments == NULL) {
        return error_wrap(err, "STENTOR_STORAGE_URL");
    }
    state->smtp = smtp_pool_new(parts.loop, &smtp, err);
    if (state->smtp == NULL) {
        attachments_close(state->attachments, on_attachments_closed, state->attachments);
        return false;
    }
    parts.vendor = smtp_pool_vendor(state->smtp);
    state->vendors = open_vendors(&parts, options, err);
    if (state->vendors == NULL) {
        return false;
    }
    parts.vendors = state->vendors;
    if (options->smtp_per_s > 0 || options->smtp_per_day > 0) {
        smtp_pool_limit(state->smtp, vendors_smtp_may_start, state->vendors);
    }
    parts.attachments = state->attachments;
    state->dispatcher = dispatcher_new(&parts);
    register_smtp_metrics(state, parts.metrics);
    open_cleanup(state, options);
    return true;
}

static bool start(Service *service, const void *options, void **ret_state, Error *err)
{
    State *state = xcalloc(1, sizeof *state);
    state->service = service;
    state->from = xstrdup(((const Options *)options)->mail_from);
    state->arena = arena_new(0);
    if (!assemble(state, options, err)) {
        free(state->from);
        arena_free(state->arena);
        free(state);
        return false;
    }
    *ret_state = state;
    return true;
}

static bool ready(void *ctx, Buf *reason)
{
    State *state = ctx;
    return dispatcher_ready(state->dispatcher, reason);
}

static void warn(void *ctx, Buf *warning)
{
    State *state = ctx;
    dispatcher_warn(state->dispatcher, warning);
}

// In this order: the dispatcher, whose mails the vendors still end; the vendors; the clean-up;
// files.
static void on_part_stopped(void *ctx)
{
    State *state = ctx;
    switch (state->stopped_count++) {
    case 0:
        vendors_stop(state->vendors, on_part_stopped, state);
        break;
    case 1:
        smtp_pool_close(state->smtp, on_part_stopped, state);
        break;
    case 2:
        state->smtp = NULL;
        cleanup_stop(state->cleanup, on_part_stopped, state);
        break;
    case 3:
        attachments_close(state->attachments, on_part_stopped, state);
        break;
    default:
        service_stopped(state->service);
        break;
    }
}

static void stop(void *ctx)
{
    State *state = ctx;
    dispatcher_stop(state->dispatcher, on_part_stopped, state);
}

static void free_state(void *ctx)
{
    State *state = ctx;
    cleanup_free(state->cleanup);
    dispatcher_free(state->dispatcher);
    vendors_free(state->vendors);
    attachments_free(state->attachments);
    zones_free(state->zones);
    free(state->from);
    arena_free(state->arena);
    free(state);
}

const ServiceSpec dispatcher_service = {
    .name = "stentor-dispatcher",
    .summary = "claims rendered e-mails in the send ledger, sends them and publishes "
               "their outcomes",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .options_size = sizeof(Options),
    .wants_database = true,
    .wants_master_key = true,
    .start = start,
    .ready = ready,
    .warn = warn,
    .stop = stop,
    .free = free_state,
};
