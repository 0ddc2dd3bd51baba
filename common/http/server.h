// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 server: libmicrohttpd with its epoll descriptor on the loop. A request is handed over
// whole (its body read and within the limit) and answered when the handler is ready: at once, or
// later from another callback. Not here: TLS (a proxy's business), routing, authentication.
// Everything is called on the loop thread.
#pragma once

#include <uv.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/error.h"

enum { HTTP_RESPONSE_HEADERS_MAX = 16 };

typedef struct HttpServer HttpServer;

typedef struct HttpRequest {
    Str method; // "POST"
    Str path;   // decoded, "/v1/notifications"
    Str body;
    Arena *arena; // lives until the answer is sent
    int64_t received_at_us;
} HttpRequest;

// Must lead to exactly one http_respond, now or later. Runs on the loop.
typedef void (*HttpHandler)(void *ctx, HttpRequest *request);

typedef struct HttpServerOptions {
    const char *bind; // an address, not a name: "127.0.0.1", "0.0.0.0", "::" (both families)
    int port;         // 0: any free one
    size_t body_max;  // beyond it the server itself answers 413, before reading where the length is
                      // announced
    int connections_max; // 0: 1024; further clients wait in the backlog
    int idle_timeout_s;  // 0: 60; also ends a request that stops arriving
    HttpHandler handler;
    void *ctx;
} HttpServerOptions;

// ERROR_CONFIG when the port is taken, with the port and the remedy.
HttpServer *http_server_new(uv_loop_t *loop, const HttpServerOptions *options, Error *err);
int http_server_port(const HttpServer *server);
// No new connections; an old one is closed after its next answer. on_stopped (from the loop) when
// every request is answered; then free.
void http_server_stop(HttpServer *server, void (*on_stopped)(void *ctx), void *ctx);
// No request is with the handler or being answered. After a stop a connection from before may still
// bring a last one.
bool http_server_idle(const HttpServer *server);
// Cuts what is left. A request that is still with the handler stays valid until its http_respond.
void http_server_free(HttpServer *server, void (*on_freed)(void *ctx), void *ctx);

// Both are valid until http_respond.
Str http_header(
    const HttpRequest *request,
    const char *name); // empty when not there; case-insensitive
Str http_query(const HttpRequest *request, const char *name); // decoded; empty when not there
// Before http_respond; name and value are copied; at most HTTP_RESPONSE_HEADERS_MAX. A value with
// control characters (a line break) is left out.
void http_response_header(HttpRequest *request, const char *name, Str value);
// The body is copied; content_type is a literal. The request is gone after it. The client may have
// left meanwhile: that is fine.
void http_respond(HttpRequest *request, int status, const char *content_type, Str body);
// RFC 9457: application/problem+json with type "urn:stentor:problem:<slug>", title, status, detail
// and, when given, the field that is wrong ("notifications[3].to").
void http_problem(
    HttpRequest *request, int status, const char *slug, const char *title, const char *field,
    const char *format, ...) __attribute__((format(printf, 6, 7)));
