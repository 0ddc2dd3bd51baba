// SPDX-License-Identifier: Apache-2.0
#include "common/session/stream_walk.h"

#include <jansson.h>

#include "common/bus/consume/reader.h"

typedef struct Walk {
    SessionWait wait;
    StreamEach each;
    void *ctx;
    uint64_t last; // of the stream when the walk began
    bool ended;
} Walk;

static void end_walk(Walk *walk, const Error *err)
{
    if (!walk->ended) {
        walk->ended = true;
        session_wait_end(&walk->wait, err);
    }
}

static void on_reader_messages(void *ctx, const BusMessage *messages, size_t count)
{
    Walk *walk = ctx;
    for (size_t i = 0; i < count && !walk->ended && messages[i].sequence <= walk->last; i++) {
        walk->each(walk->ctx, &messages[i]);
    }
    if (messages[count - 1].sequence >= walk->last) {
        end_walk(walk, NULL);
    }
}

static void on_reader_caught_up(void *ctx)
{
    end_walk(ctx, NULL);
}

static void on_reader_failed(void *ctx, const Error *err)
{
    end_walk(ctx, err);
}

static void on_reader_freed(void *ctx)
{
    session_wait_end(ctx, NULL);
}

static bool ask_last(
    Session *session, const char *stream, uint64_t *ret, uint64_t *ret_messages, Error *err)
{
    Arena *arena = arena_new(0);
    Str reply = STR_EMPTY;
    const char *subject = arena_printf(arena, "$JS.API.STREAM.INFO.%s", stream);
    bool ok = session_request(session, subject, STR_EMPTY, arena, &reply, err);
    json_t *info = ok ? json_loadb(reply.ptr, reply.len, 0, NULL) : NULL;
    const json_t *state = json_object_get(info, "state");
    *ret = (uint64_t)json_integer_value(json_object_get(state, "last_seq"));
    *ret_messages = (uint64_t)json_integer_value(json_object_get(state, "messages"));
    if (ok && !json_is_object(state)) {
        ok = error_set(
            err, ERROR_PERMANENT, "stream '%s' does not exist (HINT: run 'stentor migrate')",
            stream);
    }
    json_decref(info);
    arena_free(arena);
    return ok;
}

bool session_walk(
    Session *session, const char *stream, const char *filter, StreamEach each, void *ctx,
    Error *err)
{
    static const ReaderHandlers handlers = {
        on_reader_messages, on_reader_caught_up, on_reader_failed};
    const ReaderOptions options = {.stream = stream, .filter = filter};
    Walk walk = {.wait = {.session = session}, .each = each, .ctx = ctx};
    uint64_t messages = 0;
    if (!ask_last(session, stream, &walk.last, &messages, err)) {
        return false;
    }
    if (messages == 0) {
        return true;
    }
    Reader *reader = reader_new(session->bus, &options, &handlers, &walk);
    bool ok = session_wait(&walk.wait, err);
    Error ignored = {0};
    SessionWait freed = {.session = session};
    reader_free(reader, on_reader_freed, &freed);
    (void)session_wait(&freed, &ignored);
    return ok;
}
