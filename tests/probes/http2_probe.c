// SPDX-License-Identifier: Apache-2.0
// links: stentor_http2 PkgConfig::jansson
// Calls of common/http2 by hand. One command a line on standard input, an object of JSON; for each
// call a line of JSON when it has ended, and a line with "done" behind the last of a command:
//   {"url": U, "count": 100, "parallel": 8, "bytes": 1000, "first": 0, "whole_ms": 5000,
//    "cancel_after": 3, "lanes": 4, "pools": 2}
// POSTs with bodies that begin with "id=NNN;". Options of the client are arguments: allow=loopback,
// ca=FILE, dns=IP:PORT, streams=N, connections=N, ping_ms=N, pong_ms=N, connect_ms=N, life_s=N,
// tenant=1, quiet=1 (no line for a call).
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/http2/http2_client.h"

enum { LINE_SIZE = 16384 };

static const char *const pools[] = {"one", "two", "three"};

typedef struct Run {
    Http2Client *client;
    const char *url;
    int64_t next, end, open, whole_ms, cancel_after, lanes, pools;
    size_t bytes;
    int64_t unsent, answered, unknown;
    bool quiet;
} Run;

typedef struct Sent {
    Run *run;
    int64_t id;
    size_t answer_bytes;
    char *body;
} Sent;

static const char *certainty_name(HttpCertainty certainty)
{
    return certainty == HTTP_SURELY_UNSENT     ? "unsent"
           : certainty == HTTP_SURELY_ANSWERED ? "answered"
                                               : "unknown";
}

static void print(json_t *line)
{
    char *text = json_dumps(line, JSON_COMPACT);
    printf("%s\n", text);
    free(text);
    json_decref(line);
}

static bool on_piece(void *ctx, Http2Call *call, const void *bytes, size_t len)
{
    Sent *sent = ctx;
    (void)call;
    (void)bytes;
    sent->answer_bytes += len;
    return true;
}

static void start_more(Run *run, int64_t parallel);

static void report(const Sent *sent, const Http2Call *call, const HttpAnswer *answer)
{
    Str kind = http2_call_header(call, "Content-Type");
    print(json_pack(
        "{s:I, s:s, s:i, s:b, s:s, s:I, s:s, s:s, s:s%}", "id", (json_int_t)sent->id, "certainty",
        certainty_name(http_certainty(answer)), "status", answer->status, "stopped",
        answer->stopped, "failure", http_failure_name(answer->failure), "answer_bytes",
        (json_int_t)sent->answer_bytes, "kind", error_kind_name(answer->err.kind), "text",
        answer->err.text, "content_type", kind.ptr, kind.len));
}

static void on_done(void *ctx, Http2Call *call, const HttpAnswer *answer)
{
    Sent *sent = ctx;
    Run *run = sent->run;
    HttpCertainty certainty = http_certainty(answer);
    run->unsent += certainty == HTTP_SURELY_UNSENT;
    run->answered += certainty == HTTP_SURELY_ANSWERED;
    run->unknown += certainty == HTTP_UNCERTAIN;
    if (!run->quiet) {
        report(sent, call, answer);
    }
    free(sent->body);
    free(sent);
    run->open--;
    start_more(run, run->open + 1);
}

static void start_more(Run *run, int64_t parallel)
{
    while (run->next < run->end && run->open < parallel) {
        Sent *sent = xcalloc(1, sizeof *sent);
        sent->run = run;
        sent->id = run->next++;
        sent->body = xmalloc(run->bytes + 32);
        int len = snprintf(sent->body, 32, "id=%lld;", (long long)sent->id);
        memset(sent->body + len, 'x', run->bytes);
        Http2CallOptions options = {
            .method = "POST",
            .url = run->url,
            .headers = {{"Content-Type", "application/json"}, {"Authorization", "Bearer probe"}},
            .body = sent->body,
            .body_len = run->bytes < (size_t)len ? (size_t)len : run->bytes,
            .whole_ms = run->whole_ms,
            .lane = (int)(sent->id % run->lanes),
            .pool = run->pools > 0 ? pools[(size_t)sent->id % (size_t)run->pools] : NULL,
            .on_piece = on_piece,
            .on_done = on_done,
            .ctx = sent,
        };
        run->open++;
        Http2Call *call = http2_call(run->client, &options);
        if (run->cancel_after > 0 && sent->id % run->cancel_after == 0) {
            http2_call_cancel(call);
        }
    }
}

static int64_t cpu_us(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (int64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
           used.ru_utime.tv_usec + used.ru_stime.tv_usec;
}

static int64_t number(const json_t *command, const char *name, int64_t value_if_none)
{
    const json_t *value = json_object_get(command, name);
    return value == NULL ? value_if_none : json_integer_value(value);
}

static void obey(uv_loop_t *loop, Http2Client *client, bool quiet, const json_t *command)
{
    int64_t first = number(command, "first", 0);
    Run run = {
        .client = client,
        .url = json_string_value(json_object_get(command, "url")),
        .next = first,
        .end = first + number(command, "count", 1),
        .whole_ms = number(command, "whole_ms", 0),
        .cancel_after = number(command, "cancel_after", 0),
        .lanes = number(command, "lanes", 1),
        .pools = number(command, "pools", 0),
        .bytes = (size_t)number(command, "bytes", 100),
        .quiet = quiet,
    };
    int64_t from_us = clock_mono_us();
    int64_t cpu_from = cpu_us();
    start_more(&run, number(command, "parallel", 1));
    while (run.open > 0) {
        uv_run(loop, UV_RUN_ONCE);
    }
    print(json_pack(
        "{s:b, s:I, s:I, s:I, s:I, s:I}", "done", true, "unsent", (json_int_t)run.unsent,
        "answered", (json_int_t)run.answered, "unknown", (json_int_t)run.unknown, "elapsed_us",
        (json_int_t)(clock_mono_us() - from_us), "cpu_us", (json_int_t)(cpu_us() - cpu_from)));
    fflush(stdout);
}

static bool take(const char *word, const char *name, const char **ret)
{
    size_t len = strlen(name);
    if (strncmp(word, name, len) != 0 || word[len] != '=') {
        return false;
    }
    *ret = word + len + 1;
    return true;
}

static void take_number(const char *word, const char *name, int64_t *ret)
{
    const char *value = "";
    int64_t found = 0;
    if (take(word, name, &value) && str_to_i64(str_from(value), &found)) {
        *ret = found;
    }
}

static void read_options(
    int argc, char **argv, Http2ClientOptions *ret, HttpGuard *guard, bool *quiet)
{
    for (int i = 1; i < argc; i++) {
        const char *value = "";
        if (take(argv[i], "allow", &value)) {
            guard->allow_loopback = strstr(value, "loopback") != NULL;
        } else if (take(argv[i], "tenant", &value)) {
            guard->tenant = true;
        } else if (take(argv[i], "quiet", &value)) {
            *quiet = true;
        } else if (take(argv[i], "ca", &value)) {
            ret->ca_file = value;
        } else if (take(argv[i], "dns", &value)) {
            ret->dns_servers = value;
        }
        take_number(argv[i], "streams", &ret->streams);
        take_number(argv[i], "connections", &ret->connections);
        take_number(argv[i], "connect_ms", &ret->connect_ms);
        take_number(argv[i], "ping_ms", &ret->ping_ms);
        take_number(argv[i], "pong_ms", &ret->pong_ms);
        take_number(argv[i], "life_s", &ret->life_s);
    }
    ret->guard = guard;
}

// The loop goes on meanwhile, as in a service.
static void await_line(uv_loop_t *loop)
{
    struct pollfd in = {.fd = 0, .events = POLLIN};
    while (poll(&in, 1, 5) == 0) {
        uv_run(loop, UV_RUN_NOWAIT);
    }
}

static void on_freed(void *ctx)
{
    *(bool *)ctx = true;
}

int main(int argc, char **argv)
{
    uv_loop_t loop;
    HttpGuard guard = {0};
    Http2ClientOptions options = {0};
    bool quiet = false, freed = false;
    read_options(argc, argv, &options, &guard, &quiet);
    signal(SIGPIPE, SIG_IGN); // as in a service
    uv_loop_init(&loop);
    Error err = {0};
    Http2Client *client = http2_client_new(&loop, &options, &err);
    if (client == NULL) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    char line[LINE_SIZE];
    setvbuf(stdin, NULL, _IONBF, 0); // so that poll sees what was not read yet
    while (await_line(&loop), fgets(line, sizeof line, stdin) != NULL) {
        json_t *command = json_loads(line, 0, NULL);
        if (command != NULL) {
            obey(&loop, client, quiet, command);
        }
        json_decref(command);
    }
    http2_client_free(client, on_freed, &freed);
    uv_run(&loop, UV_RUN_DEFAULT);
    return freed && uv_loop_close(&loop) == 0 ? 0 : 1;
}
