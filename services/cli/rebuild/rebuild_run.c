// SPDX-License-Identifier: Apache-2.0
#include "services/cli/rebuild/rebuild_run.h"

#include "common/base/clock.h"

enum {
    CONNECTIONS = 2,
    STATEMENT_MS = 60000,
    POLL_MS = 5,
    FREEZE_MS = 3000, // less than a service's flush may take: it waits, and does not fail
    FREEZES_MAX = 5,
};

// ---- waiting ----

static void handle_poll(Rebuild *rebuild)
{
    const char *failure = rebuild->failure(rebuild);
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

bool rebuild_wait(Rebuild *rebuild, bool (*reached)(Rebuild *rebuild), int timeout_ms, Error *err)
{
    rebuild->reached = reached;
    uv_update_time(&rebuild->session.loop);
    uv_timer_start(&rebuild->poll, on_poll_due, 0, POLL_MS);
    bool ok = session_run(&rebuild->session, timeout_ms, err);
    uv_timer_stop(&rebuild->poll);
    return ok;
}

// The first failure has been reported.
SessionWait rebuild_wait_for(Rebuild *rebuild)
{
    rebuild->session.err = (Error){0};
    return (SessionWait){.session = &rebuild->session};
}

void rebuild_on_ended(void *ctx)
{
    session_wait_end(ctx, NULL);
}

void rebuild_wait_ended(SessionWait *wait)
{
    Error ignored;
    (void)session_wait(wait, &ignored);
}

void rebuild_open_pool(Rebuild *rebuild)
{
    DbPoolOptions options = {
        .url = rebuild->cli->settings.database_url,
        .application_name = "stentor-rebuild",
        .connections = CONNECTIONS,
        .statement_timeout_ms = STATEMENT_MS};
    rebuild->pool = db_pool_new(&rebuild->session.loop, &options);
}

void rebuild_close_pool(Rebuild *rebuild)
{
    SessionWait closed = rebuild_wait_for(rebuild);
    db_pool_close(rebuild->pool, rebuild_on_ended, &closed);
    rebuild_wait_ended(&closed);
}

bool rebuild_freeze_level(Rebuild *rebuild, const RebuildFreeze *level, Error *err)
{
    Error ignored;
    for (int i = 0; i < FREEZES_MAX; i++) {
        RebuildPositions live;
        if (!rebuild_wait(rebuild, level->caught_up, 0, err) ||
            !level->freeze(level->ctx, &live, err)) {
            return false;
        }
        if (rebuild_set_until(rebuild, &live, err) &&
            rebuild_wait(rebuild, level->reached_until, FREEZE_MS, err)) {
            return true;
        }
        if (!level->thaw(level->ctx, &ignored) || err->kind != ERROR_TRANSIENT) {
            return false;
        }
    }
    return false;
}

// ---- the log ----

// The log may lose its beginning while it is read: digest-flusher trims what the live projection
// has read. What it still holds shows most such losses (rebuild.h), its first sequence one at its
// end.
bool rebuild_check_whole(const Rebuild *rebuild, Error *err)
{
    int64_t missing_us = rebuild->missing_before_us;
    for (int i = 0; i < rebuild->stream_count; i++) {
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

// Nothing that the stream does not hold can be waited for: a log that lost its tail, or its
// beginning.
bool rebuild_set_until(Rebuild *rebuild, RebuildPositions *live, Error *err)
{
    if (!rebuild_ask_streams(rebuild, err) || !rebuild_recognise_streams(rebuild, live, err)) {
        return false;
    }
    for (int i = 0; i < rebuild->stream_count; i++) {
        const StreamInfo *info = &rebuild->streams[i];
        bool same = live->stream_created_us[i] == info->created_us;
        uint64_t sequence = same ? live->sequence[i] : 0;
        sequence = sequence < info->last ? sequence : info->last;
        rebuild->until[i] = sequence >= info->first ? sequence : 0;
        rebuild->folded[i] = (HistoryUntil){same ? live->sequence[i] : 0, live->stored_at_us[i]};
    }
    return true;
}

// ---- differences ----

void rebuild_show(void *ctx, const char *line)
{
    Rebuild *rebuild = ctx;
    buf_cstr(&rebuild->shown, line);
    buf_char(&rebuild->shown, '\n');
}
