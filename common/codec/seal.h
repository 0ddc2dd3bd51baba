// SPDX-License-Identifier: Apache-2.0
// Sealing: AES-256-GCM under a recipient's data key; data keys wrapped by the master key.
// The associated data binds a field to its tenant, notification and name, so that a ciphertext
// cannot be moved.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "stentor/v1/common.pb-c.h"

enum {
    SEAL_KEY_LEN = 32,
    SEAL_NONCE_LEN = 12,
    SEAL_TAG_LEN = 16,
    WRAPPED_KEY_LEN = SEAL_NONCE_LEN + SEAL_KEY_LEN + SEAL_TAG_LEN
};

// One recipient's data key, ready to use (its cipher contexts are set up once). Opaque; not for two
// threads at once.
typedef struct DataKey DataKey;

typedef struct MasterKey MasterKey;

// Text of a master key file: 64 hex digits for the master key, a line break, 64 hex digits for the
// hash key. ERROR_CONFIG when it is not that.
MasterKey *master_key_parse(Str text, Error *err);
void master_key_generate(char out[132]);      // such a text, random, with line breaks and NUL
void master_key_free(MasterKey *master);      // cleansed
Str master_hash_key(const MasterKey *master); // 32 bytes
// A key for one purpose ("stentor opt-out"; at most 63 bytes, no '|'), derived by HKDF: who learns
// it learns nothing of the master key.
void master_key_derive(const MasterKey *master, const char *purpose, uint8_t out[SEAL_KEY_LEN]);

// A fresh random data key for `subject`, and its wrapped form for the key table.
DataKey *data_key_new(
    MasterKey *master, const uint8_t subject[16], uint32_t generation,
    uint8_t ret_wrapped[WRAPPED_KEY_LEN]);
// ERROR_PERMANENT when the wrapped bytes were not made by this master key for this subject and
// generation.
DataKey *data_key_unwrap(
    MasterKey *master, const uint8_t subject[16], uint32_t generation, Str wrapped, Error *err);
// The tenant's own key, derived from the master key (HKDF), generation 0: for what must be kept
// without Postgres.
DataKey *data_key_for_tenant(MasterKey *master, Str tenant);
void data_key_free(DataKey *key); // cleansed; NULL-safe
uint32_t data_key_generation(const DataKey *key);

// Everything the result points to lives in `arena`.
Stentor__V1__Sealed *seal(
    DataKey *key, Str tenant, Str notification_id, const char *field, Str plain, Arena *arena);
// ERROR_PERMANENT when it was altered, moved, or sealed under another key.
bool unseal(
    DataKey *key, Str tenant, Str notification_id, const char *field,
    const Stentor__V1__Sealed *sealed, Arena *arena, Str *ret_plain, Error *err);
