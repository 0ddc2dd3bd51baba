// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/gateway.h"

#include <stddef.h>
#include <stdlib.h>

#include "common/ticks/ticks.h"
#include "services/gateway/gateway_state.h"

enum {
    TICK_MS = 500, // lists that take too long are ended
    DRAIN_TICK_MS = 20,
};

// clang-format off
static const Option OPTIONS[] = {
    {"STENTOR_GATEWAY_BIND", OPTION_TEXT, offsetof(GatewayOptions, bind),
     "127.0.0.1", 0, 0, false,
     "address to listen on, for every other route of the API"},
    {"STENTOR_GATEWAY_PORT", OPTION_INT, offsetof(GatewayOptions, port),
     "8081", 0, 65535, false,
     "its port; 0: any free one, named in the log"},
    {"STENTOR_GATEWAY_BODY_MAX", OPTION_INT, offsetof(GatewayOptions, body_max),
     "4194304", 1024, 33554432, false,
     "largest request body in bytes; beyond it 413"},
    {"STENTOR_GATEWAY_PREVIEW_CPU_MS", OPTION_INT, offsetof(GatewayOptions, preview_cpu_ms),
     "100", 1, 60000, false,
     "CPU time in milliseconds that one template preview may take"},
    {"STENTOR_GATEWAY_ATTACHMENT_MAX", OPTION_INT, offsetof(GatewayOptions, attachment_max),
     "10485760", 1, ATTACHMENT_BYTES_MAX, false,
     "largest attachment in bytes; STENTOR_GATEWAY_BODY_MAX and the server in front must let it through"},
    {"STENTOR_GATEWAY_ATTACHMENT_PLACES", OPTION_TEXT, offsetof(GatewayOptions, attachment_places),
     "", 0, 0, false,
     "file with the places whose objects tenants may attach (API.md, \"attachments\"); empty: none"},
    {"STENTOR_GATEWAY_TENANT_MEMBERS", OPTION_TEXT, offsetof(GatewayOptions, tenant_members),
     "", 0, 0, false,
     "where events of tenants have their members, when not the usual ones: tenant=org.slug,name=org.title"},
    {PUBLIC_URL_OPTION, OPTION_TEXT, offsetof(GatewayOptions, public_url),
     "", 0, 0, false,
     "the same as the renderer's: public address of the API, for previews of template assets and their `url`"},
    {"STENTOR_WEBHOOK_ADDRESSES", OPTION_TEXT, offsetof(GatewayOptions, webhook_addresses),
     "", 0, 0, false,
     "where tenants' webhooks may go besides public addresses: private, loopback, or both with a ','"},
    {"STENTOR_GATEWAY_KEY_LEASE_MS", OPTION_INT, offsetof(GatewayOptions, key_lease_ms),
     "30000", 100, 600000, false,
     "how long a POST under an Idempotency-Key may be worked on, in milliseconds, before a repeat takes its place"},
    {"STENTOR_GATEWAY_TENANT_REQUESTS", OPTION_INT, offsetof(GatewayOptions, tenant_requests),
     "1200000", 0, 1000000000, false,
     "requests of a tenant that one gateway takes in a minute; beyond it 429; 0: no bound"},
    {"STENTOR_GATEWAY_KEY_REQUESTS", OPTION_INT, offsetof(GatewayOptions, key_requests),
     "600000", 0, 1000000000, false,
     "the same of an API key"},
    {"STENTOR_WEBHOOK_DNS", OPTION_TEXT, offsetof(GatewayOptions, webhook_dns),
     "", 0, 0, false,
     "name servers that are asked for their names, 192.0.2.1:53,192.0.2.2; empty: the system's"},
    {"STENTOR_CONSOLE_URL", OPTION_TEXT, offsetof(GatewayOptions, console_url),
     "", 0, 0, false,
     "address of the console, https://stentor.example; empty: plain HTTP, and sessions at the loopback only"},
    {"STENTOR_CONSOLE_SESSION_S", OPTION_INT, offsetof(GatewayOptions, console.session_s),
     "43200", 60, 2592000, false,
     "seconds after which a session of the console ends"},
    {"STENTOR_CONSOLE_IDLE_S", OPTION_INT, offsetof(GatewayOptions, console.idle_s),
     "3600", 60, 2592000, false,
     "seconds without a call after which it ends"},
    OIDC_ROWS(GatewayOptions),
    {"STENTOR_GATEWAY_INBOX_ORIGINS", OPTION_TEXT, offsetof(GatewayOptions, inbox_origins),
     "", 0, 0, false,
     "origins of web pages that may call /v1/inbox: https://app.example,https://shop.example, or *; empty: the API's own"},
    {"STENTOR_GATEWAY_INBOX_DEMO", OPTION_BOOL, offsetof(GatewayOptions, inbox_demo),
     "false", 0, 0, false,
     "show /inbox/demo, a page to try the inbox's web components with a token"},
    STORAGE_ROWS(GatewayOptions, "no template assets"),
    HTTP_LIMIT_ROWS("STENTOR_GATEWAY", GatewayOptions),
    ACCESS_LOG_ROW("STENTOR_GATEWAY", GatewayOptions, "1"),
    {"STENTOR_INGEST_CHANNELS", OPTION_TEXT, offsetof(GatewayOptions, channels),
     "email", 0, 0, false,
     "channels that have a vendor, as ingest has it: a trigger or a template for another one is warned of"},
    FIND_ROWS(GatewayOptions),
};
// clang-format on

// ---- configuration ----

// What is shown as it was stored, and replaced.
static void on_entry_taken(void *ctx, Str kind, Str tenant, Str key, const BusMessage *message)
{
    Gateway *g = ctx;
    vendors_api_changed(&g->vendors, kind, tenant, key, message);
    if (str_eq(kind, STR("tenant"))) {
        tenant_api_changed(g->tenants, tenant, message->payload, message->sequence);
    } else if (str_eq(kind, STR("apikey"))) {
        api_keys_api_changed(g->api_keys, tenant, key, message->payload, message->sequence);
    } else if (
        str_eq(kind, STR(CHANNEL_HEALTH_KIND)) && str_eq(tenant, STR(CHANNEL_HEALTH_TENANT))) {
        notification_api_changed(&g->notifications, key, message->payload);
    } else if (str_eq(kind, STR(MAIL_DOMAIN_KIND))) {
        mail_domains_api_changed(g->mail_domains, tenant, key, message->payload, message->sequence);
    } else if (str_eq(kind, STR(WEBHOOK_KIND))) {
        subscriptions_api_changed(
            &g->subscriptions, tenant, key, message->payload, message->sequence);
    } else if (str_eq(kind, STR(LINK_REVOCATION_KIND))) {
        Error err = {0}; // config_entry.h believes it, so there is none
        (void)link_revocations_put(g->revoked, tenant, key, message->payload, &err);
    } else if (str_eq(kind, STR(INBOX_KEYS_KIND))) {
        inbox_keys_changed(g->inbox_keys, tenant, message->payload);
    } else if (str_eq(kind, STR("asset"))) {
        Error err = {0}; // the same
        (void)assets_put(g->assets, tenant, key, message->payload, message->sequence, &err);
    }
}

// ---- readiness ----

// Postgres holds recipients and notifications: while it is away they answer 503 and everything else
// goes on.
const char *gateway_unready(void *ctx)
{
    const Gateway *g = ctx;
    return configured_unready(&g->configured);
}

static bool is_ready(void *state, Buf *reason)
{
    const char *why = gateway_unready(state);
    return why == NULL || (buf_cstr(reason, why) && false);
}

// ---- stopping ----

static void on_part_closed(void *ctx)
{
    Gateway *g = ctx;
    g->closing--;
}

static void on_tick_closed(uv_handle_t *handle)
{
    const Gateway *g = handle->data;
    service_stopped(g->service);
}

static void advance_stop(Gateway *g)
{
    // A connection from before the stop may still bring its last request.
    if (g->phase == PHASE_DRAINING && g->closing == 0 && http_server_idle(g->server)) {
        g->phase = PHASE_FREEING;
        g->closing = 9;
        find_store_close(&g->find_store, on_part_closed, g);
        people_wait_free(g->inbox_wait, on_part_closed, g);
        asset_objects_close(g->objects, on_part_closed, g);
        attachment_places_close(g->places, on_part_closed, g);
        people_wait_free(g->wait, on_part_closed, g);
        configured_stop(&g->configured, on_part_closed, g);
        http_server_free(g->server, on_part_closed, g);
        dns_free(g->subscriptions.target.dns, on_part_closed, g);
        oidc_free(g->access.console.oidc, on_part_closed, g);
    }
    if (g->phase == PHASE_FREEING && g->closing == 0 && g->suppressions.reading == 0 &&
        g->dead_letters.scans.count == 0 && g->why.scans.open == 0 && access_api_idle(&g->access)) {
        g->phase = PHASE_STOPPED;
        uv_close((uv_handle_t *)&g->tick, on_tick_closed);
    }
}

static void on_timer_tick(uv_timer_t *timer)
{
    ticks_keep(timer);
    Gateway *g = timer->data;
    suppressions_list_tick(&g->suppressions);
    dead_letters_api_tick(&g->dead_letters);
    stream_scans_tick(&g->why.scans);
    idempotency_tick(&g->idempotency);
    attachments_tick(&g->attachments, uv_now(timer->loop));
    key_usage_tick(g->key_usage, uv_now(timer->loop));
    access_api_tick(&g->access);
    advance_stop(g);
}

static void begin_stop(void *state)
{
    Gateway *g = state;
    g->phase = PHASE_DRAINING;
    key_usage_flush(g->key_usage);
    g->closing = 7 + (g->find != NULL);
    if (g->find != NULL) {
        find_projector_stop(g->find, on_part_closed, g);
    }
    live_stop(g->live, on_part_closed, g);
    job_runner_stop(g->jobs, on_part_closed, g);
    reply_releases_stop(g->reply_releases, on_part_closed, g);
    feed_projector_stop(g->feed, on_part_closed, g);
    inbox_duties_stop(g->duties, on_part_closed, g);
    tenant_events_stop(g->tenant_events, on_part_closed, g);
    http_server_stop(g->server, on_part_closed, g);
    (void)uv_timer_start(&g->tick, on_timer_tick, DRAIN_TICK_MS, DRAIN_TICK_MS);
}

// ---- life ----

static void build_preferences(Gateway *g)
{
    g->preferences = (PreferencesPublic){
        .parts =
            {service_bus(g->service), service_pool(g->service), g->keyring, g->wait, g->audit,
             g->configured.suppressions},
        .revoked = g->revoked,
        .unready = gateway_unready,
        .unready_ctx = g,
    };
    preferences_public_init(
        &g->preferences, service_master_key(g->service), service_metrics(g->service));
}

static bool may_do_duties(void *ctx)
{
    const Gateway *g = ctx;
    return feed_projector_active(g->feed);
}

static void on_feed_committed(void *ctx)
{
    Gateway *g = ctx;
    inbox_duties_soon(g->duties);
}

static void build_inbox(Gateway *g)
{
    Bus *bus = service_bus(g->service);
    DbPool *pool = service_pool(g->service);
    Metrics *metrics = service_metrics(g->service);
    const MasterKey *master = service_master_key(g->service);
    g->feed = feed_projector_new(&(FeedProjectorOptions){
        .bus = bus,
        .pool = pool,
        .database_url = service_database_url(g->service),
        .metrics = metrics,
        .on_committed = on_feed_committed,
        .ctx = g,
    });
    g->duties = inbox_duties_new(bus, pool, metrics, may_do_duties, g);
    g->inbox_tokens = (InboxTokens){pool, g->keyring, master};
    inbox_tokens_add(&g->api, &g->inbox_tokens);
    g->inbox_keys_api = (InboxKeysApi){bus, service_master_key(g->service), g->inbox_keys};
    inbox_keys_api_add(&g->api, &g->inbox_keys_api);
    g->inbox_wait = people_wait_new_for(pool, &inbox_position_sql);
    g->live = live_new(&(LiveOptions){
        bus, pool, g->inbox_wait, g->configured.auth, g->configured.catalog, metrics,
        service_loop(g->service)});
    live_api_add(&g->api, g->live);
    g->inbox = (InboxPublic){
        .bus = bus,
        .pool = pool,
        .keyring = g->keyring,
        .master = master,
        .catalog = g->configured.catalog,
        .origins = &g->inbox_origins,
        .preferences = &g->preferences.parts,
        .keys = g->inbox_keys,
        .wait = g->inbox_wait,
        .streams = live_inbox(g->live),
        .unready = gateway_unready,
        .unready_ctx = g,
    };
    inbox_public_init(&g->inbox, metrics);
}

static void build_parts(Gateway *g, const TenantMembers *members)
{
    Bus *bus = service_bus(g->service);
    DbPool *pool = service_pool(g->service);
    api_metrics_init(&g->metrics, service_metrics(g->service), "stentor_gateway_refused_total");
    vendors_api_init(&g->vendors, bus);
    subscriptions_api_init(&g->subscriptions, bus, pool, service_master_key(g->service));
    g->configured.on_taken = on_entry_taken;
    g->configured.ctx = g;
    configured_init(&g->configured, bus, service_metrics(g->service), "gateway");
    g->keyring = keyring_new(pool, service_master_key(g->service), &(KeyringOptions){0});
    g->wait = people_wait_new(pool);
    g->audit = audit_log_new(bus);
    g->key_usage = key_usage_new(pool);
    g->reply_releases = reply_releases_new(
        bus, g->audit, service_master_key(g->service), service_metrics(g->service));
    g->tenant_events = tenant_events_new(
        bus, service_master_key(g->service), members, service_metrics(g->service));
}

static void build_find(Gateway *g, const GatewayOptions *o)
{
    find_store_open(&g->find_store, g->service, &o->find);
    if (o->find.on) {
        g->find = find_projector_new(&(FindProjectorOptions){
            .bus = service_bus(g->service),
            .pool = g->find_store.index,
            .database_url = g->find_store.index_url,
            .master = service_master_key(g->service),
            .metrics = service_metrics(g->service),
            .days = o->find.days,
        });
    }
}

static bool read_options(
    const GatewayOptions *o, TenantMembers *members, ChannelSet *delivered, Error *err)
{
    if (!tenant_members_parse(str_from(o->tenant_members), members, err)) {
        return error_wrap(err, "STENTOR_GATEWAY_TENANT_MEMBERS");
    }
    return channel_set_parse(str_from(o->channels), delivered, err) ||
           error_wrap(err, "STENTOR_INGEST_CHANNELS");
}

// Template assets and web files are for everyone, a preference page is for whoever has its link, an
// inbox for whoever has its token; all else needs a key.
static bool admit(void *ctx, HttpRequest *request)
{
    Gateway *g = ctx;
    if (preferences_is_path(request->path)) {
        request->route = "/v1/preferences/{}";
        return preferences_public_admit(&g->preferences, request);
    }
    if (inbox_is_path(request->path)) {
        request->route = "/v1/inbox";
        return inbox_public_admit(&g->inbox, request);
    }
    if (console_is_path(request->path)) {
        return console_public_admit(&g->access.console, request);
    }
    if (web_is_path(request->path)) {
        return web_files_admit(request);
    }
    return asset_is_path(request->path) ? assets_public_admit(request)
                                        : api_admit(&g->api, request);
}

static void handle(void *ctx, HttpRequest *request)
{
    Gateway *g = ctx;
    if (inbox_is_path(request->path)) {
        inbox_public_handle(&g->inbox, request);
    } else if (preferences_is_path(request->path)) {
        preferences_public_handle(&g->preferences, request);
    } else if (console_is_path(request->path)) {
        console_public_handle(&g->access.console, request);
    } else if (asset_is_path(request->path)) {
        assets_public_handle(&g->assets_public, request);
    } else if (web_is_path(request->path)) {
        web_files_handle(&g->web, request);
    } else {
        api_handle(&g->api, request);
    }
}

static void free_assets(Gateway *g)
{
    assets_free(g->assets);
    link_revocations_free(g->revoked);
    inbox_keys_free(g->inbox_keys);
    arena_free(g->arena);
}

static void on_places_closed(void *ctx)
{
    attachment_places_free(ctx);
}

static void on_objects_closed(void *ctx)
{
    asset_objects_free(ctx);
}

static void on_nothing_left(void *ctx)
{
    (void)ctx;
}

// Where tenants' webhooks may go.
static bool open_target(
    SubscriptionTarget *target, const GatewayOptions *o, uv_loop_t *loop, Error *err)
{
    target->guard = (HttpGuard){.tenant = true};
    if (!guard_allow(&target->guard, str_from(o->webhook_addresses), err)) {
        return error_wrap(err, "STENTOR_WEBHOOK_ADDRESSES");
    }
    target->dns = dns_new(loop, o->webhook_dns[0] != '\0' ? o->webhook_dns : NULL, err);
    return target->dns != NULL || error_wrap(err, "STENTOR_WEBHOOK_DNS");
}

// How people get to the console.
static bool open_signing_in(Gateway *g, const GatewayOptions *o, Error *err)
{
    return sessions_origin(o->console_url, &g->console_origin, err) &&
           oidc_new(
               service_loop(g->service), &o->oidc, service_master_key(g->service),
               g->console_origin, &g->access.console.oidc, err);
}

static bool open_parts(Gateway *g, const GatewayOptions *o, Error *err)
{
    uv_loop_t *loop = service_loop(g->service);
    HttpServerOptions http = {
        .bind = o->bind,
        .port = (int)o->port,
        .body_max = (size_t)o->body_max,
        .limits = o->limits,
        .option_prefix = "STENTOR_GATEWAY",
        .admit = admit,
        .handler = handle,
        .ctx = g,
    };
    if (!public_url_read(o->public_url, g->arena, &g->public_url, err)) {
        return false;
    }
    if (!inbox_origins_parse(str_from(o->inbox_origins), &g->inbox_origins, err)) {
        return error_wrap(err, "STENTOR_GATEWAY_INBOX_ORIGINS");
    }
    g->objects = asset_objects_new(loop, &o->storage, err);
    if (g->objects == NULL) {
        return error_wrap(err, "STENTOR_STORAGE_URL");
    }
    g->places = attachment_places_new(loop, o->attachment_places, err);
    g->server = g->places != NULL ? http_server_new(loop, &http, err) : NULL;
    if (g->server == NULL) {
        asset_objects_close(g->objects, on_objects_closed, g->objects);
    }
    if (g->server == NULL && g->places != NULL) {
        attachment_places_close(g->places, on_places_closed, g->places);
    }
    return g->server != NULL;
}

// What an option can make fail; nothing is handled before the loop runs.
static bool open_server(Gateway *g, const GatewayOptions *o, Error *err)
{
    SubscriptionTarget *target = &g->subscriptions.target;
    if (!open_target(target, o, service_loop(g->service), err)) {
        return false;
    }
    bool signing = open_signing_in(g, o, err);
    bool ok = signing && open_parts(g, o, err);
    if (!ok) {
        dns_free(target->dns, on_nothing_left, NULL);
    }
    if (!ok && signing) {
        oidc_free(g->access.console.oidc, on_nothing_left, NULL);
    }
    return ok;
}

static bool start(Service *service, const void *options, void **ret_state, Error *err)
{
    const GatewayOptions *o = options;
    TenantMembers members;
    ChannelSet delivered = 0;
    if (!read_options(o, &members, &delivered, err)) {
        service_wrong_options(service);
        return false;
    }
    Gateway *g = xcalloc(1, sizeof *g);
    g->service = service;
    g->arena = arena_new(0);
    g->assets = assets_new();
    g->revoked = link_revocations_new();
    g->inbox_keys = inbox_keys_new(service_master_key(service));
    if (!open_server(g, o, err)) {
        if (g->places == NULL) {
            service_wrong_options(service);
        }
        free_assets(g);
        free(g);
        return false;
    }
    build_parts(g, &members);
    build_find(g, o);
    build_preferences(g);
    gateway_routes_build(g, o, delivered);
    build_inbox(g);
    g->web = (WebFiles){.demo = o->inbox_demo};
    g->tick.data = g;
    (void)uv_timer_init(service_loop(service), &g->tick);
    ticks_start(&g->tick, on_timer_tick, TICK_MS);
    LOG(LOG_INFO, "listening for requests", log_text("bind", o->bind),
        log_int("port", http_server_port(g->server)));
    *ret_state = g;
    return true;
}

static void free_gateway(void *state)
{
    Gateway *g = state;
    allowance_done(&g->allowance);
    audit_log_free(g->audit);
    reply_releases_free(g->reply_releases);
    tenant_events_free(g->tenant_events);
    feed_projector_free(g->feed);
    find_projector_free(g->find);
    inbox_duties_free(g->duties);
    live_free(g->live);
    tenant_api_free(g->tenants);
    api_keys_api_free(g->api_keys);
    key_usage_free(g->key_usage);
    mail_domains_api_free(g->mail_domains);
    keyring_free(g->keyring);
    configured_done(&g->configured);
    asset_objects_free(g->objects);
    attachment_places_free(g->places);
    vendors_api_done(&g->vendors);
    subscriptions_api_done(&g->subscriptions);
    dead_letters_api_done(&g->dead_letters);
    templates_api_done(&g->templates);
    job_runner_free(g->jobs);
    free_assets(g);
    free(g);
}

static void print_routes(void *state, Buf *out)
{
    api_print_routes(&((const Gateway *)state)->api, out);
}

const ServiceSpec gateway_service = {
    .name = "stentor-gateway",
    .summary =
        "manages recipients, templates, tenants, keys, triggers, vendors and suppressions, shows "
        "notifications and template assets",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof OPTIONS[0],
    .options_size = sizeof(GatewayOptions),
    .wants_database = true,
    .wants_master_key = true,
    .start = start,
    .ready = is_ready,
    .routes = print_routes,
    .stop = begin_stop,
    .free = free_gateway,
};
