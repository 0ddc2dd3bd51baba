// SPDX-License-Identifier: Apache-2.0
#include "common/erasure/erasure_pg.h"

#include "common/base/buf.h"
#include "common/base/id.h"
#include "common/db/errors.h"

enum { BYTES_TEXT_MAX = 1024 * 1024 };

PGconn *erasure_pg_open(const char *url, Error *err)
{
    PGconn *pg = PQconnectdb(url);
    if (PQstatus(pg) == CONNECTION_OK) {
        return pg;
    }
    (void)db_error_connection(pg, "Postgres", err);
    PQfinish(pg);
    return NULL;
}

PGresult *erasure_pg_query(
    PGconn *pg, const char *sql, int count, const char *const *params, Error *err)
{
    PGresult *res = PQexecParams(pg, sql, count, NULL, params, NULL, NULL, 0);
    ExecStatusType status = PQresultStatus(res);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        return res;
    }
    (void)db_error_result(res, "erasure", err);
    PQclear(res);
    return NULL;
}

bool erasure_pg_tenant(PGconn *pg, const char *tenant, Error *err)
{
    AUTO(PGresult)
    done = erasure_pg_query(pg, "SELECT set_config('app.tenant_id', $1, false)", 1, &tenant, err);
    return done != NULL;
}

const char *erasure_pg_bytes(const Str *values, size_t count, Arena *arena)
{
    Buf text;
    buf_init(&text, BYTES_TEXT_MAX);
    buf_char(&text, '{');
    for (size_t i = 0; i < count; i++) {
        char *hex = arena_alloc(arena, 2 * values[i].len + 1);
        hex_encode(values[i].ptr, values[i].len, hex);
        buf_printf(&text, "%s\"\\\\x%s\"", i > 0 ? "," : "", hex);
    }
    buf_char(&text, '}');
    const char *out = arena_cstr(arena, buf_view(&text));
    buf_done(&text);
    return out;
}

// Each in quotes, with a backslash before quotes and backslashes.
const char *erasure_pg_texts(const Str *values, size_t count, Arena *arena)
{
    Buf text;
    buf_init(&text, BYTES_TEXT_MAX);
    buf_char(&text, '{');
    for (size_t i = 0; i < count; i++) {
        buf_cstr(&text, i > 0 ? ",\"" : "\"");
        for (size_t at = 0; at < values[i].len; at++) {
            char c = values[i].ptr[at];
            if (c == '"' || c == '\\') {
                buf_char(&text, '\\');
            }
            buf_char(&text, c);
        }
        buf_char(&text, '"');
    }
    buf_char(&text, '}');
    const char *out = arena_cstr(arena, buf_view(&text));
    buf_done(&text);
    return out;
}

Str erasure_pg_get_bytes(const PGresult *res, int row, int column, Arena *arena)
{
    Str hex = str_from(PQgetvalue(res, row, column));
    hex = str_slice(hex, 2, hex.len); // "\x"
    uint8_t *bytes = arena_alloc(arena, hex.len / 2 + 1);
    size_t len = 0;
    (void)hex_decode(hex, bytes, hex.len / 2 + 1, &len);
    return str_of(bytes, len);
}
