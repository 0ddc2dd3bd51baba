// SPDX-License-Identifier: Apache-2.0
// keys status, keys retire: what hangs on which key of the master key file, and that nothing does
// any more.
#include <jansson.h>
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

#include "common/codec/opt_out.h"
#include "common/db/errors.h"
#include "common/db/master_keys.h"
#include "common/session/key_file.h"
#include "services/cli/cli.h"
#include "services/cli/keys/keys_epochs.h"
#include "services/cli/noted.h"

// When a key of the same kind became current after it; null: it is the current one.
static const char STATUS_SQL[] =
    "SELECT m.kind, encode(m.key_id, 'hex'), m.retired_at IS NOT NULL,"
    " CASE WHEN m.kind = 'master' THEN coalesce((SELECT sum(c.data_keys) FROM keys.count_wrapped() "
    "c"
    "  WHERE c.wrapper = '\\x0101'::bytea || m.key_id), 0) END,"
    " to_char(n.at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'),"
    " to_char((n.at + $1::integer * interval '1 day') AT TIME ZONE 'UTC', 'YYYY-MM-DD')"
    " FROM keys.master_keys m CROSS JOIN LATERAL (SELECT min(o.current_at) AS at FROM "
    "keys.master_keys o"
    "  WHERE o.kind = m.kind AND o.current_at > m.current_at) AS n ORDER BY m.current_at, m.kind "
    "DESC, m.key_id";
static const char BARE_SQL[] =
    "SELECT coalesce(sum(data_keys), 0) FROM keys.count_wrapped() WHERE wrapper IS NULL";

PGconn *keys_database(const Cli *cli, Error *err)
{
    if (!cli_need(cli->settings.database_url, "STENTOR_DATABASE_URL", err)) {
        return NULL;
    }
    PGconn *pg = PQconnectdb(cli->settings.database_url);
    if (PQstatus(pg) == CONNECTION_OK) {
        return pg;
    }
    (void)db_error_connection(pg, "Postgres", err);
    PQfinish(pg);
    return NULL;
}

// NULL: it failed.
static PGresult *ask(PGconn *pg, const char *sql, const char *parameter, Error *err)
{
    PGresult *res =
        PQexecParams(pg, sql, parameter != NULL ? 1 : 0, NULL, &parameter, NULL, NULL, 0);
    ExecStatusType status = PQresultStatus(res);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        return res;
    }
    (void)db_error_result(res, "keys", err);
    PQclear(res);
    return NULL;
}

// ---- status ----

static const char *state_of(const PGresult *rows, int row)
{
    bool current = PQgetisnull(rows, row, 4) == 1;
    return PQgetvalue(rows, row, 2)[0] == 't' ? "retired" : current ? "current" : "old";
}

// What still needs the key.
static const char *need_of(const Cli *cli, const PGresult *rows, int row)
{
    bool master = strcmp(PQgetvalue(rows, row, 0), "master") == 0;
    const char *state = state_of(rows, row);
    if (strcmp(state, "retired") == 0) {
        return "nothing: it may be removed from the file";
    }
    const char *keys = arena_printf(cli->arena, "%s data keys", PQgetvalue(rows, row, 3));
    if (strcmp(state, "current") == 0) {
        return master ? keys : "everything that is hashed from now on";
    }
    return master
               ? arena_printf(
                     cli->arena,
                     "%s; opt-out links and raw callbacks from before %s, the last until %s", keys,
                     PQgetvalue(rows, row, 4), PQgetvalue(rows, row, 5))
               : arena_printf(
                     cli->arena, "suppressions, addresses and recipients from before %s: for ever",
                     PQgetvalue(rows, row, 4));
}

static void print_row(const Cli *cli, const PGresult *rows, int row, json_t *list)
{
    const char *kind = PQgetvalue(rows, row, 0);
    const char *id = PQgetvalue(rows, row, 1);
    const char *state = state_of(rows, row);
    if (!cli->json) {
        printf("%-6s  %s  %-8s %s\n", kind, id, state, need_of(cli, rows, row));
        return;
    }
    json_t *item = json_pack("{s:s, s:s, s:s}", "kind", kind, "id", id, "state", state);
    if (PQgetisnull(rows, row, 3) == 0) {
        json_object_set_new(
            item, "data_keys", json_integer(strtoll(PQgetvalue(rows, row, 3), NULL, 10)));
    }
    json_object_set_new(item, "needed_by", json_string(need_of(cli, rows, row)));
    json_array_append_new(list, item);
}

// Into `report` with --json.
static void print_status(const Cli *cli, const PGresult *rows, long long bare, json_t *report)
{
    json_t *list = json_array();
    for (int i = 0; i < PQntuples(rows); i++) {
        print_row(cli, rows, i, list);
    }
    if (cli->json) {
        json_object_set(report, "keys", list);
        json_object_set_new(report, "unmarked", json_integer((json_int_t)bare));
    } else if (bare > 0) {
        printf(
            "%lld data keys of an earlier version do not name their master key: ingest wraps them "
            "again\n",
            bare);
    }
    if (!cli->json && PQntuples(rows) == 0) {
        puts("no key is registered (HINT: STENTOR_MASTER_KEY_FILE=FILE stentor migrate)");
    }
    json_decref(list);
}

static bool show_status(const Cli *cli, PGconn *pg, Error *err)
{
    PGresult *rows = ask(pg, STATUS_SQL, arena_printf(cli->arena, "%d", (int)OPT_OUT_DAYS), err);
    PGresult *bare = rows != NULL ? ask(pg, BARE_SQL, NULL, err) : NULL;
    bool ok = bare != NULL;
    json_t *report = json_object();
    if (ok) {
        print_status(cli, rows, strtoll(PQgetvalue(bare, 0, 0), NULL, 10), report);
        ok = keys_epochs_show(cli, pg, report, err);
    }
    if (ok && cli->json) {
        print_json_line(json_incref(report));
    }
    json_decref(report);
    PQclear(rows);
    PQclear(bare);
    return ok;
}

int cmd_keys_status(Cli *cli)
{
    Error err = {0};
    PGconn *pg = keys_database(cli, &err);
    bool ok = pg != NULL && show_status(cli, pg, &err);
    PQfinish(pg);
    return ok ? EXIT_DONE : cli_fail(cli, &err);
}

// ---- retire ----

// One row: why not ("": it may be), and whether only time or --now is missing.
static const char MAY_SQL[] =
    "SELECT CASE"
    " WHEN m.key_id IS NULL THEN 'there is no such key'"
    " WHEN m.retired_at IS NOT NULL THEN ''"
    " WHEN n.at IS NULL THEN 'it is the current one'"
    " WHEN m.kind = 'master' AND w.count > 0 THEN w.count || ' data keys are wrapped by it, or do "
    "not say by what: ingest is wrapping them again'"
    " WHEN m.kind = 'master' AND EXISTS (SELECT FROM keys.epochs WHERE destroyed_at IS NULL)"
    "  AND NOT EXISTS (SELECT FROM keys.work WHERE epochs_master <> m.key_id)"
    "  THEN 'epoch keys are wrapped by it: ingest wraps them again once it has the new file'"
    " END, m.kind,"
    " CASE WHEN m.kind = 'hash' OR n.at + 400 * interval '1 day' > now() THEN 'yes' END"
    " FROM (SELECT decode($1, 'hex') AS id) i LEFT JOIN keys.master_keys m ON m.key_id = i.id"
    " CROSS JOIN LATERAL (SELECT min(o.current_at) AS at FROM keys.master_keys o WHERE o.kind = "
    "m.kind AND o.current_at > m.current_at) n"
    " CROSS JOIN LATERAL (SELECT coalesce(sum(c.data_keys), 0) AS count FROM keys.count_wrapped() c"
    "  WHERE c.wrapper IS NULL OR c.wrapper = '\\x0101'::bytea || m.key_id) w";
static const char RETIRE_SQL[] = "UPDATE keys.master_keys SET retired_at = now() WHERE key_id = "
                                 "decode($1, 'hex') AND retired_at IS NULL";

static bool may_retire(const Cli *cli, PGconn *pg, const char *id, Error *err)
{
    PGresult *row = ask(pg, MAY_SQL, id, err);
    if (row == NULL) {
        return false;
    }
    const char *refusal = arena_cstr(cli->arena, str_from(PQgetvalue(row, 0, 0)));
    bool hash = strcmp(PQgetvalue(row, 0, 1), "hash") == 0;
    bool wants_word = PQgetisnull(row, 0, 0) == 1 && PQgetisnull(row, 0, 2) == 0;
    PQclear(row);
    if (refusal[0] != '\0') {
        return error_set(err, ERROR_PERMANENT, "key %s: %s", id, refusal);
    }
    if (wants_word && !args_has(&cli->args, "now")) {
        return error_set(
            err, ERROR_PERMANENT,
            hash ? "hash key %s: what was hashed under it, suppressions too, is not found without "
                   "it (--now retires it all the same)"
                 : "master key %s: opt-out links and raw callbacks of its time end with it; "
                   "stentor keys status shows when they end anyway (--now retires it all the same)",
            id);
    }
    return true;
}

// No data key is written while it is counted, and none under a retired key after
// (common/db/keyring.c).
static bool retire(const Cli *cli, PGconn *pg, const char *id, Error *err)
{
    static const char *const begin[] = {
        "BEGIN", "SET LOCAL lock_timeout = '5s'", "LOCK TABLE keys.data_keys IN SHARE MODE"};
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++) {
        PGresult *res = ask(pg, begin[i], NULL, err);
        if (res == NULL) {
            return false;
        }
        PQclear(res);
    }
    if (!may_retire(cli, pg, id, err)) {
        return false;
    }
    PGresult *updated = ask(pg, RETIRE_SQL, id, err);
    PGresult *committed = updated != NULL ? ask(pg, "COMMIT", NULL, err) : NULL;
    bool ok = committed != NULL;
    PQclear(updated);
    PQclear(committed);
    return ok;
}

static bool publish(Cli *cli, const KeyRegister *keys, Error *err)
{
    Session session;
    if (!session_open(&session, &cli->settings.session, err)) {
        return false;
    }
    bool ok = keys_publish(&session, cli->arena, keys, err);
    session_close(&session);
    return ok;
}

int cmd_keys_retire(Cli *cli)
{
    Error err = {0};
    KeyRegister keys;
    uint8_t bytes[KEY_ID_LEN];
    size_t len = 0;
    const char *id = args_word(&cli->args, 0);
    if (!hex_decode(str_from(id), bytes, sizeof bytes, &len) || len != KEY_ID_LEN) {
        error_set(
            &err, ERROR_USAGE,
            "'%.40s' is not the id of a key: 8 hex digits (stentor keys status shows them)", id);
        return cli_fail(cli, &err);
    }
    PGconn *pg = keys_database(cli, &err);
    bool ok = pg != NULL && may_retire(cli, pg, id, &err) &&
              cli_audit_write(cli, NULL, "key.retired", id, &err) && retire(cli, pg, id, &err) &&
              master_keys_load(pg, &keys, &err);
    PQfinish(pg);
    if (!ok || !publish(cli, &keys, &err)) {
        return cli_fail(cli, &err);
    }
    printf("key %s is retired: stentor master-key remove %s prints the file without it\n", id, id);
    return EXIT_DONE;
}
