// SPDX-License-Identifier: Apache-2.0
// What seal.c needs of the master keys. Not for other folders.
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
EVP_CIPHER_CTX *seal_cipher_new(const uint8_t key[MASTER_KEY_LEN]);
