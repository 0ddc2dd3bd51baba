// SPDX-License-Identifier: Apache-2.0
#include "services/cli/rebuild/rebuild_gaps.h"

#include <stdlib.h>

#include "common/base/arena.h"

enum { CAP_FIRST = 64 };

void gaps_done(RebuildGaps *gaps)
{
    free(gaps->ranges);
    free(gaps->copies);
    *gaps = (RebuildGaps){.next = 0};
}

static void push_range(RebuildGaps *gaps, uint64_t from, uint64_t to)
{
    if (gaps->range_count == gaps->range_cap) {
        gaps->range_cap = gaps->range_cap == 0 ? CAP_FIRST : 2 * gaps->range_cap;
        gaps->ranges = xrealloc(gaps->ranges, gaps->range_cap * sizeof *gaps->ranges);
    }
    gaps->ranges[gaps->range_count++] = (GapRange){from, to};
}

static void push_copy(RebuildGaps *gaps, GapCopy copy)
{
    if (gaps->copy_count == gaps->copy_cap) {
        gaps->copy_cap = gaps->copy_cap == 0 ? CAP_FIRST : 2 * gaps->copy_cap;
        gaps->copies = xrealloc(gaps->copies, gaps->copy_cap * sizeof *gaps->copies);
    }
    gaps->copies[gaps->copy_count++] = copy;
}

void gaps_see(RebuildGaps *gaps, uint64_t sequence, GapCopy copy, bool counts)
{
    if (counts && gaps->next != 0 && sequence > gaps->next) {
        push_range(gaps, gaps->next, sequence - 1);
    }
    gaps->next = sequence + 1;
    if (copy.original != 0) {
        push_copy(gaps, copy);
    }
}

static int compare(const void *a, const void *b)
{
    const GapCopy *left = a;
    const GapCopy *right = b;
    return left->original < right->original ? -1 : left->original > right->original;
}

static void sort_copies(RebuildGaps *gaps)
{
    if (gaps->copy_count > 1) {
        qsort(gaps->copies, gaps->copy_count, sizeof *gaps->copies, compare);
    }
}

// Both are in order then: the ranges by their making.
uint64_t gaps_unfilled(RebuildGaps *gaps)
{
    uint64_t unfilled = 0;
    size_t at = 0;
    sort_copies(gaps);
    for (size_t i = 0; i < gaps->range_count; i++) {
        const GapRange *range = &gaps->ranges[i];
        unfilled += range->to - range->from + 1;
        for (; at < gaps->copy_count && gaps->copies[at].original <= range->to; at++) {
            uint64_t original = gaps->copies[at].original;
            bool again = at > 0 && original == gaps->copies[at - 1].original;
            unfilled -= original >= range->from && !again ? 1 : 0;
        }
    }
    return unfilled;
}

uint64_t gaps_beginning(RebuildGaps *gaps, uint64_t first, int64_t *at_us)
{
    sort_copies(gaps);
    for (size_t i = gaps->copy_count; i > 0; i--) {
        const GapCopy *copy = &gaps->copies[i - 1];
        if (copy->original + 1 < first) {
            break;
        }
        if (copy->original + 1 == first) {
            first = copy->original;
            *at_us = copy->at_us;
        }
    }
    return first;
}
