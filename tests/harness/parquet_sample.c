// SPDX-License-Identifier: Apache-2.0
// links: stentor_parquet
// A Parquet file with every type, and its cells as lines of JSON, for readers that are not ours:
//   parquet_sample ROWS GROUP_ROWS PAGE_ROWS FILE CELLS
// A cell is null, true or false, a number as text, text, or the hex digits of bytes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/parquet/checksum.h"
#include "common/parquet/parquet_writer.h"

enum { COLUMNS = 11, TEXT_MAX = 4096 };

static const ParquetColumn columns[COLUMNS] = {
    {.name = "id", .type = PARQUET_STRING, .bloom = true, .sorted = true},
    {.name = "yes", .type = PARQUET_BOOL, .optional = true},
    {.name = "small", .type = PARQUET_I32, .logical = PARQUET_I16, .optional = true},
    {.name = "number", .type = PARQUET_I32, .optional = true, .bloom = true},
    {.name = "at",
     .type = PARQUET_I64,
     .logical = PARQUET_TIME_US,
     .encoding = PARQUET_DELTA,
     .optional = true},
    {.name = "wide", .type = PARQUET_I64, .encoding = PARQUET_DELTA},
    {.name = "channel", .type = PARQUET_STRING, .encoding = PARQUET_DICTIONARY, .optional = true},
    {.name = "code", .type = PARQUET_STRING, .encoding = PARQUET_DICTIONARY, .bloom = true},
    {.name = "variables", .type = PARQUET_STRING, .logical = PARQUET_JSON, .optional = true},
    {.name = "hash", .type = PARQUET_BYTES, .optional = true, .bloom = true, .uncompressed = true},
    {.name = "nothing", .type = PARQUET_STRING, .encoding = PARQUET_DICTIONARY, .optional = true},
};

typedef struct Row {
    char id[32], code[32], variables[TEXT_MAX], hash[32];
    ParquetValue values[COLUMNS];
} Row;

static bool to_file(void *ctx, const void *bytes, size_t len)
{
    return fwrite(bytes, 1, len, ctx) == len;
}

static ParquetValue text(const char *of, bool null)
{
    return (ParquetValue){.null = null, .bytes = str_from(of)};
}

static ParquetValue number(int64_t of, bool null)
{
    return (ParquetValue){.null = null, .number = of};
}

// Codes repeat at first and never later; some variables are longer than a bound of statistics.
static void make_row(size_t i, Row *row)
{
    static const char *const channels[] = {"email", "sms", "web-push", "in-app", ""};
    static const int64_t extremes[] = {INT64_MIN, INT64_MAX, 0, -1, 1};
    snprintf(row->id, sizeof row->id, "ntf_%012zu", i);
    snprintf(row->code, sizeof row->code, "5.%zu.%zu", i < 10000 ? i % 3 : i, i % 7);
    size_t pad = i % 997 == 0 ? 2000 : i % 80;
    int head = snprintf(row->variables, sizeof row->variables, "{\"t\":\"gr\xc3\xbc\xc3\x9f\\n");
    memset(row->variables + head, 'a' + (int)(i % 26), pad);
    snprintf(row->variables + head + pad, 8, "\"}");
    uint64_t seed = i;
    for (size_t k = 0; k < sizeof row->hash; k += sizeof seed) {
        seed = parquet_xxh64(str_of(&seed, sizeof seed));
        memcpy(row->hash + k, &seed, sizeof seed);
    }
    ParquetValue *v = row->values;
    v[0] = text(row->id, false);
    v[1] = number(i % 2, i % 3 == 0);
    v[2] = number(i % 2 == 0 ? INT16_MIN : INT16_MAX, i % 5 == 0);
    v[3] = number(i % 11 == 0 ? INT32_MIN : (int64_t)i * 1000, i % 7 == 6);
    v[4] = number(INT64_C(1790000000000000) + (int64_t)(i * i % 86400000000), i % 13 == 0);
    v[5] = number(i % 17 < 5 ? extremes[i % 17] : (int64_t)i, false);
    v[6] = text(channels[i % 5], i % 9 == 8);
    v[7] = text(row->code, false);
    v[8] = text(row->variables, i % 4 == 1);
    v[9] = (ParquetValue){.null = i % 10 == 9, .bytes = str_of(row->hash, i % 33)};
    v[10] = number(0, true);
}

static void put_cell(Buf *out, ParquetType type, const ParquetValue *value)
{
    if (value->null) {
        buf_cstr(out, "null");
    } else if (type == PARQUET_BOOL) {
        buf_cstr(out, value->number != 0 ? "true" : "false");
    } else if (type == PARQUET_STRING) {
        buf_json(out, value->bytes);
    } else if (type == PARQUET_BYTES) {
        buf_char(out, '"');
        for (size_t i = 0; i < value->bytes.len; i++) {
            buf_printf(out, "%02x", (unsigned)(uint8_t)value->bytes.ptr[i]);
        }
        buf_char(out, '"');
    } else {
        buf_printf(out, "\"%lld\"", (long long)value->number);
    }
}

static bool put_cells(FILE *cells, const Row *row, Buf *line)
{
    buf_clear(line);
    for (size_t c = 0; c < COLUMNS; c++) {
        buf_char(line, c == 0 ? '[' : ',');
        put_cell(line, columns[c].type, &row->values[c]);
    }
    buf_cstr(line, "]\n");
    return fwrite(line->ptr, 1, line->len, cells) == line->len;
}

static bool write_rows(ParquetWriter *writer, size_t rows, FILE *cells, Error *err)
{
    static Row row;
    Buf line;
    bool ok = true;
    buf_init(&line, 16 * TEXT_MAX);
    for (size_t i = 0; i < rows && ok; i++) {
        make_row(i, &row);
        ok = put_cells(cells, &row, &line) && parquet_writer_row(writer, row.values, err);
    }
    buf_done(&line);
    return ok;
}

int main(int argc, char **argv)
{
    int64_t sizes[3];
    if (argc != 6) {
        fprintf(stderr, "usage: %s ROWS GROUP_ROWS PAGE_ROWS FILE CELLS\n", argv[0]);
        return 2;
    }
    for (int i = 0; i < 3; i++) {
        if (!str_to_i64(str_from(argv[i + 1]), &sizes[i]) || sizes[i] < 0) {
            fprintf(stderr, "%s: no number: '%s'\n", argv[0], argv[i + 1]);
            return 2;
        }
    }
    FILE *file = fopen(argv[4], "wb"), *cells = fopen(argv[5], "wb");
    if (file == NULL || cells == NULL) {
        perror(argv[0]);
        return 1;
    }
    Error err = {0};
    ParquetTotals totals;
    const char *const metadata[][2] = {{"unit", "notifications/record/2026-10"}};
    ParquetWriter *writer = parquet_writer_new(columns, COLUMNS, to_file, file);
    parquet_writer_shape(writer, (uint32_t)sizes[1], (uint32_t)sizes[2]);
    bool ok = write_rows(writer, (size_t)sizes[0], cells, &err) &&
              parquet_writer_finish(writer, metadata, 1, &totals, &err);
    parquet_writer_free(writer);
    bool closed = fclose(file) == 0;
    closed = fclose(cells) == 0 && closed;
    if (!ok || !closed) {
        fprintf(stderr, "%s: %s\n", argv[0], err.text);
        return 1;
    }
    return 0;
}
