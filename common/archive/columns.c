// SPDX-License-Identifier: Apache-2.0
// Source: postgresql.org/docs/15/sql-copy.html, "Binary Format".
#include "common/archive/columns.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "common/archive/database.h"

const char copy_header[COPY_HEADER_LEN] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0";

static const int64_t epoch_2000_us = INT64_C(946684800) * 1000000;

// clang-format off
static const char columns_sql[] =
    "SELECT a.attname, format_type(a.atttypid, NULL), a.attnotnull, quote_ident(a.attname)"
    " FROM archive.kinds k JOIN pg_attribute a ON a.attrelid = k.parent::regclass"
    " WHERE k.parent = $1 AND a.attnum > 0 AND NOT a.attisdropped AND a.attname <> ALL (k.skipped) ORDER BY a.attnum";

static const struct {
    const char *type;
    CellType cell;
    ParquetColumn column;
} type_rows[] = {
    {"text",                     CELL_TEXT,  {.type = PARQUET_STRING, .encoding = PARQUET_DICTIONARY}},
    {"character varying",        CELL_TEXT,  {.type = PARQUET_STRING, .encoding = PARQUET_DICTIONARY}},
    {"\"char\"",                 CELL_TEXT,  {.type = PARQUET_STRING, .encoding = PARQUET_DICTIONARY}},
    {"name",                     CELL_TEXT,  {.type = PARQUET_STRING, .encoding = PARQUET_DICTIONARY}},
    {"bytea",                    CELL_BYTES, {.type = PARQUET_BYTES, .uncompressed = true, .no_statistics = true}},
    {"timestamp with time zone", CELL_TIME,  {.type = PARQUET_I64, .logical = PARQUET_TIME_US, .encoding = PARQUET_DELTA}},
    {"smallint",                 CELL_I16,   {.type = PARQUET_I32, .logical = PARQUET_I16}},
    {"integer",                  CELL_I32,   {.type = PARQUET_I32}},
    {"bigint",                   CELL_I64,   {.type = PARQUET_I64, .encoding = PARQUET_DELTA}},
    {"boolean",                  CELL_BOOL,  {.type = PARQUET_BOOL}},
    {"json",                     CELL_JSON,  {.type = PARQUET_STRING, .logical = PARQUET_JSON}},
    {"jsonb",                    CELL_JSONB, {.type = PARQUET_STRING, .logical = PARQUET_JSON}},
};

// By what rows are looked for in a cold month.
static const char *const bloom_names[] = {"id", "notification_id", "recipient_id", "address_hash", "correlation_id"};
// Random: a codec costs time and saves nothing.
static const char *const plain_names[] = {"id", "notification_id"};
// clang-format on

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool take_column(
    UnitColumns *columns, size_t at, const char *name, const char *type, bool optional, Error *err)
{
    for (size_t i = 0; i < sizeof type_rows / sizeof type_rows[0]; i++) {
        if (strcmp(type, type_rows[i].type) == 0) {
            ParquetColumn column = type_rows[i].column;
            bool plain = is_among(name, plain_names, sizeof plain_names / sizeof plain_names[0]);
            column.name = name;
            column.optional = optional;
            column.bloom = is_among(name, bloom_names, sizeof bloom_names / sizeof bloom_names[0]);
            column.encoding = plain ? PARQUET_PLAIN : column.encoding;
            columns->parquet[at] = column;
            columns->cell[at] = type_rows[i].cell;
            columns->names[at] = name;
            return true;
        }
    }
    return error_set(
        err, ERROR_PERMANENT, "column '%s' has the type '%s', which no archive file holds", name,
        type);
}

bool columns_load(
    Archive *archive, const UnitTable *table, Arena *arena, UnitColumns *ret, Error *err)
{
    const char *params[] = {table->parent};
    AUTO(PGresult) rows = archive_ask(archive->pg, "columns.load", columns_sql, params, 1, err);
    if (rows == NULL) {
        return false;
    }
    size_t count = (size_t)PQntuples(rows);
    if (count == 0 || count > PARQUET_COLUMNS_MAX) {
        return error_set(err, ERROR_PERMANENT, "table '%s' has %zu columns", table->parent, count);
    }
    *ret = (UnitColumns){.count = count, .list = ""};
    for (size_t i = 0; i < count; i++) {
        const char *name = arena_printf(arena, "%s", archive_text(rows, (int)i, 0));
        bool optional = archive_text(rows, (int)i, 2)[0] != 't';
        if (!take_column(ret, i, name, archive_text(rows, (int)i, 1), optional, err)) {
            return error_wrap(err, "%s", table->parent);
        }
        ret->list = arena_printf(
            arena, "%s%s%s", ret->list, i > 0 ? ", " : "", archive_text(rows, (int)i, 3));
        ret->time_at = strcmp(name, table->time_column) == 0 ? i : ret->time_at;
        ret->id_at = strcmp(name, table->id_column) == 0 ? i : ret->id_at;
        ret->by_class = ret->by_class || strcmp(name, "retention_class") == 0;
    }
    ret->parquet[ret->time_at].sorted = true;
    return true;
}

// ---- COPY BINARY ----

bool copy_skip_header(Str *message, Error *err)
{
    if (message->len < COPY_HEADER_LEN || memcmp(message->ptr, copy_header, COPY_HEADER_LEN) != 0) {
        return error_set(err, ERROR_PERMANENT, "the server's copy has no binary header");
    }
    *message = str_slice(*message, COPY_HEADER_LEN, message->len);
    return true;
}

bool copy_is_end(Str message)
{
    return message.len == 0 || (message.len == 2 && memcmp(message.ptr, "\377\377", 2) == 0);
}

static uint16_t read_16(const char *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return ntohs(value);
}

static uint32_t read_32(const char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return ntohl(value);
}

static uint64_t read_64(const char *at)
{
    return (uint64_t)read_32(at) << 32 | read_32(at + 4);
}

// Infinity is the greatest and the least number; neither has a place in a file.
static bool decode_time(Str cell, int64_t *ret)
{
    int64_t value = (int64_t)read_64(cell.ptr);
    *ret = value + (value < INT64_MAX / 2 ? epoch_2000_us : 0);
    return value < INT64_MAX / 2 && value > INT64_MIN / 2;
}

static bool decode_cell(CellType type, Str cell, ParquetValue *ret)
{
    static const size_t sizes[] = {[CELL_TIME] = 8, [CELL_I16] = 2,  [CELL_I32] = 4,
                                   [CELL_I64] = 8,  [CELL_BOOL] = 1, [CELL_JSONB] = 0};
    if (type < sizeof sizes / sizeof sizes[0] && sizes[type] != 0 && cell.len != sizes[type]) {
        return false;
    }
    switch (type) {
    case CELL_TEXT:
    case CELL_BYTES:
    case CELL_JSON:
        ret->bytes = cell;
        return true;
    case CELL_JSONB:
        ret->bytes = str_slice(cell, 1, cell.len);
        return cell.len > 1 && cell.ptr[0] == 1;
    case CELL_TIME:
        return decode_time(cell, &ret->number);
    case CELL_I16:
        ret->number = (int16_t)read_16(cell.ptr);
        return true;
    case CELL_I32:
        ret->number = (int32_t)read_32(cell.ptr);
        return true;
    case CELL_I64:
        ret->number = (int64_t)read_64(cell.ptr);
        return true;
    case CELL_BOOL:
        ret->number = cell.ptr[0] != 0;
        return true;
    }
    return false;
}

static bool take_cell(Str *row, Str *ret, bool *ret_null)
{
    if (row->len < 4) {
        return false;
    }
    uint32_t len = read_32(row->ptr);
    *row = str_slice(*row, 4, row->len);
    *ret_null = len == UINT32_MAX;
    *ret = STR_EMPTY;
    if (*ret_null) {
        return true;
    }
    if (len > row->len) {
        return false;
    }
    *ret = str_slice(*row, 0, len);
    *row = str_slice(*row, len, row->len);
    return true;
}

bool columns_decode(const UnitColumns *columns, Str row, ParquetValue *values, Error *err)
{
    if (row.len < 2 || read_16(row.ptr) != columns->count) {
        return error_set(err, ERROR_PERMANENT, "a copied row has another number of columns");
    }
    row = str_slice(row, 2, row.len);
    for (size_t i = 0; i < columns->count; i++) {
        Str cell;
        values[i] = (ParquetValue){0};
        if (!take_cell(&row, &cell, &values[i].null) ||
            (!values[i].null && !decode_cell(columns->cell[i], cell, &values[i]))) {
            return error_set(
                err, ERROR_PERMANENT, "a copied row has a value in '%s' that no archive file holds",
                columns->names[i]);
        }
    }
    return row.len == 0 ||
           error_set(err, ERROR_PERMANENT, "a copied row has bytes beyond its columns");
}

static bool put_16(Buf *out, uint16_t value)
{
    uint16_t big = htons(value);
    return buf_append(out, &big, sizeof big);
}

static bool put_32(Buf *out, uint32_t value)
{
    uint32_t big = htonl(value);
    return buf_append(out, &big, sizeof big);
}

static bool put_64(Buf *out, uint64_t value)
{
    return put_32(out, (uint32_t)(value >> 32)) && put_32(out, (uint32_t)value);
}

static bool encode_cell(CellType type, const ParquetValue *value, Buf *out)
{
    uint64_t number = (uint64_t)value->number;
    switch (type) {
    case CELL_TEXT:
    case CELL_BYTES:
    case CELL_JSON:
        return put_32(out, (uint32_t)value->bytes.len) && buf_str(out, value->bytes);
    case CELL_JSONB:
        return put_32(out, (uint32_t)value->bytes.len + 1) && buf_char(out, 1) &&
               buf_str(out, value->bytes);
    case CELL_TIME:
        return put_32(out, 8) && put_64(out, number - (uint64_t)epoch_2000_us);
    case CELL_I16:
        return put_32(out, 2) && put_16(out, (uint16_t)number);
    case CELL_I32:
        return put_32(out, 4) && put_32(out, (uint32_t)number);
    case CELL_I64:
        return put_32(out, 8) && put_64(out, number);
    case CELL_BOOL:
        return put_32(out, 1) && buf_char(out, (char)(number != 0));
    }
    return false;
}

bool columns_encode(const UnitColumns *columns, const ParquetValue *values, Buf *out)
{
    bool ok = put_16(out, (uint16_t)columns->count);
    for (size_t i = 0; i < columns->count && ok; i++) {
        ok = values[i].null ? put_32(out, UINT32_MAX)
                            : encode_cell(columns->cell[i], &values[i], out);
    }
    return ok;
}
