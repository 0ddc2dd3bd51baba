// SPDX-License-Identifier: Apache-2.0
// What server.c (listener, limits, clock), connection.c (one client) and request.c (one request)
// share. Not for other folders.
#pragma once

#include <microhttpd.h>
#include <stdarg.h>

#include "common/http/client_address.h"
#include "common/http/framing.h"
#include "common/http/head.h"
#include "common/http/server.h"

// A problem document of 32 errors, each of which JSON may make six times as long.
enum { HTTP_PROBLEM_MAX = 128 * 1024 };

typedef struct HttpProblem {
    int status;
    const char *slug, *title, *detail;
    const char *field;    // NULL: none
    const char *instance; // NULL: the request's id
    const char *request_id;
    Str trace_id;                // the caller's; empty: none
    const char *violated_policy; // NULL: none
    const HttpError *errors;
    size_t error_count;
} HttpProblem;

typedef enum ConnectionState {
    CONNECTION_WAITING,   // for a request line
    CONNECTION_HEAD,      // the request line is there
    CONNECTION_BODY,      // the headers are there
    CONNECTION_HANDLED,   // with the handler, which answers now or later
    CONNECTION_SENDING,   // libmicrohttpd has the answer
    CONNECTION_LINGERING, // answered before its body came; what comes is thrown away, so that the
                          // client reads the answer before it meets a reset
    CONNECTION_CUT,       // shut down, or its socket is a stream's; libmicrohttpd closes it in its
                          // next run
} ConnectionState;

typedef struct Connection {
    HttpServer *server;
    struct MHD_Connection *mhd;
    int fd;     // libmicrohttpd's
    Str target; // of the request line, as it was sent; in libmicrohttpd's memory
    ConnectionState state;
    unsigned ticks;        // of the clock that it has seen
    uint64_t since_ms;     // when the wait that is on began
    uint64_t moved;        // bytes that came or went in it
    uint64_t acknowledged; // bytes that the client had when its answer was first looked at
    HttpAddress peer;      // who is connected
    HttpAddress client;    // whose place it has; the peer, or whom a trusted proxy names
    bool behind_proxy;     // the peer is one
    bool served;           // has had an answer
    bool known;            // has shown who it is
    bool placed;           // has one of the client's places
    int64_t place_bytes;   // of its body, in that place
    struct Connection *previous, *next; // of the server's list
} Connection;

typedef enum RequestState {
    REQUEST_READING,    // its body arrives
    REQUEST_DISCARDING, // answered before its body; the rest of it is thrown away
    REQUEST_HANDLED,    // with admit or the handler, which answers now or later
    REQUEST_ANSWERED,   // http_respond was called
    REQUEST_SENDING,    // libmicrohttpd has the answer
    REQUEST_STREAMED,   // its socket is a stream's now
} RequestState;

typedef struct ResponseHeader {
    const char *name;
    const char *value;
} ResponseHeader;

typedef struct Request {
    HttpRequest shown;          // first, so that the handler's pointer is ours
    HttpServer *server;         // NULL once the server is gone
    Connection *connection;     // NULL once the client is gone
    struct MHD_Connection *mhd; // the same
    HttpFraming framing;
    RequestState state;
    bool suspended;
    bool last; // the connection ends with its answer
    Buf body;
    size_t counted; // of the server's memory for bodies
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
    HttpLimits limits; // without zeroes
    HttpProxies proxies;
    HttpPlaces *places;
    uv_loop_t *loop;
    struct MHD_Daemon *daemon;
    bool lenient; // libmicrohttpd is older than 1.0, whatever this was compiled with
    int fd;
    int port;
    bool listening; // the listener is polled
    uv_poll_t listener;
    uv_poll_t work; // libmicrohttpd's epoll descriptor
    uv_timer_t timer;
    uv_idle_t soon; // runs libmicrohttpd once in the next turn, however many answers were given in
                    // this one
    int open_handles;
    Connection *connections;
    Connection *opening; // the one that libmicrohttpd is being given
    int64_t connection_count;
    Request *requests; // from their headers until their answer is sent
    size_t bodies_bytes;
    int ended_fd; // a socket whose other end is closed
    struct {
        struct HttpStream *all;
        struct HttpStream *waiting, *last_waiting; // to send
        int64_t count;
        size_t bytes; // that their clients have not taken
        uv_timer_t flush;
        uint64_t flushed_ms;
        uint64_t stopped_ms;
        bool raised; // the limit of open files
    } streams;
    uint64_t answered;   // below 400: of them each so-many-th is in the access log
    uint64_t trouble_ms; // of the last line in the log about exhaustion; 0: none
    bool stopping;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

// Lets libmicrohttpd work in the next turn of the loop. (server.c)
void server_run_soon(HttpServer *server);
void server_connection_closed(HttpServer *server, Connection *connection);
// One of the server's handles is closed; after the last one it is gone.
void server_handle_closed(HttpServer *server);
void server_on_handle_closed(uv_handle_t *handle); // the same; its data is the server
// At most once a minute. (server.c)
void server_log_trouble(HttpServer *server, const char *event, const char *why);

// Gives `fd` to libmicrohttpd, or refuses and closes it. (connection.c)
void connection_open(HttpServer *server, int fd, const HttpAddress *peer, const void *address);
void connection_move(Connection *connection, ConnectionState next);
// Closes it when its client has left, or the time of its wait is over, with 408 where a request has
// started.
void connection_check_time(Connection *connection, uint64_t now_ms);
// How willingly it is given up for a new one: 0 not at all.
uint64_t connection_spare(const Connection *connection, uint64_t now_ms);
void connection_cut(Connection *connection);
// Behind a proxy each request may be another client's: the one that `forwarded` (the values of
// X-Forwarded-For in their order) names. false: that client has no place left.
bool connection_find_client(Connection *connection, const HttpField *fields, size_t count);
void connection_leave_place(Connection *connection);
// The request's body will take `capacity` bytes. false: the memory for bodies is full.
bool connection_count_body(Connection *connection, Request *request, size_t capacity);
// Writes an answer past libmicrohttpd, which takes none before the end of a body; from then on the
// connection lingers.
void connection_answer_early(Connection *connection, Str answer);

// Ends the wait of a request that is never answered any more. (answer.c)
void request_resume(Request *request);
// A whole answer of a problem document as bytes, for the cases without a request. (answer.c)
void request_write_refusal(const HttpRefusal *refusal, Buf *out);

// The head of an answer without an end. (answer.c)
void request_write_stream_head(const Request *request, Buf *out);

// All streams of a server. (stream.c)
void streams_init(HttpServer *server);
void streams_tick(HttpServer *server, uint64_t now_ms);
void streams_stop(HttpServer *server);
void streams_free(HttpServer *server);

void problem_write(Buf *json, const HttpProblem *problem); // (problem.c)

// libmicrohttpd's callbacks. (request.c; connection.c: on_mhd_connection)
void on_mhd_trouble(void *cls, const char *format, va_list args);
void *on_mhd_uri(void *cls, const char *uri, struct MHD_Connection *mhd);
enum MHD_Result on_mhd_request(
    void *cls, struct MHD_Connection *mhd, const char *url, const char *method, const char *version,
    const char *data, size_t *size, void **slot);
void on_mhd_completed(
    void *cls, struct MHD_Connection *mhd, void **slot, enum MHD_RequestTerminationCode why);
size_t on_mhd_unescape(void *cls, struct MHD_Connection *mhd, char *text);
void on_mhd_connection(
    void *cls, struct MHD_Connection *mhd, void **context,
    enum MHD_ConnectionNotificationCode what);

enum { HEAD_MAX = 16 * 1024 }; // of a request's head, and of an answer's

#define REQUEST_ID_PREFIX "req_"

// Of a request (request.c has request_free, answer.c the others).
void request_free(Request *request);
enum MHD_Result request_send_answer(Request *request);
// The request is answered and its body, or what may be one, is not read yet. libmicrohttpd takes an
// answer at the headers, where it closes with the body unread, and then only at the end: so the
// answer goes past it, and the body is read and thrown away.
enum MHD_Result request_answer_early(Request *request);
enum MHD_Result request_refuse(Request *request, const HttpRefusal *refusal);
void request_write_too_large(Request *request);
