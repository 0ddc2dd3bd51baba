// SPDX-License-Identifier: Apache-2.0
// The loop's side of the server: the listening socket, and when libmicrohttpd gets to work. It
// works when its epoll descriptor is readable, in the turn after an answer was given, and every 200
// ms for its time-outs.
#include "common/http/internal.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BACKLOG = 1024,
    CONNECTIONS_DEFAULT = 1024,
    IDLE_TIMEOUT_DEFAULT_S = 60,
    CONNECTION_MEMORY_BYTES = 16 * 1024, // request line, headers, and what is read ahead of a body
    TICK_MS = 200,
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

// ---- the loop ----

// Everything that may call back into handlers happens in here, so never inside a call of ours.
static void run(HttpServer *server)
{
    MHD_run(server->daemon);
    MHD_UNSIGNED_LONG_LONG timeout_ms = 0;
    if (MHD_get_timeout(server->daemon, &timeout_ms) == MHD_YES && timeout_ms == 0) {
        server_run_soon(server); // there was more than one pass takes
    }
    if (server->requests == NULL && server->on_stopped != NULL) {
        void (*on_stopped)(void *ctx) = server->on_stopped;
        server->on_stopped = NULL;
        on_stopped(server->stopped_ctx);
    }
}

static void on_epoll_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    run(poll->data);
}

static void on_timer_tick(uv_timer_t *timer)
{
    run(timer->data);
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
    int failed = uv_poll_init(server->loop, &server->poll, info->epoll_fd);
    assert(failed == 0);
    (void)failed;
    uv_timer_init(server->loop, &server->timer);
    uv_idle_init(server->loop, &server->soon);
    server->poll.data = server->timer.data = server->soon.data = server;
    server->open_handles = 3;
    uv_poll_start(&server->poll, UV_READABLE, on_epoll_readable);
    uv_timer_start(&server->timer, on_timer_tick, TICK_MS, TICK_MS);
}

// ---- life cycle ----

static struct MHD_Daemon *start_daemon(HttpServer *server, int listen_fd)
{
    const HttpServerOptions *o = &server->options;
    int connections = o->connections_max > 0 ? o->connections_max : CONNECTIONS_DEFAULT;
    int timeout_s = o->idle_timeout_s > 0 ? o->idle_timeout_s : IDLE_TIMEOUT_DEFAULT_S;
    // clang-format off
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_mhd_request, server,
        MHD_OPTION_LISTEN_SOCKET, listen_fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned int)connections,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY_BYTES,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)timeout_s,
        MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_UNESCAPE_CALLBACK, on_mhd_unescape, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, on_mhd_completed, NULL,
        MHD_OPTION_END);
    // clang-format on
}

HttpServer *http_server_new(uv_loop_t *loop, const HttpServerOptions *options, Error *err)
{
    assert(options->handler != NULL);
    int port = 0;
    int fd = open_listener(options, &port, err);
    if (fd < 0) {
        return NULL;
    }
    HttpServer *server = xcalloc(1, sizeof *server);
    server->options = *options;
    server->options.bind = NULL; // the caller's, and not needed again
    server->loop = loop;
    server->port = port;
    server->daemon = start_daemon(server, fd);
    if (server->daemon == NULL) {
        close(fd);
        free(server);
        error_set(
            err, ERROR_CONFIG, "cannot start the http server on port %d: %s", port,
            "libmicrohttpd refused (too few file descriptors?)");
        return NULL;
    }
    start_handles(server);
    return server;
}

int http_server_port(const HttpServer *server)
{
    return server->port;
}

static void stop_listening(HttpServer *server)
{
    MHD_socket fd = MHD_quiesce_daemon(server->daemon);
    if (fd != MHD_INVALID_SOCKET) {
        close(fd);
    }
}

void http_server_stop(HttpServer *server, void (*on_stopped)(void *ctx), void *ctx)
{
    assert(!server->stopping);
    server->stopping = true;
    server->on_stopped = on_stopped;
    server->stopped_ctx = ctx;
    stop_listening(server);
    server_run_soon(server);
}

bool http_server_idle(const HttpServer *server)
{
    return server->requests == NULL;
}

static void on_handle_closed(uv_handle_t *handle)
{
    HttpServer *server = handle->data;
    if (--server->open_handles > 0) {
        return;
    }
    void (*on_freed)(void *ctx) = server->on_freed;
    void *ctx = server->freed_ctx;
    free(server);
    if (on_freed != NULL) {
        on_freed(ctx);
    }
}

void http_server_free(HttpServer *server, void (*on_freed)(void *ctx), void *ctx)
{
    server->on_freed = on_freed;
    server->freed_ctx = ctx;
    server->on_stopped = NULL;
    uv_close((uv_handle_t *)&server->poll, on_handle_closed); // before its descriptor is
    uv_close((uv_handle_t *)&server->timer, on_handle_closed);
    uv_close((uv_handle_t *)&server->soon, on_handle_closed);
    if (!server->stopping) {
        stop_listening(server);
    }
    // libmicrohttpd must not be stopped while connections are suspended.
    for (Request *r = server->requests; r != NULL; r = r->next) {
        request_resume(r);
    }
    MHD_stop_daemon(server->daemon);
    assert(server->requests == NULL);
}
