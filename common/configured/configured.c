// SPDX-License-Identifier: Apache-2.0
#include "common/configured/configured.h"

#include <stdio.h>

#include "common/bus/events/suppression_event.h"
#include "common/config/config_mirror.h"

// ---- which kind goes where ----

static bool take_tenant(Configured *c, Str tenant, Str key, const BusMessage *message, Error *err)
{
    (void)key; // always "self"
    return catalog_tenant_changed(c->catalog, tenant, message->payload, err);
}

static void lose_tenant(Configured *c, Str tenant, Str key, uint64_t sequence)
{
    (void)key, (void)sequence;
    catalog_tenant_unreadable(c->catalog, tenant);
}

static bool take_template(Configured *c, Str tenant, Str key, const BusMessage *message, Error *err)
{
    return catalog_template_changed(c->catalog, tenant, key, message->payload, err);
}

static bool take_key(Configured *c, Str tenant, Str key, const BusMessage *message, Error *err)
{
    return auth_changed(c->auth, tenant, key, message->payload, err);
}

static bool take_suppression(
    Configured *c, Str tenant, Str key, const BusMessage *message, Error *err)
{
    return suppression_apply(c->suppressions, tenant, key, message, err);
}

static void lose_suppression(Configured *c, Str tenant, Str key, uint64_t sequence)
{
    suppression_unreadable(c->suppressions, tenant, key, sequence);
}

static bool take_trigger(Configured *c, Str tenant, Str key, const BusMessage *message, Error *err)
{
    return trigger_match_changed(
        c->triggers, tenant, key, message->payload, message->sequence, err);
}

static void lose_trigger(Configured *c, Str tenant, Str key, uint64_t sequence)
{
    (void)sequence;
    trigger_match_unreadable(c->triggers, tenant, key);
}

static bool take_resolver(Configured *c, Str tenant, Str key, const BusMessage *message, Error *err)
{
    return named_resolvers_changed(
        c->resolvers, tenant, key, message->payload, message->sequence, err);
}

static void lose_resolver(Configured *c, Str tenant, Str key, uint64_t sequence)
{
    (void)sequence;
    named_resolvers_unreadable(c->resolvers, tenant, key);
}

static bool take_credential(
    Configured *c, Str tenant, Str key, const BusMessage *message, Error *err)
{
    return routes_credential_changed(c->routes, tenant, key, message->payload, err);
}

typedef struct Kind {
    const char *name;
    bool (*take)(Configured *c, Str tenant, Str key, const BusMessage *message, Error *err);
    // What the worst is while no message of it can be read; NULL: what was known stays.
    void (*lose)(Configured *c, Str tenant, Str key, uint64_t sequence);
} Kind;

// clang-format off
static const Kind KINDS[] = {
    {"tenant",      take_tenant,      lose_tenant},
    {"template",    take_template,    NULL},
    {"apikey",      take_key,         NULL},
    {"suppression", take_suppression, lose_suppression},
    {"trigger",     take_trigger,     lose_trigger},
    {"resolver",    take_resolver,    lose_resolver},
    {"credential",  take_credential,  NULL},
};
// clang-format on

// NULL: of other services.
static const Kind *find_kind(Str name)
{
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
        if (str_eq(name, str_from(KINDS[i].name))) {
            return &KINDS[i];
        }
    }
    return NULL;
}

static bool on_config_changed(
    void *ctx, Str kind, Str tenant, Str key, const BusMessage *message, Error *err)
{
    Configured *c = ctx;
    const Kind *row = find_kind(kind);
    bool ok = row == NULL || row->take(c, tenant, key, message, err);
    if ((ok || err->kind == ERROR_CONFIG) && c->on_taken != NULL) {
        c->on_taken(c->ctx, kind, tenant, key, message);
    }
    return ok;
}

static void on_config_unreadable(void *ctx, Str kind, Str tenant, Str key, uint64_t sequence)
{
    const Kind *row = find_kind(kind);
    if (row != NULL && row->lose != NULL) {
        row->lose(ctx, tenant, key, sequence);
    }
}

// ---- start and stop ----

static double read_templates(void *ctx)
{
    const Configured *c = ctx;
    return (double)catalog_templates(c->catalog);
}

static double read_suppressions(void *ctx)
{
    const Configured *c = ctx;
    return (double)suppressions_count(c->suppressions);
}

void configured_init(Configured *c, Bus *bus, Metrics *metrics, const char *service)
{
    char name[64];
    c->auth = auth_new();
    c->catalog = catalog_new();
    c->suppressions = suppressions_new();
    c->triggers = trigger_match_new();
    c->resolvers = named_resolvers_new();
    c->routes = routes_new();
    c->mirror = config_mirror_new(bus, on_config_changed, c);
    config_mirror_on_unreadable(c->mirror, on_config_unreadable);
    (void)snprintf(name, sizeof name, "stentor_%s_templates", service);
    metrics_gauge_fn(metrics, name, "", "Templates known", read_templates, c);
    (void)snprintf(name, sizeof name, "stentor_%s_suppressions", service);
    metrics_gauge_fn(metrics, name, "", "Suppressions known", read_suppressions, c);
}

const char *configured_unready(const Configured *c)
{
    return config_mirror_ready(c->mirror) ? NULL : "the configuration has not been read yet";
}

void configured_stop(Configured *c, void (*on_stopped)(void *ctx), void *ctx)
{
    config_mirror_free(c->mirror, on_stopped, ctx);
}

void configured_done(Configured *c)
{
    routes_free(c->routes);
    named_resolvers_free(c->resolvers);
    trigger_match_free(c->triggers);
    suppressions_free(c->suppressions);
    catalog_free(c->catalog);
    auth_free(c->auth);
}
