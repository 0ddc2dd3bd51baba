// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE // endian.h
#include "common/parquet/write/encode.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "common/parquet/write/thrift_writer.h"

enum { GROUP = 8, RUN_MIN = 8, BLOCK = 128, MINI_BLOCKS = 4, MINI = BLOCK / MINI_BLOCKS };

unsigned encode_width(uint64_t max)
{
    return max == 0 ? 0 : 64 - (unsigned)__builtin_clzll(max);
}

void encode_u32(Buf *out, uint32_t value)
{
    uint32_t word = htole32(value);
    buf_append(out, &word, sizeof word);
}

// ---- bits ----

typedef struct BitWriter {
    uint8_t *at;
    uint64_t held; // `count` bits below 8 that wait
    unsigned count;
} BitWriter;

static void put_bits(BitWriter *w, uint64_t value, unsigned bits)
{
    if (bits > 56) { // in two halves, so that nothing is shifted out
        put_bits(w, value & UINT32_MAX, 32);
        put_bits(w, value >> 32, bits - 32);
        return;
    }
    w->held |= value << w->count;
    w->count += bits;
    for (; w->count >= 8; w->count -= 8) {
        *w->at++ = (uint8_t)w->held;
        w->held >>= 8;
    }
}

// Room for `count` values of `bits`, a multiple of 8 in all.
static BitWriter begin_bits(Buf *out, size_t count, unsigned bits)
{
    bool fits = buf_reserve(out, count * bits / 8 + 1);
    assert(fits && "a page's buffer has room for what its limits let in");
    (void)fits;
    return (BitWriter){.at = (uint8_t *)out->ptr + out->len};
}

static void end_bits(Buf *out, const BitWriter *w)
{
    assert(w->count == 0);
    out->len = (size_t)((char *)w->at - out->ptr);
}

// ---- runs and bit-packed groups ----

// The last group is filled up with zeros.
static void put_groups(Buf *out, const uint32_t *values, size_t count, unsigned bits)
{
    if (count == 0) {
        return;
    }
    size_t groups = (count + GROUP - 1) / GROUP;
    thrift_varint(out, (uint64_t)groups << 1 | 1);
    BitWriter w = begin_bits(out, groups * GROUP, bits);
    for (size_t i = 0; i < groups * GROUP; i++) {
        put_bits(&w, i < count ? values[i] : 0, bits);
    }
    end_bits(out, &w);
}

static void put_run(Buf *out, uint32_t value, size_t count, unsigned bits)
{
    thrift_varint(out, (uint64_t)count << 1);
    uint32_t word = htole32(value);
    buf_append(out, &word, (bits + 7) / 8);
}

static size_t run_at(const uint32_t *values, size_t at, size_t count)
{
    size_t end = at + 1;
    while (end < count && values[end] == values[at]) {
        end++;
    }
    return end - at;
}

void encode_hybrid(Buf *out, const uint32_t *values, size_t count, unsigned bits)
{
    size_t waiting = 0; // values[waiting..at) are to be bit-packed
    for (size_t at = 0; at < count;) {
        size_t run = run_at(values, at, count);
        size_t fill = (GROUP - (at - waiting) % GROUP) % GROUP; // ends the group before the run
        if (run < RUN_MIN + fill) {
            at += run;
            continue;
        }
        put_groups(out, values + waiting, at + fill - waiting, bits);
        put_run(out, values[at], run - fill, bits);
        at += run;
        waiting = at;
    }
    put_groups(out, values + waiting, count - waiting, bits);
}

// ---- delta ----

typedef struct DeltaBlock {
    uint64_t deltas[BLOCK];
    size_t count;
} DeltaBlock;

// The differences from values[at - 1] on, as two's complement; returns the least.
static int64_t fill_block(DeltaBlock *block, const int64_t *values, size_t at, size_t count)
{
    int64_t least = INT64_MAX;
    block->count = count - at < BLOCK ? count - at : BLOCK;
    for (size_t i = 0; i < block->count; i++) {
        uint64_t delta = (uint64_t)values[at + i] - (uint64_t)values[at + i - 1];
        block->deltas[i] = delta;
        least = (int64_t)delta < least ? (int64_t)delta : least;
    }
    return least;
}

static unsigned lower_mini(DeltaBlock *block, size_t from, int64_t least)
{
    uint64_t any = 0;
    for (size_t i = from; i < from + MINI && i < block->count; i++) {
        block->deltas[i] -= (uint64_t)least;
        any |= block->deltas[i];
    }
    return encode_width(any);
}

static void put_block(Buf *out, DeltaBlock *block, int64_t least)
{
    uint8_t widths[MINI_BLOCKS] = {0};
    thrift_zigzag(out, least);
    for (size_t m = 0; m < MINI_BLOCKS && m * MINI < block->count; m++) {
        widths[m] = (uint8_t)lower_mini(block, m * MINI, least);
    }
    buf_append(out, widths, sizeof widths);
    for (size_t m = 0; m < MINI_BLOCKS && m * MINI < block->count; m++) {
        BitWriter w = begin_bits(out, MINI, widths[m]);
        for (size_t i = m * MINI; i < (m + 1) * MINI; i++) {
            put_bits(&w, i < block->count ? block->deltas[i] : 0, widths[m]);
        }
        end_bits(out, &w);
    }
}

void encode_delta(Buf *out, const int64_t *values, size_t count)
{
    thrift_varint(out, BLOCK);
    thrift_varint(out, MINI_BLOCKS);
    thrift_varint(out, count);
    thrift_zigzag(out, count > 0 ? values[0] : 0);
    DeltaBlock block;
    for (size_t at = 1; at < count; at += BLOCK) {
        int64_t least = fill_block(&block, values, at, count);
        put_block(out, &block, least);
    }
}
