// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "common/base/id.h"
#include "common/codec/event.h"
#include "common/model/template_key.h"
#include "common/request/catalog_internal.h"
#include "common/request/required.h"

enum { VERSIONS_MAX = 4096, PATH_SIZE = 128, NOTE_SUPERSEDES = 4 };

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

bool catalog_check_tenant(Str subject, const char *payload, Error *err)
{
    if (!id_is_tenant(subject) || !str_eq(subject, str_from(payload))) {
        return error_set(
            err, ERROR_PERMANENT, "the entry's tenant '%.40s' is not the subject's '%.*s'", payload,
            STR_ARG(str_slice(subject, 0, 40)));
    }
    return true;
}

Zones *catalog_zones(const Catalog *catalog)
{
    return catalog->zones;
}

size_t catalog_templates(const Catalog *catalog)
{
    return map_count(catalog->templates);
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

TemplateEntry *catalog_entry(const Catalog *catalog, Str tenant, Str key)
{
    char path[PATH_SIZE];
    return map_get(catalog->templates, make_path(path, tenant, key));
}

ChannelSet catalog_entry_channels(const TemplateEntry *entry)
{
    ChannelSet set = 0;
    for (size_t i = 0; entry != NULL && i < entry->count; i++) {
        set |= 1U << entry->versions[i].channel;
    }
    return set;
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

Version *catalog_entry_version(const TemplateEntry *entry, Channel channel, Str text)
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

const char *catalog_supersedes(const Version *version)
{
    const char *text = version->notes;
    for (int i = 0; i < NOTE_SUPERSEDES; i++) {
        text += strlen(text) + 1;
    }
    return text;
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
    TemplateEntry *entry = catalog_entry(catalog, tenant, named->key);
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
    bool ok = event != NULL && catalog_check_tenant(tenant, event->tenant, err);
    ok =
        ok && check_template(event, &named, err) && put_version(catalog, event, named.channel, err);
    arena_free(arena);
    return ok;
}
