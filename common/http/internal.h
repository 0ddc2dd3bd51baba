// SPDX-License-Identifier: Apache-2.0
// What server.c (the loop's side) and request.c (one request's life) share. Not for other folders.
#pragma once

#include <microhttpd.h>

#include "common/http/server.h"

typedef enum RequestState {
    REQUEST_READING,   // its body arrives
    REQUEST_TOO_LARGE, // the rest of its body is thrown away, then 413
    REQUEST_HANDLED,   // with the handler, which answers now or later
    REQUEST_ANSWERED,  // http_respond was called
    REQUEST_SENDING,   // libmicrohttpd has the answer
} RequestState;

typedef struct ResponseHeader {
    const char *name;
    const char *value;
} ResponseHeader;

typedef struct Request {
    HttpRequest shown;                 // first, so that the handler's pointer is ours
    HttpServer *server;                // NULL once the server is gone
    struct MHD_Connection *connection; // NULL once libmicrohttpd is done with it
    RequestState state;
    bool suspended;
    size_t dropped_bytes; // of a body that is too large
    Buf body;
    int status;
    const char *content_type;
    char *answer; // in the arena, which outlives the sending
    size_t answer_len;
    ResponseHeader headers[HTTP_RESPONSE_HEADERS_MAX];
    size_t header_count;
    struct Request *previous, *next; // of the server's list
} Request;

struct HttpServer {
    HttpServerOptions options;
    uv_loop_t *loop;
    struct MHD_Daemon *daemon;
    int port;
    uv_poll_t poll;
    uv_timer_t timer;
    uv_idle_t soon; // runs libmicrohttpd once in the next turn, however many answers were given in
                    // this one
    int open_handles;
    Request *requests; // from their headers until their answer is sent
    bool stopping;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

// Lets libmicrohttpd work in the next turn of the loop. (server.c)
void server_run_soon(HttpServer *server);
// Ends the wait of a request that nobody will send any more. (request.c)
void request_resume(Request *request);

// libmicrohttpd's callbacks. (request.c)
enum MHD_Result on_mhd_request(
    void *cls, struct MHD_Connection *connection, const char *url, const char *method,
    const char *version, const char *data, size_t *size, void **slot);
void on_mhd_completed(
    void *cls, struct MHD_Connection *connection, void **slot, enum MHD_RequestTerminationCode why);
size_t on_mhd_unescape(void *cls, struct MHD_Connection *connection, char *text);
