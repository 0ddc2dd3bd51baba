// SPDX-License-Identifier: Apache-2.0
// One client's connection: bytes to requests. In the order in which things happen: connection_open,
// take_head, begin, take_body, hand_over; then http_respond (request.c) and connection_send.
#include "common/http/internal.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/http/uri.h"

enum {
    FIRST_BODY_BYTES = 64 * 1024, // reserved on the word of a Content-Length, no more
    IN_PAUSE_BYTES = 16 * 1024,   // read ahead while a request is with the handler
    IN_MAX = HTTP_HEAD_MAX + IN_PAUSE_BYTES + 3 * 64 * 1024,
    LINGER_MS = 5000,
    LINGER_BYTES = 16 * 1024 * 1024,
    EARNS_BYTES = 64 * 1024, // a second more for each
    SPARE_MS = 1000,
};

// clang-format off
static const HttpRefusal TOO_SLOW = {408, "request-timeout", "The request did not arrive in time",
    "headers and body must arrive without a pause; send the request again on a new connection"};
static const HttpRefusal TOO_MANY = {429, "too-many-connections", "Too many connections",
    "this address has too many connections or requests that have not shown a valid key"};
static const HttpRefusal NO_MEMORY = {503, "unavailable", "Not accepted just now",
    "too many large bodies are being read; send the request again"};
static const HttpRefusal BAD_CHUNK = {400, "malformed-request", "The request is malformed",
    "the body is not in chunks as RFC 9112 has them"};
// clang-format on

// ---- what is asked of the socket ----

static void on_poll_event(uv_poll_t *poll, int status, int events);

static void watch(Connection *c)
{
    int wanted = 0;
    bool busy = c->state == CONNECTION_HANDLED || c->state == CONNECTION_SENDING;
    if (!c->eof && !(busy && c->in.len >= IN_PAUSE_BYTES)) {
        wanted |= UV_READABLE;
    }
    if (c->state == CONNECTION_SENDING) {
        wanted |= UV_WRITABLE;
    }
    if (c->state == CONNECTION_CLOSED || wanted == c->polled) {
        return;
    }
    c->polled = wanted;
    if (wanted == 0) {
        uv_poll_stop(&c->poll);
    } else {
        uv_poll_start(&c->poll, wanted, on_poll_event);
    }
}

// The only writer of c->state.
static void move(Connection *c, ConnectionState next)
{
    // clang-format off
    static const bool allowed[CONNECTION_CLOSED][CONNECTION_CLOSED + 1] = {
        [CONNECTION_WAITING]   = {[CONNECTION_HEAD] = true, [CONNECTION_HANDLED] = true, [CONNECTION_CLOSED] = true},
        [CONNECTION_HEAD]      = {[CONNECTION_HANDLED] = true, [CONNECTION_CLOSED] = true},
        [CONNECTION_HANDLED]   = {[CONNECTION_BODY] = true, [CONNECTION_SENDING] = true, [CONNECTION_WAITING] = true,
                                  [CONNECTION_LINGERING] = true, [CONNECTION_CLOSED] = true},
        [CONNECTION_BODY]      = {[CONNECTION_HANDLED] = true, [CONNECTION_CLOSED] = true},
        [CONNECTION_SENDING]   = {[CONNECTION_WAITING] = true, [CONNECTION_LINGERING] = true, [CONNECTION_CLOSED] = true},
        [CONNECTION_LINGERING] = {[CONNECTION_CLOSED] = true},
    };
    // clang-format on
    assert(c->state < CONNECTION_CLOSED && allowed[c->state][next]);
    c->state = next;
}

// A new wait begins, with its own time.
static void start_clock(Connection *c)
{
    c->since_ms = uv_now(c->server->loop);
    c->moved = 0;
}

// ---- places ----

void connection_leave_place(Connection *c)
{
    if (c->placed) {
        (void)http_places_bytes(c->server->places, &c->client, -c->place_bytes, 0);
        http_places_give(c->server->places, &c->client);
        c->placed = false;
        c->place_bytes = 0;
    }
}

static bool take_place(Connection *c)
{
    unsigned max = (unsigned)c->server->limits.client_connections;
    c->placed = http_places_take(c->server->places, &c->client, max);
    return c->placed;
}

// Behind a proxy each request may be another client's. The last header is the nearest one.
static void find_client(Connection *c, const HttpHead *head)
{
    c->known = false;
    c->client = c->peer;
    for (size_t i = head->field_count; i > 0; i--) {
        const HttpField *field = &head->fields[i - 1];
        if (str_eq_nocase(field->name, STR("X-Forwarded-For")) &&
            http_client_of(&c->server->proxies, field->value, &c->client)) {
            return;
        }
    }
}

// ---- life ----

static void on_handle_closed(uv_handle_t *handle)
{
    Connection *c = handle->data;
    HttpServer *server = c->server;
    free(c);
    server_handle_closed(server);
}

void connection_close(Connection *c)
{
    if (c->state == CONNECTION_CLOSED) {
        return;
    }
    if (c->request != NULL) {
        request_end(c->request);
    }
    move(c, CONNECTION_CLOSED);
    connection_leave_place(c);
    buf_done(&c->in);
    uv_close((uv_handle_t *)&c->poll, on_handle_closed); // before its descriptor is
    close(c->fd);
    server_connection_closed(c->server, c);
}

static void linger(Connection *c)
{
    move(c, CONNECTION_LINGERING);
    start_clock(c);
    buf_clear(&c->in);
    if (c->eof || shutdown(c->fd, SHUT_WR) != 0) {
        connection_close(c);
        return;
    }
    watch(c);
}

// ---- the answer ----

// The whole answer is with the kernel.
static void end_answer(Connection *c)
{
    bool last = c->request->last || (c->eof && c->in.len == 0);
    request_end(c->request);
    c->served = true;
    if (c->behind_proxy) {
        connection_leave_place(c);
    }
    if (last) {
        linger(c);
    } else {
        move(c, CONNECTION_WAITING);
        start_clock(c);
        c->scanned = 0;
        c->again = !c->advancing && c->in.len > 0;
        watch(c);
    }
    if (c->again || c->server->stopping) {
        server_run_soon(c->server);
    }
}

static ssize_t send_parts(const Connection *c, const Str parts[2])
{
    struct iovec vectors[2];
    for (size_t i = 0; i < 2; i++) {
        vectors[i] = (struct iovec){(void *)(uintptr_t)parts[i].ptr, parts[i].len};
    }
    struct msghdr message = {.msg_iov = vectors, .msg_iovlen = parts[1].len > 0 ? 2 : 1};
    ssize_t sent = 0;
    do {
        sent = sendmsg(c->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 && errno == EAGAIN ? 0 : sent;
}

static void keep_unsent(Request *request, const Str parts[2], size_t sent)
{
    size_t len = parts[0].len + parts[1].len - sent;
    char *rest = arena_alloc(request->shown.arena, len);
    Str head = str_slice(parts[0], sent, parts[0].len);
    size_t more = sent > parts[0].len ? sent - parts[0].len : 0;
    Str body = str_slice(parts[1], more, parts[1].len);
    memcpy(rest, head.ptr, head.len);
    memcpy(rest + head.len, body.ptr, body.len);
    request->unsent = str_of(rest, len);
}

void connection_send(Connection *c, const Str parts[2])
{
    ssize_t sent = send_parts(c, parts);
    if (sent < 0) {
        connection_close(c);
        return;
    }
    if ((size_t)sent == parts[0].len + parts[1].len) {
        end_answer(c);
        return;
    }
    keep_unsent(c->request, parts, (size_t)sent);
    move(c, CONNECTION_SENDING);
    start_clock(c);
    watch(c);
}

static void send_more(Connection *c)
{
    Request *request = c->request;
    ssize_t sent = send_parts(c, (const Str[2]){request->unsent, STR_EMPTY});
    if (sent < 0) {
        connection_close(c);
        return;
    }
    c->moved += (uint64_t)sent;
    request->unsent = str_slice(request->unsent, (size_t)sent, request->unsent.len);
    if (request->unsent.len == 0) {
        end_answer(c);
        if (c->again) {
            connection_advance(c);
        }
    }
}

static void refuse(Connection *c, const HttpRefusal *refusal)
{
    if (c->state != CONNECTION_HANDLED) {
        move(c, CONNECTION_HANDLED);
    }
    if (c->request == NULL) {
        c->request = request_new(c);
    }
    request_refuse(c->request, refusal);
}

static void refuse_too_large(Connection *c)
{
    if (c->state != CONNECTION_HANDLED) {
        move(c, CONNECTION_HANDLED);
    }
    c->request->last = true;
    http_problem(
        &c->request->shown, 413, "body-too-large", "The body is too large", NULL,
        "the body may have at most %zu bytes", c->request->shown.body_max);
}

// ---- body ----

static void hand_over(Connection *c)
{
    Request *request = c->request;
    HttpServer *server = c->server;
    if (c->state == CONNECTION_BODY) {
        move(c, CONNECTION_HANDLED);
    }
    request->body_whole = true;
    request->shown.body = buf_view(&request->body);
    server->options.handler(server->options.ctx, &request->shown);
    watch(c);
}

// What the body takes of the memory that all bodies have, before it takes it.
static bool count_body(Connection *c, size_t more)
{
    HttpServer *server = c->server;
    Request *request = c->request;
    size_t need = request->body.len + more + 1;
    if (need <= request->body.cap || more == 0) {
        return true;
    }
    // As Buf grows: to the double, or what is needed.
    size_t cap = request->body.cap * 2 > need ? request->body.cap * 2 : need;
    cap = cap > request->body.max + 1 ? request->body.max + 1 : cap;
    int64_t grows = (int64_t)(cap - request->counted);
    int64_t max = server->limits.bodies_bytes;
    if ((int64_t)server->bodies_bytes + grows > (c->known ? max : max / 2) ||
        (c->placed && !http_places_bytes(server->places, &c->client, grows, max / 8))) {
        server_log_trouble(
            server, "request bodies fill their memory, more are answered 503",
            "HINT: raise the option ..._BODIES_BYTES, or look for a client that floods");
        return false;
    }
    c->place_bytes += c->placed ? grows : 0;
    server->bodies_bytes += (size_t)grows;
    request->counted += (size_t)grows;
    return true;
}

static bool append_body(Connection *c, Str data)
{
    Request *request = c->request;
    if (data.len > request->shown.body_max - request->body.len) {
        refuse_too_large(c);
        return false;
    }
    if (!count_body(c, data.len)) {
        refuse(c, &NO_MEMORY);
        return false;
    }
    c->moved += data.len;
    return buf_str(&request->body, data);
}

static void take_announced(Connection *c, Str *rest)
{
    Request *request = c->request;
    size_t len = rest->len < request->body_left ? rest->len : (size_t)request->body_left;
    Str data = str_slice(*rest, 0, len);
    *rest = str_slice(*rest, len, rest->len);
    request->body_left -= len;
    if (append_body(c, data) && request->body_left == 0) {
        hand_over(c);
    }
}

static void take_chunks(Connection *c, Str *rest)
{
    for (;;) {
        Str data = STR_EMPTY;
        switch (chunked_take(&c->request->chunked, rest, &data)) {
        case CHUNKED_IS_DATA:
            if (!append_body(c, data)) {
                return;
            }
            break;
        case CHUNKED_IS_END:
            hand_over(c);
            return;
        case CHUNKED_IS_BAD:
            refuse(c, &BAD_CHUNK);
            return;
        case CHUNKED_NEEDS_MORE:
            return;
        }
    }
}

// ---- head ----

static bool admit(Connection *c)
{
    HttpServer *server = c->server;
    return server->options.admit == NULL ||
           server->options.admit(server->options.ctx, &c->request->shown);
}

static void start_body(Connection *c, bool came_along)
{
    static const Str GO_ON = {"HTTP/1.1 100 Continue\r\n\r\n", 25};
    Request *request = c->request;
    uint64_t length = request->head.length;
    size_t first = length < FIRST_BODY_BYTES ? (size_t)length : FIRST_BODY_BYTES;
    request->body_left = length;
    if (!count_body(c, first)) {
        refuse(c, &NO_MEMORY);
        return;
    }
    (void)buf_reserve(&request->body, first);
    move(c, CONNECTION_BODY);
    if (request->head.wants_100 && !came_along &&
        send_parts(c, (const Str[2]){GO_ON, STR_EMPTY}) != (ssize_t)GO_ON.len) {
        connection_close(c);
        return;
    }
    watch(c);
}

// The head is read and makes sense.
static void begin(Connection *c, bool came_along)
{
    Request *request = c->request;
    HttpRequest *shown = &request->shown;
    const HttpHead *head = &request->head;
    char *path = arena_cstr(shown->arena, head->path);
    shown->path = str_of(path, uri_unescape(path));
    shown->method = head->method;
    request->body_whole = !head->chunked && head->length == 0;
    if (c->behind_proxy) {
        find_client(c, head);
        if (!take_place(c)) {
            refuse(c, &TOO_MANY);
            return;
        }
    }
    if (!admit(c)) {
        return;
    }
    if (head->length > shown->body_max) {
        refuse_too_large(c);
    } else if (request->body_whole) {
        hand_over(c);
    } else {
        start_body(c, came_along);
    }
}

static bool take_head(Connection *c, Str *rest)
{
    size_t len = 0;
    HttpRefusal refusal;
    HeadScan scan = http_head_scan(*rest, &c->scanned, &len, &refusal);
    if (c->state == CONNECTION_WAITING) {
        if (c->served) {
            start_clock(c); // of a new connection it has run since the accept
        }
        if (scan == HEAD_PART) {
            move(c, CONNECTION_HEAD);
        }
    }
    if (scan == HEAD_PART) {
        return false;
    }
    move(c, CONNECTION_HANDLED);
    c->request = request_new(c);
    if (scan == HEAD_REFUSED) {
        request_refuse(c->request, &refusal);
        return false;
    }
    Arena *arena = c->request->shown.arena;
    Str head = arena_str(arena, str_slice(*rest, 0, len));
    *rest = str_slice(*rest, len, rest->len);
    c->scanned = 0;
    start_clock(c);
    if (!http_head_parse(head, arena, &c->request->head, &refusal)) {
        request_refuse(c->request, &refusal);
        return false;
    }
    begin(c, rest->len > 0);
    return true;
}

// ---- bytes ----

// Takes what can be taken now. What is left belongs to a head that is not whole, or to the request
// behind the one that is served.
static void take(Connection *c, Str *rest)
{
    bool on = true;
    c->advancing = true;
    while (on && rest->len > 0) {
        switch (c->state) {
        case CONNECTION_WAITING:
        case CONNECTION_HEAD:
            on = take_head(c, rest);
            break;
        case CONNECTION_BODY:
            if (c->request->head.chunked) {
                take_chunks(c, rest);
            } else {
                take_announced(c, rest);
            }
            break;
        case CONNECTION_HANDLED:
        case CONNECTION_SENDING:
            on = false;
            break;
        case CONNECTION_LINGERING:
        case CONNECTION_CLOSED:
            *rest = STR_EMPTY;
            break;
        }
    }
    c->advancing = false;
    if (c->state >= CONNECTION_LINGERING) {
        *rest = STR_EMPTY;
    }
}

void connection_advance(Connection *c)
{
    c->again = false;
    if (c->state == CONNECTION_CLOSED || c->in.len == 0) {
        return;
    }
    // Out of the connection meanwhile, for its end frees it.
    Buf in = c->in;
    buf_init(&c->in, IN_MAX);
    Str rest = buf_view(&in);
    take(c, &rest);
    if (c->state == CONNECTION_CLOSED || rest.len == 0) {
        buf_done(&in);
    } else {
        buf_drop_front(&in, in.len - rest.len);
        c->in = in;
    }
    watch(c);
}

static void take_received(Connection *c, Str bytes)
{
    if (c->state == CONNECTION_LINGERING) {
        c->moved += bytes.len;
        if (c->moved > LINGER_BYTES) {
            connection_close(c);
        }
        return;
    }
    if (c->in.len > 0) {
        (void)buf_str(&c->in, bytes); // bounded by IN_PAUSE_BYTES and HTTP_HEAD_MAX
        assert(!c->in.full);
        connection_advance(c);
        return;
    }
    take(c, &bytes);
    if (c->state != CONNECTION_CLOSED && bytes.len > 0) {
        (void)buf_str(&c->in, bytes);
    }
    watch(c);
}

static void take_end(Connection *c)
{
    c->eof = true;
    if (c->state == CONNECTION_HANDLED || c->state == CONNECTION_SENDING) {
        watch(c); // a client that sends no more may still read
        return;
    }
    connection_close(c);
}

static void receive(Connection *c)
{
    HttpServer *server = c->server;
    ssize_t got = recv(c->fd, server->scratch, sizeof server->scratch, MSG_DONTWAIT);
    if (got > 0) {
        take_received(c, str_of(server->scratch, (size_t)got));
    } else if (got == 0) {
        take_end(c);
    } else if (errno != EAGAIN && errno != EINTR) {
        connection_close(c);
    }
}

static void on_poll_event(uv_poll_t *poll, int status, int events)
{
    Connection *c = poll->data;
    if (status == 0 && (events & UV_WRITABLE) != 0 && c->state == CONNECTION_SENDING) {
        send_more(c);
    }
    if (c->state != CONNECTION_CLOSED && (status != 0 || (events & UV_READABLE) != 0)) {
        receive(c); // an error comes out of recv
    }
}

void connection_open(HttpServer *server, int fd, const HttpAddress *peer)
{
    int one = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    Connection *c = xcalloc(1, sizeof *c);
    c->server = server;
    c->fd = fd;
    c->peer = c->client = *peer;
    c->poll.data = c;
    buf_init(&c->in, IN_MAX);
    int failed = uv_poll_init(server->loop, &c->poll, fd);
    assert(failed == 0);
    (void)failed;
    c->next = server->connections;
    if (c->next != NULL) {
        c->next->previous = c;
    }
    server->connections = c;
    server->connection_count++;
    server->open_handles++;
    c->behind_proxy = http_proxies_has(&server->proxies, peer);
    start_clock(c);
    if (!c->behind_proxy && !take_place(c)) {
        // No lingering: it would take the place that the client has not.
        (void)recv(fd, server->scratch, sizeof server->scratch, MSG_DONTWAIT);
        refuse(c, &TOO_MANY);
        connection_close(c);
        return;
    }
    receive(c); // the request has mostly come with the connection
    if (c->state != CONNECTION_CLOSED) {
        watch(c);
    }
}

// ---- time ----

static uint64_t allowed_ms(const Connection *c)
{
    const HttpLimits *limits = &c->server->limits;
    uint64_t earned_ms = c->moved / EARNS_BYTES * 1000;
    switch (c->state) {
    case CONNECTION_WAITING:
        return (uint64_t)(c->served ? limits->idle_ms : limits->head_ms);
    case CONNECTION_HEAD:
        return (uint64_t)limits->head_ms;
    case CONNECTION_BODY:
    case CONNECTION_SENDING:
        return (uint64_t)limits->request_ms + earned_ms;
    case CONNECTION_LINGERING:
        return LINGER_MS;
    case CONNECTION_HANDLED:
    case CONNECTION_CLOSED:
        break;
    }
    return UINT64_MAX;
}

bool connection_check_time(Connection *c, uint64_t now_ms)
{
    if (now_ms - c->since_ms <= allowed_ms(c)) {
        return false;
    }
    if (c->state == CONNECTION_HEAD || c->state == CONNECTION_BODY) {
        refuse(c, &TOO_SLOW);
    } else {
        connection_close(c);
    }
    return true;
}

uint64_t connection_spare(const Connection *c, uint64_t now_ms)
{
    uint64_t age_ms = now_ms - c->since_ms;
    bool waiting = c->state == CONNECTION_WAITING;
    bool known = c->known || (c->behind_proxy && waiting);
    if (c->state == CONNECTION_HANDLED || (known && !waiting) || age_ms < SPARE_MS) {
        return 0;
    }
    return known ? age_ms : age_ms + ((uint64_t)1 << 32); // strangers first
}
