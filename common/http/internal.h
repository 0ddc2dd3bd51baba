// SPDX-License-Identifier: Apache-2.0
// What server.c (listener, limits, clock), connection.c (one client's bytes) and request.c (one
// answer) share. Not for other folders.
#pragma once

#include "common/http/chunked.h"
#include "common/http/client.h"
#include "common/http/head.h"
#include "common/http/server.h"

typedef enum ConnectionState {
    CONNECTION_WAITING,   // for the first byte of a request
    CONNECTION_HEAD,      // a part of its headers is there
    CONNECTION_BODY,      // its body arrives
    CONNECTION_HANDLED,   // with admit or the handler, which answers now or later
    CONNECTION_SENDING,   // the socket has taken a part of the answer
    CONNECTION_LINGERING, // answered for the last time; what still comes is thrown away, so that
                          // the client reads the answer before it meets a reset
    CONNECTION_CLOSED,    // its handle is closing
} ConnectionState;

typedef struct Request Request;

typedef struct Connection {
    uv_poll_t poll;
    int fd;
    int polled; // events that are asked for
    HttpServer *server;
    ConnectionState state;
    Request *request;    // from its headers until its answer is sent
    Buf in;              // what has come and is not consumed
    size_t scanned;      // of `in`, for the end of the headers
    uint64_t since_ms;   // when the wait that is on began
    uint64_t moved;      // bytes that came or went in it
    HttpAddress peer;    // who is connected
    HttpAddress client;  // whose place it has; the peer, or whom a trusted proxy names
    bool behind_proxy;   // the peer is one
    bool served;         // has had an answer
    bool known;          // has shown who it is
    bool placed;         // has one of the client's places
    int64_t place_bytes; // of its body, in that place
    bool eof;            // the client sends no more
    bool advancing;      // connection_advance is on the stack
    bool again;          // to be looked at in the next turn
    struct Connection *previous, *next; // of the server's list
} Connection;

typedef struct ResponseHeader {
    Str name;
    Str value;
} ResponseHeader;

struct Request {
    HttpRequest shown;      // first, so that the handler's pointer is ours
    Connection *connection; // NULL once the client has left
    HttpHead head;
    Chunked chunked;
    uint64_t body_left; // of the announced length
    bool body_whole;
    bool responded;
    bool last; // the connection ends with its answer
    Buf body;
    size_t counted; // of the server's memory for bodies
    Str unsent;     // of the answer, in the arena
    ResponseHeader headers[HTTP_RESPONSE_HEADERS_MAX];
    size_t header_count;
};

struct HttpServer {
    HttpServerOptions options;
    HttpLimits limits; // without zeroes
    HttpProxies proxies;
    HttpPlaces *places;
    uv_loop_t *loop;
    int fd;
    int port;
    bool listening; // the listener is polled
    uv_poll_t listener;
    uv_timer_t timer;
    uv_idle_t soon; // one turn: connections that are to be looked at again, and the end of a stop
    int open_handles;
    Connection *connections;
    int64_t connection_count;
    int64_t request_count;
    size_t bodies_bytes;
    uint64_t trouble_ms; // of the last line in the log about exhaustion; 0: none
    bool stopping;
    bool freeing;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
    void (*on_freed)(void *ctx);
    void *freed_ctx;
    char date[40]; // of the second date_s
    int64_t date_s;
    char scratch[64 * 1024]; // what one recv brings
};

// Something is to be done in the next turn of the loop. (server.c)
void server_run_soon(HttpServer *server);
void server_connection_closed(HttpServer *server, Connection *connection);
void server_handle_closed(HttpServer *server);
// At most once a minute. (server.c)
void server_log_trouble(HttpServer *server, const char *event, const char *why);
Str server_date(HttpServer *server, int64_t now_us);

// Takes over `fd`. (connection.c)
void connection_open(HttpServer *server, int fd, const HttpAddress *peer);
// Goes on with what has come already.
void connection_advance(Connection *connection);
// false: its time is not over. Else it was answered 408, or cut.
bool connection_check_time(Connection *connection, uint64_t now_ms);
// How willingly it is given up for a new one: 0 not at all.
uint64_t connection_spare(const Connection *connection, uint64_t now_ms);
void connection_close(Connection *connection);
// The answer of connection->request is made: sends it.
void connection_send(Connection *connection, const Str parts[2]);
void connection_leave_place(Connection *connection);

// (request.c)
Request *request_new(Connection *connection);
// Its connection is gone, or its answer sent. A request that is with the handler outlives that.
void request_end(Request *request);
void request_refuse(Request *request, const HttpRefusal *refusal);
