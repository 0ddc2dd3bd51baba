// SPDX-License-Identifier: Apache-2.0
// The tenant's archived rows, object by object: a row that left Postgres is looked at as those that
// are still there.
#include <stdlib.h>

#include "common/base/buf.h"
#include "common/erasure/erasure_scan.h"
#include "common/parquet/parquet_reader.h"

enum { ROW_MAX = 64 * 1024 * 1024 };

static const char OBJECTS[] =
    "SELECT o.key, o.bytes, encode(o.sha256, 'hex') FROM archive.objects o JOIN erasure.requests q"
    " ON q.tenant = o.tenant WHERE q.id = $1 AND o.state IN ('written', 'verified') ORDER BY o.key";

typedef struct Object {
    StorageWait *storage;
    const char *key;
} Object;

static bool read_object(void *ctx, uint64_t offset, void *into, size_t len, Error *err)
{
    const Object *object = ctx;
    return storage_wait_read(object->storage, str_from(object->key), offset, into, len, err);
}

// Texts and bytes of the row, one behind the other: a field lies within one value.
static void look_at_row(
    const ErasureScan *scan, ErasurePlace *place, const ParquetColumn *columns,
    const ParquetValue *values, size_t count, Buf *row)
{
    buf_clear(row);
    for (size_t i = 0; i < count; i++) {
        bool text = columns[i].type == PARQUET_STRING || columns[i].type == PARQUET_BYTES;
        if (text && !values[i].null) {
            buf_str(row, values[i].bytes);
            buf_char(row, '\n');
        }
    }
    erasure_look_at(scan, place, buf_view(row));
}

static bool scan_rows(ErasureScan *scan, ErasurePlace *place, ParquetReader *reader, Error *err)
{
    const ParquetColumn *columns = NULL;
    size_t count = parquet_reader_columns(reader, &columns);
    ParquetValue *values = xcalloc(count + 1, sizeof *values);
    Buf row;
    buf_init(&row, ROW_MAX);
    bool end = false;
    bool ok = parquet_reader_next(reader, values, &end, err);
    while (ok && !end) {
        look_at_row(scan, place, columns, values, count, &row);
        ok = parquet_reader_next(reader, values, &end, err);
    }
    buf_done(&row);
    free(values);
    return ok;
}

static bool scan_object(
    ErasureScan *scan, ErasurePlace *place, Object *object, uint64_t bytes, Error *err)
{
    ParquetReader *reader = parquet_reader_open(read_object, object, bytes, err);
    bool ok = reader != NULL && scan_rows(scan, place, reader, err);
    parquet_reader_free(reader);
    return ok || error_wrap(err, "object '%.120s'", object->key);
}

bool erasure_scan_archive(ErasureScan *scan, PGconn *pg, StorageWait *storage, Error *err)
{
    AUTO(PGresult) rows = erasure_pg_query(pg, OBJECTS, 1, &scan->id, err);
    bool ok = rows != NULL;
    for (int i = 0; ok && i < PQntuples(rows); i++) {
        Object object = {storage, PQgetvalue(rows, i, 0)};
        ErasurePlace *place = erasure_add_place(scan, "archive", object.key);
        place->sha256 = arena_cstr(scan->arena, str_from(PQgetvalue(rows, i, 2)));
        ok = scan_object(scan, place, &object, strtoull(PQgetvalue(rows, i, 1), NULL, 10), err);
    }
    return ok;
}
