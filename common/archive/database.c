// SPDX-License-Identifier: Apache-2.0
#include "common/archive/database.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/id.h"
#include "common/db/errors.h"

static void pass_over(void *ctx, const PGresult *notice)
{
    (void)ctx;
    (void)notice;
}

PGconn *archive_connect(const char *url, const char *application_name, Error *err)
{
    const char *names[] = {"dbname", "fallback_application_name", "options", NULL};
    const char *values[] = {url, application_name, "-c timezone=UTC -c datestyle=ISO", NULL};
    PGconn *pg = PQconnectdbParams(names, values, 1);
    if (PQstatus(pg) != CONNECTION_OK) {
        db_error_connection(pg, "the database", err);
        PQfinish(pg);
        return NULL;
    }
    PQsetNoticeReceiver(pg, pass_over, NULL);
    return pg;
}

PGresult *archive_ask(
    PGconn *pg, const char *what, const char *sql, const char *const *params, int count, Error *err)
{
    PGresult *res = PQexecParams(pg, sql, count, NULL, params, NULL, NULL, 0);
    ExecStatusType status = PQresultStatus(res);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        db_error_result(res, what, err);
        PQclear(res);
        return NULL;
    }
    return res;
}

bool archive_do(
    PGconn *pg, const char *what, const char *sql, const char *const *params, int count, Error *err)
{
    AUTO(PGresult) res = archive_ask(pg, what, sql, params, count, err);
    return res != NULL;
}

bool archive_change(
    PGconn *pg, const char *what, const char *sql, const char *const *params, int count, Error *err)
{
    AUTO(PGresult) res = archive_ask(pg, what, sql, params, count, err);
    if (res == NULL) {
        return false;
    }
    return strcmp(PQcmdTuples(res), "1") == 0 ||
           error_set(err, ERROR_CONFLICT, "'%s': another process was first", what);
}

bool archive_begin(PGconn *pg, Error *err)
{
    return archive_do(pg, "begin", "BEGIN", NULL, 0, err);
}

bool archive_commit(PGconn *pg, Error *err)
{
    return archive_do(pg, "commit", "COMMIT", NULL, 0, err);
}

void archive_rollback(PGconn *pg)
{
    if (PQtransactionStatus(pg) != PQTRANS_IDLE) {
        PQclear(PQexec(pg, "ROLLBACK"));
    }
}

const char *archive_text(const PGresult *rows, int row, int column)
{
    return PQgetvalue(rows, row, column);
}

int64_t archive_number(const PGresult *rows, int row, int column)
{
    int64_t value = 0;
    return str_to_i64(str_from(archive_text(rows, row, column)), &value) ? value : 0;
}

bool archive_bytes(const PGresult *rows, int row, int column, uint8_t *out, size_t len)
{
    Str text = str_from(archive_text(rows, row, column));
    size_t got = 0;
    return str_starts(text, STR("\\x")) &&
           hex_decode(str_slice(text, 2, text.len), out, len, &got) && got == len;
}
