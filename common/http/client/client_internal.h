// SPDX-License-Identifier: Apache-2.0
// What the two files of the client share: loop.c has libcurl's multi handle on the loop, call.c has
// one request from its options to its answer.
#pragma once

#include <curl/curl.h>

#include "common/http/client/http_client.h"

struct HttpClient {
    uv_loop_t *loop;
    CURLM *multi;
    uv_timer_t timer; // libcurl's
    unsigned handles; // of the loop that are not closed yet: the timer, sockets, calls' timers
    unsigned running, calls_max;
    HttpCall *first, *last; // waiting for their turn
    HttpCall *open;         // all, running or waiting
    long kept_idle_s;
    char *ca_file, *agent;
    bool pipe_ignored;    // SIGPIPE, by the program: services do, commands do not
    bool closing, inside; // inside: libcurl is on the stack, calls must not begin
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

struct HttpCall {
    HttpClient *client;
    CURL *easy;
    struct curl_slist *headers;
    uv_timer_t timer;        // the next deadline, or now when it was cancelled
    HttpCall *next;          // in the queue
    HttpCall *newer, *older; // among the open ones
    char *method;
    const char *body;
    int fd;
    uint64_t body_len, handed; // bytes that libcurl took
    int64_t idle_ms;
    uint64_t last_at_ms, ends_at_ms; // of the loop's clock; ends_at_ms 0: never
    bool running, cancelled, stopped, body_failed;
    char text[CURL_ERROR_SIZE];
    HttpPiece on_piece;
    HttpDone on_done;
    void *ctx;
};

// Puts the options into the easy handle; false when libcurl refuses one.
bool call_prepare(HttpCall *call, const HttpCallOptions *options);
// Takes it from the multi handle, says the end and closes it; its turn is another's.
void call_end(HttpCall *call, CURLcode code, ErrorKind kind, const char *why);
// Arms the timer for the nearest deadline.
void call_watch(HttpCall *call);

void client_start_waiting(HttpClient *client);
void client_forget(HttpClient *client, HttpCall *call); // it is neither open nor in the queue
void client_handle_closed(HttpClient *client);          // of a uv_close callback
