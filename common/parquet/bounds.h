// SPDX-License-Identifier: Apache-2.0
// The least and the greatest value of a page or a chunk, for its statistics and the page index.
// Text and bytes are cut to BOUND_MAX; a greatest value that was cut is raised, so that it stays an
// upper bound, and both say whether they are exact.
#pragma once

#include "common/parquet/parquet.h"

enum { BOUND_MAX = 64 };

typedef struct Bound {
    bool exact;
    uint8_t len;
    char bytes[BOUND_MAX];
} Bound;

typedef struct Bounds {
    bool any;
    int64_t low, high; // of numbers
    Bound least, greatest;
} Bounds;

void bounds_number(Bounds *bounds, int64_t value);
void bounds_bytes(Bounds *bounds, Str value);
void bounds_merge(Bounds *into, const Bounds *more); // neither is closed
// Raises what was cut; of STRING so that both stay UTF-8. Bounds that cannot be raised are none.
void bounds_close(Bounds *bounds, ParquetType type);
// The bytes that the file has of a closed bound; `space` for those of numbers.
Str bounds_least(const Bounds *bounds, ParquetType type, char space[8]);
Str bounds_greatest(const Bounds *bounds, ParquetType type, char space[8]);
