// SPDX-License-Identifier: Apache-2.0
// One blocking connection, whose session holds the lock of the work.
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/db/db.h"
#include "common/db/errors.h"
#include "common/db/lock.h"
#include "common/keywork/internal.h"

// A lock that is not to be had within 200 ms is tried again: whoever waits behind it waits no
// longer.
static const char SETTINGS[] =
    "-c lock_timeout=200ms -c statement_timeout=0 -c synchronous_commit=on -c timezone=UTC "
    "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3";

enum { ARRAY_MAX = 16 * 1024 * 1024, BINARY = 1 };

bool keywork_goes_on(Keywork *work, Error *err)
{
    return !atomic_load(&work->stopping) ||
           error_set(err, ERROR_CANCELLED, "the work on keys is stopped");
}

static bool succeeded(const PGresult *rows)
{
    ExecStatusType status = PQresultStatus(rows);
    return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

PGresult *keywork_ask(
    Keywork *work, const char *sql, int count, const char *const *values, const int *lengths,
    Error *err)
{
    int formats[4];
    for (int i = 0; i < count; i++) {
        formats[i] = lengths != NULL && lengths[i] > 0 ? BINARY : 0;
    }
    PGresult *rows = PQexecParams(work->pg, sql, count, NULL, values, lengths, formats, BINARY);
    if (succeeded(rows)) {
        return rows;
    }
    if (atomic_load(&work->stopping)) {
        error_set(err, ERROR_CANCELLED, "the work on keys is stopped");
    } else {
        (void)db_error_result(rows, "keys", err);
    }
    PQclear(rows);
    return NULL;
}

PGresult *keywork_query(Keywork *work, const char *sql, Error *err)
{
    return keywork_ask(work, sql, 0, NULL, NULL, err);
}

bool keywork_do(Keywork *work, const char *sql, Error *err)
{
    PGresult *rows = keywork_query(work, sql, err);
    PQclear(rows);
    return rows != NULL;
}

bool keywork_connect(Keywork *work, Error *err)
{
    const char *const names[] = {"dbname", "options", "fallback_application_name", NULL};
    const char *const values[] = {
        work->options.database_url, SETTINGS, work->options.application_name, NULL};
    if (work->pg != NULL) {
        return true;
    }
    work->pg = PQconnectdbParams(names, values, 1);
    return PQstatus(work->pg) == CONNECTION_OK || db_error_connection(work->pg, "Postgres", err);
}

bool keywork_lock(Keywork *work, Error *err)
{
    char key[24];
    const char *const values[] = {key};
    (void)snprintf(key, sizeof key, "%lld", (long long)db_lock_key("keys"));
    // Asked even when it is held: an answer says that the session lives. It counts how often it was
    // taken, which is of no matter: the session's end gives it away.
    CLEANUP(keywork_clear)
    PGresult *rows = keywork_ask(
        work,
        work->held ? "SELECT $1::text::int8 IS NOT NULL"
                   : "SELECT pg_try_advisory_lock($1::text::int8)",
        1, values, NULL, err);
    if (rows == NULL) {
        return false;
    }
    work->held = db_get_int(rows, 0, 0) != 0;
    return true;
}

const char *keywork_time(Arena *arena, int64_t at_us)
{
    char text[CLOCK_RFC3339_SIZE];
    clock_format(at_us, text);
    return arena_printf(arena, "%s", text);
}

// ---- arrays ----

static void put_u32(Buf *buf, uint32_t value)
{
    uint8_t bytes[4] = {
        (uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8), (uint8_t)value};
    (void)buf_append(buf, bytes, sizeof bytes);
}

// Dimensions, nulls, type; elements, first index.
void keywork_array_begin(KeyworkArray *array, uint32_t type)
{
    if (array->bytes.max == 0) {
        buf_init(&array->bytes, ARRAY_MAX);
    }
    buf_clear(&array->bytes);
    array->count = 0;
    array->has_null = false;
    put_u32(&array->bytes, 1);
    put_u32(&array->bytes, 0);
    put_u32(&array->bytes, type);
    put_u32(&array->bytes, 0);
    put_u32(&array->bytes, 1);
}

void keywork_array_push(KeyworkArray *array, const void *value, size_t len)
{
    array->count++;
    array->has_null = array->has_null || value == NULL;
    put_u32(&array->bytes, value == NULL ? UINT32_MAX : (uint32_t)len);
    if (value != NULL) {
        (void)buf_append(&array->bytes, value, len);
    }
}

void keywork_array_end(KeyworkArray *array)
{
    char *at = array->bytes.ptr;
    at[7] = array->has_null ? 1 : 0;
    for (size_t i = 0; i < 4; i++) {
        at[12 + i] = (char)(uint8_t)(array->count >> (24 - 8 * i));
    }
}
