// SPDX-License-Identifier: Apache-2.0
#include "services/cli/operate/outbox_database.h"

#include <string.h>

static bool connect_database(Outbox *outbox, Error *err)
{
    const char *url = outbox->cli->settings.database_url;
    if (!cli_need(url, "STENTOR_DATABASE_URL", err)) {
        return false;
    }
    outbox->pg = PQconnectdb(url);
    return PQstatus(outbox->pg) == CONNECTION_OK ||
           error_set(
               err, ERROR_TRANSIENT, "cannot connect to the application's database: %s",
               PQerrorMessage(outbox->pg));
}

// Triggers, defaults and expressions of the application's tables run in the session that touches
// them: a superuser's would lend them its rights.
static bool refuse_superuser(Outbox *outbox, Error *err)
{
    if (args_has(&outbox->cli->args, "as-superuser")) {
        return true;
    }
    const char *is_super = PQparameterStatus(outbox->pg, "is_superuser");
    return is_super == NULL || strcmp(is_super, "on") != 0 ||
           error_set(
               err, ERROR_CONFIG,
               "'%s' is a superuser: code of the application would run with its rights (HINT: "
               "connect as the owner of the mapped table, or add --as-superuser)",
               PQuser(outbox->pg));
}

bool outbox_become(Outbox *outbox, Error *err)
{
    const char *role = args_flag(&outbox->cli->args, "role");
    if (role == NULL) {
        return true;
    }
    char *name = PQescapeIdentifier(outbox->pg, role, strlen(role));
    bool ok =
        name != NULL &&
        outbox_exec(outbox, "role", arena_printf(outbox->cli->arena, "SET ROLE %s", name), err);
    PQfreemem(name);
    if (!ok) {
        Error why = *err;
        return error_set(
            err, why.kind,
            "%s (HINT: a member of the role may ask for it; the role itself needs "
            "no "
            "--role)",
            why.text);
    }
    return true;
}

static bool read_mapping(Outbox *outbox, Error *err)
{
    const char *path = args_flag(&outbox->cli->args, "mapping");
    Str json = STR_EMPTY;
    if (path == NULL) {
        return error_set(
            err, ERROR_USAGE,
            "--mapping FILE is required (HINT: examples: deploy/examples/outbox)");
    }
    if (!cli_read_file(outbox->cli, path, MAPPING_BYTES_MAX, &json, err)) {
        return false;
    }
    outbox->mapping = mapping_read(json, err);
    if (outbox->mapping == NULL) {
        return error_wrap(err, "'%s'", path);
    }
    outbox->sql = relay_sql_new(outbox->mapping);
    return true;
}

bool outbox_open(Outbox *outbox, Cli *cli, Error *err)
{
    *outbox = (Outbox){.cli = cli};
    return read_mapping(outbox, err) && connect_database(outbox, err) &&
           refuse_superuser(outbox, err);
}

bool outbox_open_bound(Outbox *outbox, Cli *cli, Error *err)
{
    if (!outbox_open(outbox, cli, err) || !outbox_become(outbox, err)) {
        return false;
    }
    PGresult *check = outbox_query(outbox, "check", outbox->sql->check.sql, 0, NULL, err);
    bool ok = check != NULL && relay_sql_bind(outbox->sql, check, err);
    PQclear(check);
    return ok;
}

void outbox_close(Outbox *outbox)
{
    PQfinish(outbox->pg);
    relay_sql_free(outbox->sql);
    mapping_free(outbox->mapping);
}

static bool fail(Outbox *outbox, const char *what, PGresult *res, Error *err)
{
    const char *text = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
    error_set(
        err, ERROR_TRANSIENT, "%s: postgres: %s", what,
        text == NULL ? PQerrorMessage(outbox->pg) : text);
    PQclear(res);
    return false;
}

PGresult *outbox_query(
    Outbox *outbox, const char *what, const char *sql, int count, const char *const *params,
    Error *err)
{
    PGresult *res = PQexecParams(outbox->pg, sql, count, NULL, params, NULL, NULL, 1);
    if (PQresultStatus(res) != PGRES_TUPLES_OK) {
        (void)fail(outbox, what, res, err);
        return NULL;
    }
    return res;
}

bool outbox_exec(Outbox *outbox, const char *what, const char *sql, Error *err)
{
    PGresult *res = PQexec(outbox->pg, sql);
    ExecStatusType status = PQresultStatus(res);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        return fail(outbox, what, res, err);
    }
    PQclear(res);
    return true;
}

bool outbox_notify(Outbox *outbox, Error *err)
{
    // A mapping's name is [a-z0-9_-].
    const char *sql = arena_printf(
        outbox->cli->arena, "NOTIFY stentor_outbox, '%.*s'", STR_ARG(outbox->mapping->name));
    return outbox_exec(outbox, "notify", sql, err);
}
