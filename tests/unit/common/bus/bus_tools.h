// SPDX-License-Identifier: Apache-2.0
// What the bus's tests share: a loop with a bus on it, waiting with a limit, fresh streams, and a
// server that can be killed.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/bus/topology/admin.h"
#include "common/bus/topology/topology.h"

enum { WAIT_MS = 15000 };

typedef struct Rig {
    uv_loop_t loop;
    uv_timer_t beat; // keeps the loop turning while a test waits
    Bus *bus;
    bool done;
    char reply[16384];
    const Accounts *accounts; // whose subscribers have consumers; NULL: none
    Error error;
} Rig;

static inline void on_beat(uv_timer_t *timer)
{
    (void)timer;
}

// Turns the loop until *flag is true; fails the test when that takes too long.
static inline void wait_flag_at(Rig *rig, const bool *flag, int timeout_ms, const char *what)
{
    uv_update_time(&rig->loop);
    uint64_t end = uv_now(&rig->loop) + (uint64_t)timeout_ms;
    while (!*flag && uv_now(&rig->loop) < end) {
        uv_run(&rig->loop, UV_RUN_ONCE);
    }
    if (!*flag) {
        fail_msg("waited in vain for %s", what);
    }
}
#define WAIT_FLAG(rig, flag) wait_flag_at((rig), &(flag), WAIT_MS, #flag)
// Turns the loop until the expression holds.
#define WAIT(rig, condition)                                                                       \
    do {                                                                                           \
        uv_update_time(&(rig)->loop);                                                              \
        uint64_t wait_end_ = uv_now(&(rig)->loop) + WAIT_MS;                                       \
        while (!(condition) && uv_now(&(rig)->loop) < wait_end_) {                                 \
            uv_run(&(rig)->loop, UV_RUN_ONCE);                                                     \
        }                                                                                          \
        if (!(condition)) {                                                                        \
            fail_msg("waited in vain for %s", #condition);                                         \
        }                                                                                          \
    } while (0)

static inline void pass_ms(Rig *rig, int ms)
{
    uv_update_time(&rig->loop);
    uint64_t end = uv_now(&rig->loop) + (uint64_t)ms;
    while (uv_now(&rig->loop) < end) {
        uv_run(&rig->loop, UV_RUN_ONCE);
    }
}

static inline void on_rig_done(void *ctx)
{
    ((Rig *)ctx)->done = true;
}

static inline Bus *rig_bus(Rig *rig, const char *url, const char *service, const char *password)
{
    Error err;
    BusOptions options = {
        .url = url,
        .service = service,
        .name = service,
        .user = password != NULL ? service : NULL,
        .password = password};
    Bus *bus = bus_open(&rig->loop, &options, &err);
    assert_non_null(bus);
    WAIT(rig, bus_connected(bus));
    return bus;
}

static inline void rig_open(Rig *rig, const char *url)
{
    memset(rig, 0, sizeof *rig);
    log_setup("bus-test", LOG_ERROR, true);
    uv_loop_init(&rig->loop);
    uv_timer_init(&rig->loop, &rig->beat);
    uv_timer_start(&rig->beat, on_beat, 5, 5);
    if (url != NULL) {
        rig->bus = rig_bus(rig, url, "stentor-test", NULL);
    }
}

static inline void rig_close_bus(Rig *rig, Bus *bus)
{
    rig->done = false;
    bus_close(bus, on_rig_done, rig);
    WAIT_FLAG(rig, rig->done);
}

static inline void rig_close(Rig *rig)
{
    if (rig->bus != NULL) {
        rig_close_bus(rig, rig->bus);
    }
    uv_close((uv_handle_t *)&rig->beat, NULL);
    uv_run(&rig->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&rig->loop), 0);
}

// ---- JetStream's API ----

static inline void on_rig_reply(void *ctx, Str reply, const Error *err)
{
    Rig *rig = ctx;
    rig->error = err != NULL ? *err : (Error){0};
    str_to_c(reply, rig->reply, sizeof rig->reply);
    rig->done = true;
}

// The answer of JetStream's API, in rig->reply.
static inline const char *rig_ask(Rig *rig, const char *subject, const char *body)
{
    rig->done = false;
    bus_request(rig->bus, subject, str_from(body), 5000, on_rig_reply, rig);
    WAIT_FLAG(rig, rig->done);
    if (rig->error.kind != ERROR_NONE) {
        fail_msg("%s", rig->error.text);
    }
    return rig->reply;
}

static inline void on_rig_step(void *ctx, const char *what, const char *result)
{
    (void)ctx;
    (void)what;
    (void)result;
}

static inline void on_rig_applied(void *ctx, const Error *err)
{
    on_rig_reply(ctx, STR_EMPTY, err);
}

static inline void rig_apply_options(Rig *rig, const TopologyOptions *options)
{
    rig->done = false;
    topology_apply(rig->bus, options, on_rig_step, on_rig_applied, rig);
    WAIT_FLAG(rig, rig->done);
    if (rig->error.kind != ERROR_NONE) {
        fail_msg("%s", rig->error.text);
    }
}

static inline void rig_apply(Rig *rig, int ack_wait_ms)
{
    TopologyOptions options = {
        .replicas = 1, .bytes_scale = 0.005, .ack_wait_ms = ack_wait_ms, .accounts = rig->accounts};
    rig_apply_options(rig, &options);
}

// Every stream empty and new.
static inline void rig_fresh(Rig *rig, int ack_wait_ms)
{
    size_t count;
    const StreamSpec *streams = topology_streams(&count);
    for (size_t i = 0; i < count; i++) {
        char subject[128];
        snprintf(subject, sizeof subject, "$JS.API.STREAM.DELETE.%s", streams[i].name);
        rig_ask(rig, subject, "");
    }
    rig_apply(rig, ack_wait_ms);
}

// A request whose answer goes to another subject than our inbox.
static inline void rig_post(Rig *rig, const char *subject, const char *reply, Str payload)
{
    assert_true(bus_send(rig->bus, subject, reply, payload));
}

static inline long rig_count(Rig *rig, const char *stream)
{
    char subject[128];
    snprintf(subject, sizeof subject, "$JS.API.STREAM.INFO.%s", stream);
    const char *at = strstr(rig_ask(rig, subject, ""), "\"messages\":");
    return at != NULL ? strtol(at + strlen("\"messages\":"), NULL, 10) : -1;
}

static inline uint64_t rig_last(Rig *rig, const char *stream)
{
    char subject[128];
    snprintf(subject, sizeof subject, "$JS.API.STREAM.INFO.%s", stream);
    const char *at = strstr(rig_ask(rig, subject, ""), "\"last_seq\":");
    return at != NULL ? strtoull(at + strlen("\"last_seq\":"), NULL, 10) : 0;
}

// ---- publishing ----

typedef struct Acks {
    size_t stored, duplicates, failed;
    uint64_t last_sequence;
    Error error;
} Acks;

static inline void on_acks(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    Acks *acks = ctx;
    if (err != NULL) {
        acks->failed++;
        acks->error = *err;
        return;
    }
    acks->stored++;
    acks->duplicates += duplicate ? 1 : 0;
    acks->last_sequence = sequence;
}

static inline void publish_id(
    Rig *rig, const char *subject, const char *id, const char *payload, Acks *acks)
{
    BusOut out = {
        .subject = subject,
        .event_id = str_from(id),
        .payload = str_from(payload),
        .traceparent = STR("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")};
    bus_publish(rig->bus, &out, on_acks, acks);
}

// `count` messages "0", "1" ... with the ids "<prefix><n>", all stored.
static inline void publish_many(Rig *rig, const char *subject, const char *prefix, int count)
{
    Acks acks = {0};
    for (int i = 0; i < count; i++) {
        char id[48], payload[16];
        snprintf(id, sizeof id, "%s%d", prefix, i);
        snprintf(payload, sizeof payload, "%d", i);
        publish_id(rig, subject, id, payload, &acks);
    }
    WAIT(rig, acks.stored + acks.failed == (size_t)count);
    assert_int_equal(acks.failed, 0);
}

// ---- a server of the test's own ----

typedef struct Server {
    char folder[64];
    char port[8];
    char url[64];
    char config[96];
    pid_t pid;
} Server;

static inline void server_start(Server *server)
{
    const char *program = getenv("NATS_SERVER");
    server->pid = fork();
    assert_true(server->pid >= 0);
    if (server->pid == 0) {
        // A failed test must not leave it behind: ctest would wait for the output that it holds.
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        freopen("/dev/null", "w", stderr);
        if (program == NULL) {
            program = access("/usr/sbin/nats-server", X_OK) == 0 ? "/usr/sbin/nats-server"
                                                                 : "nats-server";
        }
        if (server->config[0] != '\0') {
            execlp(
                program, program, "-js", "-sd", server->folder, "-a", "127.0.0.1", "-p",
                server->port, "-c", server->config, (char *)NULL);
        } else {
            execlp(
                program, program, "-js", "-sd", server->folder, "-a", "127.0.0.1", "-p",
                server->port, (char *)NULL);
        }
        _exit(127);
    }
}

// A port that is free now; good enough for a test that starts its server at once.
static inline void server_init(Server *server)
{
    memset(server, 0, sizeof *server);
    const char *temporary = getenv("TMPDIR");
    snprintf(
        server->folder, sizeof server->folder, "%s/stentor-bus-XXXXXX",
        temporary != NULL ? temporary : "/tmp");
    assert_non_null(mkdtemp(server->folder));
    uv_loop_t loop;
    uv_tcp_t tcp;
    struct sockaddr_in address;
    int size = sizeof address;
    uv_loop_init(&loop);
    uv_tcp_init(&loop, &tcp);
    uv_ip4_addr("127.0.0.1", 0, &address);
    uv_tcp_bind(&tcp, (const struct sockaddr *)&address, 0);
    uv_tcp_getsockname(&tcp, (struct sockaddr *)&address, &size);
    uv_close((uv_handle_t *)&tcp, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    unsigned port = (unsigned)((address.sin_port >> 8) | ((address.sin_port & 0xff) << 8));
    snprintf(server->port, sizeof server->port, "%u", port);
    snprintf(server->url, sizeof server->url, "nats://127.0.0.1:%u", port);
}

static inline void server_kill(Server *server, int signal_number)
{
    kill(server->pid, signal_number);
    waitpid(server->pid, NULL, 0);
    server->pid = 0;
}

// Returns when it has stopped: until its first thread takes the signal, the others go on answering.
static inline void server_freeze(const Server *server)
{
    int status;
    assert_int_equal(kill(server->pid, SIGSTOP), 0);
    assert_int_equal(waitpid(server->pid, &status, WUNTRACED), server->pid);
    assert_true(WIFSTOPPED(status));
}

static inline void run_program(
    const char *program, const char *option, const char *from, const char *to)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        execlp(program, program, option, from, to, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// Of the store, while the server is down.
static inline void server_keep_copy(const Server *server)
{
    char copy[80];
    snprintf(copy, sizeof copy, "%s.copy", server->folder);
    run_program("cp", "-a", server->folder, copy);
}

// As after a power cut: what was stored since the copy is gone.
static inline void server_put_copy_back(const Server *server)
{
    char copy[80];
    snprintf(copy, sizeof copy, "%s.copy", server->folder);
    run_program("rm", "-rf", server->folder, server->folder);
    run_program("mv", "-T", copy, server->folder);
}

static inline void server_done(Server *server)
{
    if (server->pid > 0) {
        server_kill(server, SIGKILL);
    }
    run_program("rm", "-rf", server->folder, server->folder);
}
