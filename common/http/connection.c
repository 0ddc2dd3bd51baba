// SPDX-License-Identifier: Apache-2.0
// One client's connection: the time that each of its waits may take, its place, and what its bodies
// take of the memory. libmicrohttpd reads and writes; this tells it when to stop, by shutting the
// socket down.
#include "common/http/internal.h"

#include <assert.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    LINGER_MS = 5000,
    DRAIN_MS = 3000,         // that any wait has left once the server stops
    LOOK_EVERY = 5,          // ticks of the clock between two looks at a connection
    EARNS_BYTES = 64 * 1024, // a second more for each
    SPARE_MS = 1000,
    REFUSAL_MAX = 2048,
};

// clang-format off
static const HttpRefusal TOO_SLOW = {408, "request-timeout", "The request did not arrive in time",
    "headers and body must arrive without a pause; send the request again on a new connection"};
static const HttpRefusal TOO_MANY = {429, "too-many-connections", "Too many connections",
    "this address has too many connections that have not shown a valid key"};
// clang-format on

// ---- state ----

static void start_clock(Connection *c)
{
    c->since_ms = uv_now(c->server->loop);
    c->moved = 0;
    c->acknowledged = 0;
}

// The only writer of c->state. Each state is a wait with its own time.
void connection_move(Connection *c, ConnectionState next)
{
    // clang-format off
    static const bool allowed[CONNECTION_CUT + 1][CONNECTION_CUT + 1] = {
        [CONNECTION_WAITING]   = {[CONNECTION_HEAD] = true, [CONNECTION_CUT] = true},
        [CONNECTION_HEAD]      = {[CONNECTION_BODY] = true, [CONNECTION_LINGERING] = true, [CONNECTION_CUT] = true},
        [CONNECTION_BODY]      = {[CONNECTION_HANDLED] = true, [CONNECTION_SENDING] = true, [CONNECTION_LINGERING] = true,
                                  [CONNECTION_CUT] = true},
        [CONNECTION_HANDLED]   = {[CONNECTION_SENDING] = true, [CONNECTION_CUT] = true},
        [CONNECTION_SENDING]   = {[CONNECTION_WAITING] = true, [CONNECTION_CUT] = true},
        [CONNECTION_LINGERING] = {[CONNECTION_CUT] = true},
    };
    // clang-format on
    assert(allowed[c->state][next]);
    bool first = c->state == CONNECTION_WAITING && !c->served;
    c->state = next;
    if (!first) { // of a new connection the time runs from the accept to the end of the headers
        start_clock(c);
    }
}

void connection_cut(Connection *c)
{
    connection_move(c, CONNECTION_CUT);
    (void)shutdown(c->fd, SHUT_RDWR); // libmicrohttpd reads the end
    server_run_soon(c->server);
}

// ---- places ----

static bool take_place(Connection *c)
{
    unsigned max = (unsigned)c->server->limits.client_connections;
    c->placed = http_places_take(c->server->places, &c->client, max);
    return c->placed;
}

void connection_leave_place(Connection *c)
{
    if (c->placed) {
        (void)http_places_bytes(c->server->places, &c->client, -c->place_bytes, 0);
        http_places_give(c->server->places, &c->client);
        c->placed = false;
        c->place_bytes = 0;
    }
}

bool connection_find_client(Connection *c, const HttpField *fields, size_t count)
{
    if (!c->behind_proxy) {
        return true;
    }
    c->known = false;
    c->client = c->peer;
    bool found = false;
    for (size_t i = count; i > 0 && !found; i--) { // the last header is the nearest proxy's
        const HttpField *field = &fields[i - 1];
        found = str_eq_nocase(field->name, STR("X-Forwarded-For")) &&
                http_client_of(&c->server->proxies, field->value, &c->client);
    }
    return take_place(c);
}

static void log_full(HttpServer *server)
{
    char hint[160];
    const char *prefix = server->options.option_prefix;
    snprintf(
        hint, sizeof hint, "HINT: %s%s%slook for a client that floods",
        prefix != NULL ? "raise " : "", prefix != NULL ? prefix : "",
        prefix != NULL ? "_BODIES_BYTES, or " : "");
    server_log_trouble(server, "request bodies fill their memory, more are answered 503", hint);
}

bool connection_count_body(Connection *c, Request *request, size_t capacity)
{
    HttpServer *server = c->server;
    int64_t grows = (int64_t)(capacity - request->counted);
    int64_t max = server->limits.bodies_bytes;
    if ((int64_t)server->bodies_bytes + grows > (c->known ? max : max / 2) ||
        (c->placed && !http_places_bytes(server->places, &c->client, grows, max / 8))) {
        log_full(server);
        return false;
    }
    c->place_bytes += c->placed ? grows : 0;
    server->bodies_bytes += (size_t)grows;
    request->counted += (size_t)grows;
    return true;
}

// ---- answers past libmicrohttpd ----

static bool send_all(int fd, Str bytes)
{
    return send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes.len;
}

static bool send_refusal(int fd, const HttpRefusal *refusal)
{
    Buf answer;
    buf_init(&answer, REFUSAL_MAX);
    request_write_refusal(refusal, &answer);
    bool sent = send_all(fd, buf_view(&answer));
    buf_done(&answer);
    return sent;
}

// An answer is some hundred bytes and the socket's buffer empty, so it goes whole or the client is
// gone.
void connection_answer_early(Connection *c, Str answer)
{
    if (send_all(c->fd, answer) && shutdown(c->fd, SHUT_WR) == 0) {
        connection_move(c, CONNECTION_LINGERING);
    } else {
        connection_cut(c);
    }
}

// ---- open and close ----

static void link_connection(HttpServer *server, Connection *c)
{
    c->next = server->connections;
    if (c->next != NULL) {
        c->next->previous = c;
    }
    server->connections = c;
    server->connection_count++;
}

void connection_open(HttpServer *server, int fd, const HttpAddress *peer, const void *address)
{
    const struct sockaddr *from = address;
    socklen_t size =
        from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    Connection *c = xcalloc(1, sizeof *c);
    c->server = server;
    c->fd = fd;
    c->peer = c->client = *peer;
    c->behind_proxy = http_proxies_has(&server->proxies, peer);
    start_clock(c);
    if (!c->behind_proxy && !take_place(c)) {
        // No lingering for a client without a place: that would be one.
        char unread[4096];
        (void)recv(c->fd, unread, sizeof unread, MSG_DONTWAIT);
        (void)send_refusal(c->fd, &TOO_MANY);
        close(c->fd);
        free(c);
        return;
    }
    link_connection(server, c);
    server->opening = c;
    if (MHD_add_connection(server->daemon, fd, from, size) != MHD_YES && server->opening != NULL) {
        server_connection_closed(server, c); // libmicrohttpd has closed it and has not said so
    }
    server->opening = NULL;
}

void on_mhd_connection(
    void *cls, struct MHD_Connection *mhd, void **context, enum MHD_ConnectionNotificationCode what)
{
    HttpServer *server = cls;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        assert(server->opening != NULL);
        server->opening->mhd = mhd;
        *context = server->opening;
        server->opening = NULL;
    } else {
        server_connection_closed(server, *context);
    }
}

// ---- time ----

// What the client's machine has acknowledged since the connection began; libmicrohttpd does not
// tell how much of an answer is gone.
static uint64_t acknowledged(const Connection *c)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    return getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_bytes_acked : 0;
}

// A server that stops waits for no client longer than that.
static uint64_t shortened(const Connection *c, int64_t limit_ms)
{
    return (uint64_t)(c->server->stopping && limit_ms > DRAIN_MS ? DRAIN_MS : limit_ms);
}

static uint64_t allowed_ms(const Connection *c)
{
    const HttpLimits *limits = &c->server->limits;
    uint64_t earned_ms = c->moved / EARNS_BYTES * 1000;
    switch (c->state) {
    case CONNECTION_WAITING:
        return shortened(c, c->served ? limits->idle_ms : limits->head_ms);
    case CONNECTION_HEAD:
        return shortened(c, limits->head_ms);
    case CONNECTION_BODY:
    case CONNECTION_SENDING:
        return shortened(c, limits->request_ms) + earned_ms;
    case CONNECTION_LINGERING:
        return LINGER_MS;
    case CONNECTION_HANDLED:
    case CONNECTION_CUT:
        break;
    }
    return UINT64_MAX;
}

// libmicrohttpd 0.9 does not notice an end that came together with the last bytes: after a read
// that did not fill its memory it waits for an edge, and there is none any more.
static bool has_left(const Connection *c)
{
    char byte = 0;
    bool waits = c->state == CONNECTION_WAITING || c->state == CONNECTION_HEAD ||
                 c->state == CONNECTION_BODY || c->state == CONNECTION_LINGERING;
    return waits && recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void connection_check_time(Connection *c, uint64_t now_ms)
{
    if (++c->ticks % LOOK_EVERY == 0 && has_left(c)) {
        connection_cut(c);
        return;
    }
    if (c->state == CONNECTION_SENDING) { // asked by the clock only: most answers are gone by then
        uint64_t now_acknowledged = acknowledged(c);
        c->acknowledged = c->acknowledged == 0 ? now_acknowledged : c->acknowledged;
        c->moved = now_acknowledged - c->acknowledged;
    }
    if (now_ms - c->since_ms <= allowed_ms(c)) {
        return;
    }
    if (c->state == CONNECTION_HEAD || c->state == CONNECTION_BODY) {
        (void)send_refusal(c->fd, &TOO_SLOW);
    }
    connection_cut(c);
}

uint64_t connection_spare(const Connection *c, uint64_t now_ms)
{
    uint64_t age_ms = now_ms - c->since_ms;
    bool waiting = c->state == CONNECTION_WAITING;
    bool known = c->known || (c->behind_proxy && waiting);
    if (c->state == CONNECTION_HANDLED || c->state == CONNECTION_CUT || (known && !waiting) ||
        age_ms < SPARE_MS) {
        return 0;
    }
    return known ? age_ms : age_ms + ((uint64_t)1 << 32); // strangers first
}
