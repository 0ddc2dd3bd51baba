// SPDX-License-Identifier: Apache-2.0
#include "services/renderer/template_cache.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/id.h"
#include "common/base/map.h"
#include "common/codec/event.h"
#include "common/model/enums.h"

enum { NAME_SIZE = 256, VERSION_LEN_MAX = 64 };

#define PLATFORM STR("platform")

// One version. The compiled ones are in a list, the most recently used first.
typedef struct Entry {
    TemplateCache *cache;
    char *bytes;
    size_t len;
    CompiledVersion *compiled;
    struct Entry *newer;
    struct Entry *older;
} Entry;

struct TemplateCache {
    Map *entries; // "<tenant>/<key>_<version>", dots as underscores
    Entry *newest;
    Entry *oldest;
    size_t compiled_count;
    size_t compiled_max;
};

// ---- compiling ----

static void free_version(CompiledVersion *version)
{
    if (version == NULL) {
        return;
    }
    for (size_t i = 0; i < version->locale_count; i++) {
        template_free(version->locales[i].subject);
        template_free(version->locales[i].html);
        template_free(version->locales[i].text);
    }
    template_set_free(version->html_partials);
    template_set_free(version->text_partials);
    body_prefix_free(version->prefix);
    arena_free(version->arena);
    free(version);
}

static bool compile_partials(CompiledVersion *version, Error *err)
{
    const Stentor__V1__TemplateVersion *source = version->source;
    version->html_partials = template_set_new();
    version->text_partials = template_set_new();
    for (size_t i = 0; i < source->n_partials; i++) {
        Str name = str_from(source->partials[i]->name);
        Str words = str_from(source->partials[i]->source);
        if (!template_set_add(version->html_partials, name, words, TEMPLATE_ESCAPE_HTML, err) ||
            !template_set_add(version->text_partials, name, words, TEMPLATE_ESCAPE_NONE, err)) {
            return false;
        }
    }
    return true;
}

// An empty source gives no template.
static bool compile_part(
    const char *part, const char *source, TemplateEscape escape, const TemplateSet *partials,
    Template **ret_template, Error *err)
{
    if (source[0] == '\0') {
        return true;
    }
    *ret_template = template_compile(str_from(source), escape, partials, err);
    return *ret_template != NULL || error_wrap(err, "%s", part);
}

static bool compile_locale(
    const CompiledVersion *version, const Stentor__V1__LocaleVariant *variant,
    CompiledLocale *locale, Error *err)
{
    const TemplateSet *plain = version->text_partials;
    locale->locale = variant->locale;
    if (variant->html[0] == '\0' && variant->text[0] == '\0') {
        return error_set(
            err, ERROR_PERMANENT, "locale '%.40s' has neither html nor text", variant->locale);
    }
    bool ok =
        compile_part(
            "subject", variant->subject, TEMPLATE_ESCAPE_NONE, plain, &locale->subject, err) &&
        compile_part(
            "html", variant->html, TEMPLATE_ESCAPE_HTML, version->html_partials, &locale->html,
            err) &&
        compile_part("text", variant->text, TEMPLATE_ESCAPE_NONE, plain, &locale->text, err);
    return ok || error_wrap(err, "locale '%.40s'", variant->locale);
}

static bool check_version(const Stentor__V1__TemplateVersion *source, Error *err)
{
    if (source->channel != STENTOR__V1__CHANNEL__CHANNEL_EMAIL) {
        return error_set(
            err, ERROR_PERMANENT, "it is a template of channel '%s', not of 'email'",
            channel_name((Channel)source->channel));
    }
    if (source->n_locales == 0 || source->n_locales > VERSION_LOCALES_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "it has %zu locales, 1 to %d are allowed", source->n_locales,
            VERSION_LOCALES_MAX);
    }
    if (source->n_variables > VERSION_VARIABLES_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "it has %zu variables, at most %d are allowed",
            source->n_variables, VERSION_VARIABLES_MAX);
    }
    return true;
}

static bool compile_locales(CompiledVersion *version, Error *err)
{
    const Stentor__V1__TemplateVersion *source = version->source;
    version->locales = arena_array(version->arena, source->n_locales, sizeof(CompiledLocale));
    for (size_t i = 0; i < source->n_locales; i++) {
        version->locale_count = i + 1;
        if (!compile_locale(version, source->locales[i], &version->locales[i], err)) {
            return false;
        }
    }
    return true;
}

// A version that does not compile is kept with its reason, so that it is not compiled for each
// request.
static CompiledVersion *compile_version(Str bytes)
{
    CompiledVersion *version = xcalloc(1, sizeof *version);
    Error *err = &version->broken;
    version->arena = arena_new(0);
    version->source = (const Stentor__V1__TemplateVersion *)event_unpack(
        &stentor__v1__template_version__descriptor, bytes, version->arena, err);
    if (version->source == NULL) {
        return version;
    }
    version->prefix = body_prefix_new(version->source);
    if (check_version(version->source, err) && compile_partials(version, err)) {
        (void)compile_locales(version, err);
    }
    return version;
}

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
        free_version(entry->compiled);
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
    entry->compiled = compile_version(str_of(entry->bytes, entry->len));
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

static bool append_token(char out[NAME_SIZE], size_t *len, Str text, char end)
{
    if (text.len + 1 > NAME_SIZE - *len) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        out[(*len)++] = c == '.' ? '_' : c;
    }
    if (end != '\0') {
        out[(*len)++] = end;
    }
    return true;
}

// The empty name, which no entry has, when the parts are longer than any that are stored.
static Str make_name(char out[NAME_SIZE], Str tenant, Str key, Str version)
{
    size_t len = 0;
    bool ok = append_token(out, &len, tenant, '/') &&
              append_token(out, &len, key, version.len > 0 ? '_' : '\0') &&
              append_token(out, &len, version, '\0');
    return str_of(out, ok ? len : 0);
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
static bool check_payload(Str name, Str tenant, Str payload, Error *err)
{
    Arena *arena = arena_new(0);
    const Stentor__V1__TemplateVersion *source = (const Stentor__V1__TemplateVersion *)event_unpack(
        &stentor__v1__template_version__descriptor, payload, arena, err);
    bool ok = source != NULL && check_names(source, tenant, err);
    char own[NAME_SIZE];
    if (ok &&
        !str_eq(name, make_name(own, tenant, str_from(source->key), str_from(source->version)))) {
        ok = error_set(
            err, ERROR_PERMANENT, "template '%.64s' version '%.64s' came on the subject of another",
            source->key, source->version);
    }
    arena_free(arena);
    return ok;
}

bool template_cache_put(TemplateCache *cache, Str tenant, Str key, Str payload, Error *err)
{
    char buffer[NAME_SIZE];
    Str name = make_name(buffer, tenant, key, STR_EMPTY);
    if (payload.len == 0) {
        (void)map_remove(cache->entries, name);
        return true;
    }
    if (!check_payload(name, tenant, payload, err)) {
        return false;
    }
    Entry *entry = xcalloc(1, sizeof *entry);
    entry->cache = cache;
    entry->bytes = xmalloc(payload.len);
    memcpy(entry->bytes, payload.ptr, payload.len);
    entry->len = payload.len;
    map_put(cache->entries, name, entry);
    return true;
}

const CompiledVersion *template_cache_get(TemplateCache *cache, Str tenant, Str key, Str version)
{
    char name[NAME_SIZE];
    if (version.len == 0) {
        return NULL;
    }
    Entry *entry = map_get(cache->entries, make_name(name, tenant, key, version));
    if (entry == NULL) {
        entry = map_get(cache->entries, make_name(name, PLATFORM, key, version));
    }
    return entry == NULL ? NULL : use(entry);
}

size_t template_cache_count(const TemplateCache *cache)
{
    return map_count(cache->entries);
}

size_t template_cache_compiled(const TemplateCache *cache)
{
    return cache->compiled_count;
}

// ---- locales ----

// "en" of "en-US" and of "en_US".
static Str language(Str locale)
{
    size_t len = 0;
    while (len < locale.len && locale.ptr[len] != '-' && locale.ptr[len] != '_') {
        len++;
    }
    return str_slice(locale, 0, len);
}

const CompiledLocale *version_locale(const CompiledVersion *version, Str wanted)
{
    const CompiledLocale *related = NULL;
    for (size_t i = 0; i < version->locale_count; i++) {
        Str locale = str_from(version->locales[i].locale);
        if (str_eq_nocase(locale, wanted)) {
            return &version->locales[i];
        }
        bool plain = str_eq_nocase(locale, language(wanted));
        bool alike = str_eq_nocase(language(locale), language(wanted));
        if (plain || (alike && related == NULL)) {
            related = &version->locales[i];
        }
    }
    return related != NULL ? related : &version->locales[0];
}
