// SPDX-License-Identifier: Apache-2.0
#include "common/archive/objects.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/archive/database.h"
#include "common/archive/row_hash.h"
#include "common/parquet/parquet_reader.h"

enum { VERSIONS_MAX = 100 };

// ---- rows ----

// clang-format off
static const char load_sql[] =
    "SELECT key, unit, tenant, state, tier, coalesce(version, ''), kind = 'late', ordinal, part, bytes, sha256, rows, row_sum,"
    " (extract(epoch FROM min_created) * 1000000)::int8, (extract(epoch FROM max_created) * 1000000)::int8, min_id, max_id,"
    " coalesce(delete_after < now(), false), array_to_string(columns, ',') FROM archive.objects WHERE unit = $1 AND state = ANY (string_to_array($2, ',')) ORDER BY ordinal, tenant, kind, part, key";

static const char insert_sql[] =
    "INSERT INTO archive.objects (key, unit, kind, ordinal, tenant, part, rows, bytes, sha256, row_sum, min_created, max_created,"
    " min_id, max_id, format, tier, version, columns, state)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::bytea, $10::bytea, to_timestamp(0) + $11::int8 * interval '1 microsecond',"
    " to_timestamp(0) + $12::int8 * interval '1 microsecond', $13, $14, $15, $16, nullif($17, ''), string_to_array($18, ',')::name[], 'written')"
    " ON CONFLICT (key) DO UPDATE SET state = 'written', version = excluded.version, written_at = now(), verified_at = NULL,"
    " digest = NULL, columns = excluded.columns, delete_after = NULL, deleted_at = NULL";
// clang-format on

static bool take_row(const PGresult *rows, int at, Arena *arena, ObjectRow *ret, Error *err)
{
    *ret = (ObjectRow){
        .key = arena_printf(arena, "%s", archive_text(rows, at, 0)),
        .unit = arena_printf(arena, "%s", archive_text(rows, at, 1)),
        .tenant = arena_printf(arena, "%s", archive_text(rows, at, 2)),
        .state = arena_printf(arena, "%s", archive_text(rows, at, 3)),
        .tier = arena_printf(arena, "%s", archive_text(rows, at, 4)),
        .version = arena_printf(arena, "%s", archive_text(rows, at, 5)),
        .late = archive_text(rows, at, 6)[0] == 't',
        .ordinal = (int)archive_number(rows, at, 7),
        .part = (int)archive_number(rows, at, 8),
        .bytes = (uint64_t)archive_number(rows, at, 9),
        .totals = {.rows = (uint64_t)archive_number(rows, at, 11)},
        .min_us = archive_number(rows, at, 13),
        .max_us = archive_number(rows, at, 14),
        .min_id = arena_printf(arena, "%s", archive_text(rows, at, 15)),
        .max_id = arena_printf(arena, "%s", archive_text(rows, at, 16)),
        .due = archive_text(rows, at, 17)[0] == 't',
        .columns = arena_printf(arena, "%s", archive_text(rows, at, 18))};
    return (archive_bytes(rows, at, 10, ret->sha256, SHA256_LEN) &&
            archive_bytes(rows, at, 12, ret->totals.row_sum, PARQUET_DIGEST_LEN)) ||
           error_set(err, ERROR_PERMANENT, "the row of object '%s' has no hashes", ret->key);
}

bool objects_load(
    Archive *archive, const char *unit, const char *states, Arena *arena, ObjectRow **ret,
    size_t *ret_count, Error *err)
{
    const char *params[] = {unit, states};
    AUTO(PGresult) rows = archive_ask(archive->pg, "objects.load", load_sql, params, 2, err);
    if (rows == NULL) {
        return false;
    }
    int count = PQntuples(rows);
    ObjectRow *objects = arena_array(arena, (size_t)count, sizeof *objects);
    for (int i = 0; i < count; i++) {
        if (!take_row(rows, i, arena, &objects[i], err)) {
            return false;
        }
    }
    *ret = objects;
    *ret_count = (size_t)count;
    return true;
}

bool objects_insert(Archive *archive, const ObjectRow *row, Error *err)
{
    char numbers[8][24];
    char hashes[2][2 + 2 * SHA256_LEN + 1] = {"\\x", "\\x"};
    const int64_t values[] = {row->ordinal,        row->part,   (int64_t)row->totals.rows,
                              (int64_t)row->bytes, row->min_us, row->max_us,
                              ARCHIVE_FORMAT};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        (void)snprintf(numbers[i], sizeof numbers[i], "%" PRId64, values[i]);
    }
    hex_encode(row->sha256, SHA256_LEN, hashes[0] + 2);
    hex_encode(row->totals.row_sum, PARQUET_DIGEST_LEN, hashes[1] + 2);
    const char *params[] = {row->key,    row->unit,    row->late ? "late" : "part",
                            numbers[0],  row->tenant,  numbers[1],
                            numbers[2],  numbers[3],   hashes[0],
                            hashes[1],   numbers[4],   numbers[5],
                            row->min_id, row->max_id,  numbers[6],
                            row->tier,   row->version, row->columns};
    return archive_do(archive->pg, "objects.insert", insert_sql, params, 18, err);
}

bool objects_set_verified(Archive *archive, const char *key, Error *err)
{
    const char *params[] = {key, archive->epoch_text};
    return archive_change(
        archive->pg, "objects.verified",
        "UPDATE archive.objects SET state = 'verified', verified_at = now(), head_at = now() "
        "WHERE key = $1 AND state IN ('written', 'verified') AND EXISTS (SELECT FROM "
        "archive.installation WHERE owner_epoch = $2::int8)",
        params, 2, err);
}

// ---- the bucket ----

static bool named(const char *key, Error *err)
{
    return error_wrap(err, "object '%s'", key);
}

bool objects_put(Archive *archive, const ObjectPut *object, StorageInfo *ret, Error *err)
{
    StoragePut put = {
        .key = str_from(object->key),
        .fd = object->spool->fd,
        .len = object->spool->bytes,
        .condition = object->overwrites ? STORAGE_ALWAYS : STORAGE_IF_ABSENT,
        .installation = archive->installation,
        .storage_class = object->storage_class};
    memcpy(put.sha256, object->sha256, SHA256_LEN);
    StorageOutcome outcome = storage_wait_put(archive->storage, &put, ret, err);
    if (outcome == STORAGE_DONE) {
        return true;
    }
    if (outcome != STORAGE_PRECONDITION) {
        return named(object->key, err);
    }
    // Written before, by this step when it was cut short: verification reads it back.
    outcome = storage_wait_head(archive->storage, put.key, ret, err);
    if (outcome == STORAGE_DONE && ret->bytes == put.len) {
        return true;
    }
    if (outcome != STORAGE_FAILED) {
        error_set(err, ERROR_PERMANENT, "there is another object of this name");
    }
    return named(object->key, err);
}

static bool check_there(const ObjectRow *row, StorageOutcome outcome, uint64_t bytes, Error *err)
{
    if (outcome == STORAGE_FAILED) {
        return named(row->key, err);
    }
    if (outcome == STORAGE_ABSENT) {
        return error_set(
            err, ERROR_PERMANENT, "object '%s' of unit '%s' is gone from the bucket", row->key,
            row->unit);
    }
    return bytes == row->bytes ||
           error_set(
               err, ERROR_PERMANENT,
               "object '%s' of unit '%s' has %" PRIu64 " bytes, %" PRIu64 " were written", row->key,
               row->unit, bytes, row->bytes);
}

bool objects_head(Archive *archive, const ObjectRow *row, Error *err)
{
    StorageInfo info = {0};
    StorageOutcome outcome = storage_wait_head(archive->storage, str_from(row->key), &info, err);
    const char *params[] = {row->key};
    return check_there(row, outcome, info.bytes, err) &&
           archive_do(
               archive->pg, "objects.head",
               "UPDATE archive.objects SET head_at = now() WHERE key = $1", params, 1, err);
}

bool objects_fetch(Archive *archive, const ObjectRow *row, Spool *spool, Error *err)
{
    uint8_t hash[SHA256_LEN];
    StorageOutcome outcome =
        storage_wait_get(archive->storage, str_from(row->key), 0, 0, spool_append, spool, err);
    if (spool->error != 0) {
        return spool_failure(spool, err);
    }
    if (!check_there(row, outcome, spool->bytes, err) || !spool_finish(spool, hash, err)) {
        return false;
    }
    archive_more(archive, 0, spool->bytes);
    return memcmp(hash, row->sha256, SHA256_LEN) == 0 ||
           error_set(
               err, ERROR_PERMANENT, "object '%s' of unit '%s' has other bytes than were written",
               row->key, row->unit);
}

// What is deleted by its version uncovers the one before, until HEAD shows none.
bool objects_delete(Archive *archive, const char *key, const char *version, Error *err)
{
    StorageInfo info = {0};
    Str name = str_from(key);
    (void)str_to_c(str_from(version), info.version, sizeof info.version);
    for (int i = 0; i < VERSIONS_MAX; i++) {
        if (storage_wait_delete(archive->storage, name, info.version, err) != STORAGE_DONE) {
            return error_wrap(err, "deleting object '%s'", key);
        }
        StorageOutcome outcome = storage_wait_head(archive->storage, name, &info, err);
        if (outcome != STORAGE_DONE) {
            return outcome == STORAGE_ABSENT || named(key, err);
        }
    }
    return error_set(
        err, ERROR_PERMANENT,
        "object '%s' is still there after %d deletions (HINT: a lock of the bucket)", key,
        VERSIONS_MAX);
}

// ---- decoding ----

typedef struct Seen {
    int64_t min_us, max_us;
    Buf min_id, max_id;
    RowSum sum;
} Seen;

static void keep(Buf *id, Str value)
{
    buf_clear(id);
    buf_str(id, value);
}

static void see(Seen *seen, bool first, int64_t at_us, Str id)
{
    seen->min_us = first || at_us < seen->min_us ? at_us : seen->min_us;
    seen->max_us = first || at_us > seen->max_us ? at_us : seen->max_us;
    if (first || str_cmp(id, buf_view(&seen->min_id)) < 0) {
        keep(&seen->min_id, id);
    }
    if (first || str_cmp(id, buf_view(&seen->max_id)) > 0) {
        keep(&seen->max_id, id);
    }
}

static size_t find_column(const ParquetReader *reader, const char *name)
{
    const ParquetColumn *columns = NULL;
    size_t count = parquet_reader_columns(reader, &columns);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(columns[i].name, name) == 0) {
            return i;
        }
    }
    return SIZE_MAX;
}

static bool read_rows(
    Archive *archive, ParquetReader *reader, const ObjectRow *row, const UnitTable *table,
    Seen *seen, Error *err)
{
    ParquetValue values[PARQUET_COLUMNS_MAX];
    RowHash hash;
    const ParquetColumn *columns = NULL;
    size_t count = parquet_reader_columns(reader, &columns);
    size_t time_at = find_column(reader, table->time_column);
    size_t id_at = find_column(reader, table->id_column);
    if (time_at == SIZE_MAX || id_at == SIZE_MAX) {
        return error_set(err, ERROR_PERMANENT, "it has no column '%s'", table->time_column);
    }
    if (!row_hash_init(&hash, str_from(row->columns), columns, count, err)) {
        return false;
    }
    uint64_t rows = 0;
    for (bool end = false;; rows++) {
        if (!parquet_reader_next(reader, values, &end, err)) {
            return false;
        }
        if (end) {
            break;
        }
        see(seen, rows == 0, values[time_at].number, values[id_at].bytes);
        row_sum_add(&seen->sum, row_hash(&hash, values));
    }
    archive_more(archive, rows, 0);
    return true;
}

static bool compare(const ObjectRow *row, const ParquetTotals *totals, const Seen *seen, Error *err)
{
    const char *what = totals->rows != row->totals.rows              ? "another number of rows"
                       : !parquet_totals_equal(totals, &row->totals) ? "rows of another content"
                       : seen->min_us != row->min_us || seen->max_us != row->max_us ||
                               !str_eq(buf_view(&seen->min_id), str_from(row->min_id)) ||
                               !str_eq(buf_view(&seen->max_id), str_from(row->max_id))
                           ? "other bounds"
                           : NULL;
    return what == NULL || error_set(
                               err, ERROR_PERMANENT, "object '%s' of unit '%s' has %s than its row",
                               row->key, row->unit, what);
}

// Summed by Postgres, as it sums its own.
static bool note_digest(Archive *archive, const ObjectRow *row, const RowSum *sum, Error *err)
{
    char numbers[2][24];
    (void)snprintf(numbers[0], sizeof numbers[0], "%" PRId64, sum->high);
    (void)snprintf(numbers[1], sizeof numbers[1], "%" PRIu64, sum->low);
    const char *params[] = {row->key, numbers[0], numbers[1]};
    return archive_do(
        archive->pg, "objects.digest",
        "UPDATE archive.objects SET digest = $2::numeric * 18446744073709551616 + $3::numeric "
        "WHERE key = $1",
        params, 3, err);
}

static bool decode(
    Archive *archive, const ObjectRow *row, const UnitTable *table, Spool *spool, Error *err)
{
    ParquetReader *reader = parquet_reader_open(spool_read, spool, spool->bytes, err);
    if (reader == NULL) {
        return named(row->key, err);
    }
    Seen seen = {0};
    buf_init(&seen.min_id, PARQUET_VALUE_MAX);
    buf_init(&seen.max_id, PARQUET_VALUE_MAX);
    bool ok = read_rows(archive, reader, row, table, &seen, err) || named(row->key, err);
    ParquetTotals totals = parquet_reader_totals(reader);
    ok = ok && compare(row, &totals, &seen, err) && note_digest(archive, row, &seen.sum, err);
    buf_done(&seen.min_id);
    buf_done(&seen.max_id);
    parquet_reader_free(reader);
    return ok;
}

bool objects_verify(Archive *archive, const ObjectRow *row, const UnitTable *table, Error *err)
{
    Spool spool;
    if (table == NULL) {
        return error_set(
            err, ERROR_PERMANENT, "object '%s' is of table %d, which there is not", row->key,
            row->ordinal);
    }
    if (!spool_open(&spool, &archive->options->spool, err)) {
        return false;
    }
    bool ok = objects_fetch(archive, row, &spool, err) && decode(archive, row, table, &spool, err);
    spool_close(&spool);
    return ok;
}
