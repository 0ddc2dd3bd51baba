// SPDX-License-Identifier: Apache-2.0
// links: stentor_parquet
// Any bytes as a Parquet file: refused, or rows that a writer could have written. The first byte
// says how it is read (all columns, some, a search) and whether the footer's CRC is put right
// first, so that what lies behind it is tried too.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/parquet/checksum.h"
#include "common/parquet/format.h"
#include "common/parquet/parquet_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SOME = 1, FIND = 2, MEND = 4, ROWS_MAX = 20000 };

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static bool read_input(void *ctx, uint64_t offset, void *into, size_t len, Error *err)
{
    const Str *input = ctx;
    (void)err;
    require(offset <= input->len && len <= input->len - offset); // never beyond its end
    memcpy(into, input->ptr + offset, len);
    return true;
}

// The footer's CRC, where the footer has one.
static void mend(char *bytes, size_t size)
{
    uint32_t len;
    if (size < TAIL_LEN) {
        return;
    }
    memcpy(&len, bytes + size - TAIL_LEN, sizeof len);
    if (len > size - TAIL_LEN) {
        return;
    }
    char *footer = bytes + size - TAIL_LEN - len;
    size_t name = strlen(FOOTER_CRC_NAME);
    for (size_t i = 0; i + name + 2 + CRC_HEX < len; i++) {
        if (memcmp(footer + i, FOOTER_CRC_NAME, name) == 0) {
            char text[CRC_HEX + 1];
            char *at = footer + i + name + 2;
            memset(at, '0', CRC_HEX);
            snprintf(text, sizeof text, "%08" PRIx32, parquet_crc32(0, footer, len));
            memcpy(at, text, CRC_HEX);
            return;
        }
    }
}

static void check_row(const ParquetColumn *columns, const ParquetValue *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        require(!values[i].null || columns[i].optional);
        require(values[i].bytes.len <= PARQUET_VALUE_MAX);
        if (!values[i].null && columns[i].type == PARQUET_STRING) {
            require(str_is_utf8(values[i].bytes));
        }
    }
}

static void prepare(ParquetReader *reader, const ParquetColumn *columns, unsigned how)
{
    const char *names[] = {columns[0].name, "later"};
    Error err = {0};
    if ((how & SOME) != 0) {
        parquet_reader_want(reader, names, 2, &err);
    }
    if ((how & FIND) != 0) {
        parquet_reader_find(reader, columns[0].name, STR("ntf_00000005"), &err);
    }
}

static void read_all(ParquetReader *reader, unsigned how)
{
    static ParquetValue values[PARQUET_COLUMNS_MAX];
    const ParquetColumn *columns;
    size_t count = parquet_reader_columns(reader, &columns), rows = 0;
    Error err = {0};
    bool end = false, ok = true;
    require(count > 0);
    prepare(reader, columns, how);
    for (; ok && !end && rows < ROWS_MAX; rows++) {
        ok = parquet_reader_next(reader, values, &end, &err);
        if (ok && !end && (how & SOME) == 0) {
            check_row(columns, values, count);
        }
    }
    require(ok || (err.kind == ERROR_PERMANENT && err.text[0] != '\0'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    char *bytes = malloc(size);
    memcpy(bytes, data + 1, size - 1);
    if ((data[0] & MEND) != 0) {
        mend(bytes, size - 1);
    }
    Str input = str_of(bytes, size - 1);
    Error err = {0};
    ParquetReader *reader = parquet_reader_open(read_input, &input, input.len, &err);
    require(reader != NULL || (err.kind == ERROR_PERMANENT && err.text[0] != '\0'));
    if (reader != NULL) {
        read_all(reader, data[0]);
        parquet_reader_free(reader);
    }
    free(bytes);
    return 0;
}
