// SPDX-License-Identifier: Apache-2.0
#include "services/cli/doctor/doctor_config.h"

#include "common/api/api_key.h"
#include "common/base/clock.h"
#include "common/base/map.h"
#include "common/codec/event.h"
#include "common/model/sender_domain.h"
#include "services/cli/config/config_walk.h"
#include "stentor/v1/config.pb-c.h"

enum { NAMED_MAX = 5, SOON_DAYS = 14 };

// A count, and the first few of what was counted.
typedef struct Names {
    size_t count;
    const char *text;
    const char *remedy; // for the first one
} Names;

typedef struct Reading {
    Cli *cli;
    Arena *scratch;
    int64_t now_us;
    size_t keys; // in force
    Names without_scopes;
    Names ending;
    Names unknown; // tenants that have a key and no settings
    Map *known;    // tenants that have settings
    size_t tenants;
    Names unverified;
} Reading;

static void add_name(const Reading *reading, Names *names, const char *name, const char *remedy)
{
    Arena *arena = reading->cli->arena;
    if (names->count == 0) {
        names->remedy = remedy;
        names->text = name;
    } else if (names->count < NAMED_MAX) {
        names->text = arena_printf(arena, "%s, %s", names->text, name);
    } else if (names->count == NAMED_MAX) {
        names->text = arena_printf(arena, "%s ...", names->text);
    }
    names->count++;
}

static void note_unknown(Reading *reading, const Stentor__V1__ApiKey *key)
{
    Str tenant = str_from(key->tenant);
    if (str_eq(tenant, STR("platform")) || map_get(reading->known, tenant) != NULL) {
        return;
    }
    map_put(reading->known, tenant, reading); // each is named once
    Arena *arena = reading->cli->arena;
    add_name(
        reading, &reading->unknown, arena_printf(arena, "%.32s", key->tenant),
        arena_printf(arena, "stentor tenant put %.32s", key->tenant));
}

static bool take_key(void *ctx, const BusMessage *message, const char *reason, Error *err)
{
    (void)err;
    Reading *reading = ctx;
    Arena *arena = reading->cli->arena;
    int64_t soon_us = reading->now_us + SOON_DAYS * INT64_C(86400) * 1000000;
    arena_reset(reading->scratch);
    const Stentor__V1__ApiKey *key = (const Stentor__V1__ApiKey *)event_unpack(
        &stentor__v1__api_key__descriptor, message->payload, reading->scratch, NULL);
    if (reason != NULL || key == NULL || key->key_id[0] == '\0' ||
        api_key_is_over(key, reading->now_us)) {
        return true;
    }
    reading->keys++;
    note_unknown(reading, key);
    const char *name = arena_printf(arena, "%.32s/%.64s", key->tenant, key->key_id);
    if (key->n_scopes == 0) {
        add_name(
            reading, &reading->without_scopes, name,
            arena_printf(
                arena, "stentor apikey rotate %.64s --tenant %.32s --scopes send", key->key_id,
                key->tenant));
    }
    if (key->expires_at_us != 0 && key->expires_at_us <= soon_us && key->revoked_at_us == 0) {
        add_name(
            reading, &reading->ending, name,
            arena_printf(
                arena, "stentor apikey rotate %.64s --tenant %.32s", key->key_id, key->tenant));
    }
    return true;
}

static bool take_tenant(void *ctx, const BusMessage *message, const char *reason, Error *err)
{
    (void)err;
    Reading *reading = ctx;
    Arena *arena = reading->cli->arena;
    arena_reset(reading->scratch);
    const Stentor__V1__Tenant *tenant = (const Stentor__V1__Tenant *)event_unpack(
        &stentor__v1__tenant__descriptor, message->payload, reading->scratch, NULL);
    if (reason != NULL || tenant == NULL || tenant->tenant[0] == '\0') {
        return true;
    }
    reading->tenants++;
    map_put(reading->known, str_from(tenant->tenant), reading);
    const SenderRule rule = {tenant->sender_domains, tenant->n_sender_domains, STR_EMPTY};
    Str address = str_from(tenant->sender_address);
    if (address.len > 0 && !sender_may_use(&rule, address)) {
        Str domain = str_slice(sender_domain_of(address), 0, 100);
        add_name(
            reading, &reading->unverified,
            arena_printf(arena, "%.32s (" STR_FMT ")", tenant->tenant, STR_ARG(domain)),
            arena_printf(
                arena, "stentor tenant sender-domain add %.32s " STR_FMT, tenant->tenant,
                STR_ARG(domain)));
    }
    return true;
}

static ConfigRemark remark_keys(const Reading *reading)
{
    Arena *arena = reading->cli->arena;
    const Names *old = &reading->without_scopes;
    const Names *ending = &reading->ending;
    const Names *unknown = &reading->unknown;
    if (unknown->count > 0) {
        return (ConfigRemark){
            true,
            arena_printf(
                arena,
                "%zu tenant%s with a key and without settings: ingest refuses what it sends: %s "
                "(HINT: %s)",
                unknown->count, unknown->count == 1 ? "" : "s", unknown->text, unknown->remedy)};
    }
    if (old->count > 0) {
        return (ConfigRemark){
            true, arena_printf(
                      arena, "%zu made before there were scopes may do everything: %s (HINT: %s)",
                      old->count, old->text, old->remedy)};
    }
    if (ending->count > 0) {
        return (ConfigRemark){
            true, arena_printf(
                      arena, "%zu expire within %d days: %s (HINT: %s)", ending->count,
                      (int)SOON_DAYS, ending->text, ending->remedy)};
    }
    return (ConfigRemark){false, arena_printf(arena, "%zu in force", reading->keys)};
}

static ConfigRemark remark_senders(const Reading *reading)
{
    Arena *arena = reading->cli->arena;
    const Names *names = &reading->unverified;
    if (names->count > 0) {
        return (ConfigRemark){
            true,
            arena_printf(
                arena, "%zu send from a domain that the operator has not verified: %s (HINT: %s)",
                names->count, names->text, names->remedy)};
    }
    return (ConfigRemark){
        false, arena_printf(
                   arena, "%zu tenant%s, each From of a verified domain", reading->tenants,
                   reading->tenants == 1 ? "" : "s")};
}

bool doctor_config_read(
    Session *session, Cli *cli, ConfigRemark *ret_keys, ConfigRemark *ret_senders, Error *err)
{
    Reading reading = {
        .cli = cli, .scratch = arena_new(0), .now_us = clock_now_us(), .known = map_new(NULL)};
    bool ok =
        config_walk(session, &(ConfigPart){.filter = "cfg.tenant.>"}, take_tenant, &reading, err) &&
        config_walk(session, &(ConfigPart){.filter = "cfg.apikey.>"}, take_key, &reading, err);
    arena_free(reading.scratch);
    map_free(reading.known);
    if (ok) {
        *ret_keys = remark_keys(&reading);
        *ret_senders = remark_senders(&reading);
    }
    return ok;
}
