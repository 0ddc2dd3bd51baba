// SPDX-License-Identifier: Apache-2.0
// Who may get bounces: the tenants and their bounce domains, from CONFIG (cfg.tenant.<tenant>.self,
// cfg.mail_domain.<tenant>.<domain>), in memory.
#pragma once

#include "common/base/error.h"
#include "common/codec/bounce_token.h"

typedef struct BounceDomains BounceDomains;

BounceDomains *bounce_domains_new(void);
void bounce_domains_free(BounceDomains *domains); // NULL-safe

// An empty payload: the tenant is gone.
void bounce_domains_tenant_changed(BounceDomains *domains, Str tenant, Str payload);
// An empty payload: the entry is gone. ERROR_PERMANENT when it cannot be read.
bool bounce_domains_changed(BounceDomains *domains, Str tenant, Str key, Str payload, Error *err);

// Is it a bounce domain of a tenant's? Without regard to case.
bool bounce_domains_has(const BounceDomains *domains, Str domain);
// Its tenant where it has one alone; empty: none, several, or the platform (then any may use it).
Str bounce_domains_sole_tenant(const BounceDomains *domains, Str domain);
// Whose token it is; empty: it was not made here. Lives as long as the tenant.
Str bounce_domains_tenant_of(
    const BounceDomains *domains, const BounceKey *key, const BounceToken *token);
