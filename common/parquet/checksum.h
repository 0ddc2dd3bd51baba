// SPDX-License-Identifier: Apache-2.0
// The two checksums of the format: CRC-32 (IEEE 802.3, as zlib and gzip) of pages, and XXH64 (seed
// 0) of values in bloom filters. Neither is a protection against intent.
#pragma once

#include "common/base/str.h"

uint32_t parquet_crc32(uint32_t before, const void *bytes, size_t len); // 0: at the beginning
uint64_t parquet_xxh64(Str bytes);
