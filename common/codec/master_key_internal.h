// SPDX-License-Identifier: Apache-2.0
// What seal.c, epoch_keys.c and master_key.c share. Not for other folders.
#pragma once

#include <openssl/evp.h>

#include "common/codec/master_key.h"

// The cipher of the master key of that index, its key set; for both directions.
EVP_CIPHER_CTX *master_key_cipher(const MasterKey *master, size_t index);
// The index of a master key by its id; -1: the file does not hold it.
int master_key_index(const MasterKey *master, const uint8_t id[KEY_ID_LEN]);
// HKDF-SHA256 over any info.
void master_key_expand(
    const MasterKey *master, size_t index, Str info, uint8_t out[MASTER_KEY_LEN]);
void key_expand(const uint8_t key[MASTER_KEY_LEN], Str info, uint8_t out[MASTER_KEY_LEN]);
EVP_CIPHER_CTX *seal_cipher_new(const uint8_t key[MASTER_KEY_LEN]);
// The key as one that seals (DataKey), named by a subject of KEY_SUBJECT_LEN bytes; `key` is
// cleansed.
struct DataKey *seal_key_new(
    uint8_t key[MASTER_KEY_LEN], const uint8_t *subject, uint32_t generation);

// The epoch keys that hang on a master key; never NULL.
typedef struct EpochKeys EpochKeys;
EpochKeys *epoch_keys_new(void);
void epoch_keys_free(EpochKeys *epochs); // cleansed; NULL-safe
EpochKeys *master_key_epochs(const MasterKey *master);
EVP_CIPHER_CTX *epoch_key_cipher(const MasterKey *master, const uint8_t id[KEY_ID_LEN]); // or NULL
// HKDF over any info, of what is derived from the epoch key for events. false: it is not held.
bool epoch_key_expand(
    const MasterKey *master, const uint8_t id[KEY_ID_LEN], Str info, uint8_t out[MASTER_KEY_LEN]);

// A key of 32 bytes wrapped for a subject and generation (WRAPPED_KEY_LEN), and opened again.
void seal_wrap_by_master(
    const MasterKey *master, const uint8_t *subject, uint32_t generation, const uint8_t *key,
    uint8_t *out);
bool seal_unwrap(
    const MasterKey *master, const uint8_t *subject, uint32_t generation, Str wrapped, uint8_t *out,
    Error *err);
