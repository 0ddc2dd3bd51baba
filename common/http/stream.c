// SPDX-License-Identifier: Apache-2.0
// A stream's socket is ours: once the request is read, libmicrohttpd gets another descriptor under
// the same number, one at its end, and closes that. So a stream costs neither libmicrohttpd's
// memory nor one of the places for requests.
#define _GNU_SOURCE // dup3

#include "common/http/stream.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/http/internal.h"

enum {
    QUEUES_MAX = 64 * 1024 * 1024, // bytes of all streams
    SEND_BUFFER_BYTES = 32 * 1024, // of the kernel, which doubles it
    FLUSH_MS = 100,
    SEND_BYTES = 16 * 1024, // that wait for no flush
    FLUSH_COUNT = 256,      // streams in one turn of the loop
    STUCK_MS = 30 * 1000,   // without a byte taken, or acknowledged
    LAST_MS = 5000,         // the same of a stream that is ending
    DRAIN_MS = 3000,        // that the last bytes have once the server stops
    HEAD_BYTES = 8 * 1024,
};

// clang-format off
static const Str COMMENT = {":\n\n", 3};
static const Str RETRY   = {"retry: 2000\n\n", 13};
static const Str RESET   = {"event: reset\ndata: {\"reason\":\"slow\"}\n\n", 38};
// clang-format on

typedef enum StreamState {
    STREAM_OPEN,
    STREAM_ENDING, // closes once its queue is gone
    STREAM_CLOSED, // on_end comes with the end of its handle
} StreamState;

struct HttpStream {
    HttpServer *server;
    int fd;
    StreamState state;
    bool waiting; // in the server's list of those that have something to send
    bool blocked; // its socket takes no more; polled for room
    uv_poll_t poll;
    Buf queue;         // from the last moment on at which it was empty
    size_t sent;       // of it
    uint64_t moved_ms; // when bytes went last
    void (*on_end)(void *ctx);
    void *ctx;
    HttpStream *previous, *next; // of the server's list
    HttpStream *before, *behind; // in the list of those that wait
};

void http_event_write(Buf *out, uint64_t id, const char *name, Str data)
{
    if (id != 0) {
        buf_printf(out, "id: %" PRIu64 "\n", id);
    }
    buf_printf(out, "event: %s\ndata: ", name);
    buf_str(out, data);
    buf_cstr(out, "\n\n");
}

// ---- lists ----

static void link_stream(HttpStream *stream)
{
    HttpServer *server = stream->server;
    stream->next = server->streams.all;
    if (stream->next != NULL) {
        stream->next->previous = stream;
    }
    server->streams.all = stream;
    server->streams.count++;
}

static void unlink_stream(HttpStream *stream)
{
    HttpServer *server = stream->server;
    if (stream->previous != NULL) {
        stream->previous->next = stream->next;
    } else {
        server->streams.all = stream->next;
    }
    if (stream->next != NULL) {
        stream->next->previous = stream->previous;
    }
    server->streams.count--;
}

static void join_waiting(HttpStream *stream)
{
    HttpServer *server = stream->server;
    stream->waiting = true;
    stream->before = server->streams.last_waiting;
    stream->behind = NULL;
    if (stream->before != NULL) {
        stream->before->behind = stream;
    } else {
        server->streams.waiting = stream;
    }
    server->streams.last_waiting = stream;
}

static void leave_waiting(HttpStream *stream)
{
    HttpServer *server = stream->server;
    if (!stream->waiting) {
        return;
    }
    stream->waiting = false;
    *(stream->before != NULL ? &stream->before->behind : &server->streams.waiting) = stream->behind;
    *(stream->behind != NULL ? &stream->behind->before : &server->streams.last_waiting) =
        stream->before;
}

// ---- the end ----

static size_t unsent(const HttpStream *stream)
{
    return stream->queue.len - stream->sent;
}

static void on_poll_closed(uv_handle_t *handle)
{
    HttpStream *stream = handle->data;
    HttpServer *server = stream->server;
    stream->on_end(stream->ctx);
    free(stream);
    server_handle_closed(server);
}

static void end(HttpStream *stream)
{
    HttpServer *server = stream->server;
    assert(stream->state != STREAM_CLOSED);
    stream->state = STREAM_CLOSED;
    leave_waiting(stream);
    unlink_stream(stream);
    server->streams.bytes -= unsent(stream);
    buf_done(&stream->queue);
    buf_init(&stream->queue, 0);
    stream->sent = 0;
    uv_close((uv_handle_t *)&stream->poll, on_poll_closed); // before its descriptor is
    close(stream->fd);
    if (server->stopping) {
        server_run_soon(server); // it may have been the last
    }
}

// ---- sending ----

static void on_flush_due(uv_timer_t *timer);
static void on_stream_ready(uv_poll_t *poll, int status, int events);

static void want_flush(HttpStream *stream)
{
    HttpServer *server = stream->server;
    if (stream->blocked || stream->waiting) {
        return;
    }
    join_waiting(stream);
    if (!uv_is_active((uv_handle_t *)&server->streams.flush)) {
        uint64_t now_ms = uv_now(server->loop);
        uint64_t due_ms = server->streams.flushed_ms + FLUSH_MS;
        uv_timer_start(
            &server->streams.flush, on_flush_due, due_ms > now_ms ? due_ms - now_ms : 0, 0);
    }
}

static void poll_for(HttpStream *stream, bool blocked)
{
    if (stream->blocked != blocked) {
        stream->blocked = blocked;
        uv_poll_start(&stream->poll, UV_READABLE | (blocked ? UV_WRITABLE : 0), on_stream_ready);
    }
}

static void send_queue(HttpStream *stream)
{
    leave_waiting(stream);
    if (unsent(stream) > 0) {
        ssize_t n = send(
            stream->fd, stream->queue.ptr + stream->sent, unsent(stream),
            MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            end(stream);
            return;
        }
        if (n > 0) {
            stream->sent += (size_t)n;
            stream->server->streams.bytes -= (size_t)n;
            stream->moved_ms = uv_now(stream->server->loop);
        }
    }
    poll_for(stream, unsent(stream) > 0);
    if (unsent(stream) > 0) {
        return;
    }
    buf_done(&stream->queue);
    buf_init(&stream->queue, 2 * HTTP_STREAM_QUEUE_MAX);
    stream->sent = 0;
    if (stream->state == STREAM_ENDING) {
        (void)shutdown(stream->fd, SHUT_WR);
        end(stream);
    }
}

// A turn sends to some: 10,000 at once would keep everything else waiting for a tenth of a second.
static void on_flush_due(uv_timer_t *timer)
{
    HttpServer *server = timer->data;
    for (int i = 0; i < FLUSH_COUNT && server->streams.waiting != NULL; i++) {
        send_queue(server->streams.waiting);
    }
    if (server->streams.waiting != NULL) {
        uv_timer_start(timer, on_flush_due, 0, 0);
    } else {
        server->streams.flushed_ms = uv_now(server->loop);
    }
}

// What a client sends is read and thrown away, so that its end is seen.
static void on_stream_ready(uv_poll_t *poll, int status, int events)
{
    HttpStream *stream = poll->data;
    char bytes[512];
    if (status == 0 && (events & UV_READABLE) != 0) {
        ssize_t n = recv(stream->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        status = n > 0 || (n < 0 && errno == EAGAIN) ? 0 : -1;
    }
    if (status != 0) {
        end(stream);
    } else if ((events & UV_WRITABLE) != 0) {
        send_queue(stream);
    }
}

// ---- writing ----

static void append(HttpStream *stream, Str text)
{
    if (stream->queue.len + text.len > stream->queue.max) {
        buf_drop_front(&stream->queue, stream->sent - 2); // drop_unsent() looks at the last two
        stream->sent = 2;
    }
    bool fits = buf_str(&stream->queue, text);
    assert(fits);
    (void)fits;
    stream->server->streams.bytes += text.len;
}

// All but the rest of an event of which the client has a part.
static void drop_unsent(HttpStream *stream)
{
    const char *at = stream->queue.ptr;
    size_t end_at = stream->sent;
    while (end_at > 0 && end_at < stream->queue.len &&
           !(end_at >= 2 && at[end_at - 1] == '\n' && at[end_at - 2] == '\n')) {
        end_at++;
    }
    stream->server->streams.bytes -= stream->queue.len - end_at;
    stream->queue.len = end_at;
}

static void finish_with(HttpStream *stream, Str last)
{
    if (last.len > 0) {
        append(stream, last);
    }
    stream->state = STREAM_ENDING;
    want_flush(stream);
}

bool http_stream_write(HttpStream *stream, Str events)
{
    assert(events.len <= HTTP_EVENT_MAX);
    if (stream->state != STREAM_OPEN) {
        return false;
    }
    if (unsent(stream) + events.len > HTTP_STREAM_QUEUE_MAX ||
        stream->server->streams.bytes + events.len > QUEUES_MAX) {
        drop_unsent(stream);
        finish_with(stream, RESET);
        return false;
    }
    append(stream, events);
    if (unsent(stream) >= SEND_BYTES && !stream->blocked) {
        send_queue(stream);
        return stream->state == STREAM_OPEN;
    }
    want_flush(stream);
    return true;
}

size_t http_stream_unsent(const HttpStream *stream)
{
    return unsent(stream);
}

void http_stream_close(HttpStream *stream)
{
    if (stream->state == STREAM_OPEN) {
        finish_with(stream, STR_EMPTY);
    }
}

// ---- the beginning ----

static void set_socket(int fd)
{
    int off = 0, on = 1, buffer = SEND_BUFFER_BYTES;
    unsigned stuck_ms = STUCK_MS;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_CORK, &off, sizeof off); // libmicrohttpd's
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &stuck_ms, sizeof stuck_ms);
}

// Suspended, the connection is in no set of libmicrohttpd's any more, and its number can be given
// another meaning.
static void take_socket(Request *request)
{
    Connection *c = request->connection;
    if (!request->suspended) {
        request->suspended = true;
        MHD_suspend_connection(request->mhd);
    }
    int number = dup3(request->server->ended_fd, c->fd, O_CLOEXEC);
    assert(number == c->fd);
    (void)number;
    request->state = REQUEST_STREAMED;
    connection_move(c, CONNECTION_CUT);
    request_resume(request);
}

// A shell's usual limit is 1,024 of what the system lets a process have.
static void raise_file_limit(HttpServer *server)
{
    struct rlimit limit = {0};
    if (!server->streams.raised && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        server->streams.raised = true;
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static HttpStream *new_stream(HttpServer *server, int fd)
{
    HttpStream *stream = xcalloc(1, sizeof *stream);
    stream->server = server;
    stream->fd = fd;
    stream->moved_ms = uv_now(server->loop);
    buf_init(&stream->queue, 2 * HTTP_STREAM_QUEUE_MAX);
    int failed = uv_poll_init(server->loop, &stream->poll, fd);
    assert(failed == 0);
    (void)failed;
    stream->poll.data = stream;
    server->open_handles++;
    uv_poll_start(&stream->poll, UV_READABLE, on_stream_ready);
    link_stream(stream);
    return stream;
}

static bool answer_otherwise(HttpRequest *shown)
{
    const HttpServer *server = ((Request *)shown)->server;
    if (server == NULL || str_eq(shown->method, STR("HEAD"))) {
        http_respond(shown, 200, "text/event-stream", STR_EMPTY);
        return true;
    }
    if (!server->stopping && server->streams.count < server->limits.streams) {
        return false;
    }
    http_response_header(shown, "Retry-After", STR("5"));
    http_problem(
        shown, 503, "too-many-streams", "Too many streams", NULL,
        "this process has %" PRId64 " streams open, as many as it may; come again in a moment",
        server->streams.count);
    return true;
}

HttpStream *http_stream_begin(HttpRequest *shown, void (*on_end)(void *ctx), void *ctx)
{
    Request *request = (Request *)shown;
    assert(request->state == REQUEST_HANDLED);
    if (answer_otherwise(shown)) {
        return NULL;
    }
    HttpServer *server = request->server;
    raise_file_limit(server);
    int fd = fcntl(request->connection->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
        server_log_trouble(server, "a stream cannot begin", "HINT: raise LimitNOFILE=");
        http_problem(
            shown, 503, "unavailable", "Temporarily unavailable", NULL, "there is no room for it");
        return NULL;
    }
    set_socket(fd);
    HttpStream *stream = new_stream(server, fd);
    stream->on_end = on_end;
    stream->ctx = ctx;
    Buf head;
    buf_init(&head, HEAD_BYTES + HEAD_MAX);
    request_write_stream_head(request, &head);
    buf_str(&head, RETRY);
    append(stream, buf_view(&head));
    buf_done(&head);
    take_socket(request);
    if (send(fd, stream->queue.ptr, unsent(stream), MSG_NOSIGNAL | MSG_DONTWAIT) !=
        (ssize_t)unsent(stream)) {
        end(stream); // gone, or its socket is full of answers that it does not read
        return stream;
    }
    server->streams.bytes -= unsent(stream);
    buf_clear(&stream->queue);
    return stream;
}

// ---- the server's ----

int64_t http_server_streams(const HttpServer *server)
{
    return server->streams.count;
}

void streams_init(HttpServer *server)
{
    uv_timer_init(server->loop, &server->streams.flush);
    server->streams.flush.data = server;
    server->open_handles++;
}

void streams_tick(HttpServer *server, uint64_t now_ms)
{
    uint64_t comment_ms = (uint64_t)server->limits.comment_ms;
    HttpStream *next = NULL;
    for (HttpStream *s = server->streams.all; s != NULL; s = next) {
        next = s->next;
        uint64_t quiet_ms = now_ms > s->moved_ms ? now_ms - s->moved_ms : 0;
        bool late = server->stopping && now_ms - server->streams.stopped_ms > DRAIN_MS;
        uint64_t patience_ms = s->state == STREAM_ENDING ? LAST_MS : STUCK_MS;
        if (late || (unsent(s) > 0 && quiet_ms > patience_ms)) {
            end(s);
        } else if (s->state == STREAM_OPEN && unsent(s) == 0 && quiet_ms >= comment_ms) {
            (void)http_stream_write(s, COMMENT);
        }
    }
}

void streams_stop(HttpServer *server)
{
    server->streams.stopped_ms = uv_now(server->loop);
    for (HttpStream *s = server->streams.all; s != NULL; s = s->next) {
        http_stream_close(s);
    }
}

void streams_free(HttpServer *server)
{
    while (server->streams.all != NULL) {
        end(server->streams.all);
    }
    uv_close((uv_handle_t *)&server->streams.flush, server_on_handle_closed);
}
