// SPDX-License-Identifier: Apache-2.0
// Source: postgresql.org 15, src/backend/utils/adt/rowtypes.c (hash_record_extended),
// src/backend/access/hash/hashfunc.c, src/common/hashfn.c (Bob Jenkins's lookup3), all with seed 0.
// A server cannot change them: partitions by hash depend on them.
#include "common/archive/row_hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const int64_t epoch_2000_us = INT64_C(946684800) * 1000000;

// ---- which columns ----

static bool find(RowHash *hash, Str name, const ParquetColumn *columns, size_t count, Error *err)
{
    for (size_t i = 0; i < count && hash->count < PARQUET_COLUMNS_MAX; i++) {
        if (str_eq(name, str_from(columns[i].name))) {
            hash->columns[hash->count] = &columns[i];
            hash->at[hash->count++] = i;
            return true;
        }
    }
    return error_set(err, ERROR_PERMANENT, "it has no column '" STR_FMT "'", STR_ARG(name));
}

bool row_hash_init(RowHash *hash, Str names, const ParquetColumn *columns, size_t count, Error *err)
{
    *hash = (RowHash){0};
    Str name;
    while (names.len > 0 && str_split(&names, ',', &name)) {
        if (!find(hash, name, columns, count, err)) {
            return false;
        }
    }
    return true;
}

// ---- lookup3 ----

static uint32_t rotate(uint32_t word, int bits)
{
    return word << bits | word >> (32 - bits);
}

static uint32_t read_low_first(const unsigned char *at, size_t len)
{
    uint32_t word = 0;
    for (size_t i = 0; i < len && i < sizeof word; i++) {
        word |= (uint32_t)at[i] << (8 * i);
    }
    return word;
}

// clang-format off
static void mix(uint32_t w[3])
{
    uint32_t a = w[0], b = w[1], c = w[2];
    a -= c; a ^= rotate(c, 4);  c += b;
    b -= a; b ^= rotate(a, 6);  a += c;
    c -= b; c ^= rotate(b, 8);  b += a;
    a -= c; a ^= rotate(c, 16); c += b;
    b -= a; b ^= rotate(a, 19); a += c;
    c -= b; c ^= rotate(b, 4);  b += a;
    w[0] = a; w[1] = b; w[2] = c;
}

static void mix_last(uint32_t w[3])
{
    uint32_t a = w[0], b = w[1], c = w[2];
    c ^= b; c -= rotate(b, 14);
    a ^= c; a -= rotate(c, 11);
    b ^= a; b -= rotate(a, 25);
    c ^= b; c -= rotate(b, 16);
    a ^= c; a -= rotate(c, 4);
    b ^= a; b -= rotate(a, 14);
    c ^= b; c -= rotate(b, 24);
    w[1] = b; w[2] = c;
}
// clang-format on

static uint64_t hash_bytes(Str bytes)
{
    const unsigned char *at = (const unsigned char *)bytes.ptr;
    size_t len = bytes.len;
    uint32_t start = UINT32_C(0x9e3779b9) + (uint32_t)len + 3923095;
    uint32_t w[3] = {start, start, start};
    for (; len >= 12; at += 12, len -= 12) {
        w[0] += read_low_first(at, 4);
        w[1] += read_low_first(at + 4, 4);
        w[2] += read_low_first(at + 8, 4);
        mix(w);
    }
    w[0] += read_low_first(at, len);
    w[1] += len > 4 ? read_low_first(at + 4, len - 4) : 0;
    w[2] += len > 8 ? read_low_first(at + 8, len - 8) << 8 : 0; // its lowest byte is the length's
    mix_last(w);
    return (uint64_t)w[1] << 32 | w[2];
}

static uint64_t hash_number(uint32_t number)
{
    uint32_t start = UINT32_C(0x9e3779b9) + (uint32_t)sizeof number + 3923095;
    uint32_t w[3] = {start + number, start, start};
    mix_last(w);
    return (uint64_t)w[1] << 32 | w[2];
}

// Small numbers hash as those of 32 bits do.
static uint64_t hash_long(int64_t number)
{
    uint32_t low = (uint32_t)(uint64_t)number;
    uint32_t high = (uint32_t)((uint64_t)number >> 32);
    return hash_number(low ^ (number >= 0 ? high : ~high));
}

// ---- a row ----

static uint64_t hash_value(const ParquetColumn *column, const ParquetValue *value)
{
    switch (column->type) {
    case PARQUET_BOOL:
        return hash_number(value->number != 0);
    case PARQUET_I32:
        return hash_number((uint32_t)value->number);
    case PARQUET_I64:
        return hash_long(value->number - (column->logical == PARQUET_TIME_US ? epoch_2000_us : 0));
    case PARQUET_STRING:
    case PARQUET_BYTES:
        break;
    }
    return hash_bytes(value->bytes);
}

static int64_t to_signed(uint64_t bits)
{
    int64_t ret;
    memcpy(&ret, &bits, sizeof ret);
    return ret;
}

int64_t row_hash(const RowHash *hash, const ParquetValue *values)
{
    uint64_t record = 0;
    for (size_t i = 0; i < hash->count; i++) {
        const ParquetValue *value = &values[hash->at[i]];
        record = record * 31 + (value->null ? 0 : hash_value(hash->columns[i], value));
    }
    char text[24];
    int len = snprintf(text, sizeof text, "%" PRId64, to_signed(record));
    return to_signed(hash_bytes(str_of(text, (size_t)len)));
}

void row_sum_add(RowSum *sum, int64_t hash)
{
    uint64_t low = sum->low + (uint64_t)hash;
    sum->high += (low < sum->low ? 1 : 0) - (hash < 0 ? 1 : 0);
    sum->low = low;
}
