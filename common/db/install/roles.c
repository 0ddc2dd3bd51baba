// SPDX-License-Identifier: Apache-2.0
#include "common/db/install/roles.h"

#include <string.h>

#include "common/base/arena.h"
#include "common/base/cleanup.h"
#include "common/db/errors.h"
#include "common/db/install/scram.h"

DEFINE_CLEANUP(free_arena, Arena *, arena_free)
DEFINE_CLEANUP(free_result, PGresult *, PQclear)

static bool is_ok(const PGresult *res)
{
    ExecStatusType status = PQresultStatus(res);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

static PGresult *ask(PGconn *pg, const char *sql, const char *value)
{
    return PQexecParams(pg, sql, 1, NULL, &value, NULL, NULL, 0);
}

static bool run(PGconn *pg, const char *name, const char *sql, Error *err)
{
    CLEANUP(free_result) PGresult *res = PQexec(pg, sql);
    return is_ok(res) || db_error_result(res, name, err);
}

static char *quoted(PGconn *pg, Arena *arena, const char *name)
{
    char *text = PQescapeIdentifier(pg, name, strlen(name));
    char *copy = arena_cstr(arena, str_from(text != NULL ? text : "\"\""));
    PQfreemem(text);
    return copy;
}

bool db_make_database(PGconn *superuser, const char *name, bool *ret_made, Error *err)
{
    CLEANUP(free_arena) Arena *arena = arena_new(0);
    CLEANUP(free_result)
    PGresult *res = ask(superuser, "SELECT FROM pg_catalog.pg_database WHERE datname = $1", name);
    if (!is_ok(res)) {
        return db_error_result(res, "database", err);
    }
    *ret_made = PQntuples(res) == 0;
    return !*ret_made ||
           run(superuser, "create database",
               arena_printf(arena, "CREATE DATABASE %s", quoted(superuser, arena, name)), err);
}

// What the server keeps: NULL text when the role has none.
static bool read_verifier(
    PGconn *pg, Arena *arena, const char *role, const char **ret_verifier, Error *err)
{
    CLEANUP(free_result)
    PGresult *res =
        ask(pg, "SELECT rolpassword FROM pg_catalog.pg_authid WHERE rolname = $1", role);
    if (!is_ok(res)) {
        return db_error_result(res, "pg_authid", err);
    }
    if (PQntuples(res) == 0) {
        return error_set(
            err, ERROR_CONFIG, "there is no role '%s' (HINT: stentor migrate --bootstrap)", role);
    }
    *ret_verifier =
        PQgetisnull(res, 0, 0) ? NULL : arena_cstr(arena, str_from(PQgetvalue(res, 0, 0)));
    return true;
}

bool db_role_password(
    PGconn *superuser, const char *role, const char *password, bool replaces, RolePassword *ret,
    Error *err)
{
    CLEANUP(free_arena) Arena *arena = arena_new(0);
    const char *verifier = NULL;
    if (!read_verifier(superuser, arena, role, &verifier, err)) {
        return false;
    }
    if (verifier != NULL && scram_matches(str_from(verifier), str_from(password))) {
        *ret = ROLE_PASSWORD_PRESENT;
        return true;
    }
    if (verifier != NULL && !replaces) {
        return error_set(err, ERROR_CONFLICT, "the role '%s' has another password", role);
    }
    char *made = PQencryptPasswordConn(superuser, password, role, "scram-sha-256");
    if (made == NULL) {
        return db_error_connection(superuser, "password", err);
    }
    char *literal = PQescapeLiteral(superuser, made, strlen(made));
    bool ok =
        run(superuser, "alter role",
            arena_printf(
                arena, "ALTER ROLE %s PASSWORD %s", quoted(superuser, arena, role),
                literal != NULL ? literal : "NULL"),
            err);
    PQfreemem(literal);
    PQfreemem(made);
    *ret = ROLE_PASSWORD_SET;
    return ok;
}
