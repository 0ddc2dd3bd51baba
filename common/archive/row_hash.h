// SPDX-License-Identifier: Apache-2.0
// What Postgres sums of rows (archive.count_table), made of the values of a file: so what is stored
// is compared with what Postgres itself read, and a fault of the export is not taken for a row.
// Pure.
#pragma once

#include "common/parquet/parquet.h"

typedef struct RowHash {
    size_t count; // of the columns below
    const ParquetColumn *columns[PARQUET_COLUMNS_MAX];
    size_t at[PARQUET_COLUMNS_MAX]; // in a row's values
} RowHash;

// The columns named ("created_at,id"), in that order. PERMANENT names one that the file lacks.
bool row_hash_init(
    RowHash *hash, Str names, const ParquetColumn *columns, size_t count, Error *err);
// hashtextextended(hash_record_extended(ROW(columns), 0)::text, 0), as servers with the lowest byte
// first make it.
int64_t row_hash(const RowHash *hash, const ParquetValue *values);

typedef struct RowSum { // of such hashes, as numeric has it
    int64_t high;       // times 2^64
    uint64_t low;
} RowSum;

void row_sum_add(RowSum *sum, int64_t hash);
