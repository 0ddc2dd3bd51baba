// SPDX-License-Identifier: Apache-2.0
// A unit's table as Parquet: which columns it has, and rows between COPY BINARY and the values of a
// Parquet file. A column that was added to the table since a file was written is null in that file.
#pragma once

#include "common/archive/unit/units.h"
#include "common/base/buf.h"
#include "common/parquet/parquet.h"

typedef enum CellType {
    CELL_TEXT,
    CELL_BYTES,
    CELL_TIME,
    CELL_I16,
    CELL_I32,
    CELL_I64,
    CELL_BOOL,
    CELL_JSON,  // the text itself
    CELL_JSONB, // a version's byte before it
} CellType;

typedef struct UnitColumns {
    size_t count;
    ParquetColumn parquet[PARQUET_COLUMNS_MAX];
    CellType cell[PARQUET_COLUMNS_MAX];
    const char *names[PARQUET_COLUMNS_MAX];
    const char *list;      // "created_at, id": quoted, for SQL
    size_t time_at, id_at; // of the time and the id
    bool by_class;         // there is a column retention_class
} UnitColumns;

// PERMANENT: a column has a type that no file can hold.
bool columns_load(
    Archive *archive, const UnitTable *table, Arena *arena, UnitColumns *ret, Error *err);

enum { COPY_HEADER_LEN = 19, COPY_ROW_MAX = 16 * 1024 * 1024 };
extern const char copy_header[COPY_HEADER_LEN];
// Takes the header from the first message of a COPY. PERMANENT: there is none.
bool copy_skip_header(Str *message, Error *err);
bool copy_is_end(Str message); // the trailer, and nothing before it
// One row's values, borrowed from the message. PERMANENT: its bytes are no such row.
bool columns_decode(const UnitColumns *columns, Str row, ParquetValue *values, Error *err);
// The same row as COPY BINARY reads it. false: `out` is full.
bool columns_encode(const UnitColumns *columns, const ParquetValue *values, Buf *out);
