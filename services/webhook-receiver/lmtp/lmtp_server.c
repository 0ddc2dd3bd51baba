// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/lmtp/lmtp_server.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"

enum { INPUT_MAX = 64 * 1024, BACKLOG = 64, HANDLES = 2 };

typedef union Stream {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
} Stream;

struct LmtpServer {
    LmtpServerOptions options;
    uv_loop_t *loop;
    Stream listener;
    bool is_pipe;
    int port;
    char host[256];
    size_t connection_count;
    struct Connection *connections; // all of them, by next
    bool stopping, closed;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

typedef struct Connection {
    LmtpServer *server;
    struct Connection *next;
    Stream stream;
    uv_timer_t timer;
    uv_write_t write;
    int open; // handles
    LmtpSession session;
    LmtpMail mail;
    const char *replies[LMTP_RECIPIENTS_MAX];
    size_t unanswered; // of the mail in hand
    bool writing, ending, closing;
    Str rest; // of `input`, not fed yet
    Buf sending;
    char input[INPUT_MAX];
} Connection;

static void go_on(Connection *c);

// ---- the end of a connection ----

static void end_if_all_closed(LmtpServer *server)
{
    if (server->stopping && server->closed && server->connection_count == 0) {
        server->on_stopped(server->stopped_ctx);
    }
}

static void free_if_over(Connection *c)
{
    if (c->open > 0 || c->unanswered > 0) {
        return;
    }
    LmtpServer *server = c->server;
    Connection **place = &server->connections;
    while (*place != c) {
        place = &(*place)->next;
    }
    *place = c->next;
    server->connection_count--;
    lmtp_done(&c->session);
    buf_done(&c->sending);
    free(c);
    end_if_all_closed(server);
}

static void on_handle_closed(uv_handle_t *handle)
{
    Connection *c = handle->data;
    c->open--;
    free_if_over(c);
}

// A mail that is being stored stays until it is answered.
static void close_connection(Connection *c)
{
    if (!c->closing) {
        c->closing = true;
        uv_close(&c->stream.handle, on_handle_closed);
        uv_close((uv_handle_t *)&c->timer, on_handle_closed);
    }
}

// ---- time ----

static void on_timer_late(uv_timer_t *timer)
{
    Connection *c = timer->data;
    if (c->writing || c->ending) { // it does not read
        close_connection(c);
    } else if (c->session.state != LMTP_REPLYING) {
        lmtp_end(&c->session, "421 4.4.2 this took too long");
        go_on(c);
    }
}

// A command's time begins when the one before it has ended; a mail's with DATA.
static void set_timer(Connection *c, bool restart)
{
    const LmtpServerOptions *options = &c->server->options;
    bool in_mail = c->session.state == LMTP_DATA;
    if (restart) {
        uv_timer_start(
            &c->timer, on_timer_late, (uint64_t)(in_mail ? options->mail_ms : options->idle_ms), 0);
    }
}

// ---- reading and writing ----

static void on_connection_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    Connection *c = handle->data;
    (void)suggested;
    *ret = uv_buf_init(c->input, sizeof c->input);
}

static void on_connection_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
    Connection *c = stream->data;
    if (got < 0) {
        close_connection(c);
    } else if (got > 0) {
        (void)uv_read_stop(stream);
        c->rest = str_of(buffer->base, (size_t)got);
        go_on(c);
    }
}

static void on_connection_written(uv_write_t *write, int status)
{
    Connection *c = write->data;
    c->writing = false;
    if (status != 0 || c->ending) {
        close_connection(c);
    } else if (!c->closing) {
        go_on(c);
    }
}

// The replies so far. true: they are on their way, and nothing else happens meanwhile.
static bool send_replies(Connection *c)
{
    if (c->session.out.len == 0) {
        return false;
    }
    Buf sent = c->sending;
    c->sending = c->session.out;
    c->session.out = sent;
    buf_clear(&c->session.out);
    uv_buf_t bytes = uv_buf_init(c->sending.ptr, (unsigned)c->sending.len);
    c->writing = true;
    if (uv_write(&c->write, &c->stream.stream, &bytes, 1, on_connection_written) != 0) {
        c->writing = false;
        close_connection(c);
    }
    return true;
}

// ---- decisions ----

static void decide_recipient(Connection *c)
{
    const LmtpHandler *handler = &c->server->options.handler;
    void *user = NULL;
    const char *refusal =
        handler->recipient(handler->ctx, c->session.address, c->session.arena, &user);
    lmtp_recipient(&c->session, refusal, user);
}

static void hand_over(Connection *c)
{
    const LmtpHandler *handler = &c->server->options.handler;
    LmtpSession *session = &c->session;
    c->mail = (LmtpMail){
        .text = buf_view(&session->mail),
        .arena = session->arena,
        .count = session->recipient_count,
        .recipients = session->recipients,
        .users = session->users,
        .received_at_us = clock_now_us(),
        .connection = c,
    };
    c->unanswered = session->recipient_count;
    uv_timer_stop(&c->timer); // the bus ends this wait
    handler->mail(handler->ctx, &c->mail);
}

void lmtp_answer(const LmtpMail *mail, size_t recipient, const char *reply)
{
    Connection *c = mail->connection;
    assert(c->unanswered > 0 && recipient < mail->count);
    c->replies[recipient] = reply;
    if (--c->unanswered > 0) {
        return;
    }
    if (c->closing) {
        free_if_over(c);
        return;
    }
    for (size_t i = 0, count = mail->count; i < count; i++) {
        lmtp_reply(&c->session, c->replies[i]);
    }
    set_timer(c, true);
    go_on(c);
}

static void end_session(Connection *c)
{
    c->ending = true;
    if (!send_replies(c)) {
        close_connection(c);
    }
}

// Feeds what is there until a reply is to be sent, a mail waits for its answers, or more is to be
// read.
static void go_on(Connection *c)
{
    if (c->closing || c->writing) {
        return;
    }
    while (c->session.state != LMTP_REPLYING) {
        size_t before = c->rest.len;
        LmtpState state = c->session.state;
        LmtpStep step = lmtp_feed(&c->session, &c->rest);
        bool whole = c->session.line_len == 0 && !c->session.line_too_long;
        set_timer(c, state != c->session.state || (state != LMTP_DATA && whole && before > 0));
        if (step == LMTP_END) {
            end_session(c);
            return;
        }
        if (step == LMTP_RECIPIENT) {
            decide_recipient(c);
        } else if (step == LMTP_MAIL) {
            hand_over(c); // which may go on by itself before it returns
            return;
        } else if (send_replies(c)) {
            return;
        } else if (c->server->stopping) {
            lmtp_end(&c->session, "421 4.3.2 the service stops");
        } else {
            (void)uv_read_start(&c->stream.stream, on_connection_buffer, on_connection_read);
            return;
        }
    }
}

// ---- connections ----

static void init_stream(LmtpServer *server, Stream *stream)
{
    if (server->is_pipe) {
        uv_pipe_init(server->loop, &stream->pipe, 0);
    } else {
        uv_tcp_init(server->loop, &stream->tcp);
    }
}

static void on_listener_connection(uv_stream_t *listener, int status)
{
    LmtpServer *server = listener->data;
    if (status != 0 || server->stopping) {
        return;
    }
    Connection *c = xcalloc(1, sizeof *c);
    c->server = server;
    init_stream(server, &c->stream);
    uv_timer_init(server->loop, &c->timer);
    c->open = HANDLES;
    c->stream.handle.data = c->timer.data = c->write.data = c;
    buf_init(&c->sending, LMTP_OUT_MAX);
    lmtp_init(&c->session, server->host, &server->options.limits);
    c->next = server->connections;
    server->connections = c;
    server->connection_count++;
    if (uv_accept(listener, &c->stream.stream) != 0) {
        close_connection(c);
        return;
    }
    if (server->connection_count > server->options.connections) {
        buf_clear(&c->session.out);
        lmtp_end(&c->session, "421 4.3.2 too many connections");
    }
    set_timer(c, true);
    go_on(c);
}

// ---- the listener ----

// A socket that a process before this one left.
static void remove_socket(const char *path)
{
    struct stat info;
    if (lstat(path, &info) == 0 && S_ISSOCK(info.st_mode)) {
        (void)unlink(path);
    }
}

static int bind_address(LmtpServer *server)
{
    const LmtpServerOptions *options = &server->options;
    struct sockaddr_storage address = {0};
    int failed = uv_ip4_addr(options->bind, options->port, (struct sockaddr_in *)&address);
    if (failed != 0) {
        failed = uv_ip6_addr(options->bind, options->port, (struct sockaddr_in6 *)&address);
    }
    return failed != 0 ? failed
                       : uv_tcp_bind(&server->listener.tcp, (struct sockaddr *)&address, 0);
}

static int listen_there(LmtpServer *server)
{
    int failed = 0;
    if (server->is_pipe) {
        remove_socket(server->options.bind);
        failed = uv_pipe_bind(&server->listener.pipe, server->options.bind);
        // Who may reach it is decided by its folder.
        failed =
            failed != 0 ? failed : uv_pipe_chmod(&server->listener.pipe, UV_READABLE | UV_WRITABLE);
    } else {
        failed = bind_address(server);
    }
    return failed != 0 ? failed
                       : uv_listen(&server->listener.stream, BACKLOG, on_listener_connection);
}

static void on_failed_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static int find_port(const LmtpServer *server)
{
    struct sockaddr_storage address;
    int len = sizeof address;
    if (server->is_pipe ||
        uv_tcp_getsockname(&server->listener.tcp, (struct sockaddr *)&address, &len) != 0) {
        return 0;
    }
    in_port_t port = address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                                   : ((struct sockaddr_in *)&address)->sin_port;
    return ntohs(port);
}

LmtpServer *lmtp_server_new(uv_loop_t *loop, const LmtpServerOptions *options, Error *err)
{
    LmtpServer *server = xcalloc(1, sizeof *server);
    server->options = *options;
    server->loop = loop;
    server->is_pipe = options->bind[0] == '/';
    if (gethostname(server->host, sizeof server->host - 1) != 0 || server->host[0] == '\0') {
        (void)str_to_c(STR("localhost"), server->host, sizeof server->host);
    }
    init_stream(server, &server->listener);
    server->listener.handle.data = server;
    int failed = listen_there(server);
    if (failed != 0) {
        error_set(
            err, ERROR_CONFIG,
            "cannot listen on '%.100s' port %d for LMTP: %s. HINT: STENTOR_LMTP_BIND is an address "
            "of this machine or the path of a socket, and STENTOR_LMTP_PORT is free",
            options->bind, options->port, uv_strerror(failed));
        uv_close(&server->listener.handle, on_failed_closed);
        return NULL;
    }
    server->port = find_port(server);
    return server;
}

int lmtp_server_port(const LmtpServer *server)
{
    return server->port;
}

// ---- the end ----

static void on_listener_closed(uv_handle_t *handle)
{
    LmtpServer *server = handle->data;
    server->closed = true;
    end_if_all_closed(server);
}

// A connection between two commands ends now, one with a mail in hand after its answer.
void lmtp_server_stop(LmtpServer *server, void (*on_stopped)(void *ctx), void *ctx)
{
    server->stopping = true;
    server->on_stopped = on_stopped;
    server->stopped_ctx = ctx;
    for (Connection *c = server->connections, *next = NULL; c != NULL; c = next) {
        next = c->next;
        if (!c->writing && !c->closing && c->session.state != LMTP_REPLYING) {
            (void)uv_read_stop(&c->stream.stream);
            lmtp_end(&c->session, "421 4.3.2 the service stops");
            c->rest = STR_EMPTY;
            go_on(c);
        }
    }
    uv_close(&server->listener.handle, on_listener_closed);
}

void lmtp_server_free(LmtpServer *server)
{
    free(server);
}
