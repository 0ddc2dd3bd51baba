// SPDX-License-Identifier: Apache-2.0
// Catalog: what ingest must know of CONFIG to accept a request: which tenants there are and which
// of them may send, and which versions of which templates there are. Only names, versions and kinds
// are kept; the templates' content is the renderer's.
#pragma once

#include "common/base/error.h"
#include "common/model/channel_set.h"
#include "common/model/rules/gate.h"
#include "common/request/request.h"
#include "common/request/variable_rules.h"
#include "stentor/v1/config.pb-c.h"

typedef struct Catalog Catalog;

Catalog *catalog_new(void);
void catalog_free(Catalog *catalog);
// The installation's class of each category; without it the defaults count.
void catalog_set_classes(Catalog *catalog, const RetentionClasses *classes);

// cfg.tenant.<tenant>.self and cfg.template.<tenant>.<key>; an empty payload removes the entry.
// ERROR_PERMANENT when the payload is not such an entry or speaks of another tenant than the
// subject. A tenant's entry whose time zone or quiet hours are none counts but for those; the error
// says so.
bool catalog_tenant_changed(Catalog *catalog, Str tenant, Str payload, Error *err);
// The tenant's entry cannot be read: what is known of it stays, and when nothing is known it counts
// as suspended.
void catalog_tenant_unreadable(Catalog *catalog, Str tenant);
bool catalog_template_changed(Catalog *catalog, Str tenant, Str key, Str payload, Error *err);

// A tenant's settings for all its recipients. A tenant without an entry lives in UTC and has
// neither quiet hours nor limits.
typedef struct TenantSettings {
    GateTenant gate;
    bool deleting;                               // suspended too
    char default_locale[REQUEST_LOCALE_MAX + 1]; // "": none
    char retention[CATEGORY_COUNT];              // a class's code; 0: the installation's
    Stentor__V1__SharedAddresses shared_addresses;
    bool events_in_clear;  // as they were published
    char from_domain[256]; // of its e-mails; "": the installation's
} TenantSettings;

// Never NULL; valid until the tenant's next change.
const TenantSettings *catalog_tenant(const Catalog *catalog, Str tenant);
// Every tenant counts as known.
void catalog_accept_unknown(Catalog *catalog);

// Whether something new may be accepted for a tenant.
typedef enum TenantStanding {
    STANDING_ACTIVE,
    STANDING_UNKNOWN, // it has no entry, and is not `platform`
    STANDING_SUSPENDED,
    STANDING_DELETING,
} TenantStanding;

TenantStanding catalog_standing(const Catalog *catalog, Str tenant);
// ERROR_PERMANENT with the reason and the fix; true: it is active.
bool catalog_may_send(const Catalog *catalog, Str tenant, Error *err);
Zones *catalog_zones(const Catalog *catalog); // the process's one cache of zones

// Freezes the version of the template of the request's channel (the tenant's own wins over the
// platform's; the highest active version unless one is named) and fills in its category and
// retention class; its priority too, when the request names none. A test may also name a draft of
// the tenant's own, and is kept as class `standard`. false: there is none.
bool catalog_freeze(
    const Catalog *catalog, Str tenant, Request *request, Arena *arena, FieldError *err);

// How long the tenant's notifications of a category are kept.
RetentionClass catalog_retention(const Catalog *catalog, Str tenant, Category category);

// What the frozen version requires (required.h); NULL: nothing, or the version is gone. Valid until
// the next change.
const char *catalog_required(const Catalog *catalog, Str tenant, const Request *frozen);

// The rules of the frozen version's variables; NULL: none. Valid until the next change.
VariableRules *catalog_rules(const Catalog *catalog, Str tenant, const Request *frozen);

// Why a caller should leave the frozen version, with the version that supersedes it; NULL: it is
// not deprecated.
const char *catalog_deprecated(
    const Catalog *catalog, Str tenant, const Request *frozen, Arena *arena);

// The template that shows a digest of such requests.
typedef struct DigestTarget {
    Str template_key;
    Str template_version;
} DigestTarget;

// "digest-<category>", else "digest", frozen, of the request's channel. false: there is none.
bool catalog_digest(
    const Catalog *catalog, Str tenant, const Request *request, Arena *arena, DigestTarget *ret);

size_t catalog_templates(const Catalog *catalog);

// ---- for the API ----

// The texts point into the catalog: valid until the next change.
typedef struct CatalogVersion {
    const char *version;
    Stentor__V1__TemplateStatus status;
    Channel channel;
    bool unplaced; // its subject does not name the channel (common/model/template_key.h)
    Category category;
    size_t locales;
    int64_t published_at_us;
    const char *published_by;
    const char *approved_by;
    const char *source;
    const char *provenance;
    Priority default_priority; // NONE: normal
    int64_t deprecated_at_us;  // 0: not
    const char *supersedes;    // "": none
} CatalogVersion;

// A template: a key on a channel.
typedef struct CatalogName {
    Str key;
    Channel channel;
} CatalogName;

// The tenant's own templates behind `after`, in order, at most `limit` (above 0); `only`: those of
// that channel, NONE: all. Copies in `arena`.
size_t catalog_names(
    const Catalog *catalog, Str tenant, CatalogName after, Channel only, size_t limit, Arena *arena,
    CatalogName *ret);
ChannelSet catalog_channels(const Catalog *catalog, Str tenant, Str key); // of the tenant's own
// The tenant's own versions of the template, the lowest first.
size_t catalog_versions(
    const Catalog *catalog, Str tenant, CatalogName name, Arena *arena, CatalogVersion **ret);
// One of them; version empty: the highest active one, else the highest. false: there is none.
bool catalog_find(
    const Catalog *catalog, Str tenant, CatalogName name, Str version, CatalogVersion *ret);
