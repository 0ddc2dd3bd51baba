// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "common/request/catalog_internal.h"

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
        .supersedes = catalog_supersedes(version),
    };
}

static int by_precedence(const void *a, const void *b)
{
    const CatalogVersion *x = a;
    const CatalogVersion *y = b;
    return semver_compare(str_from(x->version), str_from(y->version));
}

ChannelSet catalog_channels(const Catalog *catalog, Str tenant, Str key)
{
    return catalog_entry_channels(catalog_entry(catalog, tenant, key));
}

size_t catalog_versions(
    const Catalog *catalog, Str tenant, CatalogName name, Arena *arena, CatalogVersion **ret)
{
    const TemplateEntry *entry = catalog_entry(catalog, tenant, name.key);
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
    const TemplateEntry *entry = catalog_entry(catalog, tenant, name.key);
    const Version *found = NULL;
    if (entry != NULL && version.len > 0) {
        found = catalog_entry_version(entry, name.channel, version);
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
        ChannelSet channels = own ? catalog_entry_channels(value) : 0;
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
