// SPDX-License-Identifier: Apache-2.0
// The listening socket, the limits, and the clock: every 200 ms each connection is asked whether
// its time is over.
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
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"

enum {
    BACKLOG = 1024,
    TICK_MS = 200,
    ACCEPTS_MAX = 64, // in one turn
    TROUBLE_EVERY_MS = 60 * 1000,
};

static const HttpLimits DEFAULTS = {
    .connections = 1024,
    .client_connections = 256,
    .head_ms = 10 * 1000,
    .request_ms = 30 * 1000,
    .idle_ms = 60 * 1000,
    .bodies_bytes = 256 * 1024 * 1024,
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

// ---- what is said ----

void server_log_trouble(HttpServer *server, const char *event, const char *why)
{
    uint64_t now_ms = uv_now(server->loop);
    if (server->trouble_ms == 0 || now_ms - server->trouble_ms >= TROUBLE_EVERY_MS) {
        server->trouble_ms = now_ms + 1;
        LOG(LOG_WARN, event, log_int("port", server->port), log_text("why", why),
            log_int("connections", server->connection_count));
    }
}

Str server_date(HttpServer *server, int64_t now_us)
{
    static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t now_s = (time_t)(now_us / 1000000);
    if (server->date_s != now_s) {
        struct tm t;
        (void)gmtime_r(&now_s, &t);
        (void)snprintf(
            server->date, sizeof server->date, "%s, %02d %s %04d %02d:%02d:%02d GMT",
            days[t.tm_wday], t.tm_mday, months[t.tm_mon], t.tm_year + 1900, t.tm_hour, t.tm_min,
            t.tm_sec);
        server->date_s = now_s;
    }
    return str_from(server->date);
}

// ---- new connections ----

static void on_listener_readable(uv_poll_t *poll, int status, int events);

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
    connection_close(victim);
    return true;
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
    server_log_trouble(server, "no connection can be accepted, clients wait", why);
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
        connection_open(server, fd, &peer);
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
    if (connection->previous != NULL) {
        connection->previous->next = connection->next;
    } else {
        server->connections = connection->next;
    }
    if (connection->next != NULL) {
        connection->next->previous = connection->previous;
    }
    server->connection_count--;
    if (!server->freeing) {
        listen_on(server, true);
    }
    if (server->stopping) {
        server_run_soon(server);
    }
}

// ---- the loop ----

static void end_stop(HttpServer *server)
{
    if (server->request_count == 0 && server->on_stopped != NULL) {
        void (*on_stopped)(void *ctx) = server->on_stopped;
        server->on_stopped = NULL;
        on_stopped(server->stopped_ctx);
    }
}

static void look_again(HttpServer *server)
{
    Connection *next = NULL;
    for (Connection *c = server->connections; c != NULL; c = next) {
        next = c->next;
        if (c->again) {
            connection_advance(c);
        }
    }
}

static void on_timer_tick(uv_timer_t *timer)
{
    HttpServer *server = timer->data;
    uint64_t now_ms = uv_now(server->loop);
    Connection *next = NULL;
    for (Connection *c = server->connections; c != NULL; c = next) {
        next = c->next;
        (void)connection_check_time(c, now_ms);
    }
    listen_on(server, true);
    end_stop(server);
}

static void on_turn(uv_idle_t *soon)
{
    HttpServer *server = soon->data;
    uv_idle_stop(soon);
    look_again(server);
    end_stop(server);
}

// An idle handle keeps the loop from sleeping for one turn; unlike a wake-up it costs no system
// call.
void server_run_soon(HttpServer *server)
{
    if (!server->freeing) {
        uv_idle_start(&server->soon, on_turn);
    }
}

static void start_handles(HttpServer *server)
{
    int failed = uv_poll_init(server->loop, &server->listener, server->fd);
    assert(failed == 0);
    (void)failed;
    uv_timer_init(server->loop, &server->timer);
    uv_idle_init(server->loop, &server->soon);
    server->listener.data = server->timer.data = server->soon.data = server;
    server->open_handles = 3;
    listen_on(server, true);
    uv_timer_start(&server->timer, on_timer_tick, TICK_MS, TICK_MS);
}

// ---- life cycle ----

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
    server->places = http_places_new();
    start_handles(server);
    return server;
}

int http_server_port(const HttpServer *server)
{
    return server->port;
}

static void on_handle_closed(uv_handle_t *handle)
{
    server_handle_closed(handle->data);
}

static void stop_listening(HttpServer *server)
{
    server->listening = false;
    server->stopping = true;
    uv_close((uv_handle_t *)&server->listener, on_handle_closed); // before its descriptor is
    close(server->fd);
}

void http_server_stop(HttpServer *server, void (*on_stopped)(void *ctx), void *ctx)
{
    assert(!server->stopping);
    stop_listening(server);
    server->on_stopped = on_stopped;
    server->stopped_ctx = ctx;
    server_run_soon(server);
}

bool http_server_idle(const HttpServer *server)
{
    return server->request_count == 0;
}

void server_handle_closed(HttpServer *server)
{
    if (--server->open_handles > 0) {
        return;
    }
    void (*on_freed)(void *ctx) = server->on_freed;
    void *ctx = server->freed_ctx;
    http_places_free(server->places);
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
    server->freeing = true;
    if (!server->stopping) {
        stop_listening(server);
    }
    uv_close((uv_handle_t *)&server->timer, on_handle_closed);
    uv_close((uv_handle_t *)&server->soon, on_handle_closed);
    while (server->connections != NULL) {
        connection_close(server->connections);
    }
}
