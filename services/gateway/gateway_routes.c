// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/gateway_state.h"
#include "services/gateway/tenants/key_expiry.h"

static void build_files(Gateway *g, const GatewayOptions *o)
{
    g->assets_api = (AssetsApi){service_bus(g->service), g->assets, g->objects, g->public_url};
    assets_api_add(&g->api, &g->assets_api);
    g->attachments = (AttachmentsApi){
        .objects = g->objects,
        .master = service_master_key(g->service),
        .places = g->places,
        .bytes_max = o->attachment_max,
    };
    attachments_api_add(&g->api, &g->attachments);
    assets_public_init(&g->assets_public, g->objects, g->assets, service_metrics(g->service));
}

static void build_operating(Gateway *g)
{
    g->dead_letters = (DeadLettersApi){
        .bus = service_bus(g->service),
        .pool = service_pool(g->service),
        .audit = g->audit,
        .master = service_master_key(g->service),
        .suppressions = g->configured.suppressions,
    };
    dead_letters_api_add(&g->api, &g->dead_letters);
    g->figures = (FiguresApi){service_pool(g->service), g->configured.catalog};
    figures_api_add(&g->api, &g->figures);
    g->jobs = job_runner_new(&(JobRunnerOptions){
        .loop = service_loop(g->service),
        .pool = service_pool(g->service),
        .database_url = service_database_url(g->service),
        .master_key_file = service_master_key_file(g->service),
        .epoch_folder = service_epoch_folder(g->service),
        .nats = service_nats(g->service),
    });
    g->audits = (AuditsApi){service_pool(g->service), g->jobs};
    audits_api_add(&g->api, &g->audits);
    g->shadows = (ShadowsApi){service_pool(g->service), g->jobs, g->configured.catalog};
    shadows_api_add(&g->api, &g->shadows);
}

// Their entry itself says what the key has made: a repeat needs no second place for a secret.
static const char *const OWN_KEYS[] = {
    "/v1/subscriptions", "/v1/subscriptions/{}/rotate-secret", NULL};

static void build_core(Gateway *g, const GatewayOptions *o)
{
    g->api = (Api){
        .auth = g->configured.auth,
        .catalog = g->configured.catalog,
        .metrics = &g->metrics,
        .unready = gateway_unready,
        .unready_ctx = g,
        .usage = g->key_usage,
        .allowance = &g->allowance,
        .sessions = {service_pool(g->service), g->console_origin},
        .idempotency = &g->idempotency,
    };
    g->idempotency = (Idempotency){
        .pool = service_pool(g->service),
        .master = service_master_key(g->service),
        .own = OWN_KEYS,
        .lease_ms = o->key_lease_ms,
    };
    allowance_init(&g->allowance, o->tenant_requests, o->key_requests);
    g->access.console.times = o->console;
    page_keys_derive(service_master_key(g->service), &g->api.page_keys);
    api_audit_init(&g->api.audit, g->audit, service_master_key(g->service), "stentor-gateway");
}

// Recipients, and what was sent to them.
static void build_notifications(Gateway *g)
{
    Bus *bus = service_bus(g->service);
    g->people =
        (RecipientsApi){bus, service_pool(g->service), g->keyring, g->wait, g->configured.catalog};
    recipients_api_add(&g->api, &g->people);
    g->notifications.pools = (NotificationPools){
        service_pool(g->service), g->find_store.history, &g->notifications.queue};
    notification_api_add(&g->api, &g->notifications);
    why_api_init(
        &g->why, &(WhyOptions){
                     .bus = bus,
                     .pools = g->notifications.pools,
                     .master = service_master_key(g->service),
                     .catalog = g->configured.catalog,
                     .suppressions = g->configured.suppressions,
                     .waits = g->notifications.waits,
                     .keyring = g->keyring,
                     .audit = g->audit,
                 });
    g->notifications.why = &g->why.reader;
    why_api_add(&g->api, &g->why);
    g->scheduled = (ScheduledApi){service_pool(g->service)};
    scheduled_api_add(&g->api, &g->scheduled);
    g->find_context = (FindContext){
        &g->find_store, service_master_key(g->service), g->notifications.waits,
        service_pool(g->service), g->find};
    find_api_add(&g->api, &g->find_context);
    g->orders = (OrdersApi){g->find_store.history, &g->find_context};
    orders_api_add(&g->api, &g->orders);
}

// What decides and renders.
static void build_entries(Gateway *g, const GatewayOptions *o, ChannelSet delivered)
{
    Bus *bus = service_bus(g->service);
    g->templates = (TemplatesApi){
        .bus = bus,
        .catalog = g->configured.catalog,
        .assets = g->assets,
        .public_url = g->public_url,
        .preview_cpu_us = o->preview_cpu_ms * 1000,
        .delivered = delivered,
        .routes = g->configured.routes,
        .master = service_master_key(g->service),
    };
    templates_api_add(&g->api, &g->templates);
    g->suppressions = (SuppressionsApi){
        .bus = bus,
        .audit = g->audit,
        .hash_keys = master_hash_keys(service_master_key(g->service)),
        .known = g->configured.suppressions,
    };
    suppressions_api_add(&g->api, &g->suppressions);
    g->link_revocations = (LinkRevocationsApi){bus, g->suppressions.hash_keys};
    link_revocations_api_add(&g->api, &g->link_revocations);
    const Configured *known = &g->configured;
    g->triggers = (TriggersApi){bus,       known->triggers, known->catalog, known->resolvers,
                                delivered, known->routes};
    triggers_api_add(&g->api, &g->triggers);
    g->resolvers = (ResolversApi){bus, known->resolvers, known->triggers};
    resolvers_api_add(&g->api, &g->resolvers);
}

static void build_tenants(Gateway *g)
{
    Bus *bus = service_bus(g->service);
    g->tenants = tenant_api_new(bus);
    tenant_api_add(&g->api, g->tenants);
    g->api_keys = api_keys_api_new(
        bus, g->configured.auth, g->configured.catalog,
        &(KeyLastUse){service_pool(g->service), g->key_usage});
    api_keys_api_add(&g->api, g->api_keys);
    key_expiry_register(service_metrics(g->service), g->configured.auth);
    g->inbound_keys = (InboundKeysApi){bus, service_master_key(g->service)};
    inbound_keys_api_add(&g->api, &g->inbound_keys);
    g->replies = (RepliesApi){bus, service_master_key(g->service), service_pool(g->service)};
    replies_api_add(&g->api, &g->replies);
    g->mail_domains = mail_domains_api_new(bus);
    mail_domains_api_add(&g->api, g->mail_domains);
    vendors_api_add(&g->api, &g->vendors);
    subscriptions_api_add(&g->api, &g->subscriptions);
    access_api_add(&g->api, &g->access, bus);
}

void gateway_routes_build(Gateway *g, const GatewayOptions *o, ChannelSet delivered)
{
    build_core(g, o);
    build_notifications(g);
    build_entries(g, o, delivered);
    build_tenants(g);
    build_files(g, o);
    build_operating(g);
    openapi_api_add(&g->api);
}
