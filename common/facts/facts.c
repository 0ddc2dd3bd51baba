// SPDX-License-Identifier: Apache-2.0
#include "common/facts/facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/archive/database.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/facts/facts_object.h"

enum { DUE_MAX = 10, FETCH = 5000, TENANT_SIZE = 64, FOLDER_SIZE = 256, SQL_SIZE = 4096 };
static const int64_t day_length_us = INT64_C(86400000000);

typedef struct Day {
    PGconn *pg;
    StorageWait *storage;
    const FactsOptions *options;
    char since[CLOCK_RFC3339_SIZE], before[CLOCK_RFC3339_SIZE];
    FactsWritten count;
} Day;

// A table's rows, in the order of tenants.
typedef struct Walk {
    Day *day;
    const FactsTable *table;
    FactsObject *object; // of the tenant at hand; NULL: none yet
    char tenant[TENANT_SIZE];
    char folder[FOLDER_SIZE];
} Walk;

// ---- rows ----

static bool read_number(const char *text, ParquetType type, int64_t *ret)
{
    if (type == PARQUET_BOOL) {
        *ret = text[0] == 't';
        return true;
    }
    return str_to_i64(str_from(text), ret);
}

static bool read_row(
    const FactsTable *table, const PGresult *rows, int row, ParquetValue *values, Error *err)
{
    for (size_t i = 0; i < table->count; i++) {
        const char *text = PQgetvalue(rows, row, (int)i);
        bool null = PQgetisnull(rows, row, (int)i) != 0;
        values[i] = (ParquetValue){.null = null, .bytes = str_from(text)};
        if (!null && table->columns[i].type != PARQUET_STRING &&
            !read_number(text, table->columns[i].type, &values[i].number)) {
            return error_set(
                err, ERROR_PERMANENT, "facts: column '%s': '%.40s' is no number",
                table->columns[i].name, text);
        }
    }
    return true;
}

static bool end_tenant(Walk *walk, Error *err)
{
    bool ok = walk->object == NULL || facts_object_end(walk->object, &walk->day->count, err);
    facts_object_free(walk->object);
    walk->object = NULL;
    return ok;
}

static bool begin_tenant(Walk *walk, const char *tenant, Error *err)
{
    if (!end_tenant(walk, err)) {
        return false;
    }
    if (!str_to_c(str_from(tenant), walk->tenant, sizeof walk->tenant)) {
        return error_set(err, ERROR_PERMANENT, "facts: tenant '%.40s...'", tenant);
    }
    snprintf(
        walk->folder, sizeof walk->folder, "facts/%s/tenant=%s/day=%.10s/", walk->table->name,
        tenant, walk->day->since);
    walk->object =
        facts_object_new(walk->day->storage, walk->day->options, walk->table, walk->folder);
    return true;
}

static bool write_rows(Walk *walk, const PGresult *rows, Error *err)
{
    ParquetValue values[FACTS_COLUMNS_MAX];
    for (int row = 0; row < PQntuples(rows); row++) {
        const char *tenant = PQgetvalue(rows, row, 0);
        if ((walk->object == NULL || strcmp(walk->tenant, tenant) != 0) &&
            !begin_tenant(walk, tenant, err)) {
            return false;
        }
        if (!read_row(walk->table, rows, row, values, err) ||
            !facts_object_row(walk->object, values, &walk->day->count, err)) {
            return false;
        }
    }
    return true;
}

// ---- tables ----

// Times as microseconds: files have no other form of them.
static void put_cursor(Buf *sql, const FactsTable *table)
{
    buf_cstr(sql, "DECLARE facts NO SCROLL CURSOR FOR SELECT ");
    for (size_t i = 0; i < table->count; i++) {
        const ParquetColumn *column = &table->columns[i];
        bool time = column->logical == PARQUET_TIME_US;
        buf_printf(
            sql, time ? "%s(extract(epoch FROM f.%s) * 1000000)::bigint" : "%sf.%s",
            i > 0 ? ", " : "", column->name);
    }
    buf_printf(
        sql, " FROM archive.%s($1, $2) f ORDER BY tenant_id COLLATE \"C\", %s", table->name,
        table->key);
}

static bool write_table(Day *day, const FactsTable *table, Error *err)
{
    char space[SQL_SIZE], fetch[64];
    Buf sql;
    Walk walk = {.day = day, .table = table};
    const char *const params[] = {day->since, day->before};
    buf_init(&sql, sizeof space);
    put_cursor(&sql, table);
    snprintf(fetch, sizeof fetch, "FETCH %d FROM facts", FETCH);
    bool ok = archive_do(day->pg, "facts", buf_c(&sql), params, 2, err), more = true;
    buf_done(&sql);
    while (ok && more) {
        AUTO(PGresult) rows = archive_ask(day->pg, "facts", fetch, NULL, 0, err);
        ok = rows != NULL && write_rows(&walk, rows, err);
        more = ok && PQntuples(rows) == FETCH;
    }
    ok = ok && end_tenant(&walk, err);
    facts_object_free(walk.object);
    return ok && archive_do(day->pg, "facts", "CLOSE facts", NULL, 0, err);
}

static bool check_hot(const Day *day, Error *err)
{
    const char *const params[] = {day->since, day->before};
    AUTO(PGresult)
    rows = archive_ask(day->pg, "facts", "SELECT archive.is_hot($1, $2)", params, 2, err);
    if (rows == NULL) {
        return false;
    }
    return strcmp(PQgetvalue(rows, 0, 0), "t") == 0 ||
           error_set(
               err, ERROR_PERMANENT,
               "facts of %.10s stay as they are: a unit of that day is no longer in the database",
               day->since);
}

static bool write_tables(Day *day, Error *err)
{
    bool ok =
        archive_do(
            day->pg, "facts", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NULL, 0, err) &&
        check_hot(day, err);
    for (size_t i = 0; i < facts_table_count && ok; i++) {
        ok = write_table(day, &facts_tables[i], err);
    }
    archive_rollback(day->pg); // it only read
    return ok;
}

static bool note_written(const Day *day, Error *err)
{
    static const char sql[] = "INSERT INTO archive.facts_days (day, rows, objects, bytes) VALUES "
                              "($1::timestamptz::date, $2, $3, $4)"
                              " ON CONFLICT (day) DO UPDATE SET written_at = now(), rows = "
                              "EXCLUDED.rows, objects = EXCLUDED.objects, bytes = EXCLUDED.bytes";
    char rows[24], objects[24], bytes[24];
    snprintf(rows, sizeof rows, "%" PRIu64, day->count.rows);
    snprintf(objects, sizeof objects, "%" PRIu64, day->count.objects);
    snprintf(bytes, sizeof bytes, "%" PRIu64, day->count.bytes);
    const char *const params[] = {day->since, rows, objects, bytes};
    return archive_do(day->pg, "facts", sql, params, 4, err);
}

// The lock is taken before the snapshot: of two processes the later one has the later rows.
bool facts_write_day(
    PGconn *pg, StorageWait *storage, const FactsOptions *options, int64_t day_us,
    FactsWritten *ret, Error *err)
{
    static const char lock[] = "SELECT pg_advisory_lock(hashtextextended('stentor.facts', 0))";
    static const char unlock[] = "SELECT pg_advisory_unlock(hashtextextended('stentor.facts', 0))";
    Day day = {.pg = pg, .storage = storage, .options = options};
    clock_format(day_us, day.since);
    clock_format(day_us + day_length_us, day.before);
    if (!archive_do(pg, "facts", lock, NULL, 0, err)) {
        return false;
    }
    bool ok = write_tables(&day, err) && note_written(&day, err);
    ok = archive_do(pg, "facts", unlock, NULL, 0, ok ? err : NULL) && ok;
    if (ok) {
        *ret = day.count;
    }
    return ok;
}

static bool next_due(PGconn *pg, int64_t *ret_day_us, bool *ret_found, Error *err)
{
    AUTO(PGresult)
    rows = archive_ask(
        pg, "facts", "SELECT to_char(archive.facts_due(), 'YYYY-MM-DD\"T00:00:00Z\"')", NULL, 0,
        err);
    if (rows == NULL) {
        return false;
    }
    *ret_found = PQgetisnull(rows, 0, 0) == 0;
    return !*ret_found || clock_parse(str_from(PQgetvalue(rows, 0, 0)), ret_day_us) ||
           error_set(err, ERROR_PERMANENT, "facts: no day");
}

bool facts_write_due(
    PGconn *pg, StorageWait *storage, const FactsOptions *options, int *ret_days, Error *err)
{
    bool found = true;
    *ret_days = 0;
    while (*ret_days < DUE_MAX) {
        int64_t day_us = 0;
        FactsWritten written;
        if (!next_due(pg, &day_us, &found, err)) {
            return false;
        }
        if (!found) {
            return true;
        }
        if (!facts_write_day(pg, storage, options, day_us, &written, err)) {
            return false;
        }
        ++*ret_days;
    }
    return true;
}
