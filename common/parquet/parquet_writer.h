// SPDX-License-Identifier: Apache-2.0
// Writer: rows into a Parquet file whose bytes go to a sink. Memory: pages are encoded and packed
// as they are full, so a writer holds the packed pages of one row group (32 MiB at most) and one
// page of each column: under 64 MB for 30 columns of a notification.
#pragma once

#include "common/parquet/parquet.h"

// false: cannot be written; the writer is of no use any more.
typedef bool (*ParquetSink)(void *ctx, const void *bytes, size_t len);

typedef struct ParquetWriter ParquetWriter;

// Copies the columns; borrows the sink until parquet_writer_free. What does not fit together (delta
// of a string, no column, a name twice) is an assert: schemas are constants of the program.
ParquetWriter *parquet_writer_new(
    const ParquetColumn *columns, size_t count, ParquetSink sink, void *ctx);
// Before the first row: other sizes than PARQUET_GROUP_ROWS and PARQUET_PAGE_ROWS. For tests.
void parquet_writer_shape(ParquetWriter *writer, uint32_t group_rows, uint32_t page_rows);
// One value for each column; they are copied. PERMANENT: a null in a column that is not optional, a
// number out of its type, text that is not UTF-8, a value over PARQUET_VALUE_MAX: nothing of the
// row is written and others may follow. TRANSIENT: the sink refused.
bool parquet_writer_row(ParquetWriter *writer, const ParquetValue *values, Error *err);
// About what the file has now, with the pages that are held: for the caller's cut.
uint64_t parquet_writer_bytes(const ParquetWriter *writer);
// Ends the file. Pairs of name and value go to its metadata; names beginning with "stentor.footer"
// are the writer's own. TRANSIENT: the sink refused.
bool parquet_writer_finish(
    ParquetWriter *writer, const char *const (*metadata)[2], size_t pairs, ParquetTotals *ret,
    Error *err);
void parquet_writer_free(ParquetWriter *writer); // NULL-safe
