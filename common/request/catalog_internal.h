// SPDX-License-Identifier: Apache-2.0
// What the catalog's files share: catalog.c has its life and stores templates, catalog_tenants.c
// tenants, catalog_freeze.c answers for requests, catalog_list.c for the API.
#pragma once

#include "common/base/map.h"
#include "common/request/catalog.h"
#include "common/request/semver.h"

#define PLATFORM STR("platform")

typedef struct Version {
    char text[SEMVER_MAX + 1];
    Stentor__V1__TemplateStatus status;
    Channel channel; // never NONE
    bool unplaced;   // its subject does not name the channel
    bool hidden;     // unplaced, and the same version stands where its channel is named
    Category category;
    uint32_t locales;
    int64_t published_at_us;
    Priority priority; // of requests that name none; NONE: normal
    int64_t deprecated_at_us;
    VariableRules *rules;
    char *required; // required.h; on the heap, or NULL
    char *notes;    // published_by, approved_by, source, provenance, supersedes, each with its NUL
} Version;

typedef struct TemplateEntry {
    Version *versions;
    size_t count;
    size_t cap;
    const Version *latest[CHANNEL_COUNT]; // the highest active one of each channel, or NULL
} TemplateEntry;

struct Catalog {
    Map *templates; // "<tenant>/<key>" -> TemplateEntry
    Map *tenants;   // tenant -> TenantSettings
    Zones *zones;
    RetentionClasses classes;
    bool accepts_unknown;
};

// NULL: there is none.
TemplateEntry *catalog_entry(const Catalog *catalog, Str tenant, Str key);
Version *catalog_entry_version(const TemplateEntry *entry, Channel channel, Str text);
ChannelSet catalog_entry_channels(const TemplateEntry *entry); // NULL-safe
const char *catalog_supersedes(const Version *version);
// ERROR_PERMANENT: the entry is not of its subject's tenant.
bool catalog_check_tenant(Str subject, const char *payload, Error *err);
