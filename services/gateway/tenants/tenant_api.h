// SPDX-License-Identifier: Apache-2.0
// /v1/tenant: the caller's own settings (an operator's: those of the tenant it speaks for), put
// whole or changed by a merge patch; /v1/tenant/sender-domains/{domain}: the operator verifies a
// domain, or takes it back. The entry is cfg.tenant.<tenant>.self, which every service keeps in
// memory; a change is answered when it is stored and this process has it.
#pragma once

#include "common/api/api.h"
#include "common/bus/jetstream/bus.h"

typedef struct TenantApi TenantApi;

TenantApi *tenant_api_new(Bus *bus);
void tenant_api_free(TenantApi *api);
// The entry changed; the catalog reports one that cannot be read.
void tenant_api_changed(TenantApi *api, Str tenant, Str payload, uint64_t sequence);
void tenant_api_add(Api *api, TenantApi *tenants);
