// SPDX-License-Identifier: Apache-2.0
// The keyring's memory: data keys by name, each for a limited time, the oldest dropped first.
// Private to common/db. Law: a key that leaves is freed a while later, never in the loop turn in
// which it leaves, because a callback may hold it. Time is an argument (loop milliseconds).
#pragma once

#include "common/codec/seal.h"

enum {
    // Loop time stands still within a callback, so "a while later" is a later turn.
    KEY_GRACE_MS = 1000,
    KEY_NAME_MAX = 64,
};

typedef struct KeyCache KeyCache;

// One answer. Counted: the cache holds one reference, and each request that waits for Postgres one.
typedef struct KeyEntry {
    struct KeyEntry *next; // in the cache's order of age, then in the graveyard
    int references;
    bool cached;
    DataKey *key;      // NULL: destroyed
    uint64_t until_ms; // cached: it expires; buried: it may be freed after
    uint8_t name_len;
    char name[KEY_NAME_MAX];
} KeyEntry;

KeyCache *key_cache_new(size_t max, uint64_t live_ms);
void key_cache_free(KeyCache *cache); // no reference but its own may be left
void key_cache_sweep(
    KeyCache *cache, uint64_t now_ms); // drops the expired and what is over the maximum
KeyEntry *key_cache_get(const KeyCache *cache, Str name); // NULL: not there
// Takes over `key` (NULL: destroyed) and gives the caller a reference. An earlier entry of the name
// is replaced. May exceed the maximum until the next sweep: a batch is not torn apart.
KeyEntry *key_cache_add(KeyCache *cache, Str name, DataKey *key, uint64_t now_ms);
void key_cache_keep(KeyEntry *entry);
void key_cache_release(KeyCache *cache, KeyEntry *entry, uint64_t now_ms);
