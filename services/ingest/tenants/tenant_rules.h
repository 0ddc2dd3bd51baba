// SPDX-License-Identifier: Apache-2.0
// What a tenant may change of its own settings. Pure. Law: the suspension, the sender domains and
// the limits are the operator's: a body may leave them out or repeat them, and they stay; a sender
// must be of a domain that the operator has verified.
#pragma once

#include "common/api/tenant_json.h"
#include "common/request/request.h"

typedef enum TenantVerdict {
    TENANT_FINE,
    TENANT_OPERATORS,  // err names the field
    TENANT_UNVERIFIED, // err: sender_address or sender_name
} TenantVerdict;

// stored NULL: there are no settings yet. named: TenantField bits. The operator's fields of *wanted
// become the stored ones (borrowed).
TenantVerdict tenant_rules_apply(
    const Stentor__V1__Tenant *stored, unsigned named, Stentor__V1__Tenant *wanted,
    FieldError *err);
