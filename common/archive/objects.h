// SPDX-License-Identifier: Apache-2.0
// The catalogue's rows of objects, and an object compared with its row.
#pragma once

#include "common/archive/paths.h"
#include "common/base/buf.h"
#include "common/parquet/parquet.h"
#include "common/storage/spool.h"

enum { ARCHIVE_FORMAT = 1 };

typedef struct ObjectRow { // texts are the arena's, or the caller's
    const char *key, *unit, *tenant, *state, *tier, *version;
    const char *columns; // "created_at,id": over which Postgres counted
    bool late;
    bool due; // a replaced one that is to be deleted now
    int ordinal, part;
    uint64_t bytes;
    uint8_t sha256[SHA256_LEN];
    ParquetTotals totals;
    int64_t min_us, max_us;
    const char *min_id, *max_id;
} ObjectRow;

// Of a unit in the states named ("written,verified"), by table, tenant, part.
bool objects_load(
    Archive *archive, const char *unit, const char *states, Arena *arena, ObjectRow **ret,
    size_t *ret_count, Error *err);
// A new row with state written; the same key again is the same object.
bool objects_insert(Archive *archive, const ObjectRow *row, Error *err);
bool objects_set_verified(Archive *archive, const char *key, Error *err);

typedef struct ObjectPut {
    const char *key;
    const Spool *spool; // finished
    const uint8_t *sha256;
    const char *storage_class; // NULL: the bucket's default
    bool overwrites;           // what is there under this name was read back as damaged
} ObjectPut;
// A spool file as an object that is not there yet, or is there with as many bytes.
bool objects_put(Archive *archive, const ObjectPut *object, StorageInfo *ret, Error *err);
// Whether it is there with its size. PERMANENT: it is gone, or shorter or longer.
bool objects_head(Archive *archive, const ObjectRow *row, Error *err);
// Fetched whole, hashed and decoded; each value that the row has is compared, and the digest that
// Postgres would count of its rows is noted in the row. PERMANENT names the object and what is
// wrong.
bool objects_verify(Archive *archive, const ObjectRow *row, const UnitTable *table, Error *err);
// Each version of it, the one named first: an object that was put again, because it was damaged or
// the server keeps no conditions, has several. Absent is done.
bool objects_delete(Archive *archive, const char *key, const char *version, Error *err);
// Fetches it into the spool, which the caller closes; hashed and compared, not decoded.
bool objects_fetch(Archive *archive, const ObjectRow *row, Spool *spool, Error *err);
