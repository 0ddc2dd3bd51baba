// SPDX-License-Identifier: Apache-2.0
// Killed while tables are filled: they are dropped and filled again from the beginning. Killed
// before the attaching is committed: the same. tests/integration/archive/test_units_crash.py
#include "common/archive/unit/unit_restore.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/archive/columns.h"
#include "common/archive/database.h"
#include "common/archive/objects.h"
#include "common/archive/unit/unit_steps.h"
#include "common/base/crash.h"
#include "common/parquet/parquet_reader.h"

enum { COPY_BYTES = 256 * 1024, PROGRESS_ROWS = 8192 };

typedef struct Import { // of one object
    Archive *archive;
    const ObjectRow *row;
    UnitColumns columns; // those that the file has
    PGconn *pg;
    Buf out;
} Import;

static void keep_present(
    const ParquetReader *reader, const UnitColumns *all, Arena *arena, UnitColumns *ret)
{
    const ParquetColumn *file = NULL;
    size_t count = parquet_reader_columns(reader, &file);
    *ret = (UnitColumns){.list = ""};
    for (size_t i = 0; i < all->count; i++) {
        bool present = false;
        for (size_t k = 0; k < count && !present; k++) {
            present = strcmp(file[k].name, all->names[i]) == 0;
        }
        if (present) {
            ret->list = arena_printf(
                arena, "%s%s\"%s\"", ret->list, ret->count > 0 ? ", " : "", all->names[i]);
            ret->names[ret->count] = all->names[i];
            ret->cell[ret->count++] = all->cell[i];
        }
    }
}

// ---- COPY ----

static bool send_rows(Import *import, Error *err)
{
    bool ok = PQputCopyData(import->pg, import->out.ptr, (int)import->out.len) == 1;
    buf_clear(&import->out);
    return ok || error_set(
                     err, ERROR_TRANSIENT, "restoring object '%s': %s", import->row->key,
                     PQerrorMessage(import->pg));
}

static bool put_rows(Import *import, ParquetReader *reader, Error *err)
{
    ParquetValue values[PARQUET_COLUMNS_MAX];
    bool ok = buf_append(&import->out, copy_header, COPY_HEADER_LEN);
    bool end = false;
    for (uint64_t rows = 1; ok; rows++) {
        if (!parquet_reader_next(reader, values, &end, err)) {
            return error_wrap(err, "object '%s'", import->row->key);
        }
        if (end) {
            break;
        }
        ok = columns_encode(&import->columns, values, &import->out) &&
             (import->out.len < COPY_BYTES || send_rows(import, err));
        if (rows % PROGRESS_ROWS == 0) {
            archive_more(import->archive, PROGRESS_ROWS, 0);
        }
    }
    return ok && buf_append(&import->out, "\377\377", 2) && send_rows(import, err);
}

static bool finish_copy(Import *import, bool ok, Error *err)
{
    if (PQputCopyEnd(import->pg, ok ? NULL : "stopped") != 1 && ok) {
        return error_set(err, ERROR_TRANSIENT, "restoring: %s", PQerrorMessage(import->pg));
    }
    AUTO(PGresult) res = PQgetResult(import->pg);
    if (ok && PQresultStatus(res) != PGRES_COMMAND_OK) {
        return error_set(
            err, ERROR_PERMANENT, "restoring object '%s': %s", import->row->key,
            PQresultErrorMessage(res));
    }
    return ok;
}

static bool copy_rows(Import *import, ParquetReader *reader, Error *err)
{
    char sql[16 * 1024];
    char ordinal[12];
    (void)snprintf(ordinal, sizeof ordinal, "%d", import->row->ordinal);
    const char *params[] = {import->row->unit, ordinal};
    AUTO(PGresult)
    rows = archive_ask(
        import->archive->pg, "unit.restore_name",
        "SELECT quote_ident(archive.restore_name($1, $2::int2))", params, 2, err);
    if (rows == NULL) {
        return false;
    }
    int len = snprintf(
        sql, sizeof sql, "COPY archive_restore.%s (%s) FROM STDIN (FORMAT binary)",
        archive_text(rows, 0, 0), import->columns.list);
    AUTO(PGresult) res = len < (int)sizeof sql ? PQexec(import->pg, sql) : NULL;
    if (PQresultStatus(res) != PGRES_COPY_IN) {
        return error_set(
            err, ERROR_TRANSIENT, "restoring unit '%s': %s", import->row->unit,
            PQerrorMessage(import->pg));
    }
    return finish_copy(import, put_rows(import, reader, err), err);
}

static bool import_file(
    Archive *archive, const ObjectRow *row, const UnitColumns *all, Spool *spool, Arena *arena,
    Error *err)
{
    ParquetReader *reader = parquet_reader_open(spool_read, spool, spool->bytes, err);
    if (reader == NULL) {
        return error_wrap(err, "object '%s'", row->key);
    }
    Import import = {.archive = archive, .row = row};
    keep_present(reader, all, arena, &import.columns);
    buf_init(&import.out, COPY_BYTES + COPY_ROW_MAX);
    import.pg = archive_connect(archive->options->database_url, "stentor-archive", err);
    bool ok = import.pg != NULL &&
              parquet_reader_want(reader, import.columns.names, import.columns.count, err) &&
              copy_rows(&import, reader, err);
    PQfinish(import.pg);
    buf_done(&import.out);
    parquet_reader_free(reader);
    return ok;
}

static bool import_object(
    Archive *archive, const ObjectRow *row, const UnitColumns *all, Arena *arena, Error *err)
{
    Spool spool;
    if (!spool_open(&spool, &archive->options->spool, err)) {
        return false;
    }
    bool ok = objects_fetch(archive, row, &spool, err) &&
              import_file(archive, row, all, &spool, arena, err);
    spool_close(&spool);
    if (ok) {
        CRASH_POINT("archiver.part_restored");
    }
    return ok;
}

// ---- the unit ----

static bool fill(Archive *archive, const Unit *unit, Arena *arena, Error *err)
{
    UnitTable tables[UNIT_TABLES_MAX];
    size_t table_count = 0;
    ObjectRow *rows = NULL;
    size_t row_count = 0;
    if (!units_tables(archive, unit->kind, arena, tables, &table_count, err) ||
        !objects_load(archive, unit->id, "verified", arena, &rows, &row_count, err)) {
        return false;
    }
    UnitColumns *columns = arena_array(arena, table_count, sizeof *columns);
    for (size_t t = 0; t < table_count; t++) {
        if (!columns_load(archive, &tables[t], arena, &columns[t], err)) {
            return false;
        }
        for (size_t i = 0; i < row_count; i++) {
            if (rows[i].ordinal == tables[t].ordinal && !rows[i].late &&
                !import_object(archive, &rows[i], &columns[t], arena, err)) {
                return false;
            }
        }
    }
    return true;
}

bool unit_attach(Archive *archive, const Unit *unit, Error *err)
{
    const char *params[] = {unit->id, archive->epoch_text};
    if (!archive_do(
            archive->pg, "unit.restore_begin", "SELECT archive.restore_begin($1, $2)", params, 2,
            err)) {
        return false;
    }
    CRASH_POINT("archiver.restore_begun");
    Arena *arena = arena_new(0);
    bool ok = fill(archive, unit, arena, err);
    arena_free(arena);
    if (!ok || !archive_do(
                   archive->pg, "unit.restore_check", "SELECT archive.restore_check($1, $2)",
                   params, 2, err)) {
        return false;
    }
    CRASH_POINT("archiver.restore_checked");
    if (!unit_try_often(archive, unit, "SELECT archive.restore_attach($1, $2)", err)) {
        return false;
    }
    CRASH_POINT("archiver.restore_attached");
    return true;
}

bool unit_detach(Archive *archive, const Unit *unit, Error *err)
{
    bool ok = unit_try_often(archive, unit, "SELECT archive.restore_end($1, $2)", err);
    if (ok) {
        CRASH_POINT("archiver.restore_ended");
    }
    return ok;
}

bool unit_want(Archive *archive, const Unit *unit, int64_t request, int64_t until_us, Error *err)
{
    if (unit->facts.state != UNIT_REMOVED && unit->facts.state != UNIT_RESTORED) {
        return error_set(
            err, ERROR_CONFIG, "unit '%s' is %s: only what was removed can be restored", unit->id,
            unit_state_name(unit->facts.state));
    }
    char numbers[2][24];
    (void)snprintf(numbers[0], sizeof numbers[0], "%" PRId64, request);
    (void)snprintf(numbers[1], sizeof numbers[1], "%" PRId64, until_us);
    const char *params[] = {unit->id, numbers[0], numbers[1]};
    return archive_do(
        archive->pg, "unit.want",
        "INSERT INTO archive.restores AS r (unit, request, until) VALUES ($1, nullif($2::int8, 0), "
        "to_timestamp(0) + $3::int8 * interval '1 microsecond') ON CONFLICT (unit) DO UPDATE SET "
        "until = greatest(r.until, excluded.until), request = excluded.request",
        params, 3, err);
}
