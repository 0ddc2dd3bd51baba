// SPDX-License-Identifier: Apache-2.0
// Killed after a part's PUT: its row is not there, and the part is made again, of the same name.
// Killed after its row: it is passed over. tests/integration/archive/test_units_crash.py
#include "common/archive/unit/unit_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/archive/database.h"
#include "common/archive/unit/unit_copy.h"
#include "common/base/crash.h"
#include "common/parquet/parquet_writer.h"

enum { PROGRESS_ROWS = 8192 };

typedef struct Export { // of one table and tenant
    Archive *archive;
    const Unit *unit;
    const UnitTable *table;
    const UnitColumns *columns;
    const char *tenant;
    const char *counted_columns;
    uint64_t counted;
    uint64_t written; // rows of parts that are finished
    int part;
    bool overwrites;
    // of the part under way
    Spool spool;
    ParquetWriter *writer;
    uint64_t rows;
    int64_t min_us, max_us;
    Buf min_id, max_id;
} Export;

// ---- a part ----

static bool begin_part(Export *export, Error *err)
{
    if (!spool_open(&export->spool, &export->archive->options->spool, err)) {
        return false;
    }
    const UnitColumns *columns = export->columns;
    export->writer =
        parquet_writer_new(columns->parquet, columns->count, spool_append, &export->spool);
    export->rows = 0;
    return true;
}

static void drop_part(Export *export)
{
    parquet_writer_free(export->writer);
    export->writer = NULL;
    export->rows = 0;
    spool_close(&export->spool);
}

static bool finish_file(Export *export, ObjectRow *row, Error *err)
{
    const char *const metadata[][2] = {
        {"stentor.unit", export->unit->id},
        {"stentor.table", export->table->parent},
        {"stentor.tenant", export->tenant}};
    if (!parquet_writer_finish(export->writer, metadata, 3, &row->totals, err)) {
        return export->spool.error != 0 ? spool_failure(&export->spool, err) : false;
    }
    return spool_finish(&export->spool, row->sha256, err);
}

static bool store_part(Export *export, Error *err)
{
    ObjectRow row = {
        .unit = export->unit->id,
        .tenant = export->tenant,
        .tier = "warm",
        .columns = export->counted_columns,
        .ordinal = export->table->ordinal,
        .part = export->part,
        .min_us = export->min_us,
        .max_us = export->max_us,
        .min_id = buf_c(&export->min_id),
        .max_id = buf_c(&export->max_id)};
    if (!finish_file(export, &row, err)) {
        return false;
    }
    char key[ARCHIVE_KEY_SIZE];
    archive_part_key(
        export->unit,
        &(PartName){
            .stem = export->table->stem,
            .tenant = export->tenant,
            .part = export->part,
            .sha256 = row.sha256},
        key);
    row.key = key;
    row.bytes = export->spool.bytes;
    StorageInfo info = {0};
    ObjectPut put = {
        .key = key,
        .spool = &export->spool,
        .sha256 = row.sha256,
        .overwrites = export->overwrites};
    if (!objects_put(export->archive, &put, &info, err)) {
        return false;
    }
    CRASH_POINT("archiver.part_put");
    row.version = info.version;
    if (!objects_insert(export->archive, &row, err)) {
        return false;
    }
    CRASH_POINT("archiver.part_recorded");
    archive_more(export->archive, 0, row.bytes);
    return true;
}

// The last part of a tenant is stored when all rows are as counted, so a row that came since is in
// no object that counts.
static bool end_part(Export *export, bool last, Error *err)
{
    export->written += export->rows;
    if (last && export->written != export->counted) {
        return error_set(
            err, ERROR_PERMANENT,
            "unit '%s': '%s' of tenant '%s' holds %" PRIu64 " rows, %" PRIu64
            " were counted when it was sealed (HINT: a row was added or removed by hand)",
            export->unit->id, export->table->parent, export->tenant, export->written,
            export->counted);
    }
    bool ok = export->rows == 0 || store_part(export, err);
    drop_part(export);
    export->part++;
    return ok;
}

// ---- rows ----

static void see(Export *export, const ParquetValue *values)
{
    int64_t at_us = values[export->columns->time_at].number;
    Str id = values[export->columns->id_at].bytes;
    bool first = export->rows == 0;
    export->min_us = first || at_us < export->min_us ? at_us : export->min_us;
    export->max_us = first || at_us > export->max_us ? at_us : export->max_us;
    if (first || str_cmp(id, buf_view(&export->min_id)) < 0) {
        buf_clear(&export->min_id);
        buf_str(&export->min_id, id);
    }
    if (first || str_cmp(id, buf_view(&export->max_id)) > 0) {
        buf_clear(&export->max_id);
        buf_str(&export->max_id, id);
    }
    export->rows++;
    if (export->rows % PROGRESS_ROWS == 0) {
        archive_more(export->archive, PROGRESS_ROWS, 0);
    }
}

static bool take_row(Export *export, Str message, Error *err)
{
    ParquetValue values[PARQUET_COLUMNS_MAX];
    if (export->writer == NULL && !begin_part(export, err)) {
        return false;
    }
    if (!columns_decode(export->columns, message, values, err)) {
        return false;
    }
    if (!parquet_writer_row(export->writer, values, err)) {
        return export->spool.error != 0 ? spool_failure(&export->spool, err)
                                        : error_wrap(err, "%s", export->table->parent);
    }
    see(export, values);
    const ArchiveOptions *options = export->archive->options;
    bool full = export->rows >= options->part_rows ||
                parquet_writer_bytes(export->writer) >= options->part_bytes;
    return !full || end_part(export, false, err);
}

static bool read_copy(Export *export, PGconn *pg, Error *err)
{
    char *bytes = NULL;
    bool ok = true;
    bool first = true;
    int len;
    while (ok && (len = PQgetCopyData(pg, &bytes, 0)) > 0) {
        Str message = str_of(bytes, (size_t)len);
        ok = !first || copy_skip_header(&message, err);
        first = false;
        ok = ok && (copy_is_end(message) || take_row(export, message, err));
        PQfreemem(bytes);
    }
    if (!ok) {
        return false;
    }
    AUTO(PGresult) res = PQgetResult(pg);
    if (PQresultStatus(res) != PGRES_COMMAND_OK) {
        return error_set(
            err, ERROR_TRANSIENT, "reading '%s': %s", export->table->parent,
            PQresultErrorMessage(res));
    }
    return end_part(export, true, err);
}

// ---- the statement ----

static bool run_copy(Export *export, PGconn *pg, const char *sql, Error *err)
{
    const char *tenant[] = {export->tenant};
    if (!archive_do(
            pg, "unit.tenant", "SELECT set_config('app.tenant_id', $1, false)", tenant, 1, err)) {
        return false;
    }
    AUTO(PGresult) res = PQexec(pg, sql);
    if (PQresultStatus(res) != PGRES_COPY_OUT) {
        return error_set(
            err, ERROR_TRANSIENT, "reading '%s': %s", export->table->parent,
            PQresultErrorMessage(res));
    }
    return read_copy(export, pg, err);
}

// ---- a table and tenant ----

// Parts are found by the rows before them, so those behind a damaged one are made again, too.
static bool mark_damaged(Archive *archive, const ObjectRow *row, Error *err)
{
    const char *params[] = {row->key, archive->epoch_text};
    return archive_do(
        archive->pg, "unit.damaged",
        "UPDATE archive.objects o SET state = 'replaced' FROM archive.objects d WHERE d.key = $1 "
        "AND o.unit = d.unit AND o.ordinal = d.ordinal AND o.tenant = d.tenant AND o.kind = d.kind "
        "AND o.part >= d.part AND o.state IN ('written', 'verified') AND EXISTS (SELECT FROM "
        "archive.installation WHERE owner_epoch = $2::int8)",
        params, 2, err);
}

// Whether the part is there. *ret_there false: it is to be made again, and those behind it.
static bool pass_part(Export *export, const ObjectRow *row, bool *ret_there, Error *err)
{
    *ret_there = objects_head(export->archive, row, err);
    if (!*ret_there) {
        export->overwrites = true;
        return err->kind == ERROR_PERMANENT && mark_damaged(export->archive, row, err);
    }
    export->written += row->totals.rows;
    export->part = row->part + 1;
    archive_more(export->archive, row->totals.rows, row->bytes);
    return true;
}

// Parts that are there: their rows are passed over by number, the order being the same.
static bool pass_parts(Export *export, const ObjectRow *rows, size_t count, Error *err)
{
    bool there = true;
    for (size_t i = 0; i < count && there; i++) {
        bool own = !rows[i].late && rows[i].ordinal == export->table->ordinal &&
                   strcmp(rows[i].tenant, export->tenant) == 0;
        if (own && (rows[i].part != export->part || !pass_part(export, &rows[i], &there, err))) {
            return rows[i].part != export->part && mark_damaged(export->archive, &rows[i], err);
        }
    }
    return true;
}

// Other rows than were counted: what was made of them must not count. They are deleted later.
static void replace_parts(Export *export)
{
    char ordinal[12];
    Error ignored;
    (void)snprintf(ordinal, sizeof ordinal, "%d", export->table->ordinal);
    const char *params[] = {export->unit->id, ordinal, export->tenant};
    (void)archive_do(
        export->archive->pg, "unit.replace",
        "UPDATE archive.objects SET state = 'replaced', delete_after = now() + interval '7 days' "
        "WHERE unit = $1 AND ordinal = $2::int2 AND tenant = $3 AND kind = 'part' AND state IN "
        "('written', 'verified')",
        params, 3, &ignored);
}

static bool copy_tenant(Export *export, Error *err)
{
    Buf sql;
    buf_init(&sql, 64 * 1024);
    PGconn *pg = archive_connect(export->archive->options->database_url, "stentor-archive", err);
    bool ok = pg != NULL &&
              unit_copy_sql(
                  export->archive, export->unit,
                  &(UnitCopy){
                      .table = export->table,
                      .columns = export->columns,
                      .tenant = export->tenant,
                      .offset = export->written},
                  &sql, err) &&
              run_copy(export, pg, buf_c(&sql), err);
    drop_part(export);
    PQfinish(pg);
    buf_done(&sql);
    return ok;
}

static bool write_tenant(Export *export, const ObjectRow *rows, size_t count, Error *err)
{
    export->spool.fd = -1;
    buf_init(&export->min_id, PARQUET_VALUE_MAX);
    buf_init(&export->max_id, PARQUET_VALUE_MAX);
    bool ok = pass_parts(export, rows, count, err);
    if (ok && export->written != export->counted) {
        ok = copy_tenant(export, err);
        if (!ok && err->kind == ERROR_PERMANENT) {
            replace_parts(export);
        }
    }
    buf_done(&export->min_id);
    buf_done(&export->max_id);
    return ok;
}

// ---- the unit ----

static PGresult *load_counts(Archive *archive, const Unit *unit, int ordinal, Error *err)
{
    char number[12];
    (void)snprintf(number, sizeof number, "%d", ordinal);
    const char *params[] = {unit->id, number};
    return archive_ask(
        archive->pg, "unit.counts",
        "SELECT tenant, rows, array_to_string(columns, ',') FROM archive.counts WHERE unit = $1 "
        "AND ordinal = $2::int2 "
        "ORDER BY tenant",
        params, 2, err);
}

static bool write_table(
    Archive *archive, const Unit *unit, const UnitTable *table, bool overwrites, Arena *arena,
    Error *err)
{
    UnitColumns *columns = arena_zalloc(arena, sizeof *columns);
    ObjectRow *rows = NULL;
    size_t count = 0;
    AUTO(PGresult) counts = load_counts(archive, unit, table->ordinal, err);
    if (counts == NULL || !columns_load(archive, table, arena, columns, err) ||
        !objects_load(archive, unit->id, "written,verified", arena, &rows, &count, err)) {
        return false;
    }
    for (int i = 0; i < PQntuples(counts); i++) {
        Export export = {
            .archive = archive,
            .unit = unit,
            .table = table,
            .columns = columns,
            .overwrites = overwrites,
            .tenant = archive_text(counts, i, 0),
            .counted = (uint64_t)archive_number(counts, i, 1),
            .counted_columns = archive_text(counts, i, 2)};
        if (!id_is_tenant(str_from(export.tenant))) { // it becomes a part of SQL and of a key
            return error_set(
                err, ERROR_PERMANENT, "unit '%s': '%s' has rows of '%.40s', which is no tenant",
                unit->id, table->parent, export.tenant);
        }
        if (!write_tenant(&export, rows, count, err)) {
            return false;
        }
    }
    return true;
}

static bool write_tables(Archive *archive, const Unit *unit, bool overwrites, Error *err)
{
    UnitTable tables[UNIT_TABLES_MAX];
    size_t count = 0;
    Arena *arena = arena_new(0);
    bool ok = units_tables(archive, unit->kind, arena, tables, &count, err);
    for (size_t i = 0; i < count && ok; i++) {
        ok = write_table(archive, unit, &tables[i], overwrites, arena, err);
    }
    arena_free(arena);
    return ok;
}

bool unit_write(Archive *archive, const Unit *unit, Error *err)
{
    return write_tables(archive, unit, false, err) &&
           units_move(archive, unit, UNIT_COUNTED, UNIT_WRITTEN, err);
}

bool unit_write_again(Archive *archive, const Unit *unit, const ObjectRow *damaged, Error *err)
{
    return (damaged == NULL || mark_damaged(archive, damaged, err)) &&
           write_tables(archive, unit, true, err);
}
