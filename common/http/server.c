// SPDX-License-Identifier: Apache-2.0
// The loop's side: the listening socket, the limits, the clock, and when libmicrohttpd gets to
// work: when its epoll descriptor is readable, in the turn after an answer was given or a
// connection cut, and every 200 ms, when each connection is asked whether its time is over.
#define _GNU_SOURCE // accept4

#include "common/http/internal.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/log.h"

enum {
    BACKLOG = 1024,
    TICK_MS = 200,
    ACCEPTS_MAX = 64, // in one turn
    TROUBLE_EVERY_MS = 60 * 1000,
    CONNECTION_MEMORY_BYTES = 32 * 1024, // request line, headers, arguments, and what is read ahead
    CUT_MAX = 64,                        // connections that are shut down and not closed yet
};

// MHD_USE_NO_THREAD_SAFETY, which the headers of 0.9 do not know: without it 1.0 takes a connection
// that is given to it in its next run only, and closes it there without a word if it cannot.
static const unsigned ONE_THREAD = 1U << 19;

static const HttpLimits DEFAULTS = {
    .connections = 1024,
    .client_connections = 256,
    .head_ms = 10 * 1000,
    .request_ms = 30 * 1000,
    .idle_ms = 60 * 1000,
    .bodies_bytes = 256 * 1024 * 1024,
    .streams = 12 * 1000,
    .comment_ms = 15 * 1000,
};

// ---- the listening socket ----

typedef union Address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} Address;

static bool parse_address(const char *bind_to, int port, Address *ret_address, Error *err)
{
    memset(ret_address, 0, sizeof *ret_address);
    if (port < 0 || port > 65535) {
        return error_set(err, ERROR_CONFIG, "port is %d: expected 0 to 65535", port);
    }
    if (inet_pton(AF_INET, bind_to, &ret_address->v4.sin_addr) == 1) {
        ret_address->v4.sin_family = AF_INET;
        ret_address->v4.sin_port = htons((uint16_t)port);
        return true;
    }
    if (inet_pton(AF_INET6, bind_to, &ret_address->v6.sin6_addr) == 1) {
        ret_address->v6.sin6_family = AF_INET6;
        ret_address->v6.sin6_port = htons((uint16_t)port);
        return true;
    }
    return error_set(
        err, ERROR_CONFIG,
        "cannot listen on '%s': expected an IP address such as 127.0.0.1 or ::", bind_to);
}

static const char *remedy(int code)
{
    switch (code) {
    case EADDRINUSE:
        return " (HINT: choose another port, or stop the program that has it)";
    case EACCES:
        return " (HINT: ports below 1024 need a privilege; choose a higher one)";
    case EADDRNOTAVAIL:
        return " (HINT: the address belongs to no interface of this machine)";
    default:
        return "";
    }
}

// -1 with errno.
static int bind_and_listen(int fd, const Address *address)
{
    int one = 1;
    int both = 0;
    socklen_t size = address->any.sa_family == AF_INET6 ? sizeof address->v6 : sizeof address->v4;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0) {
        return -1;
    }
    if (address->any.sa_family == AF_INET6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &both, sizeof both) != 0) {
        return -1;
    }
    return bind(fd, &address->any, size) != 0 ? -1 : listen(fd, BACKLOG);
}

static int open_listener(const HttpServerOptions *options, int *ret_port, Error *err)
{
    Address address;
    if (!parse_address(options->bind, options->port, &address, err)) {
        return -1;
    }
    int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind_and_listen(fd, &address) != 0) {
        int code = errno;
        error_set(
            err, ERROR_CONFIG, "cannot listen on %s port %d: %s%s", options->bind, options->port,
            strerror(code), remedy(code));
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    socklen_t size = sizeof address;
    getsockname(fd, &address.any, &size);
    *ret_port =
        ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
    return fd;
}

// ---- what is logged ----

void server_log_trouble(HttpServer *server, const char *event, const char *why)
{
    uint64_t now_ms = uv_now(server->loop);
    if (server->trouble_ms == 0 || now_ms - server->trouble_ms >= TROUBLE_EVERY_MS) {
        server->trouble_ms = now_ms + 1;
        LOG(LOG_WARN, event, log_int("port", server->port), log_text("why", why),
            log_int("connections", server->connection_count));
    }
}

// ---- new connections ----

static void on_listener_readable(uv_poll_t *poll, int status, int events);
static void on_timer_tick(uv_timer_t *timer);

// While there are connections, or no room for one, or the end is waited for; no longer.
static void tick(HttpServer *server)
{
    if (!uv_is_active((uv_handle_t *)&server->timer)) {
        uv_timer_start(&server->timer, on_timer_tick, TICK_MS, TICK_MS); // refused once it closes
    }
}

static void listen_on(HttpServer *server, bool on)
{
    if (server->stopping || server->listening == on) {
        return;
    }
    server->listening = on;
    if (on) {
        uv_poll_start(&server->listener, UV_READABLE, on_listener_readable);
    } else {
        uv_poll_stop(&server->listener);
        tick(server);
    }
}

// true: there is room for one more.
static bool make_room(HttpServer *server)
{
    if (server->connection_count < server->limits.connections) {
        return true;
    }
    uint64_t now_ms = uv_now(server->loop);
    uint64_t best = 0;
    Connection *victim = NULL;
    for (Connection *c = server->connections; c != NULL; c = c->next) {
        uint64_t spare = connection_spare(c, now_ms);
        if (spare > best) {
            best = spare;
            victim = c;
        }
    }
    if (victim == NULL) {
        return false;
    }
    connection_cut(victim); // its end makes the room
    return false;
}

// Accepting goes on with the next tick; what is with the kernel waits.
static void on_accept_failed(HttpServer *server, int code)
{
    if (code == EAGAIN || code == EINTR || code == ECONNABORTED) {
        return;
    }
    char why[160];
    struct rlimit limit = {0};
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    (void)snprintf(
        why, sizeof why,
        "%s; the limit of open files is %llu. HINT: raise it (ulimit -n, LimitNOFILE=)",
        strerror(code), (unsigned long long)limit.rlim_cur);
    server_log_trouble(server, "connections cannot be accepted, clients wait", why);
    listen_on(server, false);
}

static HttpAddress address_of(const Address *address)
{
    HttpAddress peer = {{0}};
    if (address->any.sa_family == AF_INET6) {
        memcpy(peer.bytes, &address->v6.sin6_addr, sizeof peer.bytes);
    } else {
        peer.bytes[10] = peer.bytes[11] = 0xff;
        memcpy(peer.bytes + 12, &address->v4.sin_addr, 4);
    }
    return peer;
}

static void accept_some(HttpServer *server)
{
    for (int i = 0; i < ACCEPTS_MAX && server->listening; i++) {
        if (!make_room(server)) {
            listen_on(server, false); // until a connection ends, or the next tick
            return;
        }
        Address address = {0};
        socklen_t size = sizeof address;
        int fd = accept4(server->fd, &address.any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            on_accept_failed(server, errno);
            return;
        }
        HttpAddress peer = address_of(&address);
        connection_open(server, fd, &peer, &address);
        tick(server);
    }
}

static void on_listener_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    accept_some(poll->data);
}

void server_connection_closed(HttpServer *server, Connection *connection)
{
    connection_leave_place(connection);
    if (connection->previous != NULL) {
        connection->previous->next = connection->next;
    } else {
        server->connections = connection->next;
    }
    if (connection->next != NULL) {
        connection->next->previous = connection->previous;
    }
    free(connection);
    server->connection_count--;
    listen_on(server, true);
}

// ---- the loop ----

// Everything that may call back into handlers happens in here, so never inside a call of ours.
static void run(HttpServer *server)
{
    MHD_run(server->daemon);
    MHD_UNSIGNED_LONG_LONG timeout_ms = 0;
    if (MHD_get_timeout(server->daemon, &timeout_ms) == MHD_YES && timeout_ms == 0) {
        server_run_soon(server); // there was more than one pass takes
    }
    if (http_server_idle(server) && server->on_stopped != NULL) {
        void (*on_stopped)(void *ctx) = server->on_stopped;
        server->on_stopped = NULL;
        on_stopped(server->stopped_ctx);
    }
}

static void on_work_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    run(poll->data);
}

static void on_timer_tick(uv_timer_t *timer)
{
    HttpServer *server = timer->data;
    uint64_t now_ms = uv_now(server->loop);
    for (Connection *c = server->connections; c != NULL; c = c->next) {
        connection_check_time(c, now_ms);
    }
    streams_tick(server, now_ms);
    listen_on(server, true);
    run(server);
    bool waits = !server->listening || server->on_stopped != NULL;
    if (server->connection_count == 0 && http_server_idle(server) && !waits) {
        uv_timer_stop(timer);
    }
}

static void on_turn(uv_idle_t *soon)
{
    uv_idle_stop(soon);
    run(soon->data);
}

// An idle handle keeps the loop from sleeping for one turn; unlike a wake-up it costs no system
// call.
void server_run_soon(HttpServer *server)
{
    if (!uv_is_closing((uv_handle_t *)&server->soon)) {
        uv_idle_start(&server->soon, on_turn);
    }
}

static void start_handles(HttpServer *server)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    assert(info != NULL);
    int failed = uv_poll_init(server->loop, &server->listener, server->fd);
    failed = failed != 0 ? failed : uv_poll_init(server->loop, &server->work, info->epoll_fd);
    assert(failed == 0);
    (void)failed;
    uv_timer_init(server->loop, &server->timer);
    uv_idle_init(server->loop, &server->soon);
    server->listener.data = server->work.data = server->timer.data = server->soon.data = server;
    server->open_handles = 4;
    streams_init(server);
    listen_on(server, true);
    uv_poll_start(&server->work, UV_READABLE, on_work_readable);
}

// ---- life cycle ----

// We accept, so that the limits are ours and an exhausted process is an exact line in the log.
// Strict is level 1 of MHD_OPTION_CLIENT_DISCIPLINE_LVL in 1.0: no bare LF, folded line or NUL. In
// 0.9 it means a space in the target, closed without an answer, and a missing Host, answered twice:
// both are refused here. One library's name stands for both, so the version is asked at the start.
static struct MHD_Daemon *start_daemon(HttpServer *server)
{
    // clang-format off
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
            (server->lenient ? 0 : ONE_THREAD), 0, NULL, NULL,
        on_mhd_request, server,
        MHD_OPTION_EXTERNAL_LOGGER, on_mhd_trouble, server,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned int)(server->limits.connections + CUT_MAX),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY_BYTES,
        MHD_OPTION_STRICT_FOR_CLIENT, server->lenient ? 0 : 1,
        MHD_OPTION_NOTIFY_CONNECTION, on_mhd_connection, server,
        MHD_OPTION_URI_LOG_CALLBACK, on_mhd_uri, server,
        MHD_OPTION_UNESCAPE_CALLBACK, on_mhd_unescape, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, on_mhd_completed, NULL,
        MHD_OPTION_END);
    // clang-format on
}

static int open_ended(void)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
        return -1;
    }
    close(pair[1]);
    return pair[0];
}

static int64_t given_or(int64_t given, int64_t def)
{
    return given > 0 ? given : def;
}

static bool set_limits(HttpServer *server, const HttpLimits *given, Error *err)
{
    HttpLimits *limits = &server->limits;
    limits->connections = given_or(given->connections, DEFAULTS.connections);
    limits->client_connections = given_or(given->client_connections, DEFAULTS.client_connections);
    limits->head_ms = given_or(given->head_ms, DEFAULTS.head_ms);
    limits->request_ms = given_or(given->request_ms, DEFAULTS.request_ms);
    limits->idle_ms = given_or(given->idle_ms, DEFAULTS.idle_ms);
    limits->bodies_bytes = given_or(given->bodies_bytes, DEFAULTS.bodies_bytes);
    limits->streams = given_or(given->streams, DEFAULTS.streams);
    limits->comment_ms = given_or(given->comment_ms, DEFAULTS.comment_ms);
    limits->access_every = given->access_every;
    return http_proxies_parse(str_from(given->proxies), &server->proxies, err);
}

HttpServer *http_server_new(uv_loop_t *loop, const HttpServerOptions *options, Error *err)
{
    assert(options->handler != NULL);
    HttpServer *server = xcalloc(1, sizeof *server);
    server->options = *options;
    server->options.bind = NULL; // the caller's, and not needed again
    server->options.limits.proxies = NULL;
    server->loop = loop;
    if (!set_limits(server, &options->limits, err) ||
        (server->fd = open_listener(options, &server->port, err)) < 0) {
        free(server);
        return NULL;
    }
    server->lenient = str_starts(str_from(MHD_get_version()), STR("0."));
    server->ended_fd = open_ended();
    server->daemon = server->ended_fd >= 0 ? start_daemon(server) : NULL;
    if (server->daemon == NULL) {
        close(server->fd);
        close(server->ended_fd);
        error_set(
            err, ERROR_CONFIG, "cannot start the http server on port %d: %s", server->port,
            "libmicrohttpd refused (too few file descriptors?)");
        free(server);
        return NULL;
    }
    server->places = http_places_new();
    start_handles(server);
    return server;
}

int http_server_port(const HttpServer *server)
{
    return server->port;
}

void server_handle_closed(HttpServer *server)
{
    if (--server->open_handles > 0) {
        return;
    }
    void (*on_freed)(void *ctx) = server->on_freed;
    void *ctx = server->freed_ctx;
    http_places_free(server->places);
    close(server->ended_fd);
    free(server);
    if (on_freed != NULL) {
        on_freed(ctx);
    }
}

void server_on_handle_closed(uv_handle_t *handle)
{
    server_handle_closed(handle->data);
}

static void stop_listening(HttpServer *server)
{
    server->listening = false;
    server->stopping = true;
    uv_close((uv_handle_t *)&server->listener, server_on_handle_closed); // before its descriptor is
    close(server->fd);
}

void http_server_stop(HttpServer *server, void (*on_stopped)(void *ctx), void *ctx)
{
    assert(!server->stopping);
    stop_listening(server);
    server->on_stopped = on_stopped;
    server->stopped_ctx = ctx;
    streams_stop(server);
    tick(server);
    server_run_soon(server);
}

bool http_server_idle(const HttpServer *server)
{
    return server->requests == NULL && server->streams.all == NULL;
}

void http_server_free(HttpServer *server, void (*on_freed)(void *ctx), void *ctx)
{
    server->on_freed = on_freed;
    server->freed_ctx = ctx;
    server->on_stopped = NULL;
    if (!server->stopping) {
        stop_listening(server);
    }
    uv_close((uv_handle_t *)&server->work, server_on_handle_closed); // before its descriptor is
    uv_close((uv_handle_t *)&server->timer, server_on_handle_closed);
    uv_close((uv_handle_t *)&server->soon, server_on_handle_closed);
    streams_free(server);
    // libmicrohttpd must not be stopped while connections are suspended.
    for (Request *r = server->requests; r != NULL; r = r->next) {
        request_resume(r);
    }
    MHD_stop_daemon(server->daemon);
    assert(server->requests == NULL && server->connections == NULL);
}
