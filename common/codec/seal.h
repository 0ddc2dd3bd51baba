// SPDX-License-Identifier: Apache-2.0
// Sealing: AES-256-GCM under a recipient's data key; data keys wrapped by an epoch key, or, in an
// installation without epoch keys, by a master key.
// The associated data binds a field to its tenant, notification and name, so that a ciphertext
// cannot be moved.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/codec/master_key.h"
#include "stentor/v1/common.pb-c.h"

enum {
    SEAL_KEY_LEN = 32,
    SEAL_NONCE_LEN = 12,
    SEAL_TAG_LEN = 16,
    // The first form: nonce, key, tag; by which master key, it does not say.
    WRAPPED_BARE_LEN = SEAL_NONCE_LEN + SEAL_KEY_LEN + SEAL_TAG_LEN,
    // In front of them since: form (1), kind of the wrapping key (WrapperKind), its id.
    WRAPPED_HEAD_LEN = 2 + KEY_ID_LEN,
    WRAPPED_KEY_LEN = WRAPPED_HEAD_LEN + WRAPPED_BARE_LEN,
};

// Frozen: the second byte of a wrapped key.
typedef enum WrapperKind { WRAPPED_BY_MASTER = 1, WRAPPED_BY_EPOCH = 2 } WrapperKind;

// One recipient's data key, ready to use (its cipher contexts are set up once). Opaque; not for two
// threads at once.
typedef struct DataKey DataKey;

// The head of what is wrapped now: by the current epoch key, or by the current master key when
// there is none.
void wrapper_head(const MasterKey *master, uint8_t out[WRAPPED_HEAD_LEN]);
// The id of the epoch key that has wrapped it; NULL: none has.
const uint8_t *wrapped_epoch(Str wrapped);

// A fresh random data key for `subject`, and its wrapped form, under the current head, for the key
// table.
DataKey *data_key_new(
    MasterKey *master, const uint8_t subject[16], uint32_t generation,
    uint8_t ret_wrapped[WRAPPED_KEY_LEN]);
// ERROR_PERMANENT when the wrapped bytes were not made by a master key of the file, or an epoch key
// that is held, for this subject and generation.
DataKey *data_key_unwrap(
    MasterKey *master, const uint8_t subject[16], uint32_t generation, Str wrapped, Error *err);
// The same key wrapped again under the current head. ERROR_PERMANENT as above.
bool data_key_rewrap(
    MasterKey *master, const uint8_t subject[16], uint32_t generation, Str wrapped,
    uint8_t ret_wrapped[WRAPPED_KEY_LEN], Error *err);
// The tenant's own key, derived from the master key (HKDF), generation 0: for what must be kept
// without Postgres. It seals under the current master and hash key and opens what any key of the
// file has sealed.
DataKey *data_key_for_tenant(MasterKey *master, Str tenant);
void data_key_free(DataKey *key); // cleansed; NULL-safe
uint32_t data_key_generation(const DataKey *key);

// Everything the result points to lives in `arena`.
Stentor__V1__Sealed *seal(
    DataKey *key, Str tenant, Str notification_id, const char *field, Str plain, Arena *arena);
// The same of a text, which is compressed first where that makes it smaller: its length says then
// how well it compresses (proto/DECISIONS.md: who could guess by it).
Stentor__V1__Sealed *seal_packed(
    DataKey *key, Str tenant, Str notification_id, const char *field, Str plain, Arena *arena);
// Of both. ERROR_PERMANENT when it was altered, moved, or sealed under another key.
bool unseal(
    DataKey *key, Str tenant, Str notification_id, const char *field,
    const Stentor__V1__Sealed *sealed, Arena *arena, Str *ret_plain, Error *err);
