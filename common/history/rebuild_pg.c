// SPDX-License-Identifier: Apache-2.0
#include "common/history/rebuild_pg.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/db/errors.h"

enum { SQL_MAX = 4096 };

struct RebuildPg {
    PGconn *conn;
};

PGresult *rebuild_pg_ask(
    RebuildPg *pg, const char *what, const char *sql, const char *param, Error *err)
{
    const char *params[] = {param};
    PGresult *res = param != NULL ? PQexecParams(pg->conn, sql, 1, NULL, params, NULL, NULL, 0)
                                  : PQexec(pg->conn, sql);
    ExecStatusType status = PQresultStatus(res);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
        return res;
    }
    db_error_result(res, what, err);
    PQclear(res);
    return NULL;
}

bool rebuild_pg_run(RebuildPg *pg, const char *what, const char *sql, Error *err)
{
    CLEANUP(rebuild_pg_free) PGresult *res = rebuild_pg_ask(pg, what, sql, NULL, err);
    return res != NULL;
}

static void ignore_notice(void *ctx, const char *message)
{
    (void)ctx;
    (void)message;
}

// A superuser too makes tables that the owner of the live ones owns, or they could not take their
// place.
static bool take_role(RebuildPg *pg, const char *schema, Error *err)
{
    CLEANUP(rebuild_pg_free)
    PGresult *res = rebuild_pg_ask(
        pg, "become the owner",
        "SELECT set_config('role', pg_get_userbyid(nspowner), false) FROM pg_namespace"
        " WHERE nspname = $1",
        schema, err);
    return res != NULL;
}

static bool take_lock(RebuildPg *pg, const char *lock, Error *err)
{
    CLEANUP(rebuild_pg_free)
    PGresult *res = rebuild_pg_ask(
        pg, "rebuild lock",
        "SELECT pg_try_advisory_lock(hashtextextended('stentor.rebuild.' || $1, 0))", lock, err);
    return res != NULL &&
           (strcmp(PQgetvalue(res, 0, 0), "t") == 0 ||
            error_set(err, ERROR_CONFLICT, "another rebuild of %s is running", lock));
}

RebuildPg *rebuild_pg_open(const char *url, const char *schema, const char *lock, Error *err)
{
    const char *keywords[] = {"dbname", "application_name", "client_encoding", NULL};
    const char *values[] = {url, "stentor-rebuild", "UTF8", NULL};
    RebuildPg *pg = xcalloc(1, sizeof *pg);
    pg->conn = PQconnectdbParams(keywords, values, 1);
    bool ok = PQstatus(pg->conn) == CONNECTION_OK;
    if (!ok) {
        Str text = str_trim(str_from(PQerrorMessage(pg->conn)));
        error_set(err, ERROR_TRANSIENT, "postgres: " STR_FMT, STR_ARG(text));
    }
    PQsetNoticeProcessor(pg->conn, ignore_notice, NULL);
    if (!ok || !take_role(pg, schema, err) || !take_lock(pg, lock, err)) {
        rebuild_pg_close(pg);
        return NULL;
    }
    return pg;
}

void rebuild_pg_close(RebuildPg *pg)
{
    if (pg != NULL) {
        PQfinish(pg->conn);
        free(pg);
    }
}

bool rebuild_pg_freeze(RebuildPg *pg, const char *tables, Error *err)
{
    Error ignored;
    Buf sql;
    buf_init(&sql, SQL_MAX);
    buf_printf(
        &sql, "BEGIN; SET LOCAL lock_timeout = '5s'; LOCK TABLE %s IN EXCLUSIVE MODE", tables);
    bool ok = rebuild_pg_run(pg, "lock the live tables", buf_c(&sql), err) ||
              (rebuild_pg_thaw(pg, &ignored), false);
    buf_done(&sql);
    return ok;
}

bool rebuild_pg_thaw(RebuildPg *pg, Error *err)
{
    return rebuild_pg_run(pg, "unlock the live tables", "ROLLBACK", err);
}
