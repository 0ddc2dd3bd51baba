// SPDX-License-Identifier: Apache-2.0
// A Parquet file in memory, for the tests of this folder: written by rows, read back, damaged.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/buf.h"
#include "common/parquet/parquet_reader.h"
#include "common/parquet/parquet_writer.h"

enum { FILE_MAX = 512 * 1024 * 1024 };

static inline bool to_memory(void *ctx, const void *bytes, size_t len)
{
    return buf_append(ctx, bytes, len);
}

static inline bool from_memory(void *ctx, uint64_t offset, void *into, size_t len, Error *err)
{
    const Buf *file = ctx;
    (void)err;
    assert_true(offset <= file->len && len <= file->len - offset); // never beyond its end
    memcpy(into, file->ptr + offset, len);
    return true;
}

static inline ParquetValue null_value(void)
{
    return (ParquetValue){.null = true};
}

static inline ParquetValue number_value(int64_t number)
{
    return (ParquetValue){.number = number};
}

static inline ParquetValue text_value(const char *text)
{
    return (ParquetValue){.bytes = str_from(text)};
}

// Row `i` of a file, into `values`.
typedef void (*MakeRow)(size_t i, ParquetValue *values);

typedef struct FileShape {
    const ParquetColumn *columns;
    size_t count, rows;
    uint32_t group_rows, page_rows; // 0: as they are
    MakeRow make;
} FileShape;

static inline Buf write_file(const FileShape *shape, ParquetTotals *ret)
{
    Buf file;
    Error err = {0};
    ParquetValue values[PARQUET_COLUMNS_MAX];
    const char *const metadata[][2] = {{"unit", "notifications/record/2026-10"}, {"empty", ""}};
    buf_init(&file, FILE_MAX);
    ParquetWriter *writer = parquet_writer_new(shape->columns, shape->count, to_memory, &file);
    if (shape->group_rows > 0) {
        parquet_writer_shape(writer, shape->group_rows, shape->page_rows);
    }
    for (size_t i = 0; i < shape->rows; i++) {
        shape->make(i, values);
        assert_true(parquet_writer_row(writer, values, &err));
    }
    assert_true(parquet_writer_finish(writer, metadata, 2, ret, &err));
    parquet_writer_free(writer);
    return file;
}

static inline void assert_values_equal(
    const ParquetColumn *column, const ParquetValue *found, const ParquetValue *expected)
{
    assert_int_equal(found->null, expected->null);
    if (expected->null) {
        return;
    }
    if (column->type == PARQUET_STRING || column->type == PARQUET_BYTES) {
        assert_int_equal(found->bytes.len, expected->bytes.len);
        assert_memory_equal(found->bytes.ptr, expected->bytes.ptr, expected->bytes.len);
    } else {
        assert_true(found->number == expected->number);
    }
}

// Every cell is what was written, and so are the totals.
static inline void assert_reads_back(
    const Buf *file, const FileShape *shape, const ParquetTotals *totals)
{
    Error err = {0};
    Buf copy = *file;
    ParquetReader *reader = parquet_reader_open(from_memory, &copy, file->len, &err);
    ParquetValue found[PARQUET_COLUMNS_MAX], expected[PARQUET_COLUMNS_MAX];
    bool end = false;
    assert_non_null(reader);
    for (size_t i = 0; i < shape->rows; i++) {
        if (!parquet_reader_next(reader, found, &end, &err)) {
            fail_msg("row %zu: %s", i, err.text);
        }
        assert_false(end);
        shape->make(i, expected);
        for (size_t c = 0; c < shape->count; c++) {
            assert_values_equal(&shape->columns[c], &found[c], &expected[c]);
        }
    }
    assert_true(parquet_reader_next(reader, found, &end, &err));
    assert_true(end);
    ParquetTotals read = parquet_reader_totals(reader);
    assert_true(parquet_totals_equal(&read, totals));
    assert_int_equal(totals->rows, shape->rows);
    parquet_reader_free(reader);
}

// Reads every column of every row. false: the file is refused; the error is PERMANENT.
static inline bool reads(const Buf *file, Error *err)
{
    Buf copy = *file;
    ParquetValue values[PARQUET_COLUMNS_MAX];
    bool end = false, ok = true;
    *err = (Error){0};
    ParquetReader *reader = parquet_reader_open(from_memory, &copy, file->len, err);
    while (reader != NULL && ok && !end) {
        ok = parquet_reader_next(reader, values, &end, err);
    }
    ok = ok && reader != NULL;
    parquet_reader_free(reader);
    if (!ok) {
        assert_int_equal(err->kind, ERROR_PERMANENT);
        assert_non_null(strstr(err->text, "parquet: "));
    }
    return ok;
}
