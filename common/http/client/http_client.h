// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 client on the loop, by libcurl: many calls at once, each with a body from memory or from
// a file and an answer that comes in pieces. No redirects, no cookies, no proxy, no `Expect`, no
// credentials from the environment; a server's certificate is always checked. Everything is called
// on the loop thread, callbacks only from the loop. Law: a request with a body is handed to the
// network once. libcurl would send it again by itself when a kept connection ends without an
// answer; here the body refuses to be read twice, and the caller learns whether the server can have
// seen it and decides.
#pragma once

#include <uv.h>

#include "common/base/error.h"
#include "common/base/str.h"
#include "common/http/client/guard.h"

enum { HTTP_CALL_HEADERS_MAX = 32, HTTP_URL_MAX = 8192, HTTP_CALL_LANES = 4 };

typedef struct HttpClient HttpClient;
typedef struct HttpCall HttpCall;

// 0 (NULL) everywhere: the default. Strings are copied.
typedef struct HttpClientOptions {
    int64_t calls;       // 16 on the way at once; more wait for their turn
    int64_t kept_idle_s; // 30: a connection that was idle for longer is not used again
    const char *ca_file; // the system's certificates; else only those of this file are trusted
    const char *agent;   // "stentor": User-Agent
    // Where calls may go; copied, but what its `also` points to stays the caller's. Names are then
    // resolved by c-ares, every address is checked, and the connection goes to one of those that
    // were. NULL: anywhere, resolved by libcurl, and none of the defaults in brackets below.
    const HttpGuard *guard;
    const char *dns_servers;  // "192.0.2.1:53"; NULL: the system's. With guard
    int64_t calls_per_origin; // on the way at once [256; a tenant's 8]
    int64_t connects_per_s;   // new connections to one origin, when none is idle [50]
    int64_t life_s;           // a connection that is older is not used again [300]
} HttpClientOptions;

typedef enum HttpOutcome {
    HTTP_ANSWERED,   // an answer with its status, whole, or as much of it as on_piece wanted
    HTTP_NEVER_SENT, // not a byte of the request went out: the server cannot have acted on it
    HTTP_UNKNOWN,    // some or all of it went out and no whole answer came: it may have acted
} HttpOutcome;

// Why there is no answer: a fixed vocabulary, fit to be shown to a tenant.
typedef enum HttpFailure {
    HTTP_FAILURE_NONE,
    HTTP_FAILURE_BLOCKED, // the guard
    HTTP_FAILURE_DNS,
    HTTP_FAILURE_CONNECT,
    HTTP_FAILURE_TLS,
    HTTP_FAILURE_TIMEOUT,
    HTTP_FAILURE_CUT,     // the connection ended
    HTTP_FAILURE_INVALID, // what came is not HTTP, or its headers are too long
    HTTP_FAILURE_OTHER,
} HttpFailure;

const char *http_failure_name(HttpFailure failure); // "dns"; "" for none

typedef struct HttpAnswer {
    HttpOutcome outcome;
    int status;   // 0: no answer began. With HTTP_UNKNOWN: of the answer that was cut
    bool stopped; // on_piece wanted no more, or answer_max was reached: the body is cut
    bool head;    // status and headers came whole, also when the body did not
    bool handed;  // the whole request was handed to the network
    HttpFailure failure;
    Error err; // kind ERROR_NONE with HTTP_ANSWERED; else TRANSIENT (network, time), CONFIG (URL,
               // certificate), PERMANENT (the body's file is shorter than was said), CANCELLED
} HttpAnswer;

// What a caller that must not send twice may conclude. A server cannot act on a body that is
// shorter than its Content-Length, so bytes count: all were handed over or the request is unsent.
typedef enum HttpCertainty {
    HTTP_SURELY_UNSENT,
    HTTP_SURELY_ANSWERED, // status and headers are there; the body may be cut
    HTTP_UNCERTAIN,       // all was handed over, and no answer says what became of it
} HttpCertainty;

HttpCertainty http_certainty(const HttpAnswer *answer);

// A piece of the answer's body, of any status; http_call_status and http_call_header hold already.
// false: enough, the connection is closed and the call ends HTTP_ANSWERED with `stopped`.
typedef bool (*HttpPiece)(void *ctx, HttpCall *call, const void *bytes, size_t len);
// The end, exactly once for each call. The call and its headers are gone after it.
typedef void (*HttpDone)(void *ctx, HttpCall *call, const HttpAnswer *answer);

typedef struct HttpCallHeader {
    const char *name; // as it is sent
    const char *value;
} HttpCallHeader;

// Everything but the body is copied.
typedef struct HttpCallOptions {
    const char *method; // "GET"
    const char *url;    // as it is sent: nothing is encoded, and "/../" stays
    HttpCallHeader headers[HTTP_CALL_HEADERS_MAX]; // until the first without a name; no line breaks
    const void *body; // from memory; NULL: the first body_len bytes of `fd`, by pread
    int fd;
    uint64_t body_len;  // 0: no body; PUT and POST say Content-Length: 0
    int64_t connect_ms; // 0: 5 s for name, connection and TLS [3 s for the connection alone]
    int64_t tls_ms;     // beside connect_ms, for TLS [5 s]
    int64_t idle_ms;    // 0: 30 s without a byte in either direction
    int64_t whole_ms;   // 0: no limit, from the call of http_call to the end of the answer
                        // [10 s; a tenant's 15 s]
    int64_t head_max;   // bytes of status line and headers, 1xx too; 0: libcurl's [16 KiB]
    int64_t answer_max; // bytes of the answer's body that are read; 0: all of it [64 KiB]
    int lane;           // below HTTP_CALL_LANES; of those that wait for an origin the lowest first
    HttpPiece on_piece; // NULL: the answer's body is not wanted
    HttpDone on_done;
    void *ctx;
} HttpCallOptions;

HttpClient *http_client_new(uv_loop_t *loop, const HttpClientOptions *options, Error *err);
// Calls that are on the way or wait end HTTP_UNKNOWN or HTTP_NEVER_SENT with ERROR_CANCELLED, then
// on_freed, all from the loop. No new calls meanwhile.
void http_client_free(HttpClient *client, void (*on_freed)(void *ctx), void *ctx);

// Body memory and fd stay the caller's, untouched, until on_done. The call is valid until then.
HttpCall *http_call(HttpClient *client, const HttpCallOptions *options);
// on_done comes from the loop, with ERROR_CANCELLED unless the end came first.
void http_call_cancel(HttpCall *call);
int http_call_status(const HttpCall *call); // 0: no answer yet
// Of the answer, from the first piece or on_done on; empty when not there; case-insensitive.
Str http_call_header(const HttpCall *call, const char *name);
// All of the answer's headers, at most `max`; as long valid as http_call_header's. Returns how
// many.
typedef struct HttpAnswerHeader {
    Str name, value;
} HttpAnswerHeader;
size_t http_call_headers(const HttpCall *call, HttpAnswerHeader *ret, size_t max);
// The time of a header such as Date or Last-Modified (RFC 9110, 5.6.7); false when it is none.
bool http_date_parse(Str text, int64_t *ret_us);
// Of Retry-After, seconds or a date; 0: it says nothing, or a time that is over. At most a day.
uint32_t http_retry_after_ms(Str text, int64_t now_us);
