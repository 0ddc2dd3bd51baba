// SPDX-License-Identifier: Apache-2.0
// archive show --rows: an object's rows by the own reader, fetched in the ranges that it asks for.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/parquet/parquet_reader.h"
#include "common/storage/storage_wait.h"
#include "services/cli/archive/archive.h"

enum { SHOWN_BYTES = 24 };

typedef struct Source {
    StorageWait *storage;
    const char *key;
    char *into;
    size_t wanted, got;
} Source;

static bool on_piece(void *ctx, const void *bytes, size_t len)
{
    Source *source = ctx;
    size_t more = source->wanted - source->got < len ? source->wanted - source->got : len;
    memcpy(source->into + source->got, bytes, more);
    source->got += more;
    return true;
}

static bool read_range(void *ctx, uint64_t offset, void *into, size_t len, Error *err)
{
    Source *source = ctx;
    source->into = into;
    source->wanted = len;
    source->got = 0;
    if (len == 0) {
        return true;
    }
    StorageOutcome outcome = storage_wait_get(
        source->storage, str_from(source->key), offset, len, on_piece, source, err);
    if (outcome == STORAGE_FAILED) {
        return error_wrap(err, "object '%s'", source->key);
    }
    return source->got == len ||
           error_set(
               err, ERROR_PERMANENT, "object '%s' %s", source->key,
               outcome == STORAGE_ABSENT ? "is gone from the bucket" : "ends early");
}

// Bytes are hashes and ciphertexts: their beginning is enough to compare.
static json_t *cell_json(const ParquetColumn *column, const ParquetValue *value)
{
    if (value->null) {
        return json_null();
    }
    if (column->type == PARQUET_BYTES) {
        char hex[2 * SHOWN_BYTES + 4];
        size_t len = value->bytes.len < SHOWN_BYTES ? value->bytes.len : SHOWN_BYTES;
        hex_encode(value->bytes.ptr, len, hex);
        if (len < value->bytes.len) {
            memcpy(hex + 2 * len, "...", 4);
        }
        return json_string(hex);
    }
    if (column->type == PARQUET_STRING) {
        return json_stringn(value->bytes.ptr, value->bytes.len);
    }
    if (column->logical == PARQUET_TIME_US) {
        char text[CLOCK_RFC3339_SIZE];
        clock_format(value->number, text);
        return json_string(text);
    }
    return column->type == PARQUET_BOOL ? json_boolean(value->number != 0)
                                        : json_integer((json_int_t)value->number);
}

static void print_row(
    const Cli *cli, const ParquetColumn *columns, size_t count, const ParquetValue *values)
{
    json_t *row = json_object();
    for (size_t i = 0; i < count; i++) {
        if (cli->json || !values[i].null) { // a reader of text is spared what is not there
            json_object_set_new(row, columns[i].name, cell_json(&columns[i], &values[i]));
        }
    }
    print_json_line(row);
}

static bool print_rows(const Cli *cli, ParquetReader *reader, int64_t most, Error *err)
{
    const ParquetColumn *columns = NULL;
    size_t count = parquet_reader_columns(reader, &columns);
    ParquetValue values[PARQUET_COLUMNS_MAX];
    bool end = false;
    for (int64_t i = 0; i < most; i++) {
        if (!parquet_reader_next(reader, values, &end, err)) {
            return false;
        }
        if (end) {
            break;
        }
        print_row(cli, columns, count, values);
    }
    return true;
}

bool archive_print_rows(const Cli *cli, const char *key, uint64_t bytes, int64_t most, Error *err)
{
    if (!cli_need(cli->settings.storage.url, "STENTOR_STORAGE_URL", err)) {
        return false;
    }
    Source source = {.storage = storage_wait_open(&cli->settings.storage, err), .key = key};
    ParquetReader *reader =
        source.storage != NULL ? parquet_reader_open(read_range, &source, bytes, err) : NULL;
    bool ok = reader != NULL && print_rows(cli, reader, most, err);
    parquet_reader_free(reader);
    storage_wait_close(source.storage);
    return ok;
}
