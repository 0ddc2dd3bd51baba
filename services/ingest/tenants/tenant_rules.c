// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/tenants/tenant_rules.h"

#include <string.h>

#include "common/model/sender_domain.h"

typedef Stentor__V1__Tenant Tenant;

// Absent, and zero for both, say the same.
static bool same_limits(const Stentor__V1__Limits *a, const Stentor__V1__Limits *b)
{
    static const Stentor__V1__Limits none = STENTOR__V1__LIMITS__INIT;
    a = a != NULL ? a : &none;
    b = b != NULL ? b : &none;
    return a->per_minute == b->per_minute && a->per_day == b->per_day;
}

static bool same_policy(const Tenant *a, const Tenant *b)
{
    return (a->over_limit == STENTOR__V1__OVER_LIMIT__OVER_LIMIT_SUPPRESS) ==
           (b->over_limit == STENTOR__V1__OVER_LIMIT__OVER_LIMIT_SUPPRESS);
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

// NULL: none.
static const char *changed_field(const Tenant *stored, unsigned named, const Tenant *wanted)
{
    const struct {
        TenantField field;
        const char *name;
        bool same;
    } fields[] = {
        {TENANT_SUSPENDED, "suspended", stored->suspended == wanted->suspended},
        {TENANT_SENDER_DOMAINS, "sender_domains", same_domains(stored, wanted)},
        {TENANT_LIMITS, "limits", same_limits(stored->tenant_limits, wanted->tenant_limits)},
        {TENANT_RECIPIENT_LIMITS, "recipient_limits",
         same_limits(stored->recipient_limits, wanted->recipient_limits)},
        {TENANT_OVER_LIMIT, "over_limit", same_policy(stored, wanted)},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if ((named & fields[i].field) != 0 && !fields[i].same) {
            return fields[i].name;
        }
    }
    return NULL;
}

static void keep_fields(const Tenant *stored, Tenant *wanted)
{
    wanted->suspended = stored->suspended;
    wanted->sender_domains = stored->sender_domains;
    wanted->n_sender_domains = stored->n_sender_domains;
    wanted->tenant_limits = stored->tenant_limits;
    wanted->recipient_limits = stored->recipient_limits;
    wanted->over_limit = stored->over_limit;
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
            err, "sender_address", "the operator has not verified the domain '" STR_FMT "'",
            STR_ARG(domain));
    }
    // Mail programs show the name alone: one that is an address passes for the sender's.
    return same_name || !has_at(wanted->sender_name) ||
           field_error(err, "sender_name", "a name has no '@'");
}

TenantVerdict tenant_rules_apply(
    const Tenant *stored, unsigned named, Tenant *wanted, FieldError *err)
{
    static const Tenant none = STENTOR__V1__TENANT__INIT;
    stored = stored != NULL ? stored : &none;
    const char *changed = changed_field(stored, named, wanted);
    if (changed != NULL) {
        (void)field_error(
            err, changed, "set by the operator alone; leave it out, or repeat what GET shows");
        return TENANT_OPERATORS;
    }
    keep_fields(stored, wanted);
    return check_sender(stored, wanted, err) ? TENANT_FINE : TENANT_UNVERIFIED;
}
