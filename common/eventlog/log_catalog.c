// SPDX-License-Identifier: Apache-2.0
#include "common/eventlog/log_catalog.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/cleanup.h"

DEFINE_CLEANUP(free_result, PGresult *, PQclear)

struct LogCatalog {
    PGconn *pg;
};

// clang-format off
// known: the windows of the stream that from_sequence belongs to lie between two recreations.
static const char next_sql[] =
    "WITH known AS (SELECT max(s.window_number) AS number FROM archive.segments s WHERE s.stream = $1"
    "               AND s.stream_created_at = 'epoch'::timestamptz + $5::int8 * interval '1 microsecond'),"
    " made AS (SELECT h.window_number AS number FROM archive.holes h WHERE h.stream = $1 AND h.reason = 'recreated'),"
    " bounds AS (SELECT coalesce(max(m.number) FILTER (WHERE k.number IS NULL OR m.number <= k.number), 0) AS low,"
    "            coalesce(min(m.number) FILTER (WHERE m.number > k.number), 9223372036854775807) AS high"
    "            FROM known k LEFT JOIN made m ON true),"
    " wanted AS (SELECT min(s.window_number) AS number FROM archive.segments s, bounds b"
    "            WHERE s.stream = $1 AND s.window_number > $2::int8 AND s.last_sequence >= $3::int8"
    "              AND ($3::int8 <= 1 OR (s.window_number >= b.low AND s.window_number < b.high))"
    "              AND s.max_at >= to_timestamp($4::int8 / 1000000.0))"
    " SELECT s.window_number, (extract(epoch FROM s.stream_created_at) * 1000000)::int8, s.first_sequence, s.last_sequence,"
    "  (extract(epoch FROM s.max_at) * 1000000)::int8, coalesce(h.reason, ''), coalesce(h.first_sequence, 0), coalesce(h.last_sequence, 0),"
    "  s.class, s.bytes, s.events, CASE WHEN s.deleted_at IS NULL THEN s.key ELSE '' END,"
    "  (extract(epoch FROM s.min_at) * 1000000)::int8"
    " FROM wanted w JOIN archive.segments s ON s.stream = $1 AND s.window_number = w.number"
    " LEFT JOIN LATERAL (SELECT * FROM archive.holes g WHERE g.stream = $1 AND g.window_number = w.number"
    "                    ORDER BY g.reason = 'tail_lost', g.first_sequence LIMIT 1) h ON true ORDER BY s.class";

// From the last window back to the newest hole.
static const char extent_sql[] =
    "WITH hole AS (SELECT * FROM archive.holes h WHERE h.stream = $1 AND h.reason <> 'tail_lost'"
    "              AND h.window_number <= (SELECT max(s.window_number) FROM archive.segments s WHERE s.stream = $1)"
    "              ORDER BY h.window_number DESC, h.last_sequence DESC LIMIT 1)"
    " SELECT coalesce(min(s.first_sequence), 0), coalesce(max(s.last_sequence), 0), coalesce((SELECT h.reason FROM hole h), ''),"
    "  coalesce((SELECT h.first_sequence FROM hole h), 0), coalesce((SELECT h.last_sequence FROM hole h), 0),"
    "  coalesce((extract(epoch FROM max(s.stream_created_at)) * 1000000)::int8, 0),"
    "  coalesce((extract(epoch FROM min(s.min_at)) * 1000000)::int8, 0), coalesce((extract(epoch FROM max(s.max_at)) * 1000000)::int8, 0),"
    "  coalesce(max(s.window_number), 0)"
    " FROM archive.segments s WHERE s.stream = $1 AND s.window_number >= coalesce((SELECT h.window_number FROM hole h), 0)";

static const char behind_sql[] =
    "SELECT h.reason, h.first_sequence, h.last_sequence FROM archive.holes h WHERE h.stream = $1 AND h.window_number = $2::int8 + 1"
    " AND h.reason <> 'tail_lost' AND NOT EXISTS (SELECT FROM archive.segments s WHERE s.stream = $1 AND s.window_number > $2::int8)"
    " ORDER BY h.reason = 'recreated' DESC, h.first_sequence LIMIT 1";
// clang-format on

static PGresult *ask(
    LogCatalog *catalog, const char *sql, const char *const *params, int count, Error *err)
{
    PGresult *res = PQexecParams(catalog->pg, sql, count, NULL, params, NULL, NULL, 0);
    if (PQresultStatus(res) == PGRES_TUPLES_OK) {
        return res;
    }
    Str text = str_trim(str_from(PQerrorMessage(catalog->pg)));
    bool lost = PQstatus(catalog->pg) != CONNECTION_OK;
    error_set(
        err, lost ? ERROR_TRANSIENT : ERROR_PERMANENT, "the log's segments: " STR_FMT,
        STR_ARG(text));
    PQclear(res);
    return NULL;
}

LogCatalog *log_catalog_open(const char *url, Error *err)
{
    const char *keywords[] = {"dbname", "application_name", NULL};
    const char *values[] = {url, "stentor-log", NULL};
    LogCatalog *catalog = xcalloc(1, sizeof *catalog);
    catalog->pg = PQconnectdbParams(keywords, values, 1);
    if (PQstatus(catalog->pg) == CONNECTION_OK) {
        return catalog;
    }
    Str text = str_trim(str_from(PQerrorMessage(catalog->pg)));
    error_set(err, ERROR_TRANSIENT, "postgres: " STR_FMT, STR_ARG(text));
    log_catalog_close(catalog);
    return NULL;
}

void log_catalog_close(LogCatalog *catalog)
{
    if (catalog != NULL) {
        PQfinish(catalog->pg);
        free(catalog);
    }
}

static int64_t get_number(const PGresult *res, int row, int column)
{
    return strtoll(PQgetvalue(res, row, column), NULL, 10);
}

static uint64_t get_count(const PGresult *res, int row, int column)
{
    int64_t value = get_number(res, row, column);
    return value > 0 ? (uint64_t)value : 0;
}

static void get_text(const PGresult *res, int row, int column, char *out, size_t size)
{
    (void)str_to_c(str_from(PQgetvalue(res, row, column)), out, size);
}

static void read_window(const PGresult *res, LogWindowRow *ret)
{
    *ret = (LogWindowRow){
        .number = get_count(res, 0, 0),
        .created_us = get_number(res, 0, 1),
        .first = get_count(res, 0, 2),
        .last = get_count(res, 0, 3),
        .hole = {.first = get_count(res, 0, 6), .last = get_count(res, 0, 7)}};
    get_text(res, 0, 5, ret->hole.reason, sizeof ret->hole.reason);
    for (int row = 0; row < PQntuples(res) && row < LOG_CLASS_COUNT; row++) {
        LogSegmentRow *segment = &ret->segments[ret->count++];
        int64_t max_at_us = get_number(res, row, 4);
        ret->max_at_us = max_at_us > ret->max_at_us ? max_at_us : ret->max_at_us;
        int64_t min_at_us = get_number(res, row, 12);
        ret->min_at_us = row == 0 || min_at_us < ret->min_at_us ? min_at_us : ret->min_at_us;
        segment->class_code = *PQgetvalue(res, row, 8);
        segment->bytes = get_count(res, row, 9);
        segment->events = get_count(res, row, 10);
        get_text(res, row, 11, segment->key, sizeof segment->key);
    }
}

bool log_catalog_next(
    LogCatalog *catalog, const char *stream, const LogWanted *wanted, LogWindowRow *ret,
    bool *ret_found, Error *err)
{
    char number[24], sequence[24], time[24], created[24];
    snprintf(number, sizeof number, "%llu", (unsigned long long)wanted->after);
    snprintf(sequence, sizeof sequence, "%llu", (unsigned long long)wanted->from_sequence);
    snprintf(time, sizeof time, "%lld", (long long)wanted->from_us);
    snprintf(created, sizeof created, "%lld", (long long)wanted->created_us);
    const char *params[] = {stream, number, sequence, time, created};
    CLEANUP(free_result) PGresult *res = ask(catalog, next_sql, params, 5, err);
    if (res == NULL) {
        return false;
    }
    *ret_found = PQntuples(res) > 0;
    if (*ret_found) {
        read_window(res, ret);
    }
    return true;
}

bool log_catalog_hole_behind(
    LogCatalog *catalog, const char *stream, uint64_t number, LogHole *ret, Error *err)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    const char *params[] = {stream, text};
    CLEANUP(free_result) PGresult *res = ask(catalog, behind_sql, params, 2, err);
    if (res == NULL) {
        return false;
    }
    *ret = (LogHole){0};
    if (PQntuples(res) > 0) {
        get_text(res, 0, 0, ret->reason, sizeof ret->reason);
        ret->first = get_count(res, 0, 1);
        ret->last = get_count(res, 0, 2);
    }
    return true;
}

bool log_catalog_extent(LogCatalog *catalog, const char *stream, LogExtent *ret, Error *err)
{
    const char *params[] = {stream};
    CLEANUP(free_result) PGresult *res = ask(catalog, extent_sql, params, 1, err);
    if (res == NULL) {
        return false;
    }
    *ret = (LogExtent){
        .first = get_count(res, 0, 0),
        .last = get_count(res, 0, 1),
        .before = {.first = get_count(res, 0, 3), .last = get_count(res, 0, 4)},
        .created_us = get_number(res, 0, 5),
        .first_at_us = get_number(res, 0, 6),
        .last_at_us = get_number(res, 0, 7)};
    get_text(res, 0, 2, ret->before.reason, sizeof ret->before.reason);
    return log_catalog_hole_behind(catalog, stream, get_count(res, 0, 8), &ret->behind, err);
}
