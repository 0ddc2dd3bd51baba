// SPDX-License-Identifier: Apache-2.0
// What the files of the client share: client.c has the options, the clock and the ends of calls,
// origin.c whose turn it is and when a connection is opened, connection.c the socket and TLS,
// call.c a call's way from its options to its end. session.h has the protocol.
//
//   connecting --> securing --> ready --> draining --> closed (and freed)
//       |              |          |           |
//       '--------------+----------+-----------+------> closed
// securing: TLS, then the server's SETTINGS. draining: it takes no more calls, those on the way
// end.
#pragma once

#include "common/base/arena.h"
#include "common/base/map.h"
#include "common/http/client/dns.h"
#include "common/http2/http2_client.h"
#include "common/http2/session.h"
#include "common/tls/tls.h"

typedef enum Http2State {
    HTTP2_CONNECTING,
    HTTP2_SECURING,
    HTTP2_READY, // or draining, which the session knows
    HTTP2_CLOSED,
} Http2State;

typedef struct Http2Origin Http2Origin;

typedef struct Http2Connection {
    Http2Client *client;
    Http2Origin *origin;
    struct Http2Connection *next; // of the origin
    uv_tcp_t tcp;
    uv_connect_t connecting;
    uv_write_t writing;
    bool writes; // `writing` is under way
    Http2State state;
    struct sockaddr_storage address;
    Tls *tls;
    Http2Session *session;
    Buf plain;         // both ways, within one call
    Buf wire, written; // to be written; handed to the loop
    uint64_t begun_ms, ready_ms, read_ms, used_ms;
    uint64_t pinged_ms, pongs; // 0: no ping on the way
} Http2Connection;

// Calls of one pool to one host and port.
struct Http2Origin {
    Http2Client *client;
    GuardedUrl url;
    char *authority;
    Http2Call *first[HTTP_CALL_LANES], *last[HTTP_CALL_LANES]; // that wait for their turn
    size_t waiting;
    Http2Connection *connections;
    size_t connection_count;
    DnsLookup *lookup;       // NULL: none on the way
    double connects;         // that may be opened now
    uint64_t connects_at_ms; // when that was
    Http2Origin *next_touched;
    bool touched; // something has changed: what waits may be able to start
};

struct Http2Client {
    uv_loop_t *loop;
    HttpGuard guard;
    TlsContext *tls;
    Dns *dns; // NULL: not needed yet
    char *agent, *dns_servers;
    uint32_t streams;
    size_t connections;
    double connects_per_s;
    uint64_t connect_ms, secure_ms, ping_ms, pong_ms, kept_idle_ms, life_ms;
    Map *origins;
    uv_timer_t tick; // deadlines
    uv_timer_t soon; // what began or ended outside of the loop's callbacks
    unsigned handles;
    Http2Call *open;                     // all that have not ended
    Http2Call *ended_first, *ended_last; // whose on_done is to come
    Http2Origin *touched;
    bool closing, tearing_down;
    void (*on_freed)(void *ctx);
    void *freed_ctx;
    char received[64 * 1024]; // of one read
};

typedef enum Http2CallStep {
    HTTP2_CALL_WAITING,
    HTTP2_CALL_RUNNING,
    HTTP2_CALL_ENDED
} Http2CallStep;

struct Http2Call {
    Http2Exchange exchange; // the first member: the session hands it back
    Http2Client *client;
    Http2Origin *origin; // NULL: refused by the guard
    Http2CallStep step;
    Http2Call *next;          // in the queue, or among those that ended
    Http2Call *newer, *older; // among the open ones
    Http2Pair headers[HTTP_CALL_HEADERS_MAX + 1];
    char *text; // method, path and headers
    uint64_t ends_at_ms;
    int lane;
    HttpAnswer answer;
    Http2Piece on_piece;
    Http2Done on_done;
    void *ctx;
};

// ---- call.c ----

// It has ended; on_done comes with http2_client_settle.
void http2_call_end(
    Http2Call *call, HttpOutcome outcome, HttpFailure failure, ErrorKind kind, const char *why);
// The connection is gone, or the call's time is: what that means hangs on how far it came.
void http2_call_fail(Http2Call *call, HttpFailure failure, ErrorKind kind, const char *why);
void http2_call_free(Http2Call *call);

// ---- origin.c ----

Http2Origin *http2_origin_of(Http2Client *client, const GuardedUrl *url, const char *pool);
void http2_origin_free(void *origin); // of the map
bool http2_origin_is_unused(const Http2Origin *origin);
void http2_queue_push(Http2Call *call);
void http2_queue_remove(Http2Call *call);
// Starts what may be started, and opens connections for the rest.
void http2_origin_start(Http2Origin *origin);
// No connection came about; without another one all that wait end.
void http2_origin_failed(Http2Origin *origin, HttpFailure failure, ErrorKind kind, const char *why);
void http2_origin_cancel(Http2Origin *origin); // its look-up and its connections end

// ---- connection.c ----

void http2_connection_open(Http2Origin *origin, const struct sockaddr_storage *address);
void http2_connection_flush(Http2Connection *connection);
void http2_connection_end(
    Http2Connection *connection, HttpFailure failure, ErrorKind kind, const char *why);
void http2_connection_tick(Http2Connection *connection, uint64_t now_ms);

// ---- client.c ----

void http2_origin_touch(Http2Origin *origin);  // http2_client_settle starts what waits for it
void http2_client_settle(Http2Client *client); // on_done of those that ended, and what follows
void http2_client_soon(Http2Client *client);
void http2_client_closed(Http2Client *client); // of a uv_close callback
