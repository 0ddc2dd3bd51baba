// SPDX-License-Identifier: Apache-2.0
#include "common/base/id.h"
#include "common/codec/event.h"
#include "common/model/rules/mail_provider.h"
#include "common/request/catalog_internal.h"

static Limits limits_of(const Stentor__V1__Limits *limits)
{
    return limits == NULL ? (Limits){0, 0} : (Limits){limits->per_minute, limits->per_day};
}

static bool take_quiet_hours(TenantSettings *settings, const Stentor__V1__Tenant *entry, Error *err)
{
    if (entry->quiet_hours == NULL) {
        return true;
    }
    uint32_t start = entry->quiet_hours->start_minute;
    uint32_t end = entry->quiet_hours->end_minute;
    QuietHours hours = {
        start < MINUTES_OF_DAY ? (int32_t)start : -1, end < MINUTES_OF_DAY ? (int32_t)end : -1};
    if (!quiet_hours_check(hours, err)) {
        return error_wrap(err, "quiet hours are off");
    }
    settings->gate.quiet_hours = hours;
    return true;
}

static void take_policy(GateTenant *gate, const Stentor__V1__NotificationPolicy *policy)
{
    for (size_t i = 0; policy != NULL && i < policy->n_channels_off; i++) {
        unsigned channel = (unsigned)policy->channels_off[i];
        gate->channels_off |= channel < CHANNEL_COUNT ? 1U << channel : 0;
    }
    for (size_t i = 0; policy != NULL && i < policy->n_categories_off; i++) {
        unsigned category = (unsigned)policy->categories_off[i];
        gate->categories_off |= category < CATEGORY_COUNT ? 1U << category : 0;
    }
}

static void take_channel_limits(
    Limits into[CHANNEL_COUNT], Stentor__V1__ChannelLimits *const *limits, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned channel = (unsigned)limits[i]->channel;
        if (channel < CHANNEL_COUNT) {
            into[channel] = limits_of(limits[i]->limits);
        }
    }
}

// A class that this release does not know counts as a record: kept too long, not too short.
static void take_retention(TenantSettings *settings, const Stentor__V1__Tenant *entry)
{
    for (size_t i = 0; i < entry->n_retention; i++) {
        unsigned category = (unsigned)entry->retention[i]->category;
        RetentionClass class = RETENTION_RECORD;
        (void)retention_class_from_name(str_from(entry->retention[i]->class_), &class);
        if (category > CATEGORY_NONE && category < CATEGORY_COUNT) {
            settings->retention[category] = retention_class_code(class);
        }
    }
}

static bool take_settings(
    TenantSettings *settings, const Stentor__V1__Tenant *entry, Zones *zones, Error *err)
{
    settings->gate = (GateTenant){
        .suspended = entry->suspended,
        .limits = limits_of(entry->tenant_limits),
        .recipient_limits = limits_of(entry->recipient_limits),
        .over_limit = entry->over_limit == STENTOR__V1__OVER_LIMIT__OVER_LIMIT_SUPPRESS
                          ? OVER_LIMIT_SUPPRESS
                          : OVER_LIMIT_DEFER,
        .guardian_routing = (GuardianRouting)entry->guardian_routing,
    };
    settings->deleting =
        entry->suspended && entry->status == STENTOR__V1__TENANT_STATUS__TENANT_STATUS_DELETING;
    take_policy(&settings->gate, entry->notification_policy);
    take_channel_limits(
        settings->gate.channel_limits, entry->channel_limits, entry->n_channel_limits);
    take_channel_limits(
        settings->gate.recipient_channel_limits, entry->recipient_channel_limits,
        entry->n_recipient_channel_limits);
    (void)str_to_c(
        str_from(entry->default_locale), settings->default_locale, sizeof settings->default_locale);
    (void)str_to_c(
        mail_domain_of(str_from(entry->sender_address)), settings->from_domain,
        sizeof settings->from_domain);
    settings->shared_addresses = entry->shared_addresses;
    take_retention(settings, entry);
    settings->events_in_clear = entry->events_in_clear;
    bool hours = take_quiet_hours(settings, entry, err);
    settings->gate.zone = zones_get(zones, str_from(entry->time_zone), err);
    if (settings->gate.zone == NULL) {
        (void)error_wrap(err, "UTC is used instead");
    }
    bool whole = hours && settings->gate.zone != NULL;
    if (!whole && err != NULL) {
        err->kind = ERROR_CONFIG; // used, but for that (config_mirror.h)
    }
    return whole;
}

bool catalog_tenant_changed(Catalog *catalog, Str tenant, Str payload, Error *err)
{
    if (payload.len == 0) {
        (void)map_remove(catalog->tenants, tenant);
        return true;
    }
    Arena *arena = arena_new(0);
    const Stentor__V1__Tenant *entry = (const Stentor__V1__Tenant *)event_unpack(
        &stentor__v1__tenant__descriptor, payload, arena, err);
    bool ok = entry != NULL && catalog_check_tenant(tenant, entry->tenant, err);
    if (ok) {
        TenantSettings *settings = xcalloc(1, sizeof *settings);
        ok = take_settings(settings, entry, catalog->zones, err);
        map_put(catalog->tenants, tenant, settings);
    }
    arena_free(arena);
    return ok;
}

void catalog_tenant_unreadable(Catalog *catalog, Str tenant)
{
    if (map_get(catalog->tenants, tenant) == NULL) {
        TenantSettings *settings = xcalloc(1, sizeof *settings);
        settings->gate.suspended = true;
        map_put(catalog->tenants, tenant, settings);
    }
}

const TenantSettings *catalog_tenant(const Catalog *catalog, Str tenant)
{
    static const TenantSettings nothing_said;
    const TenantSettings *settings = map_get(catalog->tenants, tenant);
    return settings != NULL ? settings : &nothing_said;
}

void catalog_accept_unknown(Catalog *catalog)
{
    catalog->accepts_unknown = true;
}

TenantStanding catalog_standing(const Catalog *catalog, Str tenant)
{
    const TenantSettings *settings = map_get(catalog->tenants, tenant);
    if (settings == NULL) {
        bool known = catalog->accepts_unknown || str_eq(tenant, PLATFORM);
        return known ? STANDING_ACTIVE : STANDING_UNKNOWN;
    }
    if (settings->deleting) {
        return STANDING_DELETING;
    }
    return settings->gate.suspended ? STANDING_SUSPENDED : STANDING_ACTIVE;
}

bool catalog_may_send(const Catalog *catalog, Str tenant, Error *err)
{
    char name[64];
    switch (catalog_standing(catalog, tenant)) {
    case STANDING_ACTIVE:
        return true;
    case STANDING_UNKNOWN:
        (void)str_to_c(tenant, name, sizeof name);
        return error_set(
            err, ERROR_PERMANENT,
            "tenant '%s' is not known (HINT: stentor tenant put %s, then stentor dlq resend --all)",
            name, name);
    case STANDING_DELETING:
        return error_set(
            err, ERROR_PERMANENT, "tenant '" STR_FMT "' is being deleted", STR_ARG(tenant));
    case STANDING_SUSPENDED:
        break;
    }
    return error_set(err, ERROR_PERMANENT, "tenant '" STR_FMT "' is suspended", STR_ARG(tenant));
}

RetentionClass catalog_retention(const Catalog *catalog, Str tenant, Category category)
{
    char own = catalog_tenant(catalog, tenant)->retention[category];
    return own != 0 ? retention_class_from_code(own) : catalog->classes.of[category];
}
