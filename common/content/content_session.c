// SPDX-License-Identifier: Apache-2.0
#include "common/content/content_session.h"

#include "common/session/key_file.h"

static void on_gone(void *ctx)
{
    session_wait_end(ctx, NULL);
}

bool content_session_open(
    ContentSession *s, const ContentOptions *options, Arena *arena, Error *err)
{
    *s = (ContentSession){.past = options->past, .arena = arena};
    s->open = session_open(&s->session, &options->session, err);
    if (!s->open) {
        return false;
    }
    s->master = keys_open(
        &s->session, options->master_key_file, options->epoch_keys_dir, arena, &s->epochs, err);
    if (s->master == NULL) {
        return false;
    }
    s->pool = db_pool_new(
        &s->session.loop,
        &(DbPoolOptions){
            .url = options->database_url, .application_name = "stentor-cli", .connections = 1});
    s->keyring = keyring_new(s->pool, s->master, &(KeyringOptions){.kept = options->kept});
    return true;
}

void content_session_close(ContentSession *s)
{
    if (s->pool != NULL) {
        Error ignored;
        SessionWait gone = {.session = &s->session};
        db_pool_close(s->pool, on_gone, &gone);
        (void)session_wait(&gone, &ignored);
        keyring_free(s->keyring);
    }
    epoch_folder_close(s->epochs);
    master_key_free(s->master);
    if (s->open) {
        session_close(&s->session);
    }
}

// ---- a stream and its segments ----

typedef struct Reading {
    ContentSession *session;
    const ContentWalk *walk;
    bool over;
} Reading;

static void end(Reading *reading, const Error *err)
{
    reading->over = true;
    session_finish(&reading->session->session, err);
}

static void on_messages(void *ctx, const BusMessage *messages, size_t count)
{
    Reading *reading = ctx;
    const ContentWalk *walk = reading->walk;
    for (size_t i = 0; i < count && !reading->over; i++) {
        bool past = walk->to_us > 0 && messages[i].stored_at_us > walk->to_us;
        if (past || !walk->each(walk->ctx, &messages[i])) {
            end(reading, NULL);
        }
    }
}

static void on_caught_up(void *ctx)
{
    end(ctx, NULL);
}

static void on_failed(void *ctx, const Error *err)
{
    end(ctx, err);
}

bool content_walk(ContentSession *s, const ContentWalk *walk, Error *err)
{
    static const ReaderHandlers handlers = {on_messages, on_caught_up, on_failed};
    const ReaderKind *kind = s->past != NULL ? &log_readers : &stream_readers;
    ReaderOptions options = {
        .stream = walk->stream, .filter = walk->filter, .start_time_us = walk->from_us};
    Reading reading = {s, walk, false};
    Error ignored;
    SessionWait gone = {.session = &s->session};
    s->session.err = (Error){0};
    void *reader = kind->open(s->past, s->session.bus, &options, &handlers, &reading);
    bool ok = true;
    while (ok && !reading.over) { // another call's answer ends the wait too
        ok = session_run(&s->session, 0, err);
    }
    reading.over = true;
    kind->free(reader, on_gone, &gone);
    (void)session_wait(&gone, &ignored);
    return ok;
}

// ---- keys ----

static void on_resolved(void *ctx, const Error *err)
{
    session_wait_end(ctx, err);
}

bool content_keys(ContentSession *s, KeyWant *wants, size_t count, Error *err)
{
    SessionWait wait = {.session = &s->session};
    keyring_resolve(s->keyring, wants, count, on_resolved, &wait);
    return session_wait(&wait, err);
}
