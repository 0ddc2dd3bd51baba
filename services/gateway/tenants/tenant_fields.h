// SPDX-License-Identifier: Apache-2.0
// The fields of a tenant that its own events say too, and when each was last changed
// (stentor.v1.TenantFieldTimes). Law: of two changes of a field the one with the later time counts,
// in whatever order they come; so repeats and late events undo nothing. Pure.
#pragma once

#include "common/base/arena.h"
#include "stentor/v1/config.pb-c.h"

typedef enum TenantTimed {
    TIMED_NAME,
    TIMED_LOCALE,
    TIMED_TIME_ZONE,
    TIMED_REGION,
    TIMED_STATUS,
    TIMED_POLICY, // all that TenantFieldTimes names there
    TIMED_COUNT
} TenantTimed;

bool tenant_policy_is_same(const Stentor__V1__Tenant *a, const Stentor__V1__Tenant *b);
int64_t *tenant_field_time(Stentor__V1__TenantFieldTimes *times, TenantTimed field);
// Those of `stored` (NULL: none yet), a copy in `arena`.
Stentor__V1__TenantFieldTimes *tenant_field_times(const Stentor__V1__Tenant *stored, Arena *arena);
// A change by a call: every field that differs from the stored one's changes now. stored NULL:
// there are no settings yet.
void tenant_fields_stamp(
    const Stentor__V1__Tenant *stored, int64_t now_us, Arena *arena, Stentor__V1__Tenant *wanted);
