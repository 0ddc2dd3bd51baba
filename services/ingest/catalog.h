// SPDX-License-Identifier: Apache-2.0
// Catalog: what ingest must know of CONFIG to accept a request: which tenants are suspended, and
// which versions of which templates there are. Only names, versions and kinds are kept; the
// templates' words are the renderer's.
#pragma once

#include "common/base/error.h"
#include "services/ingest/request.h"

typedef struct Catalog Catalog;

Catalog *catalog_new(void);
void catalog_free(Catalog *catalog);

// cfg.tenant.<tenant>.self and cfg.template.<tenant>.<key>; an empty payload removes the entry.
// ERROR_PERMANENT when the payload is not such an entry or speaks of another tenant than the
// subject.
bool catalog_tenant_changed(Catalog *catalog, Str tenant, Str payload, Error *err);
bool catalog_template_changed(Catalog *catalog, Str tenant, Str key, Str payload, Error *err);

// A tenant without an entry is not suspended: its API key speaks for it.
bool catalog_is_suspended(const Catalog *catalog, Str tenant);

// Freezes the template's version (the tenant's own template wins over the platform's; the highest
// active version unless one is named) and fills in its category. false: unknown, or of another
// channel.
bool catalog_freeze(
    const Catalog *catalog, Str tenant, Request *request, Arena *arena, FieldError *err);
size_t catalog_templates(const Catalog *catalog);
