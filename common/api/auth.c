// SPDX-License-Identifier: Apache-2.0
#include "common/api/auth.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/id.h"
#include "common/base/map.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"

#define KEY_PREFIX STR("stn_")

typedef struct KeyEntry {
    uint8_t hash[SHA256_LEN];
    char tenant[TENANT_SIZE];
    int64_t created_at_us;
    int64_t revoked_at_us; // 0: not
    bool revoked;          // whatever the clock says
    int64_t expires_at_us; // 0: never
    ScopeSet scopes;
    HttpProxies *from; // NULL: anywhere
} KeyEntry;

static void free_entry(void *value)
{
    KeyEntry *entry = value;
    free(entry->from);
    free(entry);
}

struct Auth {
    Map *keys;       // key id -> KeyEntry
    KeyEntry no_key; // compared against when there is no such key; no text has its hash
};

Auth *auth_new(void)
{
    Auth *auth = xcalloc(1, sizeof *auth);
    auth->keys = map_new(free_entry);
    random_bytes(auth->no_key.hash, sizeof auth->no_key.hash);
    return auth;
}

void auth_free(Auth *auth)
{
    if (auth == NULL) {
        return;
    }
    map_free(auth->keys);
    free(auth);
}

// Key ids are written with or without the prefix; they are one.
static Str bare_id(Str key_id)
{
    return str_starts(key_id, KEY_PREFIX) ? str_slice(key_id, KEY_PREFIX.len, key_id.len) : key_id;
}

ScopeSet auth_scopes(const Stentor__V1__ApiKey *key)
{
    ScopeSet scopes = scope_set_from_names(key->scopes, key->n_scopes);
    bool platform = str_eq(str_from(key->tenant), AUTH_PLATFORM);
    return platform ? scopes : scopes & ~SCOPE_BIT(SCOPE_TENANTS_OPERATE);
}

// A key whose ranges cannot be read is none: it would be allowed from anywhere.
static bool take_ranges(const Stentor__V1__ApiKey *event, HttpProxies **ret, Error *err)
{
    HttpProxies *all = event->n_allowed_cidrs > 0 ? xcalloc(1, sizeof *all) : NULL;
    for (size_t i = 0; i < event->n_allowed_cidrs; i++) {
        HttpProxies one;
        bool good = http_proxies_parse(str_from(event->allowed_cidrs[i]), &one, err);
        if (!good || one.count != 1 || all->count == HTTP_PROXIES_MAX) {
            free(all);
            return error_set(
                err, ERROR_PERMANENT, "the API key's allowed_cidrs cannot be read: item %zu", i);
        }
        all->ranges[all->count++] = one.ranges[0];
    }
    *ret = all;
    return true;
}

static bool put_key(Auth *auth, Str tenant, const Stentor__V1__ApiKey *event, Error *err)
{
    Str key_id = bare_id(str_from(event->key_id));
    if (!id_is_tenant(tenant) || !str_eq(tenant, str_from(event->tenant))) {
        return error_set(err, ERROR_PERMANENT, "the API key's tenant differs from its subject's");
    }
    if (key_id.len == 0 || event->secret_hash.len != SHA256_LEN) {
        return error_set(err, ERROR_PERMANENT, "the API key has no id or no SHA-256");
    }
    const KeyEntry *before = map_get(auth->keys, key_id);
    if (before != NULL && !str_eq(str_from(before->tenant), tenant)) {
        return error_set(
            err, ERROR_PERMANENT, "key id '%.40s' belongs to tenant '%s' already", event->key_id,
            before->tenant);
    }
    HttpProxies *from = NULL;
    if (!take_ranges(event, &from, err)) {
        return false;
    }
    KeyEntry *entry = xcalloc(1, sizeof *entry);
    entry->from = from;
    memcpy(entry->hash, event->secret_hash.data, SHA256_LEN);
    (void)str_to_c(tenant, entry->tenant, sizeof entry->tenant);
    entry->created_at_us = event->created_at_us;
    entry->revoked_at_us = event->revoked_at_us;
    entry->revoked = event->revoked;
    entry->expires_at_us = event->expires_at_us;
    entry->scopes = auth_scopes(event);
    map_put(auth->keys, key_id, entry);
    return true;
}

bool auth_changed(Auth *auth, Str tenant, Str key_id, Str payload, Error *err)
{
    if (payload.len == 0) {
        const KeyEntry *entry = map_get(auth->keys, bare_id(key_id));
        if (entry != NULL && str_eq(str_from(entry->tenant), tenant)) {
            (void)map_remove(auth->keys, bare_id(key_id));
        }
        return true;
    }
    Arena *arena = arena_new(0);
    const Stentor__V1__ApiKey *event = (const Stentor__V1__ApiKey *)event_unpack(
        &stentor__v1__api_key__descriptor, payload, arena, err);
    bool ok = event != NULL && put_key(auth, tenant, event, err);
    arena_free(arena);
    return ok;
}

static Str bearer(Str authorization)
{
    Str scheme = STR("Bearer ");
    if (!str_eq_nocase(str_slice(authorization, 0, scheme.len), scheme)) {
        return STR_EMPTY;
    }
    return str_trim(str_slice(authorization, scheme.len, authorization.len));
}

static AuthVerdict judge(const KeyEntry *entry, int64_t now_us)
{
    if (entry->revoked || (entry->revoked_at_us != 0 && entry->revoked_at_us <= now_us)) {
        return AUTH_REVOKED;
    }
    bool expired = entry->expires_at_us != 0 && entry->expires_at_us <= now_us;
    return expired ? AUTH_EXPIRED : AUTH_OK;
}

AuthVerdict auth_check(const Auth *auth, Str authorization, int64_t now_us, AuthCaller *ret)
{
    Str key = str_slice(bearer(authorization), 0, AUTH_KEY_MAX);
    ptrdiff_t dot = str_find(key, '.');
    Str key_id = dot < 0 ? STR_EMPTY : bare_id(str_slice(key, 0, (size_t)dot));
    const KeyEntry *entry = map_get(auth->keys, key_id);
    if (entry == NULL) {
        entry = &auth->no_key;
    }
    uint8_t hash[SHA256_LEN];
    sha256(key, hash);
    if (CRYPTO_memcmp(hash, entry->hash, SHA256_LEN) != 0) {
        return AUTH_UNKNOWN;
    }
    AuthVerdict verdict = judge(entry, now_us);
    if (verdict != AUTH_OK) {
        return verdict;
    }
    memcpy(ret->tenant, entry->tenant, TENANT_SIZE);
    ret->key_id = key_id;
    ret->scopes = entry->scopes;
    ret->expires_at_us = entry->expires_at_us;
    ret->from = entry->from;
    return AUTH_OK;
}

bool auth_holds(const Auth *auth, Str key_id, Scope scope, int64_t now_us)
{
    const KeyEntry *entry = map_get(auth->keys, bare_id(key_id));
    return entry != NULL && judge(entry, now_us) == AUTH_OK &&
           (entry->scopes & SCOPE_BIT(scope)) != 0;
}

bool auth_is_withdrawn(const Auth *auth, Str key_id, int64_t now_us)
{
    const KeyEntry *entry = map_get(auth->keys, bare_id(key_id));
    return entry == NULL || judge(entry, now_us) == AUTH_REVOKED;
}

AuthEnding auth_ending(const Auth *auth, int64_t now_us, int64_t within_us)
{
    AuthEnding ending = {.first_us = INT64_MAX};
    Str key_id = STR_EMPTY;
    void *value = NULL;
    for (size_t i = 0; map_next(auth->keys, &i, &key_id, &value);) {
        const KeyEntry *entry = value;
        int64_t end_us = entry->expires_at_us;
        if (end_us == 0 || entry->revoked_at_us != 0 || judge(entry, now_us) != AUTH_OK ||
            end_us - entry->created_at_us <= within_us) {
            continue;
        }
        ending.soon += end_us - now_us <= within_us;
        ending.first_us = end_us < ending.first_us ? end_us : ending.first_us;
    }
    return ending;
}
