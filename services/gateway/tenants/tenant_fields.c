// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/tenants/tenant_fields.h"

#include <string.h>

#include "common/api/tenant_json.h"
#include "common/codec/event.h"

typedef Stentor__V1__Tenant Tenant;

int64_t *tenant_field_time(Stentor__V1__TenantFieldTimes *times, TenantTimed field)
{
    switch (field) {
    case TIMED_NAME:
        return &times->name_us;
    case TIMED_LOCALE:
        return &times->locale_us;
    case TIMED_TIME_ZONE:
        return &times->time_zone_us;
    case TIMED_REGION:
        return &times->region_us;
    case TIMED_STATUS:
        return &times->status_us;
    case TIMED_POLICY:
    case TIMED_COUNT:
        break;
    }
    return &times->policy_us;
}

Stentor__V1__TenantFieldTimes *tenant_field_times(const Tenant *stored, Arena *arena)
{
    Stentor__V1__TenantFieldTimes *times = arena_zalloc(arena, sizeof *times);
    stentor__v1__tenant_field_times__init(times);
    if (stored != NULL && stored->field_times != NULL) {
        for (int i = 0; i < TIMED_COUNT; i++) {
            *tenant_field_time(times, (TenantTimed)i) =
                *tenant_field_time(stored->field_times, (TenantTimed)i);
        }
    }
    return times;
}

// ---- what is the same ----

static bool has(const int *values, size_t count, int value)
{
    for (size_t i = 0; i < count; i++) {
        if (values[i] == value) {
            return true;
        }
    }
    return false;
}

static bool is_off(const Tenant *tenant, bool of_channels, int value)
{
    const Stentor__V1__NotificationPolicy *policy = tenant->notification_policy;
    if (policy == NULL) {
        return false;
    }
    return of_channels ? has((const int *)policy->channels_off, policy->n_channels_off, value)
                       : has((const int *)policy->categories_off, policy->n_categories_off, value);
}

bool tenant_policy_is_same(const Tenant *a, const Tenant *b)
{
    bool same = true;
    for (int i = 0; i < CHANNEL_COUNT; i++) {
        same = same && is_off(a, true, i) == is_off(b, true, i);
    }
    for (int i = 0; i < CATEGORY_COUNT; i++) {
        same = same && is_off(a, false, i) == is_off(b, false, i);
    }
    return same;
}

// What is left of both when all but the fields of TIMED_POLICY are taken away, packed.
static bool same_rules(const Tenant *a, const Tenant *b, Arena *arena)
{
    const Tenant *both[] = {a, b};
    Str packed[2];
    for (size_t i = 0; i < 2; i++) {
        Tenant rules;
        stentor__v1__tenant__init(&rules);
        rules.quiet_hours = both[i]->quiet_hours;
        rules.tenant_limits = both[i]->tenant_limits;
        rules.recipient_limits = both[i]->recipient_limits;
        rules.n_channel_limits = both[i]->n_channel_limits;
        rules.channel_limits = both[i]->channel_limits;
        rules.n_recipient_channel_limits = both[i]->n_recipient_channel_limits;
        rules.recipient_channel_limits = both[i]->recipient_channel_limits;
        bool suppress = both[i]->over_limit == STENTOR__V1__OVER_LIMIT__OVER_LIMIT_SUPPRESS;
        rules.over_limit = suppress ? both[i]->over_limit : rules.over_limit;
        rules.guardian_routing = both[i]->guardian_routing;
        if (!event_pack(&rules.base, arena, &packed[i], NULL)) {
            return false;
        }
    }
    return str_eq(packed[0], packed[1]);
}

static bool is_same(TenantTimed field, const Tenant *a, const Tenant *b, Arena *arena)
{
    switch (field) {
    case TIMED_NAME:
        return strcmp(a->name, b->name) == 0;
    case TIMED_LOCALE:
        return strcmp(a->default_locale, b->default_locale) == 0;
    case TIMED_TIME_ZONE:
        return strcmp(a->time_zone, b->time_zone) == 0;
    case TIMED_REGION:
        return strcmp(a->region, b->region) == 0;
    case TIMED_STATUS:
        return strcmp(tenant_status_name(a), tenant_status_name(b)) == 0;
    case TIMED_POLICY:
    case TIMED_COUNT:
        break;
    }
    return tenant_policy_is_same(a, b) && same_rules(a, b, arena);
}

void tenant_fields_stamp(const Tenant *stored, int64_t now_us, Arena *arena, Tenant *wanted)
{
    Tenant none;
    stentor__v1__tenant__init(&none);
    Stentor__V1__TenantFieldTimes *times = tenant_field_times(stored, arena);
    bool changed = stored != NULL && stored->field_times != NULL;
    for (int i = 0; i < TIMED_COUNT; i++) {
        TenantTimed field = (TenantTimed)i;
        if (!is_same(field, stored != NULL ? stored : &none, wanted, arena)) {
            *tenant_field_time(times, field) = now_us;
            changed = true;
        }
    }
    wanted->field_times = changed ? times : NULL;
}
