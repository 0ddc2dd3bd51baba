// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 server on the loop. A request is shown twice: to `admit` when its headers are there and
// nothing of its body was read, and, whole, to `handler`, which answers at once or later from
// another callback. Not here: TLS (a proxy's business), routing, authentication. Everything is
// called on the loop thread. Law: each wait for a client ends, and who has not shown who it is
// takes no place from those who have.
#pragma once

#include <uv.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/error.h"
#include "common/base/id.h"
#include "common/http/client_address.h"

enum { HTTP_RESPONSE_HEADERS_MAX = 16, HTTP_ERRORS_MAX = 32 };

typedef struct HttpServer HttpServer;

// One fault of a request. The field is named as a problem's is: "notifications[3].to".
typedef struct HttpError {
    const char *field;
    const char *detail;
} HttpError;

// An argument of the query, decoded.
typedef struct HttpArgument {
    Str name;
    Str value; // empty: "?a" and "?a="
} HttpArgument;

typedef struct HttpRequest {
    Str method; // "POST"
    Str path;   // decoded, "/v1/notifications"
    Str body;
    Arena *arena; // lives until the answer is sent
    int64_t received_at_us;
    HttpAddress client; // whose it is; behind a trusted proxy whom that names
    size_t
        body_max; // the server's; admit may lower it, and raise it up to that again. Beyond it 413
    void *admitted;       // whatever admit leaves for the handler; NULL at first
    char id[ID_SIZE];     // "req_" and a ULID; every answer has it as Stentor-Request-Id
    const char *instance; // what its problem is called where it was noted (RFC 9457); NULL: the id
    const char *route;    // pattern, for the access log: "/v1/recipients/{}"; NULL: none matched
    const char *actor;    // who asks, for the access log: "key <id>"; NULL: not known
    const HttpError *errors; // of the problem that follows, all of them; at most HTTP_ERRORS_MAX
    size_t error_count;      // 0: the one field that the problem names, if any
    // In the place of the next answer, if set: it gets what is to be answered (the body lives as
    // long as the arena), and ends with an http_respond of its own. Called once.
    void (*on_respond)(void *ctx, int status, const char *content_type, Str body);
    void *on_respond_ctx;
    const char *violated_policy; // of RateLimit-Policy, which the problem that follows names
} HttpRequest;

// Must lead to exactly one http_respond, now or later. Runs on the loop.
typedef void (*HttpHandler)(void *ctx, HttpRequest *request);
// true: the body is read, then the handler called. false: it has answered already.
typedef bool (*HttpAdmit)(void *ctx, HttpRequest *request);

// 0 (NULL) everywhere: the default.
typedef struct HttpLimits {
    int64_t connections;        // 1024; when all are taken, the stranger that has waited longest is
                                // closed, if it has for a second; else clients wait in the backlog
    int64_t client_connections; // 256 of one address that has not shown who it is; beyond it 429
    int64_t head_ms;      // 10 s from the accept (or the first byte) to the end of the headers
    int64_t request_ms;   // 30 s from there to the end of the body, and to read the answer;
                          // each 64 KiB that came or went earns one second more
    int64_t idle_ms;      // 60 s between two requests
    int64_t bodies_bytes; // 256 MiB in memory; strangers get half of it, one of their
                          // addresses an eighth; beyond it 503
    int64_t streams;      // 12,000 (stream.h); beyond it 503
    int64_t comment_ms;   // 15 s that a stream is quiet before it gets a comment
    int64_t access_every; // none: lines of the access log (access_log.h)
    const char *proxies;  // none; addresses and ranges whose X-Forwarded-For is believed
} HttpLimits;

typedef struct HttpServerOptions {
    const char *bind; // an address, not a name: "127.0.0.1", "0.0.0.0", "::" (both families)
    int port;         // 0: any free one
    size_t body_max;
    HttpLimits limits;
    const char *option_prefix; // "STENTOR_INGEST": of the options that hints name; NULL: none
    HttpAdmit admit;           // NULL: all are admitted
    HttpHandler handler;
    void *ctx;
} HttpServerOptions;

// ERROR_CONFIG when the port is taken, with the port and the remedy, or the proxies are no list.
HttpServer *http_server_new(uv_loop_t *loop, const HttpServerOptions *options, Error *err);
int http_server_port(const HttpServer *server);
// No new connections; an old one is closed after its next answer. on_stopped (from the loop) when
// every request is answered; then free.
void http_server_stop(HttpServer *server, void (*on_stopped)(void *ctx), void *ctx);
// No request is with the handler or being answered, and no stream is open. After a stop a
// connection from before may still bring a last one.
bool http_server_idle(const HttpServer *server);
// Cuts what is left. A request that is still with the handler stays valid until its http_respond.
void http_server_free(HttpServer *server, void (*on_freed)(void *ctx), void *ctx);

// Its sender has shown who it is (a valid key, a valid signature): the connection is no stranger's
// from now on, behind a proxy for this request. From admit or the handler.
void http_request_known(HttpRequest *request);
// These are valid until http_respond.
Str http_header(
    const HttpRequest *request,
    const char *name); // empty when not there; case-insensitive
Str http_query(const HttpRequest *request, const char *name); // decoded; empty when not there
// All arguments in their order; the first `max` are written. The number of all.
size_t http_arguments(const HttpRequest *request, HttpArgument *ret, size_t max);
// Before http_respond; name and value are copied; at most HTTP_RESPONSE_HEADERS_MAX. A value with
// control characters (a line break) is left out.
void http_response_header(HttpRequest *request, const char *name, Str value);
// What http_response_header() was given; empty: nothing of that name.
Str http_response_header_of(const HttpRequest *request, const char *name);
// The body is copied; content_type is a literal. The request is gone after it. The client may have
// left meanwhile: that is fine.
void http_respond(HttpRequest *request, int status, const char *content_type, Str body);
// The same without a copy: the body lives as long as the request's arena (arena_own).
void http_respond_kept(HttpRequest *request, int status, const char *content_type, Str body);
// RFC 9457: application/problem+json with type "urn:stentor:problem:<slug>", title, status, detail,
// instance ("urn:stentor:request:<id>" where nothing else is set), trace_id where the request has a
// traceparent, and, when given, the field that is wrong ("notifications[3].to"); where fields are
// wrong, `errors` lists each with its detail.
void http_problem(
    HttpRequest *request, int status, const char *slug, const char *title, const char *field,
    const char *format, ...) __attribute__((format(printf, 6, 7)));
