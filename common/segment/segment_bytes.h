// SPDX-License-Identifier: Apache-2.0
// Numbers as bytes, for the folder's own files: varints as in protobuf (7 bits a byte, the lowest
// first), signed ones in zigzag form, and little-endian words.
#pragma once

#include <string.h>

#include "common/base/str.h"

enum { VARINT_MAX = 10 };

static inline size_t put_varint(char *out, uint64_t value)
{
    size_t n = 0;
    while (value >= 0x80) {
        out[n++] = (char)(uint8_t)(value | 0x80);
        value >>= 7;
    }
    out[n++] = (char)(uint8_t)value;
    return n;
}

static inline uint64_t zigzag(int64_t value)
{
    return ((uint64_t)value << 1) ^ (value < 0 ? UINT64_MAX : 0);
}

static inline int64_t unzigzag(uint64_t value)
{
    uint64_t half = value >> 1;
    return (int64_t)((value & 1) != 0 ? ~half : half);
}

// Takes one from the front of *rest. false: it ends too early or passes 64 bits.
static inline bool take_varint(Str *rest, uint64_t *ret)
{
    uint64_t value = 0;
    for (size_t i = 0; i < rest->len && i < VARINT_MAX; i++) {
        uint8_t byte = (uint8_t)rest->ptr[i];
        if (i == VARINT_MAX - 1 && byte > 1) {
            return false;
        }
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            rest->ptr += i + 1;
            rest->len -= i + 1;
            *ret = value;
            return true;
        }
    }
    return false;
}

// A length and so many bytes.
static inline bool take_bytes(Str *rest, size_t max, Str *ret)
{
    uint64_t len;
    if (!take_varint(rest, &len) || len > max || len > rest->len) {
        return false;
    }
    *ret = (Str){rest->ptr, (size_t)len};
    rest->ptr += len;
    rest->len -= (size_t)len;
    return true;
}

static inline size_t put_bytes(char *out, Str bytes)
{
    size_t n = put_varint(out, bytes.len);
    if (bytes.len > 0) {
        memcpy(out + n, bytes.ptr, bytes.len);
    }
    return n + bytes.len;
}

static inline void put_u32(char *out, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        out[i] = (char)(uint8_t)(value >> (8 * i));
    }
}

static inline uint32_t get_u32(const char *at)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        value |= (uint32_t)(uint8_t)at[i] << (8 * i);
    }
    return value;
}

// What the writer and the reader agree on.
enum {
    SKIPPABLE_HEAD = 8, // magic and size
    SEEK_ENTRY = 12,
    SEEK_FOOTER = 9,
    INDEX_DIGEST = 8, // the first bytes of SHA-256 over the index
    SEGMENT_VERSION = 1,
};
#define INDEX_FRAME_MAGIC UINT32_C(0x184D2A5D)
#define SEEK_FRAME_MAGIC UINT32_C(0x184D2A5E)
#define SEEK_TABLE_MAGIC UINT32_C(0x8F92EAB1)
#define SEEK_CHECKSUMS UINT8_C(0x80)
#define INDEX_WORD "stentor segment"
