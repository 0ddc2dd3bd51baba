// SPDX-License-Identifier: Apache-2.0
// A real server and plain sockets in one thread: the client's bytes go out, then the loop turns
// until what is expected has come back.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/http/server.h"

enum { BODY_MAX = 100 * 1000, PATIENCE_US = 5 * 1000 * 1000, HELD_MAX = 8 };

typedef struct Fixture {
    uv_loop_t loop;
    HttpServer *server;
    HttpRequest *held[HELD_MAX]; // what "/later" left unanswered
    int held_count;
    int admitted, handled;
    bool stopped, freed;
    Buf got;
} Fixture;

static inline void echo(HttpRequest *request)
{
    Buf text;
    buf_init(&text, 2 * BODY_MAX);
    Str agent = http_header(request, "x-tEST");
    Str query = http_query(request, "q");
    buf_printf(
        &text, STR_FMT " " STR_FMT " [" STR_FMT "] [" STR_FMT "] %zu ", STR_ARG(request->method),
        STR_ARG(request->path), STR_ARG(agent), STR_ARG(query), request->body.len);
    buf_str(&text, request->body);
    http_response_header(request, "X-Good", STR("yes"));
    http_response_header(request, "X-Evil", STR("a\r\nInjected: 1"));
    http_respond(request, 200, "text/plain", buf_view(&text));
    buf_done(&text);
}

static inline void on_http_request(void *ctx, HttpRequest *request)
{
    Fixture *f = ctx;
    f->handled++;
    if (str_eq(request->path, STR("/later"))) {
        assert_true(f->held_count < HELD_MAX);
        f->held[f->held_count++] = request;
    } else if (str_eq(request->path, STR("/problem"))) {
        http_problem(
            request, 422, "bad-field", "A \"field\" is wrong", "notifications[3].to",
            "'%s' is no address", "x\ny");
    } else {
        echo(request);
    }
}

static inline void pump(Fixture *f)
{
    uv_run(&f->loop, UV_RUN_NOWAIT);
    nanosleep(&(struct timespec){.tv_nsec = 200 * 1000}, NULL);
}

// "/refused" is answered at the headers; "/small" may have 10 bytes; a key is no stranger's.
static inline bool on_admit(void *ctx, HttpRequest *request)
{
    Fixture *f = ctx;
    f->admitted++;
    if (str_eq(request->path, STR("/refused"))) {
        http_problem(request, 401, "unauthorized", "No valid API key", NULL, "show one");
        return false;
    }
    if (str_eq(request->path, STR("/small"))) {
        request->body_max = 10;
    }
    if (http_header(request, "Authorization").len > 0) {
        http_request_known(request);
    }
    return true;
}

static inline void start_server(Fixture *f, HttpLimits limits)
{
    Error err = {0};
    HttpServerOptions options = {
        .bind = "127.0.0.1",
        .body_max = BODY_MAX,
        .limits = limits,
        .option_prefix = "STENTOR_STAGE",
        .admit = on_admit,
        .handler = on_http_request,
        .ctx = f};
    f->server = http_server_new(&f->loop, &options, &err);
    assert_non_null(f->server);
}

static inline int set_up(void **state)
{
    Fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    uv_loop_init(&f->loop);
    buf_init(&f->got, 4 * BODY_MAX);
    start_server(f, (HttpLimits){0});
    *state = f;
    return 0;
}

static inline void on_server_freed(void *ctx)
{
    ((Fixture *)ctx)->freed = true;
}

static inline void on_server_stopped(void *ctx)
{
    ((Fixture *)ctx)->stopped = true;
}

static inline void free_server(Fixture *f)
{
    http_server_free(f->server, on_server_freed, f);
    f->server = NULL;
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_true(f->freed);
    f->freed = false;
}

static inline int tear_down(void **state)
{
    Fixture *f = *state;
    if (f->server != NULL) {
        free_server(f);
    }
    assert_int_equal(uv_loop_close(&f->loop), 0);
    buf_done(&f->got);
    free(f);
    return 0;
}

static inline int dial(Fixture *f)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)http_server_port(f->server)),
        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

// Sends while the loop turns, since a large request does not fit the socket's buffer. false: the
// server cut it.
static inline bool try_send(Fixture *f, int fd, const char *data, size_t len)
{
    int64_t deadline = clock_mono_us() + PATIENCE_US;
    while (len > 0 && clock_mono_us() < deadline) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        } else if (errno != EAGAIN) {
            return false;
        }
        pump(f);
    }
    return len == 0;
}

static inline void send_text(Fixture *f, int fd, const char *text)
{
    assert_true(try_send(f, fd, text, strlen(text)));
}

// true: bytes or the end came; *ret_end tells which.
static inline bool receive(Fixture *f, int fd, bool *ret_end)
{
    char bytes[4096];
    ssize_t n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n > 0) {
        assert_true(buf_append(&f->got, bytes, (size_t)n));
        return true;
    }
    *ret_end = n == 0 || errno != EAGAIN;
    return *ret_end;
}

static inline bool has(Fixture *f, const char *text)
{
    return strstr(buf_c(&f->got), text) != NULL;
}

static inline void await_text(Fixture *f, int fd, const char *text)
{
    int64_t deadline = clock_mono_us() + PATIENCE_US;
    bool end = false;
    while (!has(f, text) && !end && clock_mono_us() < deadline) {
        pump(f);
        receive(f, fd, &end);
    }
    if (!has(f, text)) {
        fail_msg("'%s' did not come, but: %s", text, buf_c(&f->got));
    }
}

static inline void await_end(Fixture *f, int fd)
{
    int64_t deadline = clock_mono_us() + PATIENCE_US;
    bool end = false;
    while (!end && clock_mono_us() < deadline) {
        pump(f);
        receive(f, fd, &end);
    }
    assert_true(end);
}

static inline void await_held(Fixture *f, int count)
{
    int64_t deadline = clock_mono_us() + PATIENCE_US;
    while (f->held_count < count && clock_mono_us() < deadline) {
        pump(f);
    }
    assert_int_equal(f->held_count, count);
}

static inline void turn_for(Fixture *f, int ms)
{
    for (int64_t end = clock_mono_us() + ms * 1000; clock_mono_us() < end;) {
        pump(f);
    }
}

#define GET_LATER "GET /later HTTP/1.1\r\nHost: x\r\n\r\n"
