// SPDX-License-Identifier: Apache-2.0
// Keyring: recipients' data keys, from the table keys.data_keys, cached in memory with a short
// life. Asked for a batch at a time: one statement fetches what is missing, and one more creates
// what does not exist yet. A destroyed key (erasure) is not found again: its fields stay sealed for
// ever. Nor is a restricted one (an erasure under a hold), in whose place none is made either.
#pragma once

#include "common/codec/hash.h"
#include "common/codec/seal.h"
#include "common/db/db.h"

typedef struct Keyring Keyring;

typedef struct KeyringOptions {
    size_t cache_max; // keys in memory; 0: 100,000 (about 1 KiB each)
    int64_t cache_ms; // 0: 60,000; a destroyed key is forgotten after at most this
    bool found_only;  // no key is made: an absent one is answered like a destroyed one
    bool kept;        // also keys that a legal duty keeps of an erased person: for an operator only
} KeyringOptions;

// Borrows the pool and the master key.
Keyring *keyring_new(DbPool *pool, MasterKey *master, const KeyringOptions *options);
// What is still under way is answered by the pool, at the latest by its closing.
void keyring_free(Keyring *ring);

typedef struct KeyWant {
    Str tenant;
    uint8_t subject[16];
    uint32_t generation; // 0: the current one, created when there is none
    // Subjects of the same owner under older hash keys (keyring_want). With generation 0: a key
    // that is there under one of them is taken, so that a person has one key, before and after a
    // rotation of the hash key.
    uint8_t older[MASTER_KEYS_MAX - 1][16];
    size_t older_count;
    // The answer; NULL: destroyed or restricted, or (generation > 0) never existed. Valid until the
    // next loop turn.
    DataKey *key;
} KeyWant;

// A want of a recipient's current key: subject and older subjects (common/codec/hash.h).
KeyWant keyring_want(const Keyring *ring, DataKeyKind kind, Str tenant, Str recipient);
// The same of an address that belongs to no recipient.
KeyWant keyring_want_address(
    const Keyring *ring, DataKeyKind kind, Str tenant, Channel channel, Str address);

// Fills wants[i].key for all, then calls done once: before keyring_resolve returns when all were
// cached, else from the loop. err only when Postgres could not answer (ERROR_TRANSIENT), is
// closing, or holds a key that another master key has wrapped, or an epoch key that is missing for
// a minute (ERROR_CONFIG). `wants` is the caller's and must live until then. New keys are durable
// before done is called.
typedef void (*KeyringDone)(void *ctx, const Error *err);
void keyring_resolve(Keyring *ring, KeyWant *wants, size_t count, KeyringDone done, void *ctx);

MasterKey *keyring_master(const Keyring *ring); // the borrowed one
