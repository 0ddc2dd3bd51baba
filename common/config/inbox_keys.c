// SPDX-License-Identifier: Apache-2.0
#include "common/config/inbox_keys.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/map.h"
#include "common/codec/event.h"

#define SECRET_FIELD "inbox_key"

enum { SECRET_LEN = 32 };

static_assert(4 * ((SECRET_LEN + 2) / 3) <= INBOX_SECRET_SIZE, "a secret's text fits");

struct InboxKeys {
    MasterKey *master;
    Map *known; // id -> InboxKeyKnown
};

// ---- the entry ----

bool inbox_keys_are_whole(const Stentor__V1__InboxKeys *entry)
{
    bool whole = entry->tenant[0] != '\0' && entry->n_keys > 0 && entry->n_keys <= INBOX_KEYS_MAX;
    for (size_t i = 0; whole && i < entry->n_keys; i++) {
        const Stentor__V1__InboxKey *key = entry->keys[i];
        whole = id_parse(str_from(key->id), INBOX_KEY_PREFIX, NULL) && key->secret != NULL;
        for (size_t k = 0; whole && k < i; k++) {
            whole = strcmp(key->id, entry->keys[k]->id) != 0;
        }
    }
    return whole;
}

static bool open_secret(
    DataKey *own, const char *tenant, const Stentor__V1__InboxKey *key, Arena *arena, Str *ret,
    Error *err)
{
    return unseal(
        own, str_from(tenant), str_from(key->id), SECRET_FIELD, key->secret, arena, ret, err);
}

static void seal_again(DataKey *own, Stentor__V1__InboxKeys *entry, Arena *arena)
{
    for (size_t i = 0; i < entry->n_keys; i++) {
        Str text = STR_EMPTY;
        Stentor__V1__InboxKey *key = entry->keys[i];
        if (open_secret(own, entry->tenant, key, arena, &text, NULL)) {
            key->secret =
                seal(own, str_from(entry->tenant), str_from(key->id), SECRET_FIELD, text, arena);
        }
    }
}

Stentor__V1__InboxKey *inbox_keys_add(
    Stentor__V1__InboxKeys *entry, MasterKey *master, int64_t now_us, Arena *arena,
    char ret_secret[INBOX_SECRET_SIZE])
{
    assert(entry->n_keys < INBOX_KEYS_MAX);
    uint8_t bytes[SECRET_LEN];
    Stentor__V1__InboxKey **keys = arena_array(arena, INBOX_KEYS_MAX, sizeof *keys);
    Stentor__V1__InboxKey *key = arena_alloc(arena, sizeof *key);
    DataKey *own = data_key_for_tenant(master, str_from(entry->tenant));
    seal_again(own, entry, arena);
    stentor__v1__inbox_key__init(key);
    key->id = arena_alloc(arena, ID_SIZE);
    id_new(INBOX_KEY_PREFIX, now_us, key->id);
    random_bytes(bytes, sizeof bytes);
    base64url_encode(bytes, sizeof bytes, ret_secret);
    OPENSSL_cleanse(bytes, sizeof bytes);
    key->secret = seal(
        own, str_from(entry->tenant), str_from(key->id), SECRET_FIELD, str_from(ret_secret), arena);
    key->created_at_us = now_us;
    data_key_free(own);
    for (size_t i = 0; i < entry->n_keys; i++) {
        keys[i] = entry->keys[i];
    }
    keys[entry->n_keys++] = key;
    entry->keys = keys;
    return key;
}

bool inbox_keys_remove(Stentor__V1__InboxKeys *entry, Str id)
{
    size_t kept = 0;
    for (size_t i = 0; i < entry->n_keys; i++) {
        if (!str_eq(str_from(entry->keys[i]->id), id)) {
            entry->keys[kept++] = entry->keys[i];
        }
    }
    bool removed = kept < entry->n_keys;
    entry->n_keys = kept;
    return removed;
}

// ---- all, in memory ----

static void free_known(void *value)
{
    OPENSSL_cleanse(value, sizeof(InboxKeyKnown));
    free(value);
}

InboxKeys *inbox_keys_new(MasterKey *master)
{
    InboxKeys *keys = xcalloc(1, sizeof *keys);
    keys->master = master;
    keys->known = map_new(free_known);
    return keys;
}

void inbox_keys_free(InboxKeys *keys)
{
    if (keys != NULL) {
        map_free(keys->known);
        free(keys);
    }
}

static void forget(InboxKeys *keys, Str tenant)
{
    Str ids[INBOX_KEYS_MAX];
    size_t count = 0;
    size_t at = 0;
    Str id;
    void *value;
    while (count < INBOX_KEYS_MAX && map_next(keys->known, &at, &id, &value)) {
        if (str_eq(str_from(((InboxKeyKnown *)value)->tenant), tenant)) {
            ids[count++] = id;
        }
    }
    for (size_t i = 0; i < count; i++) {
        char text[ID_SIZE];
        (void)str_to_c(ids[i], text, sizeof text); // the map's own copy goes with the key
        (void)map_remove(keys->known, str_from(text));
    }
}

static bool learn(InboxKeys *keys, const Stentor__V1__InboxKeys *entry, Arena *arena, Error *err)
{
    bool good = true;
    DataKey *own = data_key_for_tenant(keys->master, str_from(entry->tenant));
    for (size_t i = 0; i < entry->n_keys; i++) {
        Str secret = STR_EMPTY;
        InboxKeyKnown *known = xcalloc(1, sizeof *known);
        (void)str_to_c(str_from(entry->tenant), known->tenant, sizeof known->tenant);
        bool opened = open_secret(own, entry->tenant, entry->keys[i], arena, &secret, err) &&
                      str_to_c(secret, known->secret, sizeof known->secret);
        if (opened) {
            map_put(keys->known, str_from(entry->keys[i]->id), known);
        } else {
            free_known(known);
        }
        good = good && opened;
    }
    data_key_free(own);
    return good;
}

static bool replace(InboxKeys *keys, Str tenant, Str payload, Arena *arena, Error *err)
{
    const Stentor__V1__InboxKeys *entry = (const Stentor__V1__InboxKeys *)event_unpack(
        &stentor__v1__inbox_keys__descriptor, payload, arena, err);
    if (entry == NULL) {
        return false;
    }
    if (!inbox_keys_are_whole(entry) || !str_eq(str_from(entry->tenant), tenant)) {
        return error_set(err, ERROR_PERMANENT, "no keys of this tenant's inboxes");
    }
    forget(keys, tenant);
    return learn(keys, entry, arena, err);
}

bool inbox_keys_put(InboxKeys *keys, Str tenant, Str payload, Error *err)
{
    if (payload.len == 0) {
        forget(keys, tenant);
        return true;
    }
    Arena *arena = arena_new(0);
    bool good = replace(keys, tenant, payload, arena, err);
    arena_free(arena);
    return good;
}

const InboxKeyKnown *inbox_keys_find(const InboxKeys *keys, Str id)
{
    return map_get(keys->known, id);
}
