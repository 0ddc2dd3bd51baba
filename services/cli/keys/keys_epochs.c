// SPDX-License-Identifier: Apache-2.0
// keys rotate, and the epochs of keys status. The work itself is done by ingest
// (common/keywork): here it is asked for and watched.
#include "services/cli/keys/keys_epochs.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/db/errors.h"
#include "services/cli/noted.h"

enum { POLL_MS = 500, WAIT_S = 900, SILENT_S = 60 };

DEFINE_CLEANUP(free_result, PGresult *, PQclear)

#define UTC(column) "to_char(" column " AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"

static const char EPOCHS_SQL[] =
    "SELECT e.number, encode(e.key_id, 'hex'),"
    " CASE WHEN e.destroyed_at IS NOT NULL THEN 'destroyed' WHEN e.emptied_at IS NOT NULL THEN "
    "'empty'"
    " WHEN e.closed_at IS NOT NULL THEN 'closed' ELSE 'open' END," UTC("e.opened_at") "," UTC(
        "e.closed_at") "," UTC("e.emptied_at") "," UTC("e.destroyed_at") ","
                                                                         " coalesce((SELECT "
                                                                         "sum(c.data_keys) FROM "
                                                                         "keys.count_wrapped() c "
                                                                         "WHERE c.wrapper = "
                                                                         "'\\x0102'::bytea || "
                                                                         "e.key_id), 0)"
                                                                         " FROM keys.epochs e "
                                                                         "WHERE e.destroyed_at IS "
                                                                         "NULL"
                                                                         "  OR e.number > (SELECT "
                                                                         "max(number) - 8 FROM "
                                                                         "keys.epochs) ORDER BY "
                                                                         "e.number";
static const char WORK_SQL[] =
    "SELECT failure," UTC("looked_at") "," UTC("failed_since") " FROM keys.work";

static PGresult *ask(PGconn *pg, const char *sql, Error *err)
{
    PGresult *rows = PQexec(pg, sql);
    if (PQresultStatus(rows) == PGRES_TUPLES_OK) {
        return rows;
    }
    (void)db_error_result(rows, "keys", err);
    PQclear(rows);
    return NULL;
}

// ---- status ----

static const char *text_or_null(const PGresult *rows, int row, int column)
{
    return PQgetisnull(rows, row, column) == 1 ? NULL : PQgetvalue(rows, row, column);
}

static const char *meaning_of(const Cli *cli, const PGresult *rows, int row)
{
    const char *state = PQgetvalue(rows, row, 2);
    if (strcmp(state, "destroyed") == 0) {
        return arena_printf(
            cli->arena, "since %s: what it has wrapped opens nowhere", PQgetvalue(rows, row, 6));
    }
    if (strcmp(state, "empty") == 0) {
        return arena_printf(
            cli->arena, "since %s: kept for a while, then destroyed", PQgetvalue(rows, row, 5));
    }
    return arena_printf(
        cli->arena, "%s data keys; opened %s", PQgetvalue(rows, row, 7), PQgetvalue(rows, row, 3));
}

static void show_epoch(const Cli *cli, const PGresult *rows, int row, json_t *list)
{
    if (!cli->json) {
        printf(
            "epoch   %s  %-9s number %s; %s\n", PQgetvalue(rows, row, 1), PQgetvalue(rows, row, 2),
            PQgetvalue(rows, row, 0), meaning_of(cli, rows, row));
        return;
    }
    json_array_append_new(
        list, json_pack(
                  "{s:I, s:s, s:s, s:s, s:s?, s:s?, s:s?, s:I}", "number",
                  (json_int_t)strtoll(PQgetvalue(rows, row, 0), NULL, 10), "id",
                  PQgetvalue(rows, row, 1), "state", PQgetvalue(rows, row, 2), "opened_at",
                  PQgetvalue(rows, row, 3), "closed_at", text_or_null(rows, row, 4), "emptied_at",
                  text_or_null(rows, row, 5), "destroyed_at", text_or_null(rows, row, 6),
                  "data_keys", (json_int_t)strtoll(PQgetvalue(rows, row, 7), NULL, 10)));
}

static void show_work(const Cli *cli, const PGresult *work, json_t *report)
{
    const char *failure = text_or_null(work, 0, 0);
    const char *looked = text_or_null(work, 0, 1);
    if (cli->json) {
        json_object_set_new(
            report, "work",
            json_pack(
                "{s:s?, s:s?, s:s?}", "looked_at", looked, "failure", failure, "failed_since",
                text_or_null(work, 0, 2)));
    } else if (failure != NULL) {
        printf("the work on keys fails since %s: %s\n", PQgetvalue(work, 0, 2), failure);
    }
}

bool keys_epochs_show(const Cli *cli, PGconn *pg, json_t *report, Error *err)
{
    CLEANUP(free_result) PGresult *rows = ask(pg, EPOCHS_SQL, err);
    CLEANUP(free_result) PGresult *work = rows != NULL ? ask(pg, WORK_SQL, err) : NULL;
    if (work == NULL) {
        return false;
    }
    json_t *list = json_array();
    for (int i = 0; i < PQntuples(rows); i++) {
        show_epoch(cli, rows, i, list);
    }
    if (cli->json) {
        json_object_set(report, "epochs", list);
    }
    if (PQntuples(work) == 1) {
        show_work(cli, work, report);
    }
    json_decref(list);
    return true;
}

// ---- rotate ----

// One row: is the epoch after $1 open and are all before it empty; the failure, if the last look
// failed; seconds since that.
static const char PROGRESS_SQL[] =
    "SELECT EXISTS (SELECT FROM keys.epochs WHERE number > %d)"
    " AND NOT EXISTS (SELECT FROM keys.epochs WHERE closed_at IS NOT NULL AND emptied_at IS NULL),"
    " (SELECT failure FROM keys.work),"
    " coalesce((SELECT extract(epoch FROM now() - looked_at)::int8 FROM keys.work), 1000000)";

static bool is_over(const Cli *cli, PGconn *pg, int number, bool *ret, Error *err)
{
    // The number is Postgres's own.
    CLEANUP(free_result)
    PGresult *row = ask(pg, arena_printf(cli->arena, PROGRESS_SQL, number), err);
    if (row == NULL) {
        return false;
    }
    *ret = PQgetvalue(row, 0, 0)[0] == 't';
    if (!*ret && PQgetisnull(row, 0, 1) == 0) {
        return error_set(err, ERROR_TRANSIENT, "ingest reports: %s", PQgetvalue(row, 0, 1));
    }
    return *ret || strtoll(PQgetvalue(row, 0, 2), NULL, 10) < SILENT_S + WAIT_S ||
           error_set(
               err, ERROR_TRANSIENT,
               "asked for, and no ingest does the work on keys (HINT: is one running?)");
}

static bool wait_for_epoch(const Cli *cli, PGconn *pg, int number, Error *err)
{
    static const struct timespec PAUSE = {.tv_nsec = POLL_MS * 1000000L};
    int64_t until_us = clock_mono_us() + WAIT_S * INT64_C(1000000);
    bool over = false;
    while (clock_mono_us() < until_us) {
        if (!is_over(cli, pg, number, &over, err)) {
            return false;
        }
        if (over) {
            return true;
        }
        (void)nanosleep(&PAUSE, NULL);
    }
    return error_set(
        err, ERROR_TRANSIENT, "not done within %d minutes; it goes on (HINT: stentor keys status)",
        WAIT_S / 60);
}

static bool rotate(const Cli *cli, PGconn *pg, Error *err)
{
    CLEANUP(free_result) PGresult *row = ask(pg, "SELECT keys.ask_rotation()", err);
    if (row == NULL) {
        return false;
    }
    int number = (int)strtol(PQgetvalue(row, 0, 0), NULL, 10);
    if (number == 0) {
        return error_set(
            err, ERROR_PERMANENT,
            "this installation has no epoch keys (HINT: STENTOR_EPOCH_KEYS_DIR, deploy/KEYS.md)");
    }
    if (!args_has(&cli->args, "wait")) {
        printf(
            "asked for: the epoch after %d begins within minutes (stentor keys status)\n", number);
        return true;
    }
    if (!wait_for_epoch(cli, pg, number, err)) {
        return false;
    }
    printf("the epoch after %d is open, and wraps every data key\n", number);
    return true;
}

int cmd_keys_rotate(Cli *cli)
{
    Error err = {0};
    PGconn *pg = keys_database(cli, &err);
    bool ok = pg != NULL &&
              cli_audit_write(cli, NULL, "epoch_key.rotation_asked", "epochs", &err) &&
              rotate(cli, pg, &err);
    PQfinish(pg);
    return ok ? EXIT_DONE : cli_fail(cli, &err);
}
