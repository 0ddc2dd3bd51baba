// SPDX-License-Identifier: Apache-2.0
#include "common/request/catalog.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/map.h"
#include "common/codec/event.h"
#include "common/model/template_key.h"
#include "common/request/request_mail.h"
#include "common/request/required.h"
#include "common/request/semver.h"
#include "stentor/v1/config.pb-c.h"

enum { VERSIONS_MAX = 4096, PATH_SIZE = 128, NOTE_SUPERSEDES = 4 };

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

static void drop_texts(Version *version)
{
    variable_rules_free(version->rules);
    free(version->required);
    free(version->notes);
}

static void free_entry(void *value)
{
    TemplateEntry *entry = value;
    for (size_t i = 0; i < entry->count; i++) {
        drop_texts(&entry->versions[i]);
    }
    free(entry->versions);
    free(entry);
}

Catalog *catalog_new(void)
{
    Catalog *catalog = xcalloc(1, sizeof *catalog);
    catalog->templates = map_new(free_entry);
    catalog->tenants = map_new(free);
    catalog->zones = zones_new();
    (void)retention_classes_parse(STR_EMPTY, &catalog->classes, NULL);
    return catalog;
}

void catalog_set_classes(Catalog *catalog, const RetentionClasses *classes)
{
    catalog->classes = *classes;
}

void catalog_free(Catalog *catalog)
{
    if (catalog == NULL) {
        return;
    }
    map_free(catalog->templates);
    map_free(catalog->tenants);
    zones_free(catalog->zones);
    free(catalog);
}

static bool check_tenant(Str subject, const char *payload, Error *err)
{
    if (!id_is_tenant(subject) || !str_eq(subject, str_from(payload))) {
        return error_set(
            err, ERROR_PERMANENT, "the entry's tenant '%.40s' is not the subject's '%.*s'", payload,
            STR_ARG(str_slice(subject, 0, 40)));
    }
    return true;
}

static Limits limits_of(const Stentor__V1__Limits *limits)
{
    return limits == NULL ? (Limits){0, 0} : (Limits){limits->per_minute, limits->per_day};
}

static bool take_quiet_hours(TenantSettings *settings, const Stentor__V1__Tenant *entry, Error *err)
{
    if (entry->quiet_hours == NULL) {
        return true;
    }
    uint32_t start = entry->quiet_hours->start_minute;
    uint32_t end = entry->quiet_hours->end_minute;
    QuietHours hours = {
        start < MINUTES_OF_DAY ? (int32_t)start : -1, end < MINUTES_OF_DAY ? (int32_t)end : -1};
    if (!quiet_hours_check(hours, err)) {
        return error_wrap(err, "quiet hours are off");
    }
    settings->gate.quiet_hours = hours;
    return true;
}

static void take_policy(GateTenant *gate, const Stentor__V1__NotificationPolicy *policy)
{
    for (size_t i = 0; policy != NULL && i < policy->n_channels_off; i++) {
        unsigned channel = (unsigned)policy->channels_off[i];
        gate->channels_off |= channel < CHANNEL_COUNT ? 1U << channel : 0;
    }
    for (size_t i = 0; policy != NULL && i < policy->n_categories_off; i++) {
        unsigned category = (unsigned)policy->categories_off[i];
        gate->categories_off |= category < CATEGORY_COUNT ? 1U << category : 0;
    }
}

static void take_channel_limits(
    Limits into[CHANNEL_COUNT], Stentor__V1__ChannelLimits *const *limits, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned channel = (unsigned)limits[i]->channel;
        if (channel < CHANNEL_COUNT) {
            into[channel] = limits_of(limits[i]->limits);
        }
    }
}

// A class that this release does not know counts as a record: kept too long, not too short.
static void take_retention(TenantSettings *settings, const Stentor__V1__Tenant *entry)
{
    for (size_t i = 0; i < entry->n_retention; i++) {
        unsigned category = (unsigned)entry->retention[i]->category;
        RetentionClass class = RETENTION_RECORD;
        (void)retention_class_from_name(str_from(entry->retention[i]->class_), &class);
        if (category > CATEGORY_NONE && category < CATEGORY_COUNT) {
            settings->retention[category] = retention_class_code(class);
        }
    }
}

static bool take_settings(
    TenantSettings *settings, const Stentor__V1__Tenant *entry, Zones *zones, Error *err)
{
    settings->gate = (GateTenant){
        .suspended = entry->suspended,
        .limits = limits_of(entry->tenant_limits),
        .recipient_limits = limits_of(entry->recipient_limits),
        .over_limit = entry->over_limit == STENTOR__V1__OVER_LIMIT__OVER_LIMIT_SUPPRESS
                          ? OVER_LIMIT_SUPPRESS
                          : OVER_LIMIT_DEFER,
        .guardian_routing = (GuardianRouting)entry->guardian_routing,
    };
    settings->deleting =
        entry->suspended && entry->status == STENTOR__V1__TENANT_STATUS__TENANT_STATUS_DELETING;
    take_policy(&settings->gate, entry->notification_policy);
    take_channel_limits(
        settings->gate.channel_limits, entry->channel_limits, entry->n_channel_limits);
    take_channel_limits(
        settings->gate.recipient_channel_limits, entry->recipient_channel_limits,
        entry->n_recipient_channel_limits);
    (void)str_to_c(
        str_from(entry->default_locale), settings->default_locale, sizeof settings->default_locale);
    settings->shared_addresses = entry->shared_addresses;
    take_retention(settings, entry);
    settings->events_in_clear = entry->events_in_clear;
    bool hours = take_quiet_hours(settings, entry, err);
    settings->gate.zone = zones_get(zones, str_from(entry->time_zone), err);
    if (settings->gate.zone == NULL) {
        (void)error_wrap(err, "UTC is used instead");
    }
    bool whole = hours && settings->gate.zone != NULL;
    if (!whole && err != NULL) {
        err->kind = ERROR_CONFIG; // used, but for that (config_mirror.h)
    }
    return whole;
}

bool catalog_tenant_changed(Catalog *catalog, Str tenant, Str payload, Error *err)
{
    if (payload.len == 0) {
        (void)map_remove(catalog->tenants, tenant);
        return true;
    }
    Arena *arena = arena_new(0);
    const Stentor__V1__Tenant *entry = (const Stentor__V1__Tenant *)event_unpack(
        &stentor__v1__tenant__descriptor, payload, arena, err);
    bool ok = entry != NULL && check_tenant(tenant, entry->tenant, err);
    if (ok) {
        TenantSettings *settings = xcalloc(1, sizeof *settings);
        ok = take_settings(settings, entry, catalog->zones, err);
        map_put(catalog->tenants, tenant, settings);
    }
    arena_free(arena);
    return ok;
}

void catalog_tenant_unreadable(Catalog *catalog, Str tenant)
{
    if (map_get(catalog->tenants, tenant) == NULL) {
        TenantSettings *settings = xcalloc(1, sizeof *settings);
        settings->gate.suspended = true;
        map_put(catalog->tenants, tenant, settings);
    }
}

const TenantSettings *catalog_tenant(const Catalog *catalog, Str tenant)
{
    static const TenantSettings nothing_said;
    const TenantSettings *settings = map_get(catalog->tenants, tenant);
    return settings != NULL ? settings : &nothing_said;
}

void catalog_accept_unknown(Catalog *catalog)
{
    catalog->accepts_unknown = true;
}

TenantStanding catalog_standing(const Catalog *catalog, Str tenant)
{
    const TenantSettings *settings = map_get(catalog->tenants, tenant);
    if (settings == NULL) {
        bool known = catalog->accepts_unknown || str_eq(tenant, PLATFORM);
        return known ? STANDING_ACTIVE : STANDING_UNKNOWN;
    }
    if (settings->deleting) {
        return STANDING_DELETING;
    }
    return settings->gate.suspended ? STANDING_SUSPENDED : STANDING_ACTIVE;
}

bool catalog_may_send(const Catalog *catalog, Str tenant, Error *err)
{
    char name[64];
    switch (catalog_standing(catalog, tenant)) {
    case STANDING_ACTIVE:
        return true;
    case STANDING_UNKNOWN:
        (void)str_to_c(tenant, name, sizeof name);
        return error_set(
            err, ERROR_PERMANENT,
            "tenant '%s' is not known (HINT: stentor tenant put %s, then stentor dlq resend --all)",
            name, name);
    case STANDING_DELETING:
        return error_set(
            err, ERROR_PERMANENT, "tenant '" STR_FMT "' is being deleted", STR_ARG(tenant));
    case STANDING_SUSPENDED:
        break;
    }
    return error_set(err, ERROR_PERMANENT, "tenant '" STR_FMT "' is suspended", STR_ARG(tenant));
}

Zones *catalog_zones(const Catalog *catalog)
{
    return catalog->zones;
}

// ---- templates ----

static Str make_path(char out[PATH_SIZE], Str tenant, Str key)
{
    size_t len = tenant.len + 1 + key.len;
    if (len > PATH_SIZE) {
        return STR_EMPTY; // longer than any that was stored
    }
    memcpy(out, tenant.ptr, tenant.len);
    out[tenant.len] = '/';
    memcpy(out + tenant.len + 1, key.ptr, key.len);
    return str_of(out, len);
}

static TemplateEntry *find_entry(const Catalog *catalog, Str tenant, Str key)
{
    char path[PATH_SIZE];
    return map_get(catalog->templates, make_path(path, tenant, key));
}

static void choose_latest(TemplateEntry *entry)
{
    memset((void *)entry->latest, 0, sizeof entry->latest);
    for (size_t i = 0; i < entry->count; i++) {
        const Version *v = &entry->versions[i];
        const Version **latest = &entry->latest[v->channel];
        if (v->status == STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE && !v->hidden &&
            (*latest == NULL || semver_compare(str_from(v->text), str_from((*latest)->text)) > 0)) {
            *latest = v;
        }
    }
}

static Version *find_version(const TemplateEntry *entry, Channel channel, Str text)
{
    for (size_t i = 0; i < entry->count; i++) {
        Version *v = &entry->versions[i];
        if (v->channel == channel && !v->hidden && str_eq(str_from(v->text), text)) {
            return v;
        }
    }
    return NULL;
}

// What stands on that subject; channel NONE: on the one that names none. `text` with dots or with
// underscores.
static Version *find_place(const TemplateEntry *entry, Channel channel, Str text)
{
    for (size_t i = 0; i < entry->count; i++) {
        Version *v = &entry->versions[i];
        bool here = channel == CHANNEL_NONE ? v->unplaced : !v->unplaced && v->channel == channel;
        bool same = here && strlen(v->text) == text.len;
        for (size_t c = 0; same && c < text.len; c++) {
            same =
                (v->text[c] == '.' ? '_' : v->text[c]) == (text.ptr[c] == '.' ? '_' : text.ptr[c]);
        }
        if (same) {
            return v;
        }
    }
    return NULL;
}

// An entry whose subject names the channel wins over one of the same version whose does not.
static void hide_doubles(TemplateEntry *entry, Str text)
{
    Version *old = find_place(entry, CHANNEL_NONE, text);
    if (old != NULL) {
        old->hidden = find_place(entry, old->channel, text) != NULL;
    }
    choose_latest(entry);
}

static Version *add_version(TemplateEntry *entry, Error *err)
{
    if (entry->count == VERSIONS_MAX) {
        (void)error_set(
            err, ERROR_PERMANENT, "the template has more than %d versions", VERSIONS_MAX);
        return NULL;
    }
    if (entry->count == entry->cap) {
        entry->cap = entry->cap == 0 ? 4 : entry->cap * 2;
        entry->versions = xrealloc(entry->versions, entry->cap * sizeof *entry->versions);
    }
    entry->versions[entry->count] = (Version){.notes = NULL};
    return &entry->versions[entry->count++];
}

static char *join_notes(const Stentor__V1__TemplateVersion *event)
{
    const char *const texts[] = {
        event->published_by, event->approved_by, event->source, event->provenance,
        event->supersedes};
    size_t size = 0;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        size += strlen(texts[i]) + 1;
    }
    char *notes = xmalloc(size);
    char *at = notes;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        memcpy(at, texts[i], strlen(texts[i]) + 1);
        at += strlen(texts[i]) + 1;
    }
    return notes;
}

static bool put_version(
    Catalog *catalog, const Stentor__V1__TemplateVersion *event, Channel named, Error *err)
{
    char path[PATH_SIZE];
    Str place = make_path(path, str_from(event->tenant), str_from(event->key));
    TemplateEntry *entry = map_get(catalog->templates, place);
    if (entry == NULL) {
        entry = xcalloc(1, sizeof *entry);
        map_put(catalog->templates, place, entry);
    }
    Str text = str_from(event->version);
    Version *version = find_place(entry, named, text);
    if (version == NULL) {
        version = add_version(entry, err);
        if (version == NULL) {
            return false;
        }
    }
    drop_texts(version);
    *version = (Version){
        .status = event->status,
        .channel = template_channel((int)event->channel),
        .unplaced = named == CHANNEL_NONE,
        .category = (Category)event->category,
        .locales = (uint32_t)event->n_locales,
        .published_at_us = event->published_at_us,
        .priority = priority_name((Priority)event->default_priority)[0] == '\0'
                        ? PRIORITY_NONE
                        : (Priority)event->default_priority,
        .deprecated_at_us = event->deprecated_at_us,
        .rules = variable_rules_pack(event),
        .required = required_pack(event),
        .notes = join_notes(event),
    };
    (void)str_to_c(text, version->text, sizeof version->text);
    hide_doubles(entry, text);
    return true;
}

static void remove_version(Catalog *catalog, Str tenant, const TemplateKey *named)
{
    TemplateEntry *entry = find_entry(catalog, tenant, named->key);
    Version *version = entry == NULL ? NULL : find_place(entry, named->channel, named->version);
    if (version != NULL) {
        drop_texts(version);
        *version = entry->versions[--entry->count];
        hide_doubles(entry, named->version);
    }
}

static bool check_template(
    const Stentor__V1__TemplateVersion *event, const TemplateKey *named, Error *err)
{
    if (!id_is_key(str_from(event->key)) || !semver_is(str_from(event->version))) {
        return error_set(
            err, ERROR_PERMANENT, "'%.70s' version '%.70s' is not a template's key and version",
            event->key, event->version);
    }
    unsigned channel = (unsigned)event->channel;
    bool fits = channel < CHANNEL_COUNT && (named->channel == CHANNEL_NONE ||
                                            named->channel == template_channel((int)channel));
    return fits ||
           error_set(err, ERROR_PERMANENT, "the entry's channel is not the subject's, or is none");
}

bool catalog_template_changed(Catalog *catalog, Str tenant, Str key, Str payload, Error *err)
{
    TemplateKey named = {.channel = CHANNEL_NONE};
    if (!template_key_parse(key, &named)) {
        return error_set(err, ERROR_PERMANENT, "not <key>.<channel>.<version>");
    }
    if (payload.len == 0) {
        remove_version(catalog, tenant, &named);
        return true;
    }
    Arena *arena = arena_new(0);
    const Stentor__V1__TemplateVersion *event = (const Stentor__V1__TemplateVersion *)event_unpack(
        &stentor__v1__template_version__descriptor, payload, arena, err);
    bool ok = event != NULL && check_tenant(tenant, event->tenant, err);
    ok =
        ok && check_template(event, &named, err) && put_version(catalog, event, named.channel, err);
    arena_free(arena);
    return ok;
}

static const Version *choose(const TemplateEntry *entry, Channel channel, Str wanted)
{
    if (wanted.len == 0) {
        return entry->latest[channel];
    }
    const Version *version = find_version(entry, channel, wanted);
    bool usable =
        version != NULL && version->status == STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE;
    return usable ? version : NULL;
}

static const Version *look_up(const Catalog *catalog, Str tenant, const Request *request)
{
    const TemplateEntry *own = find_entry(catalog, tenant, request->template_key);
    const TemplateEntry *shared = find_entry(catalog, PLATFORM, request->template_key);
    Channel channel = template_channel((int)request->channel);
    const Version *version = own == NULL ? NULL : choose(own, channel, request->template_version);
    if (version == NULL && shared != NULL) {
        version = choose(shared, channel, request->template_version);
    }
    return version;
}

RetentionClass catalog_retention(const Catalog *catalog, Str tenant, Category category)
{
    char own = catalog_tenant(catalog, tenant)->retention[category];
    return own != 0 ? retention_class_from_code(own) : catalog->classes.of[category];
}

static bool refuse(
    const Catalog *catalog, Str tenant, const Request *request, Arena *arena, FieldError *err)
{
    Str key = request->template_key;
    Channel channel = template_channel((int)request->channel);
    ChannelSet channels =
        catalog_channels(catalog, tenant, key) | catalog_channels(catalog, PLATFORM, key);
    const char *field = "template";
    const char *text = NULL;
    if (channels == 0) {
        text = arena_printf(arena, "unknown template '" STR_FMT "'", STR_ARG(key));
    } else if (!channel_set_has(channels, channel)) {
        char names[CHANNEL_SET_TEXT_SIZE];
        channel_set_text(channels, names);
        text = arena_printf(
            arena, "template '" STR_FMT "' is not for channel '%s'; it is for %s", STR_ARG(key),
            channel_name(channel), names);
    } else if (request->template_version.len > 0) {
        field = "template_version";
        text = arena_printf(
            arena, "template '" STR_FMT "' has no usable version '" STR_FMT "' for %s",
            STR_ARG(key), STR_ARG(request->template_version), channel_name(channel));
    } else {
        text = arena_printf(
            arena, "template '" STR_FMT "' has no active version for %s", STR_ARG(key),
            channel_name(channel));
    }
    return field_error(err, field, "%s", text);
}

bool catalog_freeze(
    const Catalog *catalog, Str tenant, Request *request, Arena *arena, FieldError *err)
{
    const Version *version = look_up(catalog, tenant, request);
    if (version == NULL) {
        return refuse(catalog, tenant, request, arena, err);
    }
    request->template_version = arena_str(arena, str_from(version->text));
    if (request->category == CATEGORY_NONE) {
        request->category =
            version->category == CATEGORY_NONE ? CATEGORY_TRANSACTIONAL : version->category;
    }
    if (request->priority_unsaid || request->priority == PRIORITY_NONE) {
        request->priority =
            version->priority == PRIORITY_NONE ? PRIORITY_NORMAL : version->priority;
    }
    request->retention = catalog_retention(catalog, tenant, request->category);
    return request_mail_may_copy(request->mail, request->category, err);
}

VariableRules *catalog_rules(const Catalog *catalog, Str tenant, const Request *frozen)
{
    const Version *version = look_up(catalog, tenant, frozen);
    return version == NULL ? NULL : version->rules;
}

static const char *supersedes_of(const Version *version)
{
    const char *text = version->notes;
    for (int i = 0; i < NOTE_SUPERSEDES; i++) {
        text += strlen(text) + 1;
    }
    return text;
}

// The highest active version that says so; NULL: none does.
static const Version *successor_of(
    const Catalog *catalog, Str tenant, const Request *frozen, const Version *version)
{
    const Str tenants[] = {tenant, PLATFORM};
    const Version *found = NULL;
    for (size_t t = 0; t < 2 && found == NULL; t++) {
        const TemplateEntry *entry = find_entry(catalog, tenants[t], frozen->template_key);
        for (size_t i = 0; entry != NULL && i < entry->count; i++) {
            const Version *v = &entry->versions[i];
            bool is_one = v->status == STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE &&
                          !v->hidden && v->channel == version->channel &&
                          strcmp(supersedes_of(v), version->text) == 0;
            if (is_one &&
                (found == NULL || semver_compare(str_from(v->text), str_from(found->text)) > 0)) {
                found = v;
            }
        }
    }
    return found;
}

const char *catalog_deprecated(
    const Catalog *catalog, Str tenant, const Request *frozen, Arena *arena)
{
    const Version *version = look_up(catalog, tenant, frozen);
    if (version == NULL || version->deprecated_at_us == 0) {
        return NULL;
    }
    char at[CLOCK_RFC3339_SIZE];
    clock_format(version->deprecated_at_us, at);
    const Version *next = successor_of(catalog, tenant, frozen, version);
    return arena_printf(
        arena, "template '" STR_FMT "' version %s for %s is deprecated from %s on%s%s",
        STR_ARG(frozen->template_key), version->text, channel_name(version->channel), at,
        next != NULL ? "; it is superseded by version " : "", next != NULL ? next->text : "");
}

const char *catalog_required(const Catalog *catalog, Str tenant, const Request *frozen)
{
    const Version *version = look_up(catalog, tenant, frozen);
    return version == NULL ? NULL : version->required;
}

bool catalog_digest(
    const Catalog *catalog, Str tenant, const Request *request, Arena *arena, DigestTarget *ret)
{
    char *own = arena_printf(arena, "digest-%s", category_name(request->category));
    const Str keys[] = {str_from(own), STR("digest")};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        Request digest = {.template_key = keys[i], .channel = request->channel};
        const Version *version = look_up(catalog, tenant, &digest);
        if (version != NULL) {
            *ret = (DigestTarget){keys[i], arena_str(arena, str_from(version->text))};
            return true;
        }
    }
    return false;
}

size_t catalog_templates(const Catalog *catalog)
{
    return map_count(catalog->templates);
}

// ---- lists ----

static CatalogVersion describe(const Version *version)
{
    const char *approved_by = version->notes + strlen(version->notes) + 1;
    const char *source = approved_by + strlen(approved_by) + 1;
    return (CatalogVersion){
        .version = version->text,
        .status = version->status,
        .channel = version->channel,
        .unplaced = version->unplaced,
        .category = version->category,
        .locales = version->locales,
        .published_at_us = version->published_at_us,
        .published_by = version->notes,
        .approved_by = approved_by,
        .source = source,
        .provenance = source + strlen(source) + 1,
        .default_priority = version->priority,
        .deprecated_at_us = version->deprecated_at_us,
        .supersedes = supersedes_of(version),
    };
}

static int by_precedence(const void *a, const void *b)
{
    const CatalogVersion *x = a;
    const CatalogVersion *y = b;
    return semver_compare(str_from(x->version), str_from(y->version));
}

static ChannelSet channels_of(const TemplateEntry *entry)
{
    ChannelSet set = 0;
    for (size_t i = 0; entry != NULL && i < entry->count; i++) {
        set |= 1U << entry->versions[i].channel;
    }
    return set;
}

ChannelSet catalog_channels(const Catalog *catalog, Str tenant, Str key)
{
    return channels_of(find_entry(catalog, tenant, key));
}

size_t catalog_versions(
    const Catalog *catalog, Str tenant, CatalogName name, Arena *arena, CatalogVersion **ret)
{
    const TemplateEntry *entry = find_entry(catalog, tenant, name.key);
    size_t count = 0;
    *ret = arena_array(arena, entry == NULL ? 0 : entry->count, sizeof **ret);
    for (size_t i = 0; entry != NULL && i < entry->count; i++) {
        const Version *v = &entry->versions[i];
        if (v->channel == name.channel && !v->hidden) {
            (*ret)[count++] = describe(v);
        }
    }
    if (count > 0) {
        qsort(*ret, count, sizeof **ret, by_precedence);
    }
    return count;
}

static const Version *highest(const TemplateEntry *entry, Channel channel)
{
    const Version *found = NULL;
    for (size_t i = 0; i < entry->count; i++) {
        const Version *v = &entry->versions[i];
        if (v->channel == channel && !v->hidden &&
            (found == NULL || semver_compare(str_from(v->text), str_from(found->text)) > 0)) {
            found = v;
        }
    }
    return found;
}

bool catalog_find(
    const Catalog *catalog, Str tenant, CatalogName name, Str version, CatalogVersion *ret)
{
    const TemplateEntry *entry = find_entry(catalog, tenant, name.key);
    const Version *found = NULL;
    if (entry != NULL && version.len > 0) {
        found = find_version(entry, name.channel, version);
    } else if (entry != NULL) {
        const Version *latest = entry->latest[name.channel];
        found = latest != NULL ? latest : highest(entry, name.channel);
    }
    if (found != NULL) {
        *ret = describe(found);
    }
    return found != NULL;
}

static int compare_names(CatalogName a, CatalogName b)
{
    int order = str_cmp(a.key, b.key);
    return order != 0 ? order : (int)a.channel - (int)b.channel;
}

// Into the `count` smallest so far, in order.
static size_t keep_smallest(CatalogName name, CatalogName *kept, size_t count, size_t limit)
{
    if (count == limit && compare_names(name, kept[count - 1]) >= 0) {
        return count;
    }
    size_t at = count < limit ? count++ : count - 1;
    for (; at > 0 && compare_names(kept[at - 1], name) > 0; at--) {
        kept[at] = kept[at - 1];
    }
    kept[at] = name;
    return count;
}

// A page costs one walk over all names and no list of them.
size_t catalog_names(
    const Catalog *catalog, Str tenant, CatalogName after, Channel only, size_t limit, Arena *arena,
    CatalogName *ret)
{
    Str path;
    void *value = NULL;
    size_t count = 0;
    for (size_t cursor = 0; map_next(catalog->templates, &cursor, &path, &value);) {
        CatalogName name = {.key = str_slice(path, tenant.len + 1, path.len)};
        bool own = path.len > tenant.len && path.ptr[tenant.len] == '/' && str_starts(path, tenant);
        ChannelSet channels = own ? channels_of(value) : 0;
        for (int channel = CHANNEL_EMAIL; channel < CHANNEL_COUNT; channel++) {
            name.channel = (Channel)channel;
            bool wanted = channel_set_has(channels, name.channel) &&
                          (only == CHANNEL_NONE || only == name.channel) &&
                          compare_names(name, after) > 0;
            count = wanted ? keep_smallest(name, ret, count, limit) : count;
        }
    }
    for (size_t i = 0; i < count; i++) {
        ret[i].key = arena_str(arena, ret[i].key);
    }
    return count;
}
