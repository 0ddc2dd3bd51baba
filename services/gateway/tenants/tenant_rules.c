// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/tenants/tenant_rules.h"

#include <string.h>

#include "common/model/sender_domain.h"
#include "services/gateway/tenants/tenant_fields.h"

typedef Stentor__V1__Tenant Tenant;

// Absent and zero for both mean the same.
static bool same_limits(const Stentor__V1__Limits *a, const Stentor__V1__Limits *b)
{
    static const Stentor__V1__Limits none = STENTOR__V1__LIMITS__INIT;
    a = a != NULL ? a : &none;
    b = b != NULL ? b : &none;
    return a->per_minute == b->per_minute && a->per_day == b->per_day;
}

static const Stentor__V1__Limits *limits_on(
    Stentor__V1__ChannelLimits *const *channels, size_t count, Stentor__V1__Channel channel)
{
    for (size_t i = 0; i < count; i++) {
        if (channels[i]->channel == channel) {
            return channels[i]->limits;
        }
    }
    return NULL;
}

static bool same_tenant_limits(const Tenant *a, const Tenant *b)
{
    bool same = same_limits(a->tenant_limits, b->tenant_limits);
    for (int i = 0; i < CHANNEL_COUNT; i++) {
        Stentor__V1__Channel channel = (Stentor__V1__Channel)i;
        same = same && same_limits(
                           limits_on(a->channel_limits, a->n_channel_limits, channel),
                           limits_on(b->channel_limits, b->n_channel_limits, channel));
    }
    return same;
}

static bool same_recipient_limits(const Tenant *a, const Tenant *b)
{
    bool same = same_limits(a->recipient_limits, b->recipient_limits);
    for (int i = 0; i < CHANNEL_COUNT; i++) {
        Stentor__V1__Channel channel = (Stentor__V1__Channel)i;
        same = same &&
               same_limits(
                   limits_on(a->recipient_channel_limits, a->n_recipient_channel_limits, channel),
                   limits_on(b->recipient_channel_limits, b->n_recipient_channel_limits, channel));
    }
    return same;
}

static bool same_domains(const Tenant *a, const Tenant *b)
{
    if (a->n_sender_domains != b->n_sender_domains) {
        return false;
    }
    for (size_t i = 0; i < a->n_sender_domains; i++) {
        if (strcmp(a->sender_domains[i], b->sender_domains[i]) != 0) {
            return false;
        }
    }
    return true;
}

static bool same_retention(const Tenant *a, const Tenant *b)
{
    char classes[2][CATEGORY_COUNT] = {{0}};
    const Tenant *both[] = {a, b};
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < both[side]->n_retention; i++) {
            unsigned category = (unsigned)both[side]->retention[i]->category;
            if (category < CATEGORY_COUNT) {
                classes[side][category] = both[side]->retention[i]->class_[0];
            }
        }
    }
    return memcmp(classes[0], classes[1], sizeof classes[0]) == 0;
}

// NULL: none.
static const char *changed_field(const Tenant *stored, unsigned named, const Tenant *wanted)
{
    const int suppress = STENTOR__V1__OVER_LIMIT__OVER_LIMIT_SUPPRESS;
    const struct {
        TenantField field;
        const char *name;
        bool same;
    } fields[] = {
        {TENANT_SUSPENDED, "suspended", stored->suspended == wanted->suspended},
        {TENANT_STATUS, "status",
         strcmp(tenant_status_name(stored), tenant_status_name(wanted)) == 0},
        {TENANT_SENDER_DOMAINS, "sender_domains", same_domains(stored, wanted)},
        {TENANT_LIMITS, "limits", same_tenant_limits(stored, wanted)},
        {TENANT_RECIPIENT_LIMITS, "recipient_limits", same_recipient_limits(stored, wanted)},
        {TENANT_OVER_LIMIT, "over_limit",
         ((int)stored->over_limit == suppress) == ((int)wanted->over_limit == suppress)},
        {TENANT_RETENTION, "retention", same_retention(stored, wanted)},
        {TENANT_REGION, "region", strcmp(stored->region, wanted->region) == 0},
        {TENANT_POLICY, "notification_policy", tenant_policy_is_same(stored, wanted)},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if ((named & fields[i].field) != 0 && !fields[i].same) {
            return fields[i].name;
        }
    }
    return NULL;
}

// Those that are not in `changed` become the stored ones.
static void keep_fields(const Tenant *stored, unsigned changed, Tenant *wanted)
{
    if ((changed & (TENANT_SUSPENDED | TENANT_STATUS)) == 0) {
        wanted->suspended = stored->suspended;
        wanted->status = stored->status;
    }
    if ((changed & TENANT_REGION) == 0) {
        wanted->region = stored->region;
    }
    if ((changed & TENANT_POLICY) == 0) {
        wanted->notification_policy = stored->notification_policy;
    }
    if ((changed & TENANT_SENDER_DOMAINS) == 0) {
        wanted->sender_domains = stored->sender_domains;
        wanted->n_sender_domains = stored->n_sender_domains;
    }
    if ((changed & TENANT_LIMITS) == 0) {
        wanted->tenant_limits = stored->tenant_limits;
        wanted->channel_limits = stored->channel_limits;
        wanted->n_channel_limits = stored->n_channel_limits;
    }
    if ((changed & TENANT_RECIPIENT_LIMITS) == 0) {
        wanted->recipient_limits = stored->recipient_limits;
        wanted->recipient_channel_limits = stored->recipient_channel_limits;
        wanted->n_recipient_channel_limits = stored->n_recipient_channel_limits;
    }
    if ((changed & TENANT_OVER_LIMIT) == 0) {
        wanted->over_limit = stored->over_limit;
    }
    if ((changed & TENANT_RETENTION) == 0) {
        wanted->retention = stored->retention;
        wanted->n_retention = stored->n_retention;
    }
}

// Also the wide and the small '@' (U+FF20, U+FE6B), which look like it.
static bool has_at(const char *name)
{
    return strchr(name, '@') != NULL || strstr(name, "\xef\xbc\xa0") != NULL ||
           strstr(name, "\xef\xb9\xab") != NULL;
}

static bool check_sender(const Tenant *stored, const Tenant *wanted, FieldError *err)
{
    Str address = str_from(wanted->sender_address);
    const SenderRule rule = {
        stored->sender_domains, stored->n_sender_domains, str_from(stored->sender_address)};
    bool same_name = strcmp(wanted->sender_name, stored->sender_name) == 0;
    if (address.len > 0 && !sender_may_use(&rule, address)) {
        Str domain = str_slice(sender_domain_of(address), 0, 60);
        return field_error(
            err, "sender_address", "the operator has not verified domain '" STR_FMT "'",
            STR_ARG(domain));
    }
    // Mail programs show the name alone: one that is an address passes for the sender's.
    return same_name || !has_at(wanted->sender_name) ||
           field_error(err, "sender_name", "a name has no '@'");
}

TenantVerdict tenant_rules_apply(
    const Tenant *stored, unsigned named, Tenant *wanted, FieldError *err)
{
    Tenant none;
    stentor__v1__tenant__init(&none);
    stored = stored != NULL ? stored : &none;
    const char *changed = changed_field(stored, named, wanted);
    if (changed != NULL) {
        (void)field_error(
            err, changed,
            "only the operator changes it; leave it out, or repeat the value that GET shows");
        return TENANT_OPERATORS;
    }
    keep_fields(stored, 0, wanted);
    return check_sender(stored, wanted, err) ? TENANT_FINE : TENANT_UNVERIFIED;
}

// ---- the operator's ----

static bool has_domain(const Tenant *tenant, Str domain)
{
    for (size_t i = 0; i < tenant->n_sender_domains; i++) {
        if (str_eq(str_from(tenant->sender_domains[i]), domain)) {
            return true;
        }
    }
    return false;
}

static bool add_domain(Tenant *tenant, Str domain, Arena *arena, FieldError *err)
{
    if (domain.len == 0 || has_domain(tenant, domain)) {
        return true;
    }
    if (tenant->n_sender_domains >= SENDER_DOMAINS_MAX) {
        return field_error(
            err, "sender_domains", "tenant '%s' has %d sender domains already", tenant->tenant,
            (int)SENDER_DOMAINS_MAX);
    }
    char **domains = arena_array(arena, tenant->n_sender_domains + 1, sizeof *domains);
    for (size_t i = 0; i < tenant->n_sender_domains; i++) {
        domains[i] = tenant->sender_domains[i];
    }
    domains[tenant->n_sender_domains++] = arena_cstr(arena, domain);
    tenant->sender_domains = domains;
    return true;
}

// With a first domain the rule of entries without any ends, so what it covered is added too: mails
// with that From are on their way.
static bool adopt_sender(const Tenant *stored, Tenant *wanted, Arena *arena, FieldError *err)
{
    bool ruled = stored == NULL || stored->n_sender_domains > 0;
    return ruled ||
           add_domain(wanted, sender_domain_of(str_from(stored->sender_address)), arena, err);
}

static bool is_covered(const Tenant *tenant)
{
    SenderRule rule = {tenant->sender_domains, tenant->n_sender_domains, STR_EMPTY};
    return sender_may_use(&rule, str_from(tenant->sender_address));
}

bool tenant_rules_operate(
    const Tenant *stored, unsigned named, bool sets_sender, Arena *arena, Tenant *wanted,
    FieldError *err)
{
    if (stored != NULL) {
        keep_fields(stored, named, wanted);
    }
    if (!sets_sender || wanted->sender_address[0] == '\0' || is_covered(wanted)) {
        return true;
    }
    return adopt_sender(stored, wanted, arena, err) &&
           add_domain(wanted, sender_domain_of(str_from(wanted->sender_address)), arena, err);
}

static void copy_stored(const Tenant *stored, Tenant *wanted)
{
    if (stored != NULL) {
        int64_t updated_at_us = wanted->updated_at_us;
        *wanted = *stored;
        wanted->updated_at_us = updated_at_us;
    }
}

bool tenant_rules_add_domain(
    const Tenant *stored, Str domain, Arena *arena, Tenant *wanted, FieldError *err)
{
    copy_stored(stored, wanted);
    return adopt_sender(stored, wanted, arena, err) && add_domain(wanted, domain, arena, err);
}

bool tenant_rules_remove_domain(
    const Tenant *stored, Str domain, Arena *arena, Tenant *wanted, FieldError *err)
{
    copy_stored(stored, wanted);
    if (!adopt_sender(stored, wanted, arena, err)) {
        return false;
    }
    size_t kept = 0;
    char **domains = arena_array(arena, wanted->n_sender_domains + 1, sizeof *domains);
    for (size_t i = 0; i < wanted->n_sender_domains; i++) {
        if (!str_eq(str_from(wanted->sender_domains[i]), domain)) {
            domains[kept++] = wanted->sender_domains[i];
        }
    }
    if (kept == wanted->n_sender_domains) {
        return field_error(
            err, "domain", "tenant '%s' has no sender domain '" STR_FMT "'", wanted->tenant,
            STR_ARG(domain));
    }
    wanted->sender_domains = domains;
    wanted->n_sender_domains = kept;
    if (!is_covered(wanted)) {
        static char none[] = "";
        wanted->sender_address = none;
        wanted->sender_name = none;
    }
    return true;
}
