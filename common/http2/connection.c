// SPDX-License-Identifier: Apache-2.0
// One connection: TCP, TLS, HTTP/2, and what ends it. Nothing is taken from the session while a
// write is on its way, so that what a dead connection held back is what the session still has.
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "common/http2/http2_internal.h"

enum { PLAIN_MAX = 512 * 1024, WIRE_MAX = 512 * 1024 };

static uint64_t now_of(const Http2Connection *connection)
{
    return uv_now(connection->client->loop);
}

// ---- the end ----

static void on_closed(uv_handle_t *handle)
{
    Http2Connection *connection = handle->data;
    Http2Client *client = connection->client;
    tls_free(connection->tls);
    http2_session_free(connection->session);
    buf_done(&connection->plain);
    buf_done(&connection->wire);
    buf_done(&connection->written);
    free(connection);
    http2_client_closed(client);
}

static void unlist(Http2Connection *connection)
{
    Http2Connection **at = &connection->origin->connections;
    while (*at != connection) {
        at = &(*at)->next;
    }
    *at = connection->next;
    connection->origin->connection_count--;
}

static void fail_calls(
    Http2Connection *connection, HttpFailure failure, ErrorKind kind, const char *why)
{
    const char *said =
        connection->session != NULL ? http2_session_goaway_text(connection->session) : "";
    Http2Exchange *exchange;
    while (connection->session != NULL &&
           (exchange = http2_session_first(connection->session)) != NULL) {
        Http2Call *call = (Http2Call *)(void *)exchange; // its first member
        http2_call_fail(call, failure, kind, why);
        if (said[0] != '\0') {
            error_wrap(&call->answer.err, "%s", said);
        }
    }
}

void http2_connection_end(
    Http2Connection *connection, HttpFailure failure, ErrorKind kind, const char *why)
{
    Http2Origin *origin = connection->origin;
    Http2Client *client = connection->client;
    bool was_ready = connection->state == HTTP2_READY;
    if (connection->state == HTTP2_CLOSED) {
        return;
    }
    connection->state = HTTP2_CLOSED;
    unlist(connection);
    fail_calls(connection, failure, kind, why);
    if (!was_ready) {
        if (client->dns != NULL && !origin->url.is_address && failure != HTTP_FAILURE_BLOCKED) {
            dns_avoid(client->dns, origin->url.host, &connection->address);
        }
        http2_origin_failed(origin, failure, kind, why);
    }
    http2_origin_touch(origin);
    uv_close((uv_handle_t *)&connection->tcp, on_closed);
}

// ---- out ----

static void on_written(uv_write_t *request, int status)
{
    Http2Connection *connection = request->data;
    connection->writes = false;
    if (connection->state == HTTP2_CLOSED) {
        return;
    }
    if (status < 0) {
        http2_connection_end(connection, HTTP_FAILURE_CUT, ERROR_TRANSIENT, uv_strerror(status));
    }
    http2_origin_touch(connection->origin);
    http2_client_settle(connection->client);
}

// false: the connection has ended.
static bool write_wire(Http2Connection *connection)
{
    uv_stream_t *stream = (uv_stream_t *)&connection->tcp;
    uv_buf_t bytes = uv_buf_init(connection->wire.ptr, (unsigned)connection->wire.len);
    int put = uv_try_write(stream, &bytes, 1);
    if (put < 0 && put != UV_EAGAIN) {
        http2_connection_end(connection, HTTP_FAILURE_CUT, ERROR_TRANSIENT, uv_strerror(put));
        return false;
    }
    size_t done = put > 0 ? (size_t)put : 0;
    if (done == connection->wire.len) {
        buf_clear(&connection->wire);
        return true;
    }
    Buf spare = connection->written;
    connection->written = connection->wire;
    connection->wire = spare;
    buf_clear(&connection->wire);
    bytes = uv_buf_init(connection->written.ptr + done, (unsigned)(connection->written.len - done));
    connection->writing.data = connection;
    connection->writes = uv_write(&connection->writing, stream, &bytes, 1, on_written) == 0;
    if (!connection->writes) {
        http2_connection_end(
            connection, HTTP_FAILURE_CUT, ERROR_TRANSIENT, "nothing can be written");
    }
    return connection->writes;
}

static bool encrypt(Http2Connection *connection, Error *err)
{
    buf_clear(&connection->plain);
    return http2_session_pull(connection->session, &connection->plain, err) &&
           tls_write(connection->tls, buf_view(&connection->plain), &connection->wire, err);
}

void http2_connection_flush(Http2Connection *connection)
{
    Error err = {0};
    while (connection->state != HTTP2_CLOSED && !connection->writes) {
        if (connection->session != NULL && !encrypt(connection, &err)) {
            http2_connection_end(connection, HTTP_FAILURE_CUT, err.kind, err.text);
        } else if (connection->wire.len == 0 || !write_wire(connection)) {
            return;
        }
    }
}

// ---- in ----

static bool secure(Http2Connection *connection, Str received, HttpFailure *ret, Error *err)
{
    bool done = false;
    *ret = HTTP_FAILURE_TLS;
    if (!tls_handshake(connection->tls, received, &connection->wire, &done, err)) {
        if (tls_is_distrusted(connection->tls)) {
            err->kind = ERROR_CONFIG;
        }
        return false;
    }
    if (!done) {
        return true;
    }
    if (!tls_speaks(connection->tls, STR("h2"))) {
        return error_set(err, ERROR_CONFIG, "the server does not speak HTTP/2");
    }
    connection->session = http2_session_new(connection->client->streams, err);
    return connection->session != NULL;
}

static bool feed(Http2Connection *connection, Str received, HttpFailure *ret, Error *err)
{
    bool closed = false;
    *ret = HTTP_FAILURE_CUT;
    buf_clear(&connection->plain);
    if (!tls_read(connection->tls, received, &connection->plain, &connection->wire, &closed, err)) {
        return false;
    }
    if (!http2_session_feed(connection->session, buf_view(&connection->plain), err)) {
        *ret = HTTP_FAILURE_INVALID;
        return false;
    }
    if (connection->state == HTTP2_SECURING && http2_session_is_ready(connection->session)) {
        connection->state = HTTP2_READY;
        connection->ready_ms = connection->used_ms = now_of(connection);
    }
    return !closed || error_set(err, ERROR_TRANSIENT, "the server ended the connection");
}

static bool take(Http2Connection *connection, Str received, HttpFailure *ret, Error *err)
{
    if (connection->session == NULL) {
        if (!secure(connection, received, ret, err)) {
            return false;
        }
        received = STR_EMPTY; // bytes may have come behind the handshake
    }
    return connection->session == NULL || feed(connection, received, ret, err);
}

static void end_if_over(Http2Connection *connection)
{
    Http2Session *session = connection->session;
    if (session == NULL) {
        return;
    }
    bool is_left = http2_session_is_draining(session) && http2_session_open(session) == 0;
    if (is_left || http2_session_is_over(session)) {
        http2_connection_flush(connection); // what it still has to say
        http2_connection_end(
            connection, HTTP_FAILURE_INVALID, ERROR_TRANSIENT, "what came is not HTTP/2");
    }
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    Http2Connection *connection = handle->data;
    (void)suggested;
    *ret = uv_buf_init(connection->client->received, sizeof connection->client->received);
}

static void on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *bytes)
{
    Http2Connection *connection = stream->data;
    HttpFailure failure = HTTP_FAILURE_CUT;
    Error err = {0};
    if (connection->state == HTTP2_CLOSED || len == 0) {
        return;
    }
    connection->read_ms = now_of(connection);
    if (len < 0) {
        http2_connection_end(connection, failure, ERROR_TRANSIENT, uv_strerror((int)len));
    } else if (!take(connection, str_of(bytes->base, (size_t)len), &failure, &err)) {
        http2_connection_end(connection, failure, err.kind, err.text);
    } else {
        end_if_over(connection);
    }
    http2_origin_touch(connection->origin);
    http2_client_settle(connection->client);
}

// ---- the beginning ----

static void on_connected(uv_connect_t *request, int status)
{
    Http2Connection *connection = request->data;
    Http2Client *client = connection->client;
    Error err = {0};
    if (connection->state == HTTP2_CLOSED) {
        return;
    }
    connection->state = HTTP2_SECURING;
    connection->read_ms = now_of(connection);
    bool done = false;
    if (status < 0) {
        http2_connection_end(
            connection, HTTP_FAILURE_CONNECT, ERROR_TRANSIENT, uv_strerror(status));
    } else {
        connection->tls = tls_new(client->tls, connection->origin->url.host, &err);
        if (connection->tls == NULL ||
            !tls_handshake(connection->tls, STR_EMPTY, &connection->wire, &done, &err)) {
            http2_connection_end(connection, HTTP_FAILURE_TLS, err.kind, err.text);
        } else {
            uv_read_start((uv_stream_t *)&connection->tcp, on_room, on_read);
        }
    }
    http2_origin_touch(connection->origin);
    http2_client_settle(client);
}

static void set_port(struct sockaddr_storage *address, uint16_t port)
{
    if (address->ss_family == AF_INET) {
        ((struct sockaddr_in *)address)->sin_port = htons(port);
    } else {
        ((struct sockaddr_in6 *)address)->sin6_port = htons(port);
    }
}

void http2_connection_open(Http2Origin *origin, const struct sockaddr_storage *address)
{
    Http2Client *client = origin->client;
    Error err = {0};
    Http2Connection *connection = xcalloc(1, sizeof *connection);
    connection->client = client;
    connection->origin = origin;
    connection->address = *address; // as the resolver knows it: without a port
    connection->begun_ms = uv_now(client->loop);
    buf_init(&connection->plain, PLAIN_MAX);
    buf_init(&connection->wire, WIRE_MAX);
    buf_init(&connection->written, WIRE_MAX);
    uv_tcp_init(client->loop, &connection->tcp);
    connection->tcp.data = connection->connecting.data = connection;
    connection->next = origin->connections;
    origin->connections = connection;
    origin->connection_count++;
    client->handles++;
    struct sockaddr_storage target = *address;
    set_port(&target, origin->url.port);
    const struct sockaddr *where = (const struct sockaddr *)&target;
    if (!guard_address(&client->guard, where, &err)) {
        http2_connection_end(connection, HTTP_FAILURE_BLOCKED, err.kind, err.text);
        return;
    }
    int failed = uv_tcp_connect(&connection->connecting, &connection->tcp, where, on_connected);
    if (failed == 0) {
        uv_tcp_nodelay(&connection->tcp, 1);
    } else {
        http2_connection_end(
            connection, HTTP_FAILURE_CONNECT, ERROR_TRANSIENT, uv_strerror(failed));
    }
}

// ---- time ----

static void look_after(Http2Connection *connection, uint64_t now)
{
    const Http2Client *client = connection->client;
    Http2Session *session = connection->session;
    bool idle = http2_session_open(session) == 0;
    bool draining = http2_session_is_draining(session);
    if (!draining && (now - connection->ready_ms > client->life_ms ||
                      (idle && now - connection->used_ms > client->kept_idle_ms))) {
        http2_session_leave(session);
        draining = true;
    }
    if (idle && draining) {
        http2_connection_flush(connection);
        http2_connection_end(connection, HTTP_FAILURE_NONE, ERROR_TRANSIENT, "it was left");
        return;
    }
    if (connection->pinged_ms != 0 && http2_session_pongs(session) != connection->pongs) {
        connection->pinged_ms = 0;
    }
    if (connection->pinged_ms == 0 && now - connection->read_ms > client->ping_ms) {
        connection->pinged_ms = now;
        connection->pongs = http2_session_pongs(session);
        http2_session_ping(session);
        http2_connection_flush(connection);
    } else if (connection->pinged_ms != 0 && now - connection->pinged_ms > client->pong_ms) {
        const char *why = "the server does not answer any more";
        http2_connection_end(connection, HTTP_FAILURE_TIMEOUT, ERROR_TRANSIENT, why);
    }
}

void http2_connection_tick(Http2Connection *connection, uint64_t now_ms)
{
    const Http2Client *client = connection->client;
    uint64_t age = now_ms - connection->begun_ms;
    if (connection->state == HTTP2_READY) {
        look_after(connection, now_ms);
    } else if (connection->state == HTTP2_CONNECTING && age > client->connect_ms) {
        const char *why = "no connection in time";
        http2_connection_end(connection, HTTP_FAILURE_TIMEOUT, ERROR_TRANSIENT, why);
    } else if (age > client->connect_ms + client->secure_ms) {
        const char *why = "no TLS and no SETTINGS in time";
        http2_connection_end(connection, HTTP_FAILURE_TIMEOUT, ERROR_TRANSIENT, why);
    }
}
