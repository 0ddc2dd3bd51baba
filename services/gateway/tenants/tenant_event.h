// SPDX-License-Identifier: Apache-2.0
// A tenant's own events (TenantCreated, TenantUpdated, TenantSuspended, TenantReactivated,
// TenantDeleted) as its settings: which members say what, and how that is merged into the settings
// that are there. Pure.
//
// Law: a field that the event does not name stays. One that was changed later than the event
// happened stays too (tenant_fields.h), so events may come in any order and again.
#pragma once

#include "common/domain/domain_event.h"
#include "common/names/event_type.h"
#include "services/gateway/tenants/tenant_fields.h"

#define TENANT_LETTER_FOR ":tenants" // the reader of the dead letters (domain_event_letter)

typedef enum TenantMember {
    TENANT_MEMBER_ID,
    TENANT_MEMBER_NAME,
    TENANT_MEMBER_LOCALE,
    TENANT_MEMBER_TIME_ZONE,
    TENANT_MEMBER_REGION,
    TENANT_MEMBER_STATUS,
    TENANT_MEMBER_POLICY,
    TENANT_MEMBER_COUNT
} TenantMember;

// Where the installation's events have what they say. ptr NULL: the usual members; len 0: they do
// not say it.
typedef struct TenantMembers {
    Str paths[TENANT_MEMBER_COUNT];
} TenantMembers;

// "tenant=org.slug,name=org.title,notification_policy=". The slices point into `text`. ERROR_CONFIG
// names what is wrong.
bool tenant_members_parse(Str text, TenantMembers *ret, Error *err);

// What one event says.
typedef struct TenantFacts {
    Str tenant;
    int64_t at_us;
    json_t *says;       // a patch of the settings (common/api/tenant_json.h), owned
    const char *passed; // members of the policy that Stentor has no setting for; NULL: none
} TenantFacts;

// ERROR_PERMANENT names the member and the fix. Free it after success.
bool tenant_event_read(
    const DomainEvent *event, const TenantMembers *members, Arena *arena, TenantFacts *ret,
    Error *err);
void tenant_facts_free(TenantFacts *facts);

// stored NULL: there are no settings yet. *ret points into `stored` and `arena`. ERROR_PERMANENT
// names the setting that cannot be.
bool tenant_event_apply(
    const TenantFacts *facts, const Stentor__V1__Tenant *stored, Arena *arena,
    Stentor__V1__Tenant *ret, Error *err);
