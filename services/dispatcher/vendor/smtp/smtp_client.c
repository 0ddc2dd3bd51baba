// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE // uv.h's struct addrinfo
#include <netdb.h>
#include <stdlib.h>

#include "common/base/arena.h"
#include "services/dispatcher/vendor/smtp/smtp_client_internal.h"

enum { PLAIN_MAX = 256 * 1024, WIRE_MAX = SMTP_OUT_MAX + SMTP_OUT_MAX / 64 };

static void connect_to(SmtpClient *client, int looked_up, const struct addrinfo *found);

// ---- end ----

static void give_back_mails(SmtpClient *client)
{
    SmtpSession *session = &client->session;
    Mail *sending = session->sending;
    Mail *envelope = session->envelope;
    session->sending = NULL;
    session->envelope = NULL;
    if (envelope != NULL) {
        client->context.hooks->on_back(client->context.ctx, envelope);
    }
    if (sending != NULL && client->dot_at == UINT64_MAX) {
        client->context.hooks->on_back(client->context.ctx, sending);
    } else if (sending != NULL) {
        client->context.hooks->on_lost(client->context.ctx, sending);
    }
}

static void finish(SmtpClient *client)
{
    if (client->callbacks > 0) {
        return;
    }
    (void)smtp_client_move(&client->state, SMTP_CLIENT_CLOSED, client->context.options->host);
    bool had_none = client->session.sending == NULL && client->session.envelope == NULL;
    bool useful = client->was_ready && (client->session.mails > 0 || had_none);
    give_back_mails(client);
    client->context.hooks->on_closed(client->context.ctx, client, useful, &client->why);
    smtp_session_done(&client->session);
    tls_free(client->tls);
    buf_done(&client->plain);
    buf_done(&client->wire);
    buf_done(&client->flight);
    free(client);
}

static void on_tcp_closed(uv_handle_t *handle)
{
    SmtpClient *client = handle->data;
    client->callbacks--;
    finish(client);
}

static void close_with(SmtpClient *client, const Error *err)
{
    if (smtp_client_is_closing(client)) {
        return;
    }
    if (client->state == SMTP_CLIENT_LOOKING_UP) {
        uv_cancel((uv_req_t *)&client->lookup); // its callback comes in either case
    }
    (void)smtp_client_move(&client->state, SMTP_CLIENT_CLOSING, client->context.options->host);
    client->why = *err;
    smtp_wire_decide_dot(client);
    uv_close((uv_handle_t *)&client->tcp, on_tcp_closed);
}

void smtp_client_drop(SmtpClient *client, const char *what, int status)
{
    Error err = {0};
    error_set(
        &err, ERROR_TRANSIENT, "smtp://%s:%s: %s: %s", client->context.options->host,
        client->context.options->port, what, uv_strerror(status));
    close_with(client, &err);
}

void smtp_client_drop_with(SmtpClient *client, Error *err)
{
    if (err->kind != ERROR_CANCELLED) {
        error_wrap(
            err, "smtp://%s:%s", client->context.options->host, client->context.options->port);
    }
    close_with(client, err);
}

static bool move(SmtpClient *client, SmtpClientState next)
{
    if (smtp_client_move(&client->state, next, client->context.options->host)) {
        return true;
    }
    Error err = {0};
    error_set(&err, ERROR_TRANSIENT, "the connection was in an unexpected state");
    smtp_client_drop_with(client, &err);
    return false;
}

// ---- reading ----

static void set_deadline(SmtpClient *client)
{
    const char *what;
    uint64_t wait = smtp_session_idle(&client->session)
                        ? client->context.options->idle_ms
                        : smtp_session_patience_ms(&client->session, &what);
    client->deadline_ms = uv_now(client->context.loop) + wait;
}

static bool parse(SmtpClient *client, Str input, Error *err)
{
    while (input.len > 0) {
        SmtpFeed fed = smtp_reply_feed(&client->parser, &input, err);
        if (fed == SMTP_FEED_MORE) {
            return true;
        }
        client->replies++;
        if (fed == SMTP_FEED_BAD ||
            !smtp_session_reply(&client->session, &client->parser.reply, err)) {
            return false;
        }
        if (client->session.phase == SMTP_HANDSHAKE) {
            // Bytes in the clear behind the answer to STARTTLS were injected (RFC 3207 6).
            return true;
        }
    }
    return true;
}

static bool go_secure(SmtpClient *client, Str received, Error *err)
{
    if (client->tls == NULL) {
        smtp_reply_init(&client->parser);
        client->tls = tls_new(client->context.tls, client->context.options->host, err);
    }
    bool done = false;
    if (client->tls == NULL || !tls_handshake(client->tls, received, &client->wire, &done, err)) {
        return false;
    }
    if (done) {
        smtp_session_encrypted(&client->session);
    }
    return true;
}

static bool take(SmtpClient *client, Str received, Error *err)
{
    if (client->session.phase == SMTP_HANDSHAKE) {
        if (!go_secure(client, received, err) || !client->session.encrypted) {
            return err->kind == ERROR_NONE;
        }
        received = STR_EMPTY; // bytes may have come behind the handshake: read below
    }
    if (client->tls == NULL) {
        return parse(client, received, err) &&
               (client->session.phase != SMTP_HANDSHAKE || go_secure(client, STR_EMPTY, err));
    }
    bool closed = false;
    if (!tls_read(client->tls, received, &client->plain, &client->wire, &closed, err)) {
        return false;
    }
    bool fine = parse(client, buf_view(&client->plain), err);
    buf_clear(&client->plain);
    return fine && (!closed || error_set(err, ERROR_TRANSIENT, "the server ended the tls session"));
}

// One turn of the conversation: what arrived, what follows from it, one write.
static void turn(SmtpClient *client, Str received)
{
    Error err = {0};
    uint64_t replies = client->replies;
    client->turning = true;
    bool fine = take(client, received, &err);
    client->turning = false;
    if (client->session.phase == SMTP_READY && client->state == SMTP_CLIENT_SETTING_UP &&
        move(client, SMTP_CLIENT_READY)) {
        client->was_ready = true;
        client->context.hooks->on_ready(client->context.ctx);
    }
    if (fine && client->session.phase == SMTP_FAILED) { // a move was not allowed
        fine = error_set(&err, ERROR_TRANSIENT, "the session was in an unexpected state");
    }
    if (!fine) {
        smtp_client_drop_with(client, &err);
        return;
    }
    if (client->state == SMTP_CLIENT_QUITTING && smtp_session_idle(&client->session)) {
        smtp_session_quit(&client->session);
    }
    if (client->replies > replies) {
        set_deadline(client);
    }
    smtp_wire_flush(client);
}

static void on_stream_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    SmtpClient *client = handle->data;
    *buf = uv_buf_init(client->chunk, READ_CHUNK);
}

static void on_stream_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    SmtpClient *client = stream->data;
    if (smtp_client_is_closing(client) || count == 0) {
        return;
    }
    if (count < 0) {
        smtp_client_drop(client, "read", (int)count);
        return;
    }
    turn(client, (Str){buf->base, (size_t)count});
}

// ---- connecting ----

static void on_tcp_connected(uv_connect_t *request, int status)
{
    SmtpClient *client = request->data;
    if (smtp_client_is_closing(client)) {
        return;
    }
    if (status == 0) {
        status = uv_read_start((uv_stream_t *)&client->tcp, on_stream_alloc, on_stream_read);
    }
    if (status < 0) {
        smtp_client_drop(client, "connect", status);
        return;
    }
    if (!move(client, SMTP_CLIENT_SETTING_UP)) {
        return;
    }
    uv_tcp_nodelay(&client->tcp, 1);
    set_deadline(client);
    if (client->session.phase == SMTP_HANDSHAKE) {
        turn(client, STR_EMPTY); // smtps: the client speaks first
    }
}

static void on_lookup_done(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
    SmtpClient *client = request->data;
    client->callbacks--;
    if (smtp_client_is_closing(client)) {
        finish(client);
    } else if (move(client, SMTP_CLIENT_CONNECTING)) { // from now on there is no look-up to cancel
        connect_to(client, status, found);
    }
    uv_freeaddrinfo(found);
}

static void connect_to(SmtpClient *client, int looked_up, const struct addrinfo *found)
{
    if (looked_up < 0) {
        smtp_client_drop(client, "the name look-up", looked_up);
        return;
    }
    unsigned count = 0;
    for (const struct addrinfo *at = found; at != NULL; at = at->ai_next) {
        count++;
    }
    const struct addrinfo *chosen = found;
    for (unsigned i = 0; count > 0 && i < client->context.turn % count; i++) {
        chosen = chosen->ai_next;
    }
    client->connect.data = client;
    int status =
        chosen == NULL
            ? UV_EAI_NODATA
            : uv_tcp_connect(&client->connect, &client->tcp, chosen->ai_addr, on_tcp_connected);
    if (status < 0) {
        smtp_client_drop(client, "connect", status);
    }
}

SmtpClient *smtp_client_new(const SmtpClientContext *context)
{
    SmtpClient *client = xcalloc(1, sizeof *client);
    client->context = *context;
    client->dot_at = UINT64_MAX;
    smtp_session_init(&client->session, context->options, &context->hooks->session, context->ctx);
    smtp_reply_init(&client->parser);
    buf_init(&client->plain, PLAIN_MAX);
    buf_init(&client->wire, WIRE_MAX);
    buf_init(&client->flight, WIRE_MAX);
    uv_tcp_init(context->loop, &client->tcp);
    client->tcp.data = client;
    client->callbacks = 1;
    client->deadline_ms = uv_now(context->loop) + context->options->connect_ms;
    client->lookup.data = client;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    int status = uv_getaddrinfo(
        context->loop, &client->lookup, on_lookup_done, context->options->host,
        context->options->port, &hints);
    if (status < 0) {
        smtp_client_drop(client, "the name look-up", status);
    } else {
        client->callbacks++;
        (void)move(client, SMTP_CLIENT_LOOKING_UP);
    }
    return client;
}

// ---- the pool's calls ----

bool smtp_client_idle(const SmtpClient *client)
{
    return client->state < SMTP_CLIENT_QUITTING && smtp_session_idle(&client->session);
}

bool smtp_client_ready(const SmtpClient *client)
{
    return client->state == SMTP_CLIENT_READY || client->state == SMTP_CLIENT_QUITTING;
}

void smtp_client_wake(SmtpClient *client)
{
    if (client->state >= SMTP_CLIENT_QUITTING || client->turning) {
        return;
    }
    smtp_session_pull(&client->session);
    set_deadline(client);
    smtp_wire_flush(client);
}

void smtp_client_quit(SmtpClient *client)
{
    if (client->state >= SMTP_CLIENT_QUITTING) {
        return;
    }
    if (client->state != SMTP_CLIENT_READY) {
        smtp_client_abort(client);
    } else if (move(client, SMTP_CLIENT_QUITTING) && smtp_session_idle(&client->session)) {
        smtp_session_quit(&client->session);
        set_deadline(client);
        smtp_wire_flush(client);
    }
}

void smtp_client_abort(SmtpClient *client)
{
    Error err = {.kind = ERROR_CANCELLED};
    close_with(client, &err);
}

void smtp_client_tick(SmtpClient *client, uint64_t now_ms)
{
    if (smtp_client_is_closing(client) || now_ms < client->deadline_ms) {
        return;
    }
    if (smtp_session_idle(&client->session)) {
        smtp_client_quit(client);
        return;
    }
    Error err = {0};
    const char *what = "the connection";
    unsigned waited = client->context.options->connect_ms;
    if (smtp_client_is_open(client)) {
        waited = smtp_session_patience_ms(&client->session, &what);
    }
    error_set(&err, ERROR_TRANSIENT, "no answer to %s within %u ms", what, waited);
    smtp_client_drop_with(client, &err);
}
