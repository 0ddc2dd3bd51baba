// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE // endian.h
#include "common/parquet/read/decode.h"

#include <endian.h>
#include <string.h>

#include "common/parquet/read/thrift_reader.h"

enum { GROUP = 8, BLOCK = 128, MINI_BLOCKS = 4, MINI = BLOCK / MINI_BLOCKS };

static bool take(Str *rest, size_t len, Str *ret)
{
    if (len > rest->len) {
        return false;
    }
    *ret = str_of(rest->ptr, len);
    rest->ptr += len;
    rest->len -= len;
    return true;
}

bool decode_u32(Str *rest, uint32_t *ret)
{
    Str bytes;
    if (!take(rest, sizeof *ret, &bytes)) {
        return false;
    }
    memcpy(ret, bytes.ptr, sizeof *ret);
    *ret = le32toh(*ret);
    return true;
}

bool decode_u64(Str *rest, uint64_t *ret)
{
    Str bytes;
    if (!take(rest, sizeof *ret, &bytes)) {
        return false;
    }
    memcpy(ret, bytes.ptr, sizeof *ret);
    *ret = le64toh(*ret);
    return true;
}

static bool take_varint(Str *rest, uint64_t *ret)
{
    ThriftReader r = {.rest = *rest};
    *ret = thrift_take_varint(&r);
    *rest = r.rest;
    return !r.bad;
}

static bool take_zigzag(Str *rest, int64_t *ret)
{
    ThriftReader r = {.rest = *rest};
    *ret = thrift_take_int(&r);
    *rest = r.rest;
    return !r.bad;
}

// ---- bits ----

// Eight bytes from `at`, zeros behind the end.
static uint64_t load(Str bytes, size_t at)
{
    uint64_t word = 0;
    if (at + sizeof word <= bytes.len) {
        memcpy(&word, bytes.ptr + at, sizeof word);
        return le64toh(word);
    }
    size_t len = at >= bytes.len ? 0 : bytes.len - at < sizeof word ? bytes.len - at : sizeof word;
    memcpy(&word, bytes.ptr + (len > 0 ? at : 0), len);
    return le64toh(word);
}

// Value `i` of values of `bits` bits, 1 to 64.
static uint64_t get_bits(Str bytes, size_t i, unsigned bits)
{
    size_t bit = i * bits;
    unsigned shift = (unsigned)(bit % 8);
    uint64_t value = load(bytes, bit / 8) >> shift;
    if (shift + bits > 64) {
        value |= load(bytes, bit / 8 + 8) << (64 - shift);
    }
    return bits == 64 ? value : value & ((UINT64_C(1) << bits) - 1);
}

// ---- runs and bit-packed groups ----

static bool take_groups(
    Str *rest, uint64_t groups, uint32_t *values, size_t room, unsigned bits, size_t *ret_count)
{
    Str bytes;
    if (groups == 0 || groups > (room + GROUP - 1) / GROUP ||
        !take(rest, (size_t)groups * bits, &bytes)) {
        return false;
    }
    size_t count = (size_t)groups * GROUP < room ? (size_t)groups * GROUP : room;
    for (size_t i = 0; i < count; i++) {
        values[i] = bits == 0 ? 0 : (uint32_t)get_bits(bytes, i, bits);
    }
    *ret_count = count;
    return true;
}

static bool take_run(
    Str *rest, uint64_t count, uint32_t *values, size_t room, unsigned bits, size_t *ret_count)
{
    Str bytes;
    uint32_t value = 0;
    if (count == 0 || count > room || !take(rest, (bits + 7) / 8, &bytes)) {
        return false;
    }
    memcpy(&value, bytes.ptr, bytes.len);
    value = le32toh(value);
    if (bits < 32 && value >> bits != 0) {
        return false;
    }
    for (size_t i = 0; i < (size_t)count; i++) {
        values[i] = value;
    }
    *ret_count = (size_t)count;
    return true;
}

bool decode_hybrid(Str *rest, uint32_t *values, size_t count, unsigned bits)
{
    for (size_t at = 0; at < count;) {
        uint64_t head;
        size_t taken;
        if (bits > 32 || !take_varint(rest, &head)) {
            return false;
        }
        bool packed = (head & 1) != 0;
        if (packed ? !take_groups(rest, head >> 1, values + at, count - at, bits, &taken)
                   : !take_run(rest, head >> 1, values + at, count - at, bits, &taken)) {
            return false;
        }
        at += taken;
    }
    return true;
}

// ---- delta ----

static bool take_mini(
    Str *rest, unsigned bits, int64_t least, int64_t before, int64_t *values, size_t count)
{
    Str bytes;
    if (bits > 64 || !take(rest, (size_t)bits * MINI / 8, &bytes)) {
        return false;
    }
    uint64_t value = (uint64_t)before;
    for (size_t i = 0; i < count; i++) {
        value += (uint64_t)least + (bits == 0 ? 0 : get_bits(bytes, i, bits));
        values[i] = (int64_t)value;
    }
    return true;
}

// values[-1] is the one before.
static bool take_block(Str *rest, int64_t *values, size_t count)
{
    int64_t least;
    Str widths;
    if (!take_zigzag(rest, &least) || !take(rest, MINI_BLOCKS, &widths)) {
        return false;
    }
    for (size_t m = 0; m < MINI_BLOCKS && m * MINI < count; m++) {
        size_t some = count - m * MINI < MINI ? count - m * MINI : MINI;
        int64_t *into = values + m * MINI;
        if (!take_mini(rest, (uint8_t)widths.ptr[m], least, into[-1], into, some)) {
            return false;
        }
    }
    return true;
}

bool decode_delta(Str *rest, int64_t *values, size_t count)
{
    uint64_t block, minis, total;
    int64_t first;
    if (!take_varint(rest, &block) || !take_varint(rest, &minis) || !take_varint(rest, &total) ||
        !take_zigzag(rest, &first) || block != BLOCK || minis != MINI_BLOCKS || total != count) {
        return false;
    }
    if (count > 0) {
        values[0] = first;
    }
    for (size_t at = 1; at < count; at += BLOCK) {
        if (!take_block(rest, values + at, count - at < BLOCK ? count - at : BLOCK)) {
            return false;
        }
    }
    return true;
}
