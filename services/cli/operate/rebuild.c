// SPDX-License-Identifier: Apache-2.0
// rebuild: a projection again from the log, next to the live one, then swapped in. What is done
// to the database is rebuild_schema.h, what folds is rebuild.h; this is the order of it.
#include <jansson.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/db/db.h"
#include "common/history/rebuild.h"
#include "common/history/rebuild_schema.h"
#include "common/session/session.h"
#include "services/cli/cli.h"
#include "services/cli/operate/rebuild_log.h"
#include "services/cli/operate/stream_same.h"

enum {
    CONNECTIONS = 2,
    STATEMENT_MS = 60000,
    POLL_MS = 5,
    FREEZE_MS = 3000, // less than a flush of the archiver may take: it waits, and does not fail
    FREEZES_MAX = 5,
};

// ---- waiting ----

static void handle_poll(Rebuild *rebuild)
{
    const char *failure =
        rebuild->projection != NULL ? history_rebuild_failure(rebuild->projection) : NULL;
    Error err = {0};
    if (failure != NULL) {
        error_set(&err, ERROR_PERMANENT, "%s", failure);
        session_finish(&rebuild->session, &err);
    } else if (rebuild->reached(rebuild)) {
        session_finish(&rebuild->session, NULL);
    }
}

static void on_poll_due(uv_timer_t *timer)
{
    handle_poll(timer->data);
}

// timeout_ms 0: as long as it takes.
static bool wait_until(
    Rebuild *rebuild, bool (*reached)(Rebuild *rebuild), int timeout_ms, Error *err)
{
    rebuild->reached = reached;
    uv_update_time(&rebuild->session.loop);
    uv_timer_start(&rebuild->poll, on_poll_due, 0, POLL_MS);
    bool ok = session_run(&rebuild->session, timeout_ms, err);
    uv_timer_stop(&rebuild->poll);
    return ok;
}

static bool has_caught_up(Rebuild *rebuild)
{
    return history_rebuild_caught_up(rebuild->projection);
}

static bool has_reached_until(Rebuild *rebuild)
{
    return history_rebuild_reached(rebuild->projection, rebuild->until);
}

static void on_ended(void *ctx)
{
    session_finish(ctx, NULL);
}

// ---- folding ----

static void start_projection(Rebuild *rebuild)
{
    const char *url = rebuild->cli->settings.database_url;
    rebuild->pool = db_pool_new(
        &rebuild->session.loop, &(DbPoolOptions){
                                    .url = url,
                                    .application_name = "stentor-rebuild",
                                    .connections = CONNECTIONS,
                                    .statement_timeout_ms = STATEMENT_MS});
    HistoryRebuildOptions options = {
        .schema = REBUILD_SCHEMA,
        .database_url = url,
        .pool = rebuild->pool,
        .until = rebuild->dry ? rebuild->until : NULL,
        .first = rebuild->first};
    rebuild->projection = history_rebuild_new(rebuild->session.bus, &options);
}

static void wait_end(Rebuild *rebuild)
{
    Error ignored;
    rebuild->session.err = (Error){0}; // the first failure has been reported
    session_run(&rebuild->session, 0, &ignored);
}

// Writes what is folded. Safe to repeat.
static void stop_projection(Rebuild *rebuild)
{
    if (rebuild->projection == NULL) {
        return;
    }
    history_rebuild_stop(rebuild->projection, on_ended, &rebuild->session);
    wait_end(rebuild);
    rebuild->events = history_rebuild_events(rebuild->projection);
    rebuild->unreadable = history_rebuild_unreadable(rebuild->projection);
    rebuild->missing_before_us = history_rebuild_missing_before_us(rebuild->projection);
    for (int i = 0; i < HISTORY_STREAM_COUNT; i++) {
        rebuild->position[i] = history_rebuild_position(rebuild->projection, i);
    }
    history_rebuild_free(rebuild->projection);
    rebuild->projection = NULL;
    db_pool_close(rebuild->pool, on_ended, &rebuild->session);
    wait_end(rebuild);
}

// The log may lose its beginning while it is read: digest-flusher trims what the live projection
// has read. What it still holds shows most such losses (rebuild.h), its first sequence one at its
// end.
static bool check_whole(const Rebuild *rebuild, Error *err)
{
    int64_t missing_us = rebuild->missing_before_us;
    for (int i = 0; i < HISTORY_STREAM_COUNT; i++) {
        const StreamInfo *info = &rebuild->streams[i];
        if (info->first > rebuild->first[i] && info->first > rebuild->position[i] + 1) {
            int64_t at_us = rebuild_beginning(info, 0);
            missing_us = at_us > missing_us ? at_us : missing_us;
        }
    }
    if (missing_us == 0 || missing_us + CARRY_MARGIN_US <= rebuild->before_us) {
        return true;
    }
    char before[CLOCK_RFC3339_SIZE];
    clock_format(missing_us, before);
    return error_set(
        err, ERROR_TRANSIENT,
        "events stored before %s left the log before they were read (HINT: again, with "
        "--carry-older)",
        before);
}

// ---- swapping ----

// Nothing that the stream does not hold can be waited for: a log that lost its tail, or its
// beginning.
static bool set_until(Rebuild *rebuild, RebuildPositions *live, Error *err)
{
    if (!rebuild_ask_streams(rebuild, err) || !rebuild_recognise_streams(rebuild, live, err)) {
        return false;
    }
    for (int i = 0; i < HISTORY_STREAM_COUNT; i++) {
        const StreamInfo *info = &rebuild->streams[i];
        bool same = live->stream_created_us[i] == info->created_us;
        uint64_t sequence = same ? live->sequence[i] : 0;
        sequence = sequence < info->last ? sequence : info->last;
        rebuild->until[i] = sequence >= info->first ? sequence : 0;
    }
    return true;
}

// With the live tables held, what was folded into them is awaited here too, so that no reader sees
// a notification go back; a flush's time, in which the archiver waits.
static bool freeze_level(Rebuild *rebuild, Error *err)
{
    Error ignored;
    for (int i = 0; i < FREEZES_MAX; i++) {
        RebuildPositions live;
        if (!wait_until(rebuild, has_caught_up, 0, err) ||
            !rebuild_schema_freeze(rebuild->schema, &live, err)) {
            return false;
        }
        if (set_until(rebuild, &live, err) &&
            wait_until(rebuild, has_reached_until, FREEZE_MS, err)) {
            return true;
        }
        if (!rebuild_schema_thaw(rebuild->schema, &ignored) || err->kind != ERROR_TRANSIENT) {
            return false;
        }
    }
    return false;
}

static bool swap(Rebuild *rebuild, Error *err)
{
    if (!wait_until(rebuild, has_caught_up, 0, err) ||
        !rebuild_schema_drop_old(rebuild->schema, err) || !freeze_level(rebuild, err)) {
        return false;
    }
    stop_projection(rebuild);
    Error ignored;
    if (!check_whole(rebuild, err)) {
        rebuild_schema_thaw(rebuild->schema, &ignored);
        return false;
    }
    return rebuild_schema_swap(rebuild->schema, err);
}

// ---- comparing ----

static void on_row_difference(void *ctx, const char *line)
{
    Rebuild *rebuild = ctx;
    buf_cstr(&rebuild->shown, line);
    buf_char(&rebuild->shown, '\n');
}

// What is behind the positions of the moment that was remembered is passed over, so both sides hold
// the same events, whatever goes on meanwhile.
static bool compare(Rebuild *rebuild, Error *err)
{
    if (!wait_until(rebuild, has_caught_up, 0, err)) {
        return false;
    }
    stop_projection(rebuild);
    return rebuild_ask_streams(rebuild, err) && check_whole(rebuild, err) &&
           rebuild_schema_compare(
               rebuild->schema, on_row_difference, rebuild, &rebuild->differences, err) &&
           rebuild_schema_drop(rebuild->schema, err);
}

// ---- the command ----

static void on_schema_difference(void *ctx, const char *line)
{
    const Rebuild *rebuild = ctx;
    cli_note(rebuild->cli, "%s", line);
}

static bool fill(Rebuild *rebuild, Error *err)
{
    RebuildPositions live;
    if (!rebuild_ask_streams(rebuild, err)) {
        return false;
    }
    for (int i = 0; i < HISTORY_STREAM_COUNT; i++) {
        rebuild->first[i] = rebuild->streams[i].first;
    }
    if (!rebuild_schema_positions(rebuild->schema, &live, err) ||
        !rebuild_recognise_streams(rebuild, &live, err) ||
        !rebuild_find_beginning(rebuild, &live, &rebuild->before_us, err) ||
        !rebuild_schema_make(rebuild->schema, on_schema_difference, rebuild, err) ||
        !rebuild_schema_copy(
            rebuild->schema, rebuild->before_us, rebuild->dry, &live, &rebuild->carried, err) ||
        !set_until(rebuild, &live, err)) {
        return false;
    }
    start_projection(rebuild);
    return true;
}

static bool rebuild_history(Rebuild *rebuild, Error *err)
{
    Error ignored;
    rebuild->began_us = clock_mono_us();
    bool ok = fill(rebuild, err) && (rebuild->dry ? compare(rebuild, err) : swap(rebuild, err));
    rebuild->seconds = (double)(clock_mono_us() - rebuild->began_us) / 1e6;
    stop_projection(rebuild);
    if (!ok) {
        rebuild_schema_drop(rebuild->schema, &ignored); // else the next rebuild does
    }
    return ok &&
           (rebuild->dry || rebuild->keep_old || rebuild_schema_drop_old(rebuild->schema, err));
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
        "{s:s, s:b, s:I, s:I, s:I, s:f, s:f, s:I, s:o}", "projection", "history", "swapped",
        !rebuild->dry, "events", (json_int_t)rebuild->events, "unreadable",
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
        printf(
            "history is swapped%s\n", rebuild->keep_old ? "; the former one is archiver_old" : "");
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
    bool ok = rebuild_schema_open(&rebuild->schema, rebuild->cli->settings.database_url, err) &&
              rebuild_history(rebuild, err);
    rebuild_schema_close(rebuild->schema);
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
    if (strcmp(args_word(&cli->args, 0), "history") != 0) {
        return cli_fail_as(
            cli, EXIT_USAGE, "'%s' is not a projection that can be rebuilt: history is",
            args_word(&cli->args, 0));
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
    return !ok ? fail(cli, &err) : rebuild.differences > 0 ? EXIT_FAILED : EXIT_DONE;
}
