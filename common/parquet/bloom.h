// SPDX-License-Identifier: Apache-2.0
// Split-block bloom filters: whether a chunk may have a value, 10 bits a value, about 1 % wrong.
// Source: github.com/apache/parquet-format/blob/master/BloomFilter.md.
#pragma once

#include "common/base/buf.h"

enum { BLOOM_BLOCK = 32, BLOOM_MAX = 8 * 1024 * 1024 };

// Appends the bitset of these hashes (XXH64 of the value's plain bytes).
void bloom_make(Buf *out, const uint64_t *hashes, size_t count);
// false: it has none of this hash. `bits` is a multiple of BLOOM_BLOCK, above 0.
bool bloom_may_have(Str bits, uint64_t hash);
