// SPDX-License-Identifier: Apache-2.0
// Parquet's encodings, written: runs and bit-packed groups (levels, places in a dictionary) and
// DELTA_BINARY_PACKED. Source: github.com/apache/parquet-format/blob/master/Encodings.md.
#pragma once

#include "common/base/buf.h"

unsigned encode_width(uint64_t max); // bits that hold 0..max; 0 for 0
// RLE and bit-packing hybrid, without a length before it; bits up to 32.
void encode_hybrid(Buf *out, const uint32_t *values, size_t count, unsigned bits);
void encode_delta(Buf *out, const int64_t *values, size_t count);
void encode_u32(Buf *out, uint32_t value); // little-endian
