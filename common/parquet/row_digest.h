// SPDX-License-Identifier: Apache-2.0
// The digest of rows, by which an export, its file read back and a restored table are compared.
//
// Canonical text of a row: its values in the order of the schema with a tab between two, as COPY
// writes them. A number is decimal, a bool is true or false, a time is its microseconds since 1970;
// text and bytes stand as they are, but a backslash as \\, a line feed as \n, a tab as \t; null is
// \N. Nulls at the end are left out, so columns that are added at the end of a schema do not change
// the digests of rows that do not have them.
// The row's digest is SHA-256 of that text; digests are summed mod 2^256 as big-endian numbers.
#pragma once

#include "common/parquet/parquet.h"

typedef struct RowDigest RowDigest;

RowDigest *row_digest_new(const ParquetColumn *columns, size_t count);
void row_digest_free(RowDigest *digest); // NULL-safe
// One value for each column, as parquet_writer_row takes them: no value over PARQUET_VALUE_MAX.
void row_digest_add(RowDigest *digest, const ParquetValue *values);
ParquetTotals row_digest_totals(const RowDigest *digest);
// The text of the row that was added last; valid until the next one.
Str row_digest_text(const RowDigest *digest);
