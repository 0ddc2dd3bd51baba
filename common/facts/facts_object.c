// SPDX-License-Identifier: Apache-2.0
#include "common/facts/facts_object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/crash.h"
#include "common/base/id.h"
#include "common/parquet/parquet_writer.h"

enum { HEX_SHOWN = 16, PARTS_MAX = 10000 };

struct FactsObject {
    StorageWait *storage;
    const FactsOptions *options;
    const FactsTable *table;
    const char *folder;
    Arena *arena; // of the keys
    const char *keys[PARTS_MAX];
    size_t key_count;
    ParquetWriter *writer; // of the part under way; NULL: none
    Spool spool;
};

FactsObject *facts_object_new(
    StorageWait *storage, const FactsOptions *options, const FactsTable *table, const char *folder)
{
    FactsObject *o = xcalloc(1, sizeof *o);
    o->storage = storage;
    o->options = options;
    o->table = table;
    o->folder = folder;
    o->spool.fd = -1;
    o->arena = arena_new(0);
    return o;
}

static void end_part(FactsObject *o)
{
    parquet_writer_free(o->writer);
    o->writer = NULL;
    spool_close(&o->spool);
}

void facts_object_free(FactsObject *o)
{
    if (o != NULL) {
        end_part(o);
        arena_free(o->arena);
        free(o);
    }
}

// ---- a part ----

static bool begin_part(FactsObject *o, Error *err)
{
    if (o->key_count == PARTS_MAX) {
        return error_set(err, ERROR_PERMANENT, "facts: over %d objects for one day", PARTS_MAX);
    }
    if (!spool_open(&o->spool, &o->options->spool, err)) {
        return error_wrap(err, "facts");
    }
    o->writer = parquet_writer_new(o->table->columns, o->table->count, spool_append, &o->spool);
    return true;
}

static bool store(FactsObject *o, const uint8_t sha256[SHA256_LEN], Error *err)
{
    char hex[2 * SHA256_LEN + 1];
    hex_encode(sha256, SHA256_LEN, hex);
    const char *key = arena_printf(
        o->arena, "%spart-%05zu-%.*s.parquet", o->folder, o->key_count, HEX_SHOWN, hex);
    StoragePut put = {
        .key = str_from(key),
        .fd = o->spool.fd,
        .len = o->spool.bytes,
        .condition = STORAGE_ALWAYS, // the key has the content's hash
        .installation = o->options->installation,
    };
    memcpy(put.sha256, sha256, SHA256_LEN);
    if (storage_wait_put(o->storage, &put, NULL, err) != STORAGE_DONE) {
        return error_wrap(err, "facts: %s", key);
    }
    o->keys[o->key_count++] = key;
    return true;
}

// What the writer or the spool failed by.
static bool failure(const FactsObject *o, Error *err)
{
    if (o->spool.error != 0) {
        (void)spool_failure(&o->spool, err);
    }
    return error_wrap(err, "facts: %s", o->folder);
}

static bool store_part(FactsObject *o, FactsWritten *count, Error *err)
{
    ParquetTotals totals;
    uint8_t sha256[SHA256_LEN];
    if (!parquet_writer_finish(o->writer, NULL, 0, &totals, err) ||
        !spool_finish(&o->spool, sha256, err)) {
        return failure(o, err);
    }
    bool ok = store(o, sha256, err);
    if (ok) {
        count->rows += totals.rows;
        count->objects++;
        count->bytes += o->spool.bytes;
    }
    end_part(o);
    return ok;
}

bool facts_object_row(FactsObject *o, const ParquetValue *values, FactsWritten *count, Error *err)
{
    uint64_t part = o->options->part_bytes > 0 ? o->options->part_bytes : FACTS_PART_BYTES;
    if (o->writer == NULL && !begin_part(o, err)) {
        return false;
    }
    if (!parquet_writer_row(o->writer, values, err)) {
        return failure(o, err);
    }
    return parquet_writer_bytes(o->writer) < part || store_part(o, count, err);
}

// ---- the end ----

typedef struct Stale {
    FactsObject *object;
    const char *keys[PARTS_MAX];
    size_t count;
} Stale;

static void note_stale(void *ctx, Str key, const StorageInfo *info)
{
    Stale *stale = ctx;
    FactsObject *o = stale->object;
    (void)info;
    for (size_t i = 0; i < o->key_count; i++) {
        if (str_eq(key, str_from(o->keys[i]))) {
            return;
        }
    }
    if (stale->count < PARTS_MAX) {
        stale->keys[stale->count++] = arena_printf(o->arena, STR_FMT, STR_ARG(key));
    }
}

static bool delete_stale(FactsObject *o, FactsWritten *count, Error *err)
{
    Stale *stale = xcalloc(1, sizeof *stale);
    stale->object = o;
    bool ok =
        storage_wait_list(o->storage, str_from(o->folder), note_stale, stale, err) == STORAGE_DONE;
    for (size_t i = 0; i < stale->count && ok; i++) {
        ok = storage_wait_delete(o->storage, str_from(stale->keys[i]), NULL, err) == STORAGE_DONE;
        count->replaced += ok ? 1 : 0;
    }
    free(stale);
    return ok || error_wrap(err, "facts: %s", o->folder);
}

bool facts_object_end(FactsObject *o, FactsWritten *count, Error *err)
{
    if (o->writer != NULL && !store_part(o, count, err)) {
        return false;
    }
    CRASH_POINT("facts.stored");
    return delete_stale(o, count, err);
}
