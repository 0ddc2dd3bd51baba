// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/receiver.h"

#include <stddef.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/bus/events/suppression_event.h"
#include "common/config/config_mirror.h"
#include "common/config/mail_domain_entry.h"
#include "common/render/public_url.h"
#include "common/service/http_rows.h"
#include "services/webhook-receiver/callback.h"
#include "services/webhook-receiver/correlate.h"
#include "services/webhook-receiver/link_endpoint.h"
#include "services/webhook-receiver/lmtp/mail_intake.h"
#include "services/webhook-receiver/opt_out_endpoint.h"

enum {
    LMTP_IDLE_MS = 5 * 60 * 1000, // RFC 5321 4.5.3.2.7
    LMTP_MAIL_MS = 10 * 60 * 1000,
};

typedef struct ReceiverOptions {
    const char *bind;
    int64_t port;
    int64_t body_max;
    HttpLimits limits;
    int64_t max_age_s;
    int64_t machine_s;
    const char *lmtp_bind;
    int64_t lmtp_port;
    const char *lmtp_addresses;
    int64_t lmtp_connections;
    const char *sns_origin;
    const char *folders;
    const char *public_url;
} ReceiverOptions;

typedef struct Receiver {
    Service *service;
    Secrets *secrets;
    InboundKeys *keys;
    Definitions *definitions;
    Suppressions *suppressions;
    ConfigMirror *mirror;
    KeyRegister registered; // the registered master keys, from CONFIG
    bool keys_known;        // the file is the installation's
    Correlator *correlator;
    HttpServer *server;
    BounceDomains *domains;
    LmtpServer *lmtp; // NULL: off
    MailIntake intake;
    CallbackEndpoint endpoint;
    OptOutEndpoint opt_out;
    LinkEndpoint links;
    LinkRevocations *revoked;
    SnsLink *sns;
    char public_url[PUBLIC_URL_MAX + 1];
    bool stopping;
    int open; // parts that are not stopped, then not freed yet
} Receiver;

// clang-format off
static const Option OPTIONS[] = {
    {"STENTOR_WEBHOOK_BIND", OPTION_TEXT, offsetof(ReceiverOptions, bind),
     "127.0.0.1", 0, 0, false,
     "address to listen on"},
    {"STENTOR_WEBHOOK_PORT", OPTION_INT, offsetof(ReceiverOptions, port),
     "8090", 0, 65535, false,
     "its port; 0: any free one, named in the log"},
    // A callback is one NATS message, whose maximum is 1 MB.
    {"STENTOR_WEBHOOK_BODY_MAX", OPTION_INT, offsetof(ReceiverOptions, body_max),
     "901120", 1024, 901120, false,
     "largest callback in bytes; beyond it 413"},
    HTTP_LIMIT_ROWS("STENTOR_WEBHOOK", ReceiverOptions),
    {"STENTOR_WEBHOOK_MAX_AGE_S", OPTION_INT, offsetof(ReceiverOptions, max_age_s),
     "600", 0, 86400, false,
     "largest age of a callback's signed timestamp, in seconds; beyond it 401; 0: any"},
    {"STENTOR_WEBHOOK_MACHINE_S", OPTION_INT, offsetof(ReceiverOptions, machine_s),
     "10", 0, 3600, false,
     "seconds after a mail was due in which whoever opens it or follows a link counts as a machine; 0: none"},
    {"STENTOR_WEBHOOK_SNS_ORIGIN", OPTION_TEXT, offsetof(ReceiverOptions, sns_origin),
     "", 0, 0, false,
     "http://host:port that stands for https://sns.<region>.amazonaws.com: a proxy's; empty: none"},
    {"STENTOR_LMTP_BIND", OPTION_TEXT, offsetof(ReceiverOptions, lmtp_bind),
     "", 0, 0, false,
     "address to take bounces and complaints on by LMTP, or the path of a UNIX socket; empty: off"},
    {"STENTOR_LMTP_PORT", OPTION_INT, offsetof(ReceiverOptions, lmtp_port),
     "8024", 0, 65535, false,
     "its port; 0: any free one, named in the log"},
    {"STENTOR_LMTP_ADDRESSES", OPTION_TEXT, offsetof(ReceiverOptions, lmtp_addresses),
     "bounces,fbl", 0, 0, false,
     "local parts taken at each bounce domain beside b+<token>: bounces without a token, feedback loops"},
    {"STENTOR_LMTP_CONNECTIONS", OPTION_INT, offsetof(ReceiverOptions, lmtp_connections),
     "32", 1, 256, false,
     "connections at once; beyond it 421"},
    {PUBLIC_URL_OPTION, OPTION_TEXT, offsetof(ReceiverOptions, public_url),
     "", 0, 0, false,
     "the same as the renderer's; vendors that sign the URL they were given (Twilio) are heard only where it is set"},
    {SECRET_DIRS_OPTION, OPTION_TEXT, offsetof(ReceiverOptions, folders),
     SECRET_DIRS_DEFAULT, 0, 0, false,
     SECRET_DIRS_HELP},
};
// clang-format on

static bool on_config_changed(
    void *ctx, Str kind, Str tenant, Str key, const BusMessage *message, Error *err)
{
    Receiver *r = ctx;
    if (r->stopping) {
        return true;
    }
    if (str_eq(kind, STR("suppression"))) {
        return suppression_apply(r->suppressions, tenant, key, message, err);
    }
    if (str_eq(kind, STR(LINK_REVOCATION_KIND))) {
        return link_revocations_put(r->revoked, tenant, key, message->payload, err);
    }
    if (str_eq(kind, STR(KEY_REGISTER_KIND)) && str_eq(tenant, STR(KEY_REGISTER_TENANT))) {
        Arena *arena = arena_new(0);
        bool ok = key_register_read(message->payload, arena, &r->registered, err);
        arena_free(arena);
        return ok;
    }
    if (str_eq(kind, STR("tenant"))) {
        bounce_domains_tenant_changed(r->domains, tenant, message->payload);
        return true;
    }
    if (str_eq(kind, STR(MAIL_DOMAIN_KIND))) {
        return bounce_domains_changed(r->domains, tenant, key, message->payload, err);
    }
    if (str_eq(kind, STR("credential"))) {
        return definitions_changed(r->definitions, tenant, key, message->payload, err);
    }
    return !str_eq(kind, STR("inbound")) ||
           inbound_keys_changed(r->keys, tenant, key, message->payload, err);
}

// Without a readable key its tenant's callbacks are rejected; without the installation's keys the
// process does not start.
static void on_config_unreadable(void *ctx, Str kind, Str tenant, Str key, uint64_t sequence)
{
    Receiver *r = ctx;
    if (str_eq(kind, STR("suppression"))) {
        suppression_unreadable(r->suppressions, tenant, key, sequence);
    }
}

static void on_config_ready(void *ctx)
{
    Receiver *r = ctx;
    r->keys_known = !r->stopping && service_check_keys(r->service, &r->registered);
    if (r->keys_known) {
        correlator_start(r->correlator);
    }
}

static bool on_http_headers(void *ctx, HttpRequest *request)
{
    Receiver *r = ctx;
    request->body_max = r->endpoint.part_max; // a vendor of long callbacks raises it
    if (link_is_path(request->path)) {
        return link_admit(&r->links, request);
    }
    return opt_out_is_path(request->path) ? opt_out_admit(&r->opt_out, request)
                                          : callback_admit(&r->endpoint, request);
}

static void on_http_request(void *ctx, HttpRequest *request)
{
    Receiver *r = ctx;
    if (link_is_path(request->path)) {
        link_handle(&r->links, request);
    } else if (opt_out_is_path(request->path)) {
        opt_out_handle(&r->opt_out, request);
    } else {
        callback_handle(&r->endpoint, request);
    }
}

static bool can_take(void *ctx)
{
    const Receiver *r = ctx;
    return r->keys_known && bus_connected(service_bus(r->service));
}

// Before the configuration is read no tenant is known, and a refusal would be for ever.
static bool can_take_mail(void *ctx)
{
    const Receiver *r = ctx;
    return config_mirror_ready(r->mirror) && can_take(ctx);
}

static bool is_ready(void *state, Buf *reason)
{
    const Receiver *r = state;
    return config_mirror_ready(r->mirror) ||
           (buf_cstr(reason, "the configuration has not been read yet") && false);
}

static void warn(void *state, Buf *warning)
{
    const Receiver *r = state;
    inbound_keys_warn(r->keys, warning);
}

static void build_links(Receiver *r, const ReceiverOptions *o)
{
    r->revoked = link_revocations_new();
    r->links.bus = service_bus(r->service);
    r->links.revoked = r->revoked;
    r->links.soon_us = o->machine_s * 1000000;
    r->links.ready = can_take;
    r->links.ready_ctx = r;
    link_endpoint_init(
        &r->links, service_master_key(r->service), service_metrics(r->service),
        service_loop(r->service));
}

static void build_intake(Receiver *r, const ReceiverOptions *o)
{
    Metrics *metrics = service_metrics(r->service);
    r->intake = (MailIntake){
        .bus = service_bus(r->service),
        .master = service_master_key(r->service),
        .domains = r->domains,
        .local_parts = str_from(o->lmtp_addresses),
        .ready = can_take_mail,
        .ready_ctx = r,
        .taken = metrics_counter(
            metrics, "stentor_webhook_receiver_mails_total", "", "Bounces and complaints stored"),
        .refused = metrics_counter(
            metrics, "stentor_webhook_receiver_mails_refused_total", "",
            "Recipients refused by LMTP"),
    };
    bounce_key(r->intake.master, &r->intake.bounce);
    opt_out_key(r->intake.master, &r->intake.opt_out);
}

static bool start_lmtp(Receiver *r, const ReceiverOptions *o, Error *err)
{
    if (o->lmtp_bind[0] == '\0') {
        return true;
    }
    LmtpServerOptions options = {
        .bind = o->lmtp_bind,
        .port = (int)o->lmtp_port,
        .limits = {.mail_max = MAIL_SIZE_MAX, .kept_max = MAIL_KEPT_MAX},
        .connections = (size_t)o->lmtp_connections,
        .idle_ms = LMTP_IDLE_MS,
        .mail_ms = LMTP_MAIL_MS,
        .handler = mail_intake_handler(&r->intake),
    };
    r->lmtp = lmtp_server_new(service_loop(r->service), &options, err);
    if (r->lmtp != NULL) {
        LOG(LOG_INFO, "listening for bounces by LMTP", log_text("bind", o->lmtp_bind),
            log_int("port", lmtp_server_port(r->lmtp)));
    }
    return r->lmtp != NULL;
}

static void build_parts(Receiver *r, const ReceiverOptions *o)
{
    Bus *bus = service_bus(r->service);
    Metrics *metrics = service_metrics(r->service);
    r->keys = inbound_keys_new(r->secrets);
    r->definitions = definitions_new();
    r->suppressions = suppressions_new();
    build_links(r, o);
    r->endpoint = (CallbackEndpoint){
        .bus = bus,
        .master = service_master_key(r->service),
        .keys = r->keys,
        .definitions = r->definitions,
        .sns = r->sns,
        .public_url = str_from(r->public_url),
        .part_max = (size_t)o->body_max,
        .max_age_s = o->max_age_s,
        .ready = can_take,
        .ready_ctx = r,
    };
    callback_init(&r->endpoint, metrics);
    r->opt_out = (OptOutEndpoint){
        .bus = bus,
        .known = r->suppressions,
        .revoked = r->revoked,
        .ready = can_take,
        .ready_ctx = r,
        .taken = metrics_counter(
            metrics, "stentor_webhook_receiver_opt_outs_total", "", "Opt-outs stored"),
        .refused = metrics_counter(
            metrics, "stentor_webhook_receiver_opt_outs_refused_total", "", "Opt-outs refused"),
    };
    opt_out_key(r->endpoint.master, &r->opt_out.key);
    r->correlator = correlator_new(
        bus, r->endpoint.master, r->suppressions, r->keys, r->definitions, metrics,
        service_tracer(r->service));
    r->mirror = config_mirror_new(bus, on_config_changed, r);
    config_mirror_on_unreadable(r->mirror, on_config_unreadable);
    config_mirror_on_ready(r->mirror, on_config_ready, r);
}

static void on_given_up(void *ctx)
{
    Receiver *r = ctx;
    if (--r->open == 0) {
        bounce_domains_free(r->domains);
        secrets_free(r->secrets);
        free(r);
    }
}

// Of a start that failed: what is open already closes on the loop.
static bool give_up(Receiver *r)
{
    r->open =
        1 + (r->server != NULL ? 1 : 0) + (r->sns != NULL ? 1 : 0) + (r->secrets != NULL ? 1 : 0);
    if (r->server != NULL) {
        http_server_free(r->server, on_given_up, r);
    }
    if (r->sns != NULL) {
        sns_link_free(r->sns, on_given_up, r);
    }
    if (r->secrets != NULL) {
        secrets_close(r->secrets, on_given_up, r);
    }
    on_given_up(r);
    return false;
}

static void on_secret_read(void *ctx, const SecretName *name, Str text)
{
    const Receiver *r = ctx;
    inbound_keys_read(r->keys, name, text);
}

static Secrets *open_secrets(Receiver *r, const ReceiverOptions *o, Error *err)
{
    return secrets_new(
        &(SecretsOptions){
            .loop = service_loop(r->service),
            .metrics = service_metrics(r->service),
            .service = "webhook_receiver",
            .folders = o->folders,
            .on_text = on_secret_read,
            .ctx = r,
        },
        err);
}

static bool read_public_url(Receiver *r, const ReceiverOptions *o, Error *err)
{
    Arena *arena = arena_new(0);
    Str url;
    bool good = public_url_read(o->public_url, arena, &url, err) &&
                str_to_c(url, r->public_url, sizeof r->public_url);
    arena_free(arena);
    return good;
}

static bool start(Service *service, const void *options, void **ret_state, Error *err)
{
    const ReceiverOptions *o = options;
    Receiver *r = xcalloc(1, sizeof *r);
    r->service = service;
    if (!read_public_url(r, o, err)) {
        service_wrong_options(service);
        free(r);
        return false;
    }
    HttpServerOptions http = {
        .bind = o->bind,
        .port = (int)o->port,
        .body_max = CALLBACK_BODY_MAX,
        .limits = o->limits,
        .option_prefix = "STENTOR_WEBHOOK",
        .admit = on_http_headers,
        .handler = on_http_request,
        .ctx = r,
    };
    r->server = http_server_new(service_loop(service), &http, err);
    r->secrets = r->server == NULL ? NULL : open_secrets(r, o, err);
    r->sns = r->secrets == NULL ? NULL : sns_link_new(service_loop(service), o->sns_origin, err);
    if (r->sns == NULL) {
        return give_up(r);
    }
    r->domains = bounce_domains_new();
    build_intake(r, o);
    if (!start_lmtp(r, o, err)) {
        return give_up(r);
    }
    build_parts(r, o);
    LOG(LOG_INFO, "listening for callbacks and opt-outs", log_text("bind", o->bind),
        log_int("port", http_server_port(r->server)));
    *ret_state = r;
    return true;
}

static void on_part_freed(void *ctx)
{
    Receiver *r = ctx;
    if (--r->open == 0) {
        service_stopped(r->service);
    }
}

static void on_links_closed(uv_handle_t *handle)
{
    const LinkEndpoint *links = handle->data;
    on_part_freed(links->ready_ctx);
}

static void on_part_stopped(void *ctx)
{
    Receiver *r = ctx;
    if (--r->open == 0) {
        r->open = 6;
        link_endpoint_close(&r->links, on_links_closed);
        secrets_close(r->secrets, on_part_freed, r);
        sns_link_free(r->sns, on_part_freed, r);
        config_mirror_free(r->mirror, on_part_freed, r);
        http_server_free(r->server, on_part_freed, r);
        correlator_free(r->correlator, on_part_freed, r);
    }
}

static void begin_stop(void *state)
{
    Receiver *r = state;
    r->stopping = true;
    r->open = r->lmtp != NULL ? 3 : 2;
    if (r->lmtp != NULL) {
        lmtp_server_stop(r->lmtp, on_part_stopped, r);
    }
    http_server_stop(r->server, on_part_stopped, r);
    correlator_stop(r->correlator, on_part_stopped, r);
}

static void free_receiver(void *state)
{
    Receiver *r = state;
    lmtp_server_free(r->lmtp);
    bounce_domains_free(r->domains);
    inbound_keys_free(r->keys);
    definitions_free(r->definitions);
    secrets_free(r->secrets);
    suppressions_free(r->suppressions);
    link_revocations_free(r->revoked);
    free(r);
}

const ServiceSpec receiver_service = {
    .name = "stentor-webhook-receiver",
    .summary =
        "takes signed vendor callbacks and opt-outs, and turns them into statuses and suppressions",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof OPTIONS[0],
    .options_size = sizeof(ReceiverOptions),
    .wants_database = false,
    .wants_master_key = true,
    .start = start,
    .ready = is_ready,
    .warn = warn,
    .stop = begin_stop,
    .free = free_receiver,
};
