// SPDX-License-Identifier: Apache-2.0
// Gaps of EVENTS while it is read: an event that was published in clear is erased once its sealed
// copy stands further on, so such a gap holds nothing that the stream lacks. Pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct GapRange {
    uint64_t from, to;
} GapRange;

typedef struct GapCopy {
    uint64_t original;
    int64_t at_us; // when the original was stored
} GapCopy;

// Begins as zeros. As large as the stream has gaps and copies: 16 bytes each.
typedef struct RebuildGaps {
    GapRange *ranges;
    size_t range_count, range_cap;
    GapCopy *copies;
    size_t copy_count, copy_cap;
    uint64_t next; // 0: nothing was seen
} RebuildGaps;

void gaps_done(RebuildGaps *gaps);
// A message, in the stream's order; copy.original 0: it is none. `counts`: what is missing right
// before it counts.
void gaps_see(RebuildGaps *gaps, uint64_t sequence, GapCopy copy, bool counts);
// How many missing messages have no copy among those that were seen.
uint64_t gaps_unfilled(RebuildGaps *gaps);
// The stream's first message is `first`, stored at *at_us: where it begins when what was erased
// right before that and has copies counts too, and since when.
uint64_t gaps_beginning(RebuildGaps *gaps, uint64_t first, int64_t *at_us);
