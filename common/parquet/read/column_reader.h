// SPDX-License-Identifier: Apache-2.0
// One column of a file: its values in order, or from any row of a row group on.
#pragma once

#include "common/parquet/read/footer_reader.h"
#include "common/parquet/read/page_reader.h"

typedef struct ColumnReader ColumnReader;

// Borrows both.
ColumnReader *column_reader_new(const ParquetColumn *column, PageReader *pages);
void column_reader_free(ColumnReader *r);                          // NULL-safe
void column_reader_begin(ColumnReader *r, const ChunkInfo *chunk); // at its first row
// The row at hand, which is then the next one. Borrowed until the next call.
bool column_reader_value(ColumnReader *r, ParquetValue *ret, Error *err);
// To a row of the chunk that is not before the row at hand; pages between are not read where the
// file says where pages are.
bool column_reader_seek(ColumnReader *r, uint64_t row, Error *err);
