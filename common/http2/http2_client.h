// SPDX-License-Identifier: Apache-2.0
// HTTP/2 client on the loop, for vendors that speak nothing else or that take many requests a
// second: many calls on a few connections to each origin, https only. What it says about a call is
// what common/http/client says (HttpAnswer, http_certainty). Everything is called on the loop
// thread, callbacks only from the loop. Law: a request is started on one connection, once. What the
// server refused (REFUSED_STREAM, GOAWAY with a lower last stream) is HTTP_NEVER_SENT; whether to
// send it again is the caller's decision.
#pragma once

#include <uv.h>

#include "common/http/client/http_client.h"

enum { HTTP2_POOL_MAX = 200 };

typedef struct Http2Client Http2Client;
typedef struct Http2Call Http2Call;

// 0 (NULL): what stands in brackets. Strings are copied.
typedef struct Http2ClientOptions {
    const HttpGuard *guard; // where calls may go; needed, and copied as HttpClientOptions says
    const char *ca_file;    // [the system's certificates]
    const char *agent;      // User-Agent ["stentor"]
    const char *dns_servers;
    int64_t streams;        // calls at once on one connection, fewer when the server says so [100]
    int64_t connections;    // to one origin [4]
    int64_t connects_per_s; // to one origin [10]
    int64_t connect_ms;     // for the connection [3 s]
    int64_t secure_ms;      // beside it, for TLS and the server's SETTINGS [5 s]
    int64_t ping_ms;        // without a byte from the server it is asked [30 s]
    int64_t pong_ms;        // and what does not answer is dead [10 s]
    int64_t kept_idle_s;    // a connection without calls is closed [300]
    int64_t life_s;         // an older one takes no more calls [3600]
} Http2ClientOptions;

// A piece of the answer's body, of any status; status and headers are there already. false: enough.
typedef bool (*Http2Piece)(void *ctx, Http2Call *call, const void *bytes, size_t len);
// The end, exactly once for each call. The call and its headers are gone after it.
typedef void (*Http2Done)(void *ctx, Http2Call *call, const HttpAnswer *answer);

// Everything but the body is copied.
typedef struct Http2CallOptions {
    const char *method; // "POST"
    const char *url;
    HttpCallHeader headers[HTTP_CALL_HEADERS_MAX]; // until the first without a name; no line breaks
    const void *body;                              // the caller's until on_done
    size_t body_len;
    int64_t whole_ms;   // from here to the end of the answer [10 s; a tenant's 15 s]
    int64_t head_max;   // bytes of the answer's headers [16 KiB]
    int64_t answer_max; // bytes of the answer's body that are read [64 KiB]
    int lane;           // below HTTP_CALL_LANES; of those that wait for an origin the lowest first
    const char *pool; // calls of another pool, or of none (NULL), never share a connection with it
    Http2Piece on_piece;
    Http2Done on_done;
    void *ctx;
} Http2CallOptions;

Http2Client *http2_client_new(uv_loop_t *loop, const Http2ClientOptions *options, Error *err);
// Calls end with ERROR_CANCELLED, then on_freed, all from the loop. No new calls meanwhile.
void http2_client_free(Http2Client *client, void (*on_freed)(void *ctx), void *ctx);

Http2Call *http2_call(Http2Client *client, const Http2CallOptions *options);
// on_done comes from the loop, with ERROR_CANCELLED unless the end came first.
void http2_call_cancel(Http2Call *call);
int http2_call_status(const Http2Call *call); // 0: no answer yet
Str http2_call_header(const Http2Call *call, const char *name);
size_t http2_call_headers(const Http2Call *call, HttpAnswerHeader *ret, size_t max);
