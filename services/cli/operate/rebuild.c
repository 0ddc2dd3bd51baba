// SPDX-License-Identifier: Apache-2.0
// rebuild: a projection once more from the log, beside the live one, and swapped in. What is done
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
#include "services/cli/operate/stream_same.h"

enum {
    CONNECTIONS = 2,
    STATEMENT_MS = 60000,
    POLL_MS = 5,
    FREEZE_MS = 3000, // less than a flush of the archiver may take: it waits, and does not fail
    FREEZES_MAX = 5,
};

// An event's notification is at most a day younger than the event by its id's time (event_row.c
// refuses others), so what is a day younger than the log's beginning has all of its events in it.
static const int64_t CARRY_MARGIN_US = INT64_C(24) * 3600 * 1000000;

typedef struct StreamInfo {
    uint64_t first, last, count, deleted;
    int64_t first_at_us, last_at_us; // 0: none
    int64_t created_us;
} StreamInfo;

typedef struct Rebuild {
    Cli *cli;
    bool dry, carry, keep_old;
    Session session;
    DbPool *pool;
    Shadow *shadow;
    Refold *refold;
    uv_timer_t poll;
    bool (*reached)(struct Rebuild *rebuild); // what the poll waits for
    StreamInfo streams[HISTORY_STREAM_COUNT];
    uint64_t until[HISTORY_STREAM_COUNT];
    uint64_t first[HISTORY_STREAM_COUNT];    // when the rebuild began
    uint64_t position[HISTORY_STREAM_COUNT]; // when it stopped folding
    int64_t before_us;                       // older rows were carried over; 0: none
    int64_t missing_before_us;
    int64_t began_us;
    int64_t carried;
    uint64_t events, unreadable;
    int64_t differences;
    Buf shown; // of the differences, one a line
    double seconds;
} Rebuild;

// ---- what the log holds ----

static int64_t read_time(const json_t *object, const char *name)
{
    int64_t at_us = 0;
    const char *text = json_string_value(json_object_get(object, name));
    // The zero time of an empty stream is before 1970.
    return text != NULL && clock_parse(str_from(text), &at_us) ? at_us : 0;
}

static bool ask_stream(Rebuild *rebuild, int index, Error *err)
{
    Str reply;
    const char *subject =
        arena_printf(rebuild->cli->arena, "$JS.API.STREAM.INFO.%s", history_streams[index]);
    if (!session_request(&rebuild->session, subject, STR_EMPTY, rebuild->cli->arena, &reply, err)) {
        return false;
    }
    json_t *root = json_loadb(reply.ptr, reply.len, 0, NULL);
    const json_t *state = json_object_get(root, "state");
    StreamInfo *info = &rebuild->streams[index];
    *info = (StreamInfo){
        .first = (uint64_t)json_integer_value(json_object_get(state, "first_seq")),
        .last = (uint64_t)json_integer_value(json_object_get(state, "last_seq")),
        .count = (uint64_t)json_integer_value(json_object_get(state, "messages")),
        .deleted = (uint64_t)json_integer_value(json_object_get(state, "num_deleted")),
        .first_at_us = read_time(state, "first_ts"),
        .last_at_us = read_time(state, "last_ts"),
        .created_us = read_time(root, "created")};
    json_decref(root);
    return state != NULL ||
           error_set(
               err, ERROR_CONFIG, "there is no stream '%s' (HINT: stentor migrate)",
               history_streams[index]);
}

static bool ask_streams(Rebuild *rebuild, Error *err)
{
    uv_update_time(&rebuild->session.loop); // Postgres has blocked it: no request is late by that
    for (int i = 0; i < HISTORY_STREAM_COUNT; i++) {
        if (!ask_stream(rebuild, i, err)) {
            return false;
        }
    }
    return true;
}

// The archiver's own question: another creation time need not be another stream.
static bool recognise_stream(Rebuild *rebuild, ShadowPositions *live, int index, Error *err)
{
    const StreamInfo *info = &rebuild->streams[index];
    StreamPlace place = {
        live->stream_created_us[index], live->sequence[index] + 1, live->stored_at_us[index]};
    StreamState state = {info->created_us, info->first, info->last, false};
    bool same = false;
    if (!stream_same(
            &rebuild->session, rebuild->cli->arena, history_streams[index], &place, &state, &same,
            err)) {
        return false;
    }
    if (same && place.created_us != 0) {
        live->stream_created_us[index] = info->created_us;
    }
    return true;
}

static bool recognise_streams(Rebuild *rebuild, ShadowPositions *live, Error *err)
{
    for (int i = 0; i < HISTORY_STREAM_COUNT; i++) {
        if (!recognise_stream(rebuild, live, i, err)) {
            return false;
        }
    }
    return true;
}

// Every event that the stream does not hold any more was stored before this; 0: it holds all.
static int64_t beginning(const StreamInfo *info, int64_t folded_created_us)
{
    if (folded_created_us != 0 && folded_created_us != info->created_us) {
        return info->created_us; // made anew: what was folded was of the former one
    }
    if (info->first <= 1 && info->deleted == 0) {
        return 0;
    }
    bool holds_rest = info->count > 0 && info->deleted == 0;
    int64_t at_us = holds_rest ? info->first_at_us : info->last_at_us;
    return at_us != 0 ? at_us : clock_now_us();
}

// Messages within the stream are gone, so that nobody knows when the last of them was stored.
static bool has_gaps(const StreamInfo *info, int64_t folded_created_us)
{
    bool made_anew = folded_created_us != 0 && folded_created_us != info->created_us;
    return !made_anew && info->deleted > 0;
}

// ret_us: rows of notifications that are older may have events that the log does not hold; 0: none.
static bool find_beginning(
    const Rebuild *rebuild, const ShadowPositions *live, int64_t *ret_us, Error *err)
{
    int64_t latest_us = 0;
    const char *stream = "";
    bool gaps = false;
    for (int i = 0; i < HISTORY_STREAM_COUNT; i++) {
        int64_t at_us = beginning(&rebuild->streams[i], live->stream_created_us[i]);
        if (at_us > latest_us) {
            latest_us = at_us;
            stream = history_streams[i];
            gaps = has_gaps(&rebuild->streams[i], live->stream_created_us[i]);
        }
    }
    *ret_us = latest_us != 0 ? latest_us + CARRY_MARGIN_US : 0;
    if (latest_us == 0 || rebuild->carry) {
        return true;
    }
    char since[CLOCK_RFC3339_SIZE];
    clock_format(latest_us, since);
    return error_set(
        err, ERROR_CONFIG,
        "the log of '%s' %s %s: rows of what is older would be forgotten (HINT: "
        "--carry-older copies them from the live tables)",
        stream, gaps ? "has gaps before" : "begins at", since);
}

// ---- waiting ----

static void handle_poll(Rebuild *rebuild)
{
    const char *failure = rebuild->refold != NULL ? refold_failure(rebuild->refold) : NULL;
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
    return refold_caught_up(rebuild->refold);
}

static bool has_reached_until(Rebuild *rebuild)
{
    return refold_reached(rebuild->refold, rebuild->until);
}

static void on_ended(void *ctx)
{
    session_finish(ctx, NULL);
}

// ---- folding ----

static void start_refold(Rebuild *rebuild)
{
    const char *url = rebuild->cli->settings.database_url;
    rebuild->pool = db_pool_new(
        &rebuild->session.loop, &(DbPoolOptions){
                                    .url = url,
                                    .application_name = "stentor-rebuild",
                                    .connections = CONNECTIONS,
                                    .statement_timeout_ms = STATEMENT_MS});
    RefoldOptions options = {
        .schema = SHADOW_SCHEMA,
        .database_url = url,
        .pool = rebuild->pool,
        .until = rebuild->dry ? rebuild->until : NULL,
        .first = rebuild->first};
    rebuild->refold = refold_new(rebuild->session.bus, &options);
}

static void wait_end(Rebuild *rebuild)
{
    Error ignored;
    rebuild->session.err = (Error){0}; // the first failure has been told
    session_run(&rebuild->session, 0, &ignored);
}

// Writes what is folded. Safe to repeat.
static void stop_refold(Rebuild *rebuild)
{
    if (rebuild->refold == NULL) {
        return;
    }
    refold_stop(rebuild->refold, on_ended, &rebuild->session);
    wait_end(rebuild);
    rebuild->events = refold_events(rebuild->refold);
    rebuild->unreadable = refold_unreadable(rebuild->refold);
    rebuild->missing_before_us = refold_missing_before_us(rebuild->refold);
    for (int i = 0; i < HISTORY_STREAM_COUNT; i++) {
        rebuild->position[i] = refold_position(rebuild->refold, i);
    }
    refold_free(rebuild->refold);
    rebuild->refold = NULL;
    db_pool_close(rebuild->pool, on_ended, &rebuild->session);
    wait_end(rebuild);
}

// The log may lose its beginning while it is read: the clock trims what the live projection has
// read.
// What it still holds tells of most such losses (rebuild.h), its first sequence of one at its end.
static bool check_whole(const Rebuild *rebuild, Error *err)
{
    int64_t missing_us = rebuild->missing_before_us;
    for (int i = 0; i < HISTORY_STREAM_COUNT; i++) {
        const StreamInfo *info = &rebuild->streams[i];
        if (info->first > rebuild->first[i] && info->first > rebuild->position[i] + 1) {
            int64_t at_us = beginning(info, 0);
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
static bool set_until(Rebuild *rebuild, ShadowPositions *live, Error *err)
{
    if (!ask_streams(rebuild, err) || !recognise_streams(rebuild, live, err)) {
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

// With the live tables held, what was folded into them is awaited here too, so that nobody sees a
// notification go back; a flush's time, in which the archiver waits.
static bool freeze_level(Rebuild *rebuild, Error *err)
{
    Error ignored;
    for (int i = 0; i < FREEZES_MAX; i++) {
        ShadowPositions live;
        if (!wait_until(rebuild, has_caught_up, 0, err) ||
            !shadow_freeze(rebuild->shadow, &live, err)) {
            return false;
        }
        if (set_until(rebuild, &live, err) &&
            wait_until(rebuild, has_reached_until, FREEZE_MS, err)) {
            return true;
        }
        if (!shadow_thaw(rebuild->shadow, &ignored) || err->kind != ERROR_TRANSIENT) {
            return false;
        }
    }
    return false;
}

static bool swap(Rebuild *rebuild, Error *err)
{
    if (!wait_until(rebuild, has_caught_up, 0, err) || !shadow_drop_old(rebuild->shadow, err) ||
        !freeze_level(rebuild, err)) {
        return false;
    }
    stop_refold(rebuild);
    Error ignored;
    if (!check_whole(rebuild, err)) {
        shadow_thaw(rebuild->shadow, &ignored);
        return false;
    }
    return shadow_swap(rebuild->shadow, err);
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
    stop_refold(rebuild);
    return ask_streams(rebuild, err) && check_whole(rebuild, err) &&
           shadow_compare(
               rebuild->shadow, on_row_difference, rebuild, &rebuild->differences, err) &&
           shadow_drop(rebuild->shadow, err);
}

// ---- the command ----

static void on_schema_difference(void *ctx, const char *line)
{
    (void)ctx;
    fprintf(stderr, "%s\n", line);
}

static bool fill(Rebuild *rebuild, Error *err)
{
    ShadowPositions live;
    if (!ask_streams(rebuild, err)) {
        return false;
    }
    for (int i = 0; i < HISTORY_STREAM_COUNT; i++) {
        rebuild->first[i] = rebuild->streams[i].first;
    }
    if (!shadow_positions(rebuild->shadow, &live, err) || !recognise_streams(rebuild, &live, err) ||
        !find_beginning(rebuild, &live, &rebuild->before_us, err) ||
        !shadow_make(rebuild->shadow, on_schema_difference, NULL, err) ||
        !shadow_copy(
            rebuild->shadow, rebuild->before_us, rebuild->dry, &live, &rebuild->carried, err) ||
        !set_until(rebuild, &live, err)) {
        return false;
    }
    start_refold(rebuild);
    return true;
}

static bool rebuild_history(Rebuild *rebuild, Error *err)
{
    Error ignored;
    rebuild->began_us = clock_mono_us();
    bool ok = fill(rebuild, err) && (rebuild->dry ? compare(rebuild, err) : swap(rebuild, err));
    rebuild->seconds = (double)(clock_mono_us() - rebuild->began_us) / 1e6;
    stop_refold(rebuild);
    if (!ok) {
        shadow_drop(rebuild->shadow, &ignored); // else the next rebuild does
    }
    return ok && (rebuild->dry || rebuild->keep_old || shadow_drop_old(rebuild->shadow, err));
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
            "history is swapped%s\n", rebuild->keep_old ? "; the former one is history_old" : "");
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
    bool ok = shadow_open(&rebuild->shadow, rebuild->cli->settings.database_url, err) &&
              rebuild_history(rebuild, err);
    shadow_close(rebuild->shadow);
    uv_close((uv_handle_t *)&rebuild->poll, NULL);
    session_close(&rebuild->session);
    return ok;
}

// The operator's everyday rights are not enough, and Postgres does not say whose are.
static int fail(const Error *err)
{
    Error hinted = *err;
    if (strstr(err->text, "permission denied") != NULL) {
        error_set(
            &hinted, err->kind, "%s (HINT: the settings that stentor migrate runs with)",
            err->text);
    }
    return cli_fail(&hinted);
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
        fprintf(
            stderr, "stentor: there is no projection '%s' (history)\n", args_word(&cli->args, 0));
        return EXIT_USAGE;
    }
    if (!cli_need(cli->settings.database_url, "STENTOR_DATABASE_URL", &err)) {
        return cli_fail(&err);
    }
    buf_init(&rebuild.shown, 1024 * 1024);
    bool ok = run(&rebuild, &err);
    if (ok && cli->json) {
        print_json(&rebuild);
    } else if (ok) {
        print_text(&rebuild);
    }
    buf_done(&rebuild.shown);
    return !ok ? fail(&err) : rebuild.differences > 0 ? EXIT_FAILED : EXIT_DONE;
}
