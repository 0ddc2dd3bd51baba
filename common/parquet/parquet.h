// SPDX-License-Identifier: Apache-2.0
// Parquet files with flat schemas: what the archive stores of tables. Pure: bytes go to a sink and
// come from a source; no I/O, no clock.
//
//   "PAR1", row groups: for each column an optional dictionary page and data pages (version 1,
//   CRC-32), bloom filters, column indexes, offset indexes, footer, its length, "PAR1"
//
// Law: the same rows and columns give the same bytes with the same release of zstd. Every byte is
// covered: pages by their CRC-32, page headers and indexes by CRCs in the footer, the footer by a
// CRC of its own (metadata "stentor.footer_crc32").
// Source: github.com/apache/parquet-format (README, parquet.thrift, Encodings, BloomFilter).
#pragma once

#include "common/base/error.h"
#include "common/base/str.h"

enum {
    PARQUET_COLUMNS_MAX = 128,
    PARQUET_NAME_MAX = 63,
    PARQUET_VALUE_MAX = 1024 * 1024, // bytes of one value
    PARQUET_GROUP_ROWS = 131072,
    PARQUET_PAGE_ROWS = 16384,
    PARQUET_GROUP_BYTES = 32 * 1024 * 1024, // a row group ends earlier when its pages have so many
    PARQUET_PAGE_BYTES = 4 * 1024 * 1024,   // a page ends earlier when its values have so many
    PARQUET_METADATA_MAX = 64,              // pairs
    PARQUET_DIGEST_LEN = 32,
};

typedef enum ParquetType {
    PARQUET_BOOL,
    PARQUET_I32,
    PARQUET_I64,
    PARQUET_STRING, // UTF-8
    PARQUET_BYTES,
} ParquetType;

typedef enum ParquetLogical {
    PARQUET_NO_LOGICAL,
    PARQUET_TIME_US, // of I64: microseconds since 1970, UTC
    PARQUET_I16,     // of I32
    PARQUET_JSON,    // of STRING
} ParquetLogical;

typedef enum ParquetEncoding {
    PARQUET_PLAIN,
    PARQUET_DICTIONARY, // of STRING and BYTES; turns to PLAIN by itself when values rarely repeat
    PARQUET_DELTA,      // of I64: times and numbers that ascend
} ParquetEncoding;

typedef struct ParquetColumn {
    const char *name; // 1 to PARQUET_NAME_MAX bytes
    ParquetType type;
    ParquetLogical logical;
    ParquetEncoding encoding;
    bool optional;      // may be null
    bool bloom;         // a bloom filter: parquet_reader_find by an exact value
    bool uncompressed;  // hashes and ciphertexts: zstd would only cost
    bool no_statistics; // values whose order means nothing: ciphertexts
    bool sorted;        // rows ascend by this column, then by the next sorted one
} ParquetColumn;

typedef struct ParquetValue {
    bool null;
    int64_t number; // of BOOL (0, 1), I32, I64
    Str bytes;      // of STRING, BYTES; borrowed
} ParquetValue;

// Of rows: how many, and the sum mod 2^256 (big-endian) of the SHA-256 of each row's canonical text
// (row_digest.h). Neither order nor division into files changes it.
typedef struct ParquetTotals {
    uint64_t rows;
    uint8_t row_sum[PARQUET_DIGEST_LEN];
} ParquetTotals;

void parquet_totals_add(ParquetTotals *into, const ParquetTotals *more);
bool parquet_totals_equal(const ParquetTotals *a, const ParquetTotals *b);
