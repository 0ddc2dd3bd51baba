// SPDX-License-Identifier: Apache-2.0
// Open addressing with linear probing; a removal moves later keys of the run back, so there are no
// tombstones.
#include "common/base/map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"

enum { FIRST_SLOTS = 16 };

typedef struct Slot {
    char *key; // NULL: free
    size_t key_len;
    uint64_t hash;
    void *value;
} Slot;

struct Map {
    Slot *slots;
    size_t mask; // slots - 1; their number is a power of two
    size_t count;
    MapFreeValue free_value;
};

Map *map_new(MapFreeValue free_value)
{
    Map *map = xcalloc(1, sizeof *map);
    map->slots = xcalloc(FIRST_SLOTS, sizeof *map->slots);
    map->mask = FIRST_SLOTS - 1;
    map->free_value = free_value;
    return map;
}

static void free_value(const Map *map, void *value)
{
    if (map->free_value != NULL && value != NULL) {
        map->free_value(value);
    }
}

void map_free(Map *map)
{
    if (map == NULL) {
        return;
    }
    for (size_t i = 0; i <= map->mask; i++) {
        if (map->slots[i].key != NULL) {
            free_value(map, map->slots[i].value);
            free(map->slots[i].key);
        }
    }
    free(map->slots);
    free(map);
}

// FNV-1a's low bits are weak for keys that differ in their last bytes only; the high half is mixed
// in.
static uint64_t hash_key(Str key)
{
    uint64_t hash = str_hash(key);
    return hash ^ (hash >> 32);
}

// The slot of the key, or the free one where it would go. The load is at most 3/4, so there is a
// free one.
static Slot *find_slot(const Map *map, Str key, uint64_t hash)
{
    for (size_t i = (size_t)hash & map->mask;; i = (i + 1) & map->mask) {
        Slot *slot = &map->slots[i];
        if (slot->key == NULL) {
            return slot;
        }
        if (slot->hash == hash && str_eq((Str){slot->key, slot->key_len}, key)) {
            return slot;
        }
    }
}

void *map_get(const Map *map, Str key)
{
    return find_slot(map, key, hash_key(key))->value;
}

static void grow(Map *map)
{
    size_t old_count = map->mask + 1;
    Slot *old = map->slots;
    map->slots = xcalloc(old_count * 2, sizeof *map->slots);
    map->mask = old_count * 2 - 1;
    for (size_t i = 0; i < old_count; i++) {
        if (old[i].key != NULL) {
            *find_slot(map, (Str){old[i].key, old[i].key_len}, old[i].hash) = old[i];
        }
    }
    free(old);
}

void map_put(Map *map, Str key, void *value)
{
    assert(value != NULL);
    uint64_t hash = hash_key(key);
    Slot *slot = find_slot(map, key, hash);
    if (slot->key != NULL) {
        if (slot->value != value) {
            free_value(map, slot->value);
        }
        slot->value = value;
        return;
    }
    if ((map->count + 1) * 4 > (map->mask + 1) * 3) {
        grow(map);
        slot = find_slot(map, key, hash);
    }
    char *copy = xmalloc(key.len);
    if (key.len > 0) {
        memcpy(copy, key.ptr, key.len);
    }
    *slot = (Slot){copy, key.len, hash, value};
    map->count++;
}

// Closes the gap at `hole`: each later slot of the run whose home is not after the hole moves into
// it.
static void close_gap(Map *map, size_t hole)
{
    for (size_t i = (hole + 1) & map->mask; map->slots[i].key != NULL; i = (i + 1) & map->mask) {
        size_t home = (size_t)map->slots[i].hash & map->mask;
        if (((i - home) & map->mask) >= ((i - hole) & map->mask)) {
            map->slots[hole] = map->slots[i];
            hole = i;
        }
    }
    map->slots[hole] = (Slot){0};
}

bool map_remove(Map *map, Str key)
{
    Slot *slot = find_slot(map, key, hash_key(key));
    if (slot->key == NULL) {
        return false;
    }
    char *old_key = slot->key;
    void *old_value = slot->value;
    close_gap(map, (size_t)(slot - map->slots));
    map->count--;
    // Last, because `key` may be the slot's own and free_value may look into the map.
    free(old_key);
    free_value(map, old_value);
    return true;
}

size_t map_count(const Map *map)
{
    return map->count;
}

bool map_next(const Map *map, size_t *cursor, Str *ret_key, void **ret_value)
{
    while (*cursor <= map->mask) {
        const Slot *slot = &map->slots[(*cursor)++];
        if (slot->key != NULL) {
            *ret_key = str_of(slot->key, slot->key_len);
            *ret_value = slot->value;
            return true;
        }
    }
    return false;
}
