// SPDX-License-Identifier: Apache-2.0
// What a tenant may change of its own settings, and what the operator's change brings along. Pure.
// Law: the suspension, the sender domains and the limits are the operator's: a tenant's body may
// leave them out or repeat them, and they stay; a tenant's sender must be of a domain that the
// operator has verified. A sender that the operator sets verifies its domain.
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

// The operator's change. What it does not name of the operator's fields stays. sets_sender: it
// names the sender. false: err, for there would be more domains than a tenant may have.
bool tenant_rules_operate(
    const Stentor__V1__Tenant *stored, unsigned named, bool sets_sender, Arena *arena,
    Stentor__V1__Tenant *wanted, FieldError *err);
// *wanted is a copy of the stored settings, or has only its head set when stored is NULL.
bool tenant_rules_add_domain(
    const Stentor__V1__Tenant *stored, Str domain, Arena *arena, Stentor__V1__Tenant *wanted,
    FieldError *err);
// A sender that no domain covers any more goes too. false: it has no such domain.
bool tenant_rules_remove_domain(
    const Stentor__V1__Tenant *stored, Str domain, Arena *arena, Stentor__V1__Tenant *wanted,
    FieldError *err);
