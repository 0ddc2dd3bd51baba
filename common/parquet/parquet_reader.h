// SPDX-License-Identifier: Apache-2.0
// Reader: the rows of a Parquet file in order, over a source that reads any range of its bytes (a
// file, an object). The bytes are foreign: whatever they are, a reader gives rows or PERMANENT with
// what is wrong and where. It reads what parquet_writer writes (flat schema, pages of version 1,
// zstd or none, CRC-32 of every page) and nothing wider.
// Memory: the footer (64 MiB of it at most, decoded), one page and one dictionary of each wanted
// column (16 MiB each at most).
#pragma once

#include "common/parquet/parquet.h"

// Exactly `len` bytes from `offset` into `into`, which are within the file.
typedef bool (*ParquetSource)(void *ctx, uint64_t offset, void *into, size_t len, Error *err);

typedef struct ParquetReader ParquetReader;

// Reads the footer. NULL: the source's error, or PERMANENT for what is no such file.
ParquetReader *parquet_reader_open(
    ParquetSource source, void *ctx, uint64_t file_bytes, Error *err);
void parquet_reader_free(ParquetReader *reader); // NULL-safe
// The file's columns, in its order, owned by the reader; `encoding`, `uncompressed` and
// `no_statistics` are not known from a schema and stay zero.
size_t parquet_reader_columns(const ParquetReader *reader, const ParquetColumn **ret);
const char *parquet_reader_metadata(const ParquetReader *reader, const char *name); // NULL: none
uint64_t parquet_reader_rows(const ParquetReader *reader); // of the file, by its footer
size_t parquet_reader_groups(const ParquetReader *reader);

// The columns that parquet_reader_next gives, by name; one that the file does not have is always
// null (a file of an older version). Before anything is wanted next() gives the file's columns in
// their order. Begins at the first row again. PERMANENT: a name twice, too many.
bool parquet_reader_want(ParquetReader *reader, const char *const *names, size_t count, Error *err);
// Only rows whose `column` (STRING or BYTES, not necessarily wanted) has exactly this value, from
// here on; begins at the first row again. Row groups and pages are passed over by statistics, page
// index and bloom filter. A column that the file does not have matches no row. PERMANENT: another
// type. `equals` is copied.
bool parquet_reader_find(ParquetReader *reader, const char *column, Str equals, Error *err);
// The next row, values in the order wanted and borrowed until the next call. *ret_end: there is
// none (true is returned, `values` is not set).
bool parquet_reader_next(ParquetReader *reader, ParquetValue *values, bool *ret_end, Error *err);
// Of the rows given so far, while every column of the file is wanted; else zero.
ParquetTotals parquet_reader_totals(const ParquetReader *reader);
// Pages decoded so far: what a find saved is seen in it.
uint64_t parquet_reader_pages(const ParquetReader *reader);
