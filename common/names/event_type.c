// SPDX-License-Identifier: Apache-2.0
#include "common/names/event_type.h"

static const char *const known[] = {
    "UserCheckedOut", "StatusChanged", "PlaceOrder",       "CompleteOrder",
    "CancelOrder",    "OrderFailed",   "CleanUpSentEmail", "ResendErrorEmail",
};

static const char *const of_tenants[TENANT_EVENT_COUNT] = {
    [TENANT_EVENT_CREATED] = "TenantCreated",         [TENANT_EVENT_UPDATED] = "TenantUpdated",
    [TENANT_EVENT_SUSPENDED] = "TenantSuspended",     [TENANT_EVENT_DELETED] = "TenantDeleted",
    [TENANT_EVENT_REACTIVATED] = "TenantReactivated",
};

bool event_type_is_known(Str plain)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (str_eq(plain, str_from(known[i]))) {
            return true;
        }
    }
    return event_type_of_tenant(plain) != TENANT_EVENT_NONE;
}

TenantEventKind event_type_of_tenant(Str plain)
{
    for (int i = TENANT_EVENT_NONE + 1; i < TENANT_EVENT_COUNT; i++) {
        if (str_eq(plain, str_from(of_tenants[i]))) {
            return (TenantEventKind)i;
        }
    }
    return TENANT_EVENT_NONE;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

// Letters alone count: "tenant.created", "tenant_created", "Tenant-Created".
static bool is_spelled(Str written, Str name)
{
    size_t at = 0;
    for (size_t i = 0; i < written.len; i++) {
        char c = written.ptr[i];
        if (c == '.' || c == '_' || c == '-') {
            continue;
        }
        if (at == name.len || lower(c) != lower(name.ptr[at++])) {
            return false;
        }
    }
    return at == name.len;
}

// Without ".v1" at its end.
static Str cut_version(Str written)
{
    size_t digits = written.len;
    while (digits > 0 && written.ptr[digits - 1] >= '0' && written.ptr[digits - 1] <= '9') {
        digits--;
    }
    bool versioned = digits < written.len && digits > 2 && written.ptr[digits - 1] == 'v' &&
                     written.ptr[digits - 2] == '.';
    return versioned ? str_slice(written, 0, digits - 2) : written;
}

// "tenant.created.v1", also behind a product's name: "hotel.tenant.created.v1".
static Str plain_of_tenant(Str written)
{
    Str name = cut_version(written);
    for (size_t from = 0; from < name.len; from++) {
        Str rest = str_slice(name, from, name.len);
        bool begins = from == 0 || name.ptr[from - 1] == '.';
        for (int i = TENANT_EVENT_NONE + 1; begins && i < TENANT_EVENT_COUNT; i++) {
            if (is_spelled(rest, str_from(of_tenants[i]))) {
                return str_from(of_tenants[i]);
            }
        }
    }
    return written;
}

Str event_type_plain(Str written)
{
    static const char *const endings[] = {"IntegrationEvent", "Event", "Command"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        Str ending = str_from(endings[i]);
        Str plain =
            str_ends(written, ending) ? str_slice(written, 0, written.len - ending.len) : STR_EMPTY;
        if (event_type_is_known(plain)) {
            return plain;
        }
    }
    return plain_of_tenant(written);
}

// What stands behind the last of these.
static Str behind(Str text, char separator)
{
    size_t from = 0;
    for (size_t i = 0; i < text.len; i++) {
        from = text.ptr[i] == separator ? i + 1 : from;
    }
    return str_slice(text, from, text.len);
}

Str event_type_of_urn(Str urn)
{
    Str prefix = STR("urn:message:");
    if (!str_starts(urn, prefix)) {
        return STR_EMPTY;
    }
    Str rest = str_slice(urn, prefix.len, urn.len);
    Str type = STR_EMPTY; // without the arguments of a generic type: "MassTransit:Fault[[...]]"
    (void)str_split(&rest, '[', &type);
    return behind(behind(type, ':'), '+');
}
