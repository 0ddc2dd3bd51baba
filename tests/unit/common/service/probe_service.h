// SPDX-License-Identifier: Apache-2.0
// A tiny service in a process of its own, for the tests of common/service: what it does is one of
// its options. Included by two test programs, so everything is static.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/service/service.h"

enum { PROBE_PATIENCE_MS = 10 * 1000, PROBE_TEXT_MAX = 256 * 1024 };

// ---- the service ----

typedef struct ProbeOptions {
    const char *behaviour; // "plain", "start-fails", "start-refuses", "fails-later",
                           // "refuses-later", "stops-later", "never-stops", "not-ready", "warns"
} ProbeOptions;

typedef struct ProbeState {
    Service *service;
    char behaviour[32];
    uv_timer_t timer;
} ProbeState;

static const Option probe_rows[] = {
    {"STENTOR_PROBE_BEHAVIOUR", OPTION_TEXT, offsetof(ProbeOptions, behaviour), "plain", 0, 0,
     false, "what to do"},
};

static bool probe_is(const ProbeState *state, const char *behaviour)
{
    return strcmp(state->behaviour, behaviour) == 0;
}

static void on_probe_timer(uv_timer_t *timer)
{
    ProbeState *state = timer->data;
    if (probe_is(state, "fails-later") || probe_is(state, "refuses-later")) {
        Error err = {0};
        if (probe_is(state, "refuses-later")) {
            service_wrong_options(state->service);
        }
        error_set(&err, ERROR_CONFIG, "the probe met something");
        service_fail(state->service, &err);
    }
}

static bool probe_start(Service *service, const void *options, void **ret_state, Error *err)
{
    const ProbeOptions *o = options;
    if (strcmp(o->behaviour, "start-refuses") == 0) {
        service_wrong_options(service);
        return error_set(err, ERROR_CONFIG, "the probe's file is wrong");
    }
    if (strcmp(o->behaviour, "start-fails") == 0) {
        return error_set(err, ERROR_CONFIG, "the probe does not want");
    }
    if (strcmp(o->behaviour, "needs-all") == 0 &&
        (service_master_key(service) == NULL || service_pool(service) == NULL ||
         service_database_url(service) == NULL)) {
        return error_set(err, ERROR_CONFIG, "the probe was not given what it wants");
    }
    ProbeState *state = xcalloc(1, sizeof *state);
    state->service = service;
    snprintf(state->behaviour, sizeof state->behaviour, "%s", o->behaviour);
    uv_timer_init(service_loop(service), &state->timer);
    state->timer.data = state;
    uv_timer_start(&state->timer, on_probe_timer, 20, 0);
    *ret_state = state;
    return true;
}

static void on_probe_closed(uv_handle_t *handle)
{
    ProbeState *state = handle->data;
    service_stopped(state->service);
}

static void on_probe_late(uv_timer_t *timer)
{
    uv_close((uv_handle_t *)timer, on_probe_closed);
}

static void probe_stop(void *ctx)
{
    ProbeState *state = ctx;
    if (probe_is(state, "stops-later")) {
        uv_timer_start(&state->timer, on_probe_late, 300, 0);
    } else if (!probe_is(state, "never-stops")) {
        uv_close((uv_handle_t *)&state->timer, on_probe_closed);
    }
}

static bool probe_ready(void *ctx, Buf *reason)
{
    if (probe_is(ctx, "not-ready")) {
        return !buf_cstr(reason, "the probe sulks");
    }
    return true;
}

static void probe_warn(void *ctx, Buf *warning)
{
    if (probe_is(ctx, "warns")) {
        buf_cstr(warning, "the probe's vendor is away");
    }
}

static const ServiceSpec probe_service = {
    .name = "stentor-probe",
    .summary = "Is tested.",
    .options = probe_rows,
    .option_count = 1,
    .options_size = sizeof(ProbeOptions),
    .start = probe_start,
    .ready = probe_ready,
    .warn = probe_warn,
    .stop = probe_stop,
    .free = free,
};

// ---- its process ----

typedef struct Probe {
    pid_t pid;
    int output; // standard output and error
    Buf text;
    int port;
} Probe;

static void probe_child(const ServiceSpec *spec, const int *pipe_fds, const char *const *arguments)
{
    char *argv[16] = {(char[]){"stentor-probe"}};
    int argc = 1;
    for (; arguments[argc - 1] != NULL && argc < 15; argc++) {
        argv[argc] = xstrdup(arguments[argc - 1]);
    }
    dup2(pipe_fds[1], STDOUT_FILENO);
    dup2(pipe_fds[1], STDERR_FILENO);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    int code = service_main(spec, argc, argv);
    for (int i = 1; i < argc; i++) {
        free(argv[i]);
    }
    exit(code); // with the leak check of the address sanitizer
}

static void probe_launch(Probe *probe, const ServiceSpec *spec, const char *const *arguments)
{
    int fds[2];
    fflush(NULL);
    assert_int_equal(pipe(fds), 0);
    buf_init(&probe->text, PROBE_TEXT_MAX);
    probe->pid = fork();
    assert_true(probe->pid >= 0);
    if (probe->pid == 0) {
        probe_child(spec, fds, arguments);
    }
    close(fds[1]);
    probe->output = fds[0];
}

#define PROBE_ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

// Reads on until `part` has come; NULL: until the end.
static void probe_await(Probe *probe, const char *part)
{
    int64_t deadline = clock_mono_us() + PROBE_PATIENCE_MS * 1000LL;
    char bytes[4096];
    while (part == NULL || strstr(buf_c(&probe->text), part) == NULL) {
        int left_ms = (int)((deadline - clock_mono_us()) / 1000);
        struct pollfd fd = {.fd = probe->output, .events = POLLIN};
        ssize_t n = left_ms > 0 && poll(&fd, 1, left_ms) == 1
                        ? read(probe->output, bytes, sizeof bytes)
                        : -1;
        if (n == 0 && part == NULL) {
            return;
        }
        if (n <= 0) {
            kill(probe->pid, SIGKILL);
            fail_msg(
                "'%s' did not come, but: %s", part != NULL ? part : "the end", buf_c(&probe->text));
        }
        buf_append(&probe->text, bytes, (size_t)n);
    }
}

static void probe_await_start(Probe *probe)
{
    probe_await(probe, "\"started\"");
    probe_await(probe, "\n");
    const char *port = strstr(buf_c(&probe->text), "\"admin_port\":");
    assert_non_null(port);
    probe->port = (int)strtol(port + strlen("\"admin_port\":"), NULL, 10);
    assert_true(probe->port > 0);
}

static int probe_exit_code(Probe *probe)
{
    probe_await(probe, NULL);
    int status = 0;
    assert_int_equal(waitpid(probe->pid, &status, 0), probe->pid);
    if (!WIFEXITED(status)) {
        fail_msg("ended by signal %d: %s", WTERMSIG(status), buf_c(&probe->text));
    }
    return WEXITSTATUS(status);
}

static void probe_done(Probe *probe)
{
    close(probe->output);
    buf_done(&probe->text);
}

static void probe_expect_text(Probe *probe, const char *part)
{
    if (strstr(buf_c(&probe->text), part) == NULL) {
        fail_msg("'%s' is not in: %s", part, buf_c(&probe->text));
    }
}

// One request, its whole answer.
static void probe_request(const Probe *probe, const char *line, Buf *answer)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)probe->port),
        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    char text[256];
    int len =
        snprintf(text, sizeof text, "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", line);
    assert_int_equal(send(fd, text, (size_t)len, MSG_NOSIGNAL), len);
    buf_clear(answer);
    char bytes[4096];
    for (ssize_t n = 1; n > 0;) {
        n = recv(fd, bytes, sizeof bytes, 0);
        if (n > 0) {
            assert_true(buf_append(answer, bytes, (size_t)n));
        }
    }
    close(fd);
}

static void probe_expect_answer(
    const Probe *probe, const char *line, const char *status, const char *part)
{
    Buf answer;
    buf_init(&answer, PROBE_TEXT_MAX);
    probe_request(probe, line, &answer);
    char expected[64];
    snprintf(expected, sizeof expected, "HTTP/1.1 %s ", status);
    if (!str_starts(buf_view(&answer), str_from(expected)) ||
        strstr(buf_c(&answer), part) == NULL) {
        fail_msg("expected %s and '%s', but: %s", status, part, buf_c(&answer));
    }
    buf_done(&answer);
}
