// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE // endian.h
#include "common/parquet/bloom.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

enum { WORDS = 8, BITS_A_VALUE = 10 };

static const uint32_t salts[WORDS] = {
    0x47b6137bU, 0x44974d91U, 0x8824ad5bU, 0xa2b7289dU,
    0x705495c7U, 0x2df1424bU, 0x9efc4947U, 0x5c6bfb31U,
};

static size_t block_of(uint64_t hash, size_t blocks)
{
    return (size_t)(((hash >> 32) * blocks) >> 32);
}

static uint32_t mask_of(uint64_t hash, int word)
{
    return htole32(UINT32_C(1) << ((uint32_t)hash * salts[word] >> 27));
}

void bloom_make(Buf *out, const uint64_t *hashes, size_t count)
{
    size_t blocks = count * BITS_A_VALUE / (8 * BLOOM_BLOCK) + 1;
    bool fits = buf_reserve(out, blocks * BLOOM_BLOCK);
    assert(fits);
    (void)fits;
    char *bits = out->ptr + out->len;
    memset(bits, 0, blocks * BLOOM_BLOCK);
    for (size_t i = 0; i < count; i++) {
        char *block = bits + BLOOM_BLOCK * block_of(hashes[i], blocks);
        for (int word = 0; word < WORDS; word++) {
            uint32_t value;
            memcpy(&value, block + 4 * word, sizeof value);
            value |= mask_of(hashes[i], word);
            memcpy(block + 4 * word, &value, sizeof value);
        }
    }
    out->len += blocks * BLOOM_BLOCK;
}

bool bloom_may_have(Str bits, uint64_t hash)
{
    const char *block = bits.ptr + BLOOM_BLOCK * block_of(hash, bits.len / BLOOM_BLOCK);
    for (int word = 0; word < WORDS; word++) {
        uint32_t value;
        memcpy(&value, block + 4 * word, sizeof value);
        if ((value & mask_of(hash, word)) == 0) {
            return false;
        }
    }
    return true;
}
