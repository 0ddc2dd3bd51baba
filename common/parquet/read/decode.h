// SPDX-License-Identifier: Apache-2.0
// Parquet's encodings, read: foreign bytes. Each takes its bytes from the front of *rest and fills
// exactly `count` values; false: what no writer makes, or it ends too early.
#pragma once

#include "common/base/str.h"

bool decode_hybrid(Str *rest, uint32_t *values, size_t count, unsigned bits); // bits up to 32
bool decode_delta(Str *rest, int64_t *values, size_t count);
bool decode_u32(Str *rest, uint32_t *ret); // little-endian
bool decode_u64(Str *rest, uint64_t *ret);
