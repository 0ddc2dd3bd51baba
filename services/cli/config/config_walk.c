// SPDX-License-Identifier: Apache-2.0
#include "services/cli/config/config_walk.h"

#include "common/bus/consume/reader.h"
#include "common/config/config_entry.h"

enum { READ_TIMEOUT_MS = 600000, CLOSE_TIMEOUT_MS = 2000 };

typedef struct Walk {
    Session *session;
    ConfigWalk each;
    void *ctx;
    Arena *arena;
    bool ended;
} Walk;

static void on_reader_messages(void *ctx, const BusMessage *messages, size_t count)
{
    Walk *walk = ctx;
    for (size_t i = 0; i < count && !walk->ended; i++) {
        ConfigName name;
        Error reason = {0}, err = {0};
        arena_reset(walk->arena);
        bool ok = config_entry_check(&messages[i], &name, walk->arena, &reason);
        if (!walk->each(walk->ctx, &messages[i], ok ? NULL : reason.text, &err)) {
            walk->ended = true;
            session_finish(walk->session, &err);
        }
    }
}

static void on_reader_caught_up(void *ctx)
{
    Walk *walk = ctx;
    if (!walk->ended) {
        walk->ended = true;
        session_finish(walk->session, NULL);
    }
}

static void on_reader_failed(void *ctx, const Error *err)
{
    Walk *walk = ctx;
    walk->ended = true;
    session_finish(walk->session, err);
}

static void on_reader_freed(void *ctx)
{
    session_finish(ctx, NULL);
}

bool config_walk(Session *session, const ConfigPart *part, ConfigWalk each, void *ctx, Error *err)
{
    static const ReaderHandlers handlers = {
        on_reader_messages, on_reader_caught_up, on_reader_failed};
    Walk walk = {session, each, ctx, arena_new(0), false};
    ReaderOptions options = {
        .stream = "CONFIG",
        .filter = part->filter,
        .start_sequence = part->from,
        .last_per_subject = !part->earlier};
    Reader *reader = reader_new(session->bus, &options, &handlers, &walk);
    bool ok = session_run(session, READ_TIMEOUT_MS, err);
    Error ignored = {0};
    walk.ended = true;
    session->err = (Error){0};
    reader_free(reader, on_reader_freed, session);
    (void)session_run(session, CLOSE_TIMEOUT_MS, &ignored);
    arena_free(walk.arena);
    const char *filter = part->filter != NULL ? part->filter : "cfg.>";
    return ok || error_wrap(err, "reading '%s' of CONFIG", filter);
}
