// SPDX-License-Identifier: Apache-2.0
#include "common/render/assets.h"

#include <stdlib.h>
#include <string.h>

#include "common/codec/event.h"
#include "common/codec/hash.h"

#define PLATFORM STR("platform")

struct Assets {
    Map *tenants; // of maps by name
};

// ---- the table ----

static void free_asset(void *value)
{
    Asset *asset = value;
    free(asset->updated_by);
    free(asset);
}

static void free_names(void *value)
{
    map_free(value);
}

Assets *assets_new(void)
{
    Assets *assets = xcalloc(1, sizeof *assets);
    assets->tenants = map_new(free_names);
    return assets;
}

void assets_free(Assets *assets)
{
    if (assets != NULL) {
        map_free(assets->tenants);
        free(assets);
    }
}

static Asset *asset_of(const Stentor__V1__TemplateAsset *entry, uint64_t sequence)
{
    Asset *asset = xcalloc(1, sizeof *asset);
    (void)str_to_c(str_from(entry->name), asset->name, sizeof asset->name);
    hex_encode(entry->sha256.data, entry->sha256.len, asset->hex);
    asset->type = asset_type_from_name(str_from(entry->content_type));
    asset->size_bytes = entry->size_bytes;
    asset->updated_at_us = entry->updated_at_us;
    asset->updated_by = xstrdup(entry->updated_by);
    asset->sequence = sequence;
    return asset;
}

static bool check_entry(const Stentor__V1__TemplateAsset *entry, Str tenant, Str name, Error *err)
{
    bool fits = str_eq(str_from(entry->tenant), tenant) && str_eq(str_from(entry->name), name) &&
                asset_is_name(name) && entry->sha256.len == ASSET_HASH_LEN &&
                asset_type_from_name(str_from(entry->content_type)) != ASSET_NONE;
    return fits || error_set(
                       err, ERROR_PERMANENT, "not the asset '" STR_FMT "' of its tenant",
                       STR_ARG(str_slice(name, 0, ASSET_NAME_MAX)));
}

bool assets_put(Assets *assets, Str tenant, Str name, Str payload, uint64_t sequence, Error *err)
{
    Map *names = map_get(assets->tenants, tenant);
    if (payload.len == 0) {
        (void)(names != NULL && map_remove(names, name));
        return true;
    }
    Arena *arena = arena_new(0);
    const Stentor__V1__TemplateAsset *entry = (const Stentor__V1__TemplateAsset *)event_unpack(
        &stentor__v1__template_asset__descriptor, payload, arena, err);
    bool ok = entry != NULL && check_entry(entry, tenant, name, err);
    if (ok && names == NULL) {
        names = map_new(free_asset);
        map_put(assets->tenants, tenant, names);
    }
    if (ok) {
        map_put(names, name, asset_of(entry, sequence));
    }
    arena_free(arena);
    return ok;
}

const Asset *assets_own(const Assets *assets, Str tenant, Str name)
{
    const Map *names = map_get(assets->tenants, tenant);
    return names == NULL ? NULL : map_get(names, name);
}

const Asset *assets_get(const Assets *assets, Str tenant, Str name, Str *ret_tenant)
{
    const Asset *asset = assets_own(assets, tenant, name);
    *ret_tenant = tenant;
    if (asset == NULL) {
        *ret_tenant = PLATFORM;
        asset = assets_own(assets, PLATFORM, name);
    }
    return asset;
}

size_t assets_count(const Assets *assets, Str tenant)
{
    const Map *names = map_get(assets->tenants, tenant);
    return names == NULL ? 0 : map_count(names);
}

bool assets_name(const Assets *assets, Str tenant, Str hex)
{
    const Map *names = map_get(assets->tenants, tenant);
    Str name;
    void *value = NULL;
    for (size_t i = 0; names != NULL && map_next(names, &i, &name, &value);) {
        if (str_eq(str_from(((const Asset *)value)->hex), hex)) {
            return true;
        }
    }
    return false;
}

static int by_name(const void *a, const void *b)
{
    const Asset *const *left = a;
    const Asset *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

size_t assets_list(
    const Assets *assets, Str tenant, Str after, size_t limit, Arena *arena, const Asset ***ret)
{
    const Map *names = map_get(assets->tenants, tenant);
    size_t count = 0;
    Str name;
    void *value = NULL;
    *ret = arena_array(arena, assets_count(assets, tenant), sizeof **ret);
    for (size_t i = 0; names != NULL && map_next(names, &i, &name, &value);) {
        if (str_cmp(name, after) > 0) {
            (*ret)[count++] = value;
        }
    }
    if (count > 1) {
        qsort(*ret, count, sizeof **ret, by_name);
    }
    return count < limit ? count : limit;
}

// ---- addresses ----

bool asset_find_address(void *ctx, Str name, Buf *out, Error *err)
{
    AssetLookup *lookup = ctx;
    char path[ASSET_PLACE_SIZE];
    Str shown = str_slice(name, 0, ASSET_NAME_MAX);
    AssetPlace place;
    const Asset *asset = assets_get(lookup->assets, lookup->tenant, name, &place.tenant);
    if (asset == NULL) {
        lookup->missed = true;
        return error_set(
            err, ERROR_PERMANENT, "there is no asset '" STR_FMT "'; put it: stentor asset put",
            STR_ARG(shown));
    }
    if (lookup->public_url.len == 0) {
        return error_set(
            err, ERROR_PERMANENT,
            "asset '" STR_FMT "' has no address: STENTOR_RENDERER_PUBLIC_URL is not set",
            STR_ARG(shown));
    }
    place.hex = str_from(asset->hex);
    place.type = asset->type;
    asset_path(&place, path);
    return buf_str(out, lookup->public_url) && buf_cstr(out, path);
}

// ---- which a version names ----

typedef struct Names {
    Str *at;
    size_t count, max;
    Arena *arena;
} Names;

static void note_name(void *ctx, Str name)
{
    Names *names = ctx;
    for (size_t i = 0; i < names->count; i++) {
        if (str_eq(names->at[i], name)) {
            return;
        }
    }
    if (names->count < names->max) {
        names->at[names->count++] = arena_str(names->arena, name);
    }
}

static void note_names(const CompiledLocale *locale, Names *names)
{
    const Template *const parts[] = {locale->subject, locale->preheader, locale->html,
                                     locale->text,    locale->title,     locale->data};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i] != NULL) {
            template_assets(parts[i], note_name, names);
        }
    }
    for (size_t i = 0; i < locale->parameter_count; i++) {
        template_assets(locale->parameters[i], note_name, names);
    }
}

size_t version_assets(const CompiledVersion *version, size_t max, Arena *arena, Str *ret)
{
    Names names = {.at = ret, .max = max, .arena = arena};
    for (size_t i = 0; i < version->locale_count; i++) {
        note_names(&version->locales[i], &names);
    }
    return names.count;
}
