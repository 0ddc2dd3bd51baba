// SPDX-License-Identifier: Apache-2.0
#include "common/db/key_cache.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/map.h"

typedef struct EntryList {
    KeyEntry *head;
    KeyEntry *tail;
} EntryList;

struct KeyCache {
    size_t max;
    uint64_t live_ms;
    Map *by_name;
    EntryList by_age; // all live equally long, so the oldest expires first
    EntryList graves;
};

static void append(EntryList *list, KeyEntry *entry)
{
    entry->next = NULL;
    if (list->tail != NULL) {
        list->tail->next = entry;
    } else {
        list->head = entry;
    }
    list->tail = entry;
}

static KeyEntry *take_first(EntryList *list)
{
    KeyEntry *entry = list->head;
    list->head = entry->next;
    if (list->head == NULL) {
        list->tail = NULL;
    }
    return entry;
}

static void free_entry(KeyEntry *entry)
{
    data_key_free(entry->key);
    free(entry);
}

static void free_list(EntryList *list)
{
    while (list->head != NULL) {
        free_entry(take_first(list));
    }
}

KeyCache *key_cache_new(size_t max, uint64_t live_ms)
{
    KeyCache *cache = xcalloc(1, sizeof *cache);
    cache->max = max;
    cache->live_ms = live_ms;
    cache->by_name = map_new(NULL);
    return cache;
}

void key_cache_free(KeyCache *cache)
{
    if (cache == NULL) {
        return;
    }
    free_list(&cache->by_age);
    free_list(&cache->graves);
    map_free(cache->by_name);
    free(cache);
}

KeyEntry *key_cache_get(const KeyCache *cache, Str name)
{
    return map_get(cache->by_name, name);
}

void key_cache_keep(KeyEntry *entry)
{
    entry->references++;
}

void key_cache_release(KeyCache *cache, KeyEntry *entry, uint64_t now_ms)
{
    assert(entry->references > 0);
    if (--entry->references == 0) {
        entry->until_ms = now_ms + KEY_GRACE_MS;
        append(&cache->graves, entry);
    }
}

// Its place in the order of age stays until it comes to the front: the list is only taken from
// there.
static void hide(KeyCache *cache, KeyEntry *entry)
{
    if (entry->cached) {
        entry->cached = false;
        map_remove(cache->by_name, str_of(entry->name, entry->name_len));
    }
}

KeyEntry *key_cache_add(KeyCache *cache, Str name, DataKey *key, uint64_t now_ms)
{
    assert(name.len <= KEY_NAME_MAX);
    KeyEntry *old = key_cache_get(cache, name);
    if (old != NULL) {
        hide(cache, old);
    }
    KeyEntry *entry = xcalloc(1, sizeof *entry);
    entry->key = key;
    entry->references = 2; // the cache's and the caller's
    entry->cached = true;
    entry->until_ms = now_ms + cache->live_ms;
    entry->name_len = (uint8_t)name.len;
    memcpy(entry->name, name.ptr, name.len);
    map_put(cache->by_name, name, entry);
    append(&cache->by_age, entry);
    return entry;
}

void key_cache_sweep(KeyCache *cache, uint64_t now_ms)
{
    while (cache->graves.head != NULL && cache->graves.head->until_ms < now_ms) {
        free_entry(take_first(&cache->graves));
    }
    while (cache->by_age.head != NULL &&
           (cache->by_age.head->until_ms <= now_ms || map_count(cache->by_name) > cache->max)) {
        KeyEntry *entry = take_first(&cache->by_age);
        hide(cache, entry);
        key_cache_release(cache, entry, now_ms);
    }
}
