// SPDX-License-Identifier: Apache-2.0
#include "common/session/session.h"

#include <string.h>

enum { CONNECT_TIMEOUT_MS = 5000, REQUEST_TIMEOUT_MS = 5000 };

void session_finish(Session *session, const Error *err)
{
    if (err != NULL) {
        session->err = *err;
    }
    session->finished = true;
    uv_stop(&session->loop);
}

static void on_timer_fired(uv_timer_t *timer)
{
    Session *session = timer->data;
    session->timed_out = true;
    uv_stop(&session->loop);
}

// A subject that the server refuses gives no answer: its own text says more than a time-out. False.
static bool explain_refusal(const Session *session, Error *err)
{
    const char *refused = session->bus != NULL ? bus_permission_error(session->bus) : NULL;
    if (refused != NULL && err->kind == ERROR_TRANSIENT) {
        error_set(err, ERROR_PERMANENT, "NATS refuses it: %s (HINT: STENTOR_NATS_USER)", refused);
    }
    return false;
}

// The loop's clock stood still while its caller worked with Postgres or a file: without this a
// request would be late before it is sent.
static void set_clock(Session *session)
{
    uv_update_time(&session->loop);
}

bool session_run(Session *session, int timeout_ms, Error *err)
{
    session->timed_out = false;
    set_clock(session);
    if (timeout_ms > 0) {
        uv_timer_start(&session->timer, on_timer_fired, (uint64_t)timeout_ms, 0);
    }
    while (!session->finished && !session->timed_out) {
        uv_run(&session->loop, UV_RUN_DEFAULT);
    }
    uv_timer_stop(&session->timer);
    if (!session->finished) {
        error_set(err, ERROR_TRANSIENT, "no answer within %d ms", timeout_ms);
        return explain_refusal(session, err);
    }
    session->finished = false;
    if (session->err.kind != ERROR_NONE) {
        *err = session->err;
        return explain_refusal(session, err);
    }
    return true;
}

// A connection that is back later ends no wait: what goes on by itself is not over.
static void on_bus_change(void *ctx, bool connected)
{
    Session *session = ctx;
    if (connected && session->opening) {
        session_finish(session, NULL);
    }
}

// "(conn.c:1946): Authorization Violation", "No server available (...)": without nats.c's places.
static Str reason_of(const char *trouble)
{
    Str text = str_from(trouble);
    const char *place_end = trouble != NULL && trouble[0] == '(' ? strstr(trouble, "): ") : NULL;
    if (place_end != NULL) {
        text = str_from(place_end + 3);
    }
    return str_trim(str_slice(text, 0, strcspn(text.ptr != NULL ? text.ptr : "", "(")));
}

bool session_open(Session *session, const SessionOptions *options, Error *err)
{
    *session = (Session){0};
    uv_loop_init(&session->loop);
    uv_timer_init(&session->loop, &session->timer);
    session->timer.data = session;
    BusOptions bus = {
        .url = options->nats_url,
        .user = options->user,
        .password = options->password,
        .name = "stentor-cli",
        .service = options->user[0] != '\0' ? options->user : "stentor-cli",
    };
    session->bus = bus_open(&session->loop, &bus, err);
    if (session->bus == NULL) {
        session_close(session);
        return false;
    }
    bus_watch(session->bus, on_bus_change, session);
    session->opening = true;
    if (!bus_connected(session->bus) && !session_run(session, CONNECT_TIMEOUT_MS, err)) {
        Str why = reason_of(bus_trouble(session->bus));
        error_set(
            err, ERROR_TRANSIENT,
            "cannot connect to NATS at '%s'%s" STR_FMT " (HINT: STENTOR_NATS_URL, "
            "STENTOR_NATS_USER, STENTOR_NATS_PASSWORD)",
            options->nats_url, why.len > 0 ? ": " : "", STR_ARG(why));
        session_close(session);
        return false;
    }
    session->opening = session->finished = false;
    return true;
}

static void on_bus_closed(void *ctx)
{
    Session *session = ctx;
    session->bus = NULL;
}

void session_close(Session *session)
{
    uv_close((uv_handle_t *)&session->timer, NULL);
    if (session->bus != NULL) {
        bus_close(session->bus, on_bus_closed, session);
    }
    uv_run(&session->loop, UV_RUN_DEFAULT);
    uv_loop_close(&session->loop);
}

void session_wait_end(SessionWait *wait, const Error *err)
{
    wait->done = true;
    wait->err = err != NULL ? *err : (Error){0};
    session_finish(wait->session, NULL);
}

bool session_wait(SessionWait *wait, Error *err)
{
    Error ignored = {0};
    while (!wait->done) {
        (void)session_run(wait->session, 0, &ignored);
    }
    wait->session->finished = false;
    if (wait->err.kind != ERROR_NONE) {
        *err = wait->err;
        return explain_refusal(wait->session, err);
    }
    return true;
}

typedef struct PublishWait {
    SessionWait wait;
    uint64_t sequence;
} PublishWait;

static void on_publish_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)duplicate;
    PublishWait *publish = ctx;
    publish->sequence = sequence;
    session_wait_end(&publish->wait, err);
}

bool session_publish(Session *session, const BusOut *out, uint64_t *ret_sequence, Error *err)
{
    PublishWait publish = {.wait = {.session = session}};
    set_clock(session);
    bus_publish(session->bus, out, on_publish_acked, &publish);
    if (!session_wait(&publish.wait, err)) {
        return error_wrap(err, "publish on '%s'", out->subject);
    }
    if (ret_sequence != NULL) {
        *ret_sequence = publish.sequence;
    }
    return true;
}

typedef struct RequestWait {
    SessionWait wait;
    Arena *arena;
    Str reply;
} RequestWait;

static void on_request_reply(void *ctx, Str reply, const Error *err)
{
    RequestWait *request = ctx;
    if (err == NULL) {
        request->reply = arena_str(request->arena, reply);
    }
    session_wait_end(&request->wait, err);
}

bool session_request(
    Session *session, const char *subject, Str payload, Arena *arena, Str *ret_reply, Error *err)
{
    RequestWait request = {.wait = {.session = session}, .arena = arena};
    set_clock(session);
    bus_request(session->bus, subject, payload, REQUEST_TIMEOUT_MS, on_request_reply, &request);
    if (!session_wait(&request.wait, err)) {
        return error_wrap(err, "request to '%s'", subject);
    }
    *ret_reply = request.reply;
    return true;
}

bool session_get_message(
    Session *session, const MessageQuery *query, Arena *arena, BusMessage *ret, bool *ret_found,
    Error *err)
{
    RequestWait request = {.wait = {.session = session}, .arena = arena};
    set_clock(session);
    get_message(session->bus, query, on_request_reply, &request);
    if (!session_wait(&request.wait, err)) {
        return error_wrap(err, "stream '%s'", query->stream);
    }
    return get_message_reply(request.reply, query->stream, arena, ret, ret_found, err);
}
