// SPDX-License-Identifier: Apache-2.0
// rebuild history: again from the log, next to the live one, then swapped in. What is done to the
// database is rebuild_schema.h, what folds is common/history/rebuild.h; this is the order of it.
#include "common/history/rebuild.h"
#include "common/history/rebuild_schema.h"
#include "services/cli/rebuild/rebuild_run.h"

// ---- waiting ----

static bool has_caught_up(Rebuild *rebuild)
{
    return history_rebuild_caught_up(rebuild->projection);
}

// With every request that the streams hold: the live tables may have some that are behind their
// position (hold.h). An empty stream has a last sequence that is in no message.
static bool has_reached_until(Rebuild *rebuild)
{
    uint64_t wanted[HISTORY_STREAM_COUNT];
    for (int i = 0; i < HISTORY_STREAM_COUNT; i++) {
        const StreamInfo *info = &rebuild->streams[i];
        uint64_t last = info->count > 0 ? info->last : 0;
        wanted[i] = i == STATUS_STREAM ? rebuild->until[i] : last;
    }
    return history_rebuild_reached(rebuild->projection, wanted);
}

// ---- folding ----

static void start_projection(Rebuild *rebuild)
{
    const char *url = rebuild->cli->settings.database_url;
    rebuild_open_pool(rebuild);
    HistoryRebuildOptions options = {
        .schema = REBUILD_SCHEMA,
        .database_url = url,
        .pool = rebuild->pool,
        .until = rebuild->dry ? rebuild->folded : NULL,
        .last = rebuild->dry ? rebuild->last : NULL,
        .first = rebuild->first,
        .readers = rebuild->log.open ? &log_readers : NULL,
        .readers_ctx = &rebuild->log.past};
    rebuild->projection = history_rebuild_new(rebuild->session.bus, &options);
}

// Writes the folded rows. Safe to repeat.
static void stop_projection(Rebuild *rebuild)
{
    if (rebuild->projection == NULL) {
        return;
    }
    SessionWait stopped = rebuild_wait_for(rebuild);
    history_rebuild_stop(rebuild->projection, rebuild_on_ended, &stopped);
    rebuild_wait_ended(&stopped);
    rebuild->events = history_rebuild_events(rebuild->projection);
    rebuild->unreadable = history_rebuild_unreadable(rebuild->projection);
    rebuild->missing_before_us = history_rebuild_missing_before_us(rebuild->projection);
    rebuild->passed = arena_cstr(rebuild->cli->arena, history_rebuild_passed(rebuild->projection));
    rebuild->passed_cut = history_rebuild_passed_cut(rebuild->projection);
    for (int i = 0; i < HISTORY_STREAM_COUNT; i++) {
        rebuild->position[i] = history_rebuild_position(rebuild->projection, i);
    }
    history_rebuild_free(rebuild->projection);
    rebuild->projection = NULL;
    rebuild_close_pool(rebuild);
}

// ---- swapping ----

static bool freeze(void *ctx, RebuildPositions *ret, Error *err)
{
    return rebuild_schema_freeze(ctx, ret, err);
}

static bool thaw(void *ctx, Error *err)
{
    return rebuild_schema_thaw(ctx, err);
}

static bool swap(Rebuild *rebuild, Error *err)
{
    const RebuildFreeze level = {freeze, thaw, rebuild->schema, has_caught_up, has_reached_until};
    if (!rebuild_wait(rebuild, has_caught_up, 0, err) ||
        !rebuild_schema_prune(rebuild->schema, err) ||
        !rebuild_schema_drop_old(rebuild->schema, err) ||
        !rebuild_freeze_level(rebuild, &level, err)) {
        return false;
    }
    stop_projection(rebuild);
    Error ignored;
    // Again: what was folded last had not been written.
    if (!rebuild_check_whole(rebuild, err) || !rebuild_schema_prune(rebuild->schema, err)) {
        rebuild_schema_thaw(rebuild->schema, &ignored);
        return false;
    }
    return rebuild_schema_swap(rebuild->schema, err);
}

// ---- comparing ----

// What is behind the positions of the moment that was remembered is passed over, so both sides hold
// the same events, whatever goes on meanwhile. But for requests: the live side may have some that
// are behind its position, so their notifications are not compared.
static bool compare(Rebuild *rebuild, Error *err)
{
    if (!rebuild_wait(rebuild, has_caught_up, 0, err)) {
        return false;
    }
    stop_projection(rebuild);
    if (rebuild->passed_cut) {
        return error_set(
            err, ERROR_TRANSIENT,
            "too many requests are behind the live projection's position to be left out of a "
            "comparison (HINT: again when the archiver has caught up)");
    }
    return rebuild_ask_streams(rebuild, err) && rebuild_check_whole(rebuild, err) &&
           rebuild_schema_prune(rebuild->schema, err) &&
           rebuild_schema_compare(
               rebuild->schema, rebuild->passed, rebuild_show, rebuild, &rebuild->differences,
               err) &&
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
    if (!rebuild_schema_positions(rebuild->schema, &live, err) ||
        !rebuild_recognise_streams(rebuild, &live, err) ||
        !rebuild_find_beginning(rebuild, &live, &rebuild->before_us, err) ||
        !rebuild_schema_make(rebuild->schema, on_schema_difference, rebuild, err) ||
        !rebuild_schema_copy(
            rebuild->schema, rebuild->before_us, rebuild->dry, &live, &rebuild->carried, err) ||
        !rebuild_set_until(rebuild, &live, err)) {
        return false;
    }
    for (int i = 0; i < HISTORY_STREAM_COUNT; i++) {
        rebuild->last[i] = rebuild->streams[i].last;
    }
    start_projection(rebuild);
    return true;
}

static bool fill_and_swap(Rebuild *rebuild, Error *err)
{
    Error ignored;
    bool ok = fill(rebuild, err) && (rebuild->dry ? compare(rebuild, err) : swap(rebuild, err));
    stop_projection(rebuild);
    if (!ok) {
        rebuild_schema_drop(rebuild->schema, &ignored); // else the next rebuild does
    }
    return ok &&
           (rebuild->dry || rebuild->keep_old || rebuild_schema_drop_old(rebuild->schema, err));
}

static const char *failure_of(const Rebuild *rebuild)
{
    return rebuild->projection != NULL ? history_rebuild_failure(rebuild->projection) : NULL;
}

bool rebuild_history(Rebuild *rebuild, Error *err)
{
    rebuild->stream_names = history_streams;
    rebuild->stream_count = HISTORY_STREAM_COUNT;
    rebuild->failure = failure_of;
    bool ok = rebuild_schema_open(&rebuild->schema, rebuild->cli->settings.database_url, err) &&
              fill_and_swap(rebuild, err);
    rebuild_schema_close(rebuild->schema);
    return ok;
}
