// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE // endian.h
#include "common/parquet/checksum.h"

#include <endian.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

// ---- CRC-32, eight bytes a step ----

enum { STEP = 8 };

typedef struct CrcTables {
    uint32_t of[STEP][256];
} CrcTables;

static void fill_tables(CrcTables *tables)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++) {
            value = (value >> 1) ^ ((value & 1) != 0 ? UINT32_C(0xEDB88320) : 0);
        }
        tables->of[0][i] = value;
    }
    for (uint32_t i = 0; i < 256; i++) {
        for (int k = 1; k < STEP; k++) {
            uint32_t before = tables->of[k - 1][i];
            tables->of[k][i] = (before >> 8) ^ tables->of[0][before & 0xff];
        }
    }
}

// Filled at the first use; two threads that do it at once write the same words.
static const CrcTables *crc_tables(void)
{
    static CrcTables tables;
    static bool filled;
    if (!__atomic_load_n(&filled, __ATOMIC_ACQUIRE)) {
        fill_tables(&tables);
        __atomic_store_n(&filled, true, __ATOMIC_RELEASE);
    }
    return &tables;
}

// The register, not inverted, after these bytes.
static uint32_t step_over(uint32_t crc, const uint8_t *at, size_t len)
{
    const CrcTables *t = crc_tables();
    for (; len >= STEP; len -= STEP, at += STEP) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        word = le64toh(word) ^ crc;
        crc = t->of[7][word & 0xff] ^ t->of[6][word >> 8 & 0xff] ^ t->of[5][word >> 16 & 0xff] ^
              t->of[4][word >> 24 & 0xff] ^ t->of[3][word >> 32 & 0xff] ^
              t->of[2][word >> 40 & 0xff] ^ t->of[1][word >> 48 & 0xff] ^ t->of[0][word >> 56];
    }
    for (; len > 0; len--, at++) {
        crc = (crc >> 8) ^ t->of[0][(crc ^ *at) & 0xff];
    }
    return crc;
}

// ---- CRC-32, 64 bytes a step, where the processor multiplies without carry ----
// Source: V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ", Intel
// 2009: a block is folded over the one behind it, times x to the distance between them, modulo the
// polynomial.

#if defined(__x86_64__)

enum { LANE = 16, FOLD = 4 * LANE };
#define CARRYLESS __attribute__((target("pclmul,sse2")))

CARRYLESS static __m128i load_lane(const uint8_t *at)
{
    return _mm_loadu_si128((const __m128i *)at);
}

CARRYLESS static __m128i fold_lane(__m128i lane, __m128i by, __m128i onto)
{
    __m128i low = _mm_clmulepi64_si128(lane, by, 0x00);
    __m128i high = _mm_clmulepi64_si128(lane, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), onto);
}

// Of whole lanes, four or more. What is folded to one lane is congruent to all of them, so the
// table takes the rest of the way.
CARRYLESS static uint32_t fold_over(uint32_t crc, const uint8_t *at, size_t len)
{
    const __m128i by_four = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
    const __m128i by_one = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    __m128i lanes[4];
    for (size_t i = 0; i < 4; i++) {
        lanes[i] = load_lane(at + LANE * i);
    }
    lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128((int)crc));
    for (at += FOLD, len -= FOLD; len >= FOLD; at += FOLD, len -= FOLD) {
        for (size_t i = 0; i < 4; i++) {
            lanes[i] = fold_lane(lanes[i], by_four, load_lane(at + LANE * i));
        }
    }
    for (size_t i = 1; i < 4; i++) {
        lanes[0] = fold_lane(lanes[0], by_one, lanes[i]);
    }
    for (; len > 0; at += LANE, len -= LANE) {
        lanes[0] = fold_lane(lanes[0], by_one, load_lane(at));
    }
    uint8_t folded[LANE];
    memcpy(folded, lanes, sizeof folded);
    return step_over(0, folded, sizeof folded);
}

static uint32_t crc_of(uint32_t crc, const uint8_t *at, size_t len)
{
    size_t whole = len >= FOLD && __builtin_cpu_supports("pclmul") ? len - len % LANE : 0;
    crc = whole > 0 ? fold_over(crc, at, whole) : crc;
    return step_over(crc, at + whole, len - whole);
}

#else

static uint32_t crc_of(uint32_t crc, const uint8_t *at, size_t len)
{
    return step_over(crc, at, len);
}

#endif

uint32_t parquet_crc32(uint32_t before, const void *bytes, size_t len)
{
    return ~crc_of(~before, bytes, len);
}

// ---- XXH64 (github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md) ----

#define PRIME_1 UINT64_C(0x9E3779B185EBCA87)
#define PRIME_2 UINT64_C(0xC2B2AE3D27D4EB4F)
#define PRIME_3 UINT64_C(0x165667B19E3779F9)
#define PRIME_4 UINT64_C(0x85EBCA77C2B2AE63)
#define PRIME_5 UINT64_C(0x27D4EB2F165667C5)

enum { LANES = 4, STRIPE = 32 };

static uint64_t rotate(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static uint64_t read_u64(const char *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return le64toh(value);
}

static uint64_t mix(uint64_t lane, uint64_t input)
{
    return rotate(lane + input * PRIME_2, 31) * PRIME_1;
}

// All whole stripes of *rest.
static uint64_t take_stripes(Str *rest)
{
    uint64_t lane[LANES] = {PRIME_1 + PRIME_2, PRIME_2, 0, 0 - PRIME_1};
    for (; rest->len >= STRIPE; rest->ptr += STRIPE, rest->len -= STRIPE) {
        for (int i = 0; i < LANES; i++) {
            lane[i] = mix(lane[i], read_u64(rest->ptr + 8 * i));
        }
    }
    uint64_t hash =
        rotate(lane[0], 1) + rotate(lane[1], 7) + rotate(lane[2], 12) + rotate(lane[3], 18);
    for (int i = 0; i < LANES; i++) {
        hash = (hash ^ mix(0, lane[i])) * PRIME_1 + PRIME_4;
    }
    return hash;
}

uint64_t parquet_xxh64(Str bytes)
{
    Str rest = bytes;
    uint64_t hash = (bytes.len >= STRIPE ? take_stripes(&rest) : PRIME_5) + bytes.len;
    for (; rest.len >= 8; rest.ptr += 8, rest.len -= 8) {
        hash = rotate(hash ^ mix(0, read_u64(rest.ptr)), 27) * PRIME_1 + PRIME_4;
    }
    if (rest.len >= 4) {
        uint32_t word;
        memcpy(&word, rest.ptr, sizeof word);
        hash = rotate(hash ^ le32toh(word) * PRIME_1, 23) * PRIME_2 + PRIME_3;
        rest.ptr += 4;
        rest.len -= 4;
    }
    for (; rest.len > 0; rest.ptr++, rest.len--) {
        hash = rotate(hash ^ (uint8_t)*rest.ptr * PRIME_5, 11) * PRIME_1;
    }
    hash = (hash ^ hash >> 33) * PRIME_2;
    hash = (hash ^ hash >> 29) * PRIME_3;
    return hash ^ hash >> 32;
}
