// SPDX-License-Identifier: Apache-2.0
// rebuild: a projection again from the log. What is done for each is in rebuild_history.c,
// rebuild_people.c, rebuild_saga.c and rebuild_find.c; here is what it prints.
#include <jansson.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "services/cli/noted.h"
#include "services/cli/rebuild/rebuild_run.h"

static bool run_rebuild(Rebuild *rebuild, Error *err)
{
    if (rebuild->row->remake == REMAKE_SWAP) {
        return rebuild_history(rebuild, err);
    }
    if (rebuild->row->remake == REMAKE_REWIND) {
        return rebuild_find(rebuild, err);
    }
    if (strcmp(rebuild->row->name, "saga") == 0) {
        return rebuild_saga(rebuild, err);
    }
    if (strcmp(rebuild->row->name, "feed") == 0) {
        return rebuild_people(rebuild, PEOPLE_FEED, err);
    }
    bool people = strcmp(rebuild->row->position, "people") == 0;
    return rebuild_people(rebuild, people ? PEOPLE_RECORDS : PEOPLE_DIGESTS, err);
}

static bool find_row(const char *name, const ProjectionRow **ret, Error *err)
{
    size_t count;
    const ProjectionRow *rows = projection_rows(&count);
    *ret = projection_row(str_from(name));
    if (*ret != NULL && (*ret)->remake != REMAKE_SERVICE) {
        return true;
    }
    if (*ret != NULL) {
        return error_set(
            err, ERROR_USAGE, "%s is made again by its own service (HINT: %s)", name, (*ret)->how);
    }
    const UnmadeRow *unmade = unmade_row(str_from(name));
    if (unmade != NULL) {
        return error_set(err, ERROR_USAGE, "'%s' is not made again: %s", name, unmade->why);
    }
    Buf names;
    buf_init(&names, 256);
    for (size_t i = 0; i < count; i++) {
        buf_printf(&names, "%s%s", i > 0 ? ", " : "", rows[i].name);
    }
    error_set(
        err, ERROR_USAGE, "'%s' is not a projection: expected one of %s", name, buf_c(&names));
    buf_done(&names);
    return false;
}

static double rate(const Rebuild *rebuild)
{
    return rebuild->seconds > 0 ? (double)rebuild->events / rebuild->seconds : 0;
}

static void print_json(const Rebuild *rebuild)
{
    json_t *shown = json_array();
    Str rest = str_of(rebuild->shown.ptr, rebuild->shown.len);
    Str line;
    while (str_split(&rest, '\n', &line)) {
        if (line.len > 0) {
            json_array_append_new(shown, json_stringn(line.ptr, line.len));
        }
    }
    json_t *root = json_pack(
        "{s:s, s:b, s:I, s:I, s:I, s:f, s:f, s:I, s:o}", "projection", rebuild->row->name,
        "swapped", !rebuild->dry, "events", (json_int_t)rebuild->events, "unreadable",
        (json_int_t)rebuild->unreadable, "carried", (json_int_t)rebuild->carried, "seconds",
        rebuild->seconds, "events_per_s", rate(rebuild), "differences",
        (json_int_t)rebuild->differences, "shown", shown);
    json_dumpf(root, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(root);
}

static void print_text(Rebuild *rebuild)
{
    printf(
        "%llu events in %.1f s (%.0f/s), %llu of them unreadable, %lld older rows carried over\n",
        (unsigned long long)rebuild->events, rebuild->seconds, rate(rebuild),
        (unsigned long long)rebuild->unreadable, (long long)rebuild->carried);
    if (!rebuild->dry) {
        bool swapped = rebuild->row->remake == REMAKE_SWAP;
        printf(
            "%s is %s%s\n", rebuild->row->name, swapped ? "swapped" : "as the log says",
            rebuild->keep_old ? "; the former tables are in archiver_old" : "");
        return;
    }
    printf("%s", rebuild->shown.len > 0 ? buf_c(&rebuild->shown) : "");
    printf("%lld rows differ from the log\n", (long long)rebuild->differences);
}

static bool run(Rebuild *rebuild, Error *err)
{
    if (!session_open(&rebuild->session, &rebuild->cli->settings.session, err)) {
        return false;
    }
    uv_timer_init(&rebuild->session.loop, &rebuild->poll);
    rebuild->poll.data = rebuild;
    rebuild->began_us = clock_mono_us();
    bool ok = (rebuild->dry || cli_audit_write(
                                   rebuild->cli, &rebuild->session, "projection.rebuilt",
                                   rebuild->row->name, err)) &&
              archived_log_open(rebuild->cli, rebuild->carry, &rebuild->log, err) &&
              run_rebuild(rebuild, err);
    rebuild->seconds = (double)(clock_mono_us() - rebuild->began_us) / 1e6;
    archived_log_close(&rebuild->log);
    uv_close((uv_handle_t *)&rebuild->poll, NULL);
    session_close(&rebuild->session);
    return ok;
}

// The operator's everyday rights are not enough, and Postgres does not say whose are.
static int fail(const Cli *cli, const Error *err)
{
    Error hinted = *err;
    if (strstr(err->text, "permission denied") != NULL) {
        error_set(
            &hinted, err->kind,
            "%s (HINT: stentor --config FOLDER/admin.conf: the settings of stentor migrate)",
            err->text);
    }
    return cli_fail(cli, &hinted);
}

int cmd_rebuild(Cli *cli)
{
    Error err = {0};
    Rebuild rebuild = {
        .cli = cli,
        .dry = args_has(&cli->args, "dry-run"),
        .carry = args_has(&cli->args, "carry-older"),
        .keep_old = args_has(&cli->args, "keep-old")};
    if (!find_row(args_word(&cli->args, 0), &rebuild.row, &err)) {
        return cli_fail(cli, &err);
    }
    if (rebuild.keep_old && rebuild.row->remake != REMAKE_SWAP) {
        return cli_fail_as(cli, EXIT_USAGE, "--keep-old is for history only");
    }
    if (args_has(&cli->args, "max-attempts") && strcmp(rebuild.row->name, "saga") != 0) {
        return cli_fail_as(cli, EXIT_USAGE, "--max-attempts is for saga only");
    }
    if (!cli_need(cli->settings.database_url, "STENTOR_DATABASE_URL", &err)) {
        return cli_fail(cli, &err);
    }
    buf_init(&rebuild.shown, 1024 * 1024);
    bool ok = run(&rebuild, &err);
    if (ok && cli->json) {
        print_json(&rebuild);
    } else if (ok) {
        print_text(&rebuild);
    }
    buf_done(&rebuild.shown);
    return !ok ? fail(cli, &err) : rebuild.dry && rebuild.differences > 0 ? EXIT_FAILED : EXIT_DONE;
}
