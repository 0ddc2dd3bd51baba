// SPDX-License-Identifier: Apache-2.0
// archive run, verify, restore, expire, adopt, orphans --delete: a request to the archiver's child
// process, and its progress until it ends. Interrupting the command does not end the request.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/archive/archive_run.h"
#include "common/archive/database.h"
#include "common/base/clock.h"
#include "common/base/span.h"
#include "services/cli/archive/archive.h"
#include "services/cli/noted.h"

enum { POLL_MS = 200, SHOW_US = 1000 * 1000, UNHEARD_US = 15 * 1000 * 1000 };

typedef struct Follow {
    Cli *cli;
    PGconn *pg;
    char id[24];
    char step[200];
    int64_t began_us, shown_us; // monotonic
    bool warned;
    const char *state, *message; // at the end; of the arena
} Follow;

PGconn *archive_command_open(const Cli *cli, Error *err)
{
    return cli_need(cli->settings.database_url, "STENTOR_DATABASE_URL", err)
               ? archive_connect(cli->settings.database_url, "stentor-cli", err)
               : NULL;
}

bool archive_span(const Cli *cli, const char *flag, int64_t *ret_us, Error *err)
{
    const char *value = args_flag(&cli->args, flag);
    if (value == NULL) {
        return true;
    }
    if (strcmp(value, "0") == 0) {
        *ret_us = 0;
        return true;
    }
    return span_parse(str_from(value), ret_us) ||
           error_set(
               err, ERROR_USAGE, "--%s '%.40s' is not a span of time: 0, 36h, 90d", flag, value);
}

const char *archive_size(const Cli *cli, uint64_t bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    double size = (double)bytes;
    size_t unit = 0;
    while (size >= 1000 && unit + 1 < sizeof units / sizeof units[0]) {
        size /= 1000;
        unit++;
    }
    return arena_printf(cli->arena, unit == 0 ? "%.0f %s" : "%.1f %s", size, units[unit]);
}

// ---- progress ----

// clang-format off
static const char progress_sql[] =
    "SELECT r.state, coalesce(r.message, ''), coalesce(r.step, ''), r.rows_done, r.rows_total, r.bytes_done, r.bytes_total,"
    " coalesce((extract(epoch FROM clock_timestamp() - r.step_at) * 1000)::int8, 0)"
    " FROM archive.requests r WHERE r.id = $1";
// clang-format on

static void print_left(const Follow *follow, const PGresult *rows, Buf *line)
{
    int64_t done = archive_number(rows, 0, 3);
    int64_t total = archive_number(rows, 0, 4);
    if (done == 0 || total == 0) { // a step that counts bytes alone
        done = archive_number(rows, 0, 5);
        total = archive_number(rows, 0, 6);
    }
    int64_t took_ms = archive_number(rows, 0, 7);
    if (archive_number(rows, 0, 3) > 0) {
        buf_printf(
            line, ": %" PRId64 " of %" PRId64 " rows", archive_number(rows, 0, 3),
            archive_number(rows, 0, 4));
    }
    if (archive_number(rows, 0, 5) > 0) {
        buf_printf(line, ", %s", archive_size(follow->cli, (uint64_t)archive_number(rows, 0, 5)));
    }
    if (done > 0 && done < total) {
        buf_printf(line, ", about %" PRId64 " s left", took_ms * (total - done) / done / 1000 + 1);
    }
}

static void show(Follow *follow, const PGresult *rows)
{
    int64_t now_us = clock_mono_us();
    const char *step = archive_text(rows, 0, 2);
    bool changed = strcmp(step, follow->step) != 0;
    if (step[0] == '\0' || (!changed && now_us - follow->shown_us < SHOW_US)) {
        return;
    }
    Buf line;
    buf_init(&line, 1024);
    buf_cstr(&line, step);
    print_left(follow, rows, &line);
    cli_note(follow->cli, "%s", buf_c(&line));
    buf_done(&line);
    (void)snprintf(follow->step, sizeof follow->step, "%s", step);
    follow->shown_us = now_us;
}

static void warn_unheard(Follow *follow, const char *state)
{
    if (!follow->warned && strcmp(state, "waiting") == 0 &&
        clock_mono_us() - follow->began_us > UNHEARD_US) {
        follow->warned = true;
        cli_note(
            follow->cli, "request %s waits: is stentor-archiver running, with STENTOR_STORAGE_URL?",
            follow->id);
    }
}

static bool poll_end(Follow *follow, bool *ret_end, Error *err)
{
    const char *params[] = {follow->id};
    AUTO(PGresult) rows = archive_ask(follow->pg, "archive.requests", progress_sql, params, 1, err);
    if (rows == NULL || PQntuples(rows) == 0) {
        return rows != NULL && error_set(err, ERROR_PERMANENT, "request %s is gone", follow->id);
    }
    const char *state = archive_text(rows, 0, 0);
    *ret_end = strcmp(state, "done") == 0 || strcmp(state, "failed") == 0;
    if (*ret_end) {
        follow->state = arena_printf(follow->cli->arena, "%s", state);
        follow->message = arena_printf(follow->cli->arena, "%s", archive_text(rows, 0, 1));
        return true;
    }
    show(follow, rows);
    warn_unheard(follow, state);
    return true;
}

static bool follow_end(Follow *follow, Error *err)
{
    follow->began_us = clock_mono_us();
    for (bool end = false;;) {
        if (!poll_end(follow, &end, err)) {
            return false;
        }
        if (end) {
            return true;
        }
        struct timespec pause = {.tv_nsec = INT64_C(1000000) * POLL_MS};
        (void)nanosleep(&pause, NULL);
    }
}

// ---- a request ----

static bool place(Follow *follow, const char *kind, const char *argument, Error *err)
{
    const char *params[] = {kind, argument};
    AUTO(PGresult)
    rows = archive_ask(
        follow->pg, "archive.request", "SELECT archive.request($1, $2::jsonb)", params, 2, err);
    if (rows == NULL) {
        return false;
    }
    (void)snprintf(follow->id, sizeof follow->id, "%s", archive_text(rows, 0, 0));
    return true;
}

static int print_end(const Cli *cli, const Follow *follow, const char *kind)
{
    bool done = strcmp(follow->state, "done") == 0;
    if (!done) {
        return cli_fail_as(cli, EXIT_FAILED, "archive %s: %s", kind, follow->message);
    }
    if (cli->json) {
        print_json_line(json_pack(
            "{s:s, s:s, s:s}", "request", follow->id, "state", follow->state, "message",
            follow->message));
    } else {
        printf("%s\n", follow->message);
    }
    return EXIT_DONE;
}

// verify only reads. What is restored and what ends by age the archiver notes too, by its units.
static bool note(Cli *cli, const char *kind, Error *err)
{
    const char *unit = args_word(&cli->args, 0);
    return strcmp(kind, "verify") == 0 ||
           cli_audit_write(
               cli, NULL, arena_printf(cli->arena, "archive.%s", kind),
               unit != NULL ? unit : "archive", err);
}

static int ask_and_follow(Cli *cli, const char *kind, json_t *argument)
{
    Error err = {0};
    char *text = json_dumps(argument, JSON_COMPACT);
    json_decref(argument);
    Follow follow = {.cli = cli, .pg = archive_command_open(cli, &err)};
    bool ok = follow.pg != NULL && note(cli, kind, &err) && place(&follow, kind, text, &err) &&
              follow_end(&follow, &err);
    PQfinish(follow.pg);
    free(text);
    return ok ? print_end(cli, &follow, kind) : cli_fail(cli, &err);
}

static json_t *unit_argument(const Cli *cli)
{
    const char *unit = args_word(&cli->args, 0);
    json_t *argument = json_object();
    if (unit != NULL) {
        json_object_set_new(argument, "unit", json_string(unit));
    }
    return argument;
}

static int ask_older(Cli *cli, const char *kind, const char *flag)
{
    Error err = {0};
    int64_t older_us = -1;
    if (!archive_span(cli, flag, &older_us, &err)) {
        return cli_fail(cli, &err);
    }
    json_t *argument = unit_argument(cli);
    if (older_us >= 0) {
        json_object_set_new(argument, "older_than_us", json_integer(older_us));
    }
    return ask_and_follow(cli, kind, argument);
}

int cmd_archive_run(Cli *cli)
{
    return ask_older(cli, "run", "older-than");
}

int cmd_archive_verify(Cli *cli)
{
    return ask_and_follow(cli, "verify", unit_argument(cli));
}

int cmd_archive_expire(Cli *cli)
{
    return ask_and_follow(cli, "expire", unit_argument(cli));
}

int cmd_archive_adopt(Cli *cli)
{
    return ask_and_follow(cli, "adopt", json_object());
}

int cmd_archive_delete_orphans(Cli *cli)
{
    Error err = {0};
    int64_t older_us = INT64_MAX;
    if (!archive_span(cli, "older-than", &older_us, &err)) {
        return cli_fail(cli, &err);
    }
    if (older_us < INT64_C(3600000000) * ORPHAN_DELETE_HOURS) {
        return cli_fail_as(
            cli, EXIT_USAGE,
            "--older-than is at least 1d with --delete: the row of a younger object may be under "
            "way");
    }
    return ask_older(cli, "delete-orphans", "older-than");
}

int cmd_archive_restore(Cli *cli)
{
    Error err = {0};
    int64_t now_us = clock_now_us();
    int64_t until_us = now_us + INT64_C(7) * 86400 * 1000000;
    if (!args_time(&cli->args, "until", TIME_FROM_NOW, now_us, &until_us, &err)) {
        return cli_fail(cli, &err);
    }
    if (until_us <= now_us) {
        return cli_fail_as(cli, EXIT_USAGE, "--until is over already");
    }
    json_t *argument = unit_argument(cli);
    json_object_set_new(argument, "until_us", json_integer(until_us));
    return ask_and_follow(cli, "restore", argument);
}
