// SPDX-License-Identifier: Apache-2.0
#include "common/render/template_cache.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/id.h"
#include "common/base/map.h"
#include "common/codec/event.h"
#include "common/model/template_key.h"

enum { NAME_SIZE = 256, VERSION_LEN_MAX = 64 };

#define PLATFORM STR("platform")

// One version. The compiled ones are in a list, the most recently used first.
typedef struct Entry {
    TemplateCache *cache;
    Channel channel;
    bool draft;
    int64_t archived_at_us; // 0: it is not
    char *bytes;
    size_t len;
    CompiledVersion *compiled;
    struct Entry *newer;
    struct Entry *older;
} Entry;

struct TemplateCache {
    Map *entries; // "<tenant>/" and the key of the subject
    Entry *newest;
    Entry *oldest;
    size_t compiled_count;
    size_t compiled_max;
};

// ---- the list of the compiled ----

static void unlink_entry(Entry *entry)
{
    TemplateCache *cache = entry->cache;
    *(entry->newer != NULL ? &entry->newer->older : &cache->newest) = entry->older;
    *(entry->older != NULL ? &entry->older->newer : &cache->oldest) = entry->newer;
    entry->newer = NULL;
    entry->older = NULL;
}

static void link_newest(Entry *entry)
{
    TemplateCache *cache = entry->cache;
    entry->older = cache->newest;
    *(cache->newest != NULL ? &cache->newest->newer : &cache->oldest) = entry;
    cache->newest = entry;
}

static void forget_compiled(Entry *entry)
{
    if (entry->compiled != NULL) {
        unlink_entry(entry);
        version_free(entry->compiled);
        entry->compiled = NULL;
        entry->cache->compiled_count--;
    }
}

static const CompiledVersion *use(Entry *entry)
{
    TemplateCache *cache = entry->cache;
    if (entry->compiled != NULL) {
        if (cache->newest != entry) {
            unlink_entry(entry);
            link_newest(entry);
        }
        return entry->compiled;
    }
    if (cache->compiled_count >= cache->compiled_max) {
        forget_compiled(cache->oldest);
    }
    entry->compiled = version_compile(str_of(entry->bytes, entry->len));
    cache->compiled_count++;
    link_newest(entry);
    return entry->compiled;
}

// ---- the cache ----

static void free_entry(void *value)
{
    Entry *entry = value;
    forget_compiled(entry);
    free(entry->bytes);
    free(entry);
}

TemplateCache *template_cache_new(size_t compiled_max)
{
    TemplateCache *cache = xcalloc(1, sizeof *cache);
    cache->entries = map_new(free_entry);
    cache->compiled_max = compiled_max > 0 ? compiled_max : 1;
    return cache;
}

void template_cache_free(TemplateCache *cache)
{
    if (cache != NULL) {
        map_free(cache->entries);
        free(cache);
    }
}

// The empty name, which no entry has, when the parts are longer than any that are stored.
static Str make_name(char out[NAME_SIZE], Str tenant, Str key)
{
    if (tenant.len + 1 + key.len > NAME_SIZE || key.len == 0) {
        return STR_EMPTY;
    }
    memcpy(out, tenant.ptr, tenant.len);
    out[tenant.len] = '/';
    memcpy(out + tenant.len + 1, key.ptr, key.len);
    return str_of(out, tenant.len + 1 + key.len);
}

static bool check_names(const Stentor__V1__TemplateVersion *source, Str tenant, Error *err)
{
    if (!id_is_tenant(tenant) || !str_eq(tenant, str_from(source->tenant))) {
        return error_set(
            err, ERROR_PERMANENT, "the entry's tenant '%.40s' is not the subject's '%.*s'",
            source->tenant, STR_ARG(str_slice(tenant, 0, 40)));
    }
    size_t version_len = strlen(source->version);
    if (!id_is_key(str_from(source->key)) || version_len == 0 || version_len > VERSION_LEN_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "'%.70s' version '%.70s' is not a template's key and version",
            source->key, source->version);
    }
    return true;
}

// Is this payload the version that its subject speaks of?
static bool check_payload(
    Str key, Str tenant, Str payload, Channel *ret_channel, Stentor__V1__TemplateStatus *ret_status,
    Error *err)
{
    Arena *arena = arena_new(0);
    TemplateKey named = {.channel = CHANNEL_NONE};
    const Stentor__V1__TemplateVersion *source = (const Stentor__V1__TemplateVersion *)event_unpack(
        &stentor__v1__template_version__descriptor, payload, arena, err);
    bool ok = source != NULL && check_names(source, tenant, err);
    char own[TEMPLATE_KEY_SIZE];
    if (ok) {
        *ret_channel = template_channel((int)source->channel);
        *ret_status = source->status;
        bool place =
            template_key_parse(key, &named) &&
            (named.channel == CHANNEL_NONE || named.channel == *ret_channel) &&
            str_eq(
                key, template_key_write(
                         own, str_from(source->key), named.channel, str_from(source->version)));
        ok = place || error_set(
                          err, ERROR_PERMANENT,
                          "template '%.64s' version '%.64s' came on the subject of another version",
                          source->key, source->version);
    }
    arena_free(arena);
    return ok;
}

bool template_cache_put(
    TemplateCache *cache, Str tenant, Str key, Str payload, int64_t stored_at_us, Error *err)
{
    char buffer[NAME_SIZE];
    Channel channel = CHANNEL_NONE;
    Stentor__V1__TemplateStatus status = 0;
    Str name = make_name(buffer, tenant, key);
    if (payload.len == 0) {
        (void)map_remove(cache->entries, name);
        return true;
    }
    if (!check_payload(key, tenant, payload, &channel, &status, err)) {
        return false;
    }
    Entry *entry = xcalloc(1, sizeof *entry);
    entry->cache = cache;
    entry->channel = channel;
    entry->draft = status == STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_DRAFT;
    bool archived = status == STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ARCHIVED;
    entry->archived_at_us = archived ? stored_at_us : 0;
    entry->bytes = xmalloc(payload.len);
    memcpy(entry->bytes, payload.ptr, payload.len);
    entry->len = payload.len;
    map_put(cache->entries, name, entry);
    return true;
}

static Entry *find(const TemplateCache *cache, Str tenant, const TemplateName *wanted)
{
    char name[NAME_SIZE];
    char key[TEMPLATE_KEY_SIZE];
    Str own = template_key_write(key, wanted->key, wanted->channel, wanted->version);
    Entry *entry = map_get(cache->entries, make_name(name, tenant, own));
    if (entry == NULL) {
        own = template_key_write(key, wanted->key, CHANNEL_NONE, wanted->version);
        entry = map_get(cache->entries, make_name(name, tenant, own));
    }
    return entry != NULL && entry->channel == wanted->channel ? entry : NULL;
}

// No request is frozen to a tenant's draft, nor to what the tenant had archived before, where the
// platform has the version: it means that one.
static bool gives_way(const Entry *own, int64_t asked_at_us)
{
    return own == NULL || own->draft ||
           (own->archived_at_us > 0 && asked_at_us >= own->archived_at_us);
}

const CompiledVersion *template_cache_get(TemplateCache *cache, const TemplateName *wanted)
{
    if (wanted->version.len == 0) {
        return NULL;
    }
    Entry *own = find(cache, wanted->tenant, wanted);
    Entry *shared = gives_way(own, wanted->asked_at_us) ? find(cache, PLATFORM, wanted) : NULL;
    Entry *entry = shared != NULL && (own == NULL || own->draft || !shared->draft) ? shared : own;
    return entry == NULL ? NULL : use(entry);
}

// ---- the active version ----

// Is this entry an active version of the template, and above the one that was found before?
static void consider(
    const Entry *entry, Str key, int (*compare)(Str a, Str b), char ret[TEMPLATE_VERSION_SIZE])
{
    Arena *arena = arena_new(0);
    const Stentor__V1__TemplateVersion *source = (const Stentor__V1__TemplateVersion *)event_unpack(
        &stentor__v1__template_version__descriptor, str_of(entry->bytes, entry->len), arena, NULL);
    if (source != NULL && str_eq(str_from(source->key), key) &&
        source->status == STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE &&
        (ret[0] == '\0' || compare(str_from(source->version), str_from(ret)) > 0)) {
        (void)str_to_c(str_from(source->version), ret, TEMPLATE_VERSION_SIZE);
    }
    arena_free(arena);
}

static bool find_active(
    const TemplateCache *cache, Str tenant, const TemplateName *wanted,
    int (*compare)(Str a, Str b), char ret[TEMPLATE_VERSION_SIZE])
{
    char buffer[NAME_SIZE];
    Str prefix = make_name(buffer, tenant, wanted->key); // of other keys' versions too
    Str name;
    void *value;
    ret[0] = '\0';
    for (size_t i = 0; prefix.len > 0 && map_next(cache->entries, &i, &name, &value);) {
        if (str_starts(name, prefix) && ((const Entry *)value)->channel == wanted->channel) {
            consider(value, wanted->key, compare, ret);
        }
    }
    return ret[0] != '\0';
}

bool template_cache_active(
    const TemplateCache *cache, const TemplateName *wanted, int (*compare)(Str a, Str b),
    char ret[TEMPLATE_VERSION_SIZE])
{
    return find_active(cache, wanted->tenant, wanted, compare, ret) ||
           find_active(cache, PLATFORM, wanted, compare, ret);
}

size_t template_cache_count(const TemplateCache *cache)
{
    return map_count(cache->entries);
}

size_t template_cache_compiled(const TemplateCache *cache)
{
    return cache->compiled_count;
}
