// SPDX-License-Identifier: Apache-2.0
// The last of each subject is found by a read of its own: nats-server 2.9 needs half a minute to
// make a consumer of that kind for a million subjects, and answers nothing else meanwhile.
#include "services/cli/config/config_walk.h"

#include "common/base/map.h"
#include "common/bus/consume/reader.h"
#include "common/config/config_entry.h"

enum { READ_TIMEOUT_MS = 600000 };

typedef struct Walk {
    Session *session;
    ConfigWalk each;
    void *ctx;
    Arena *arena;
    Map *last; // subject -> the sequence of its last message, as a pointer; NULL: all are wanted
    bool noting;
    bool ended;
} Walk;

static void on_reader_messages(void *ctx, const BusMessage *messages, size_t count)
{
    Walk *walk = ctx;
    for (size_t i = 0; i < count && !walk->ended; i++) {
        ConfigName name;
        Error reason = {0}, err = {0};
        if (walk->noting) {
            map_put(walk->last, messages[i].subject, (void *)(uintptr_t)messages[i].sequence);
            continue;
        }
        uintptr_t sequence = (uintptr_t)messages[i].sequence;
        if (walk->last != NULL && (uintptr_t)map_get(walk->last, messages[i].subject) != sequence) {
            continue; // not the subject's last
        }
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
    session_wait_end(ctx, NULL);
}

// One read of the stream to its end.
static bool read_all(Walk *walk, const ConfigPart *part, Error *err)
{
    static const ReaderHandlers handlers = {
        on_reader_messages, on_reader_caught_up, on_reader_failed};
    Session *session = walk->session;
    // Handed over twice, a message would look like its own successor.
    ReaderOptions options = {
        .stream = "CONFIG",
        .filter = part->filter,
        .start_sequence = part->from,
        .reads_once = true};
    walk->ended = false;
    Reader *reader = reader_new(session->bus, &options, &handlers, walk);
    bool ok = session_run(session, READ_TIMEOUT_MS, err);
    Error ignored = {0};
    walk->ended = true;
    session->err = (Error){0};
    SessionWait freed = {.session = session};
    reader_free(reader, on_reader_freed, &freed);
    (void)session_wait(&freed, &ignored);
    return ok;
}

bool config_walk(Session *session, const ConfigPart *part, ConfigWalk each, void *ctx, Error *err)
{
    Walk walk = {.session = session, .each = each, .ctx = ctx, .arena = arena_new(0)};
    bool ok = true;
    if (!part->earlier) {
        walk.last = map_new(NULL);
        walk.noting = true;
        ok = read_all(&walk, part, err);
        walk.noting = false;
    }
    ok = ok && read_all(&walk, part, err);
    arena_free(walk.arena);
    map_free(walk.last);
    const char *filter = part->filter != NULL ? part->filter : "cfg.>";
    return ok || error_wrap(err, "reading '%s' of CONFIG", filter);
}
