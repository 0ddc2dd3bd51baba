// SPDX-License-Identifier: Apache-2.0
// What the files of the client share: loop.c has libcurl's multi handle on the loop, pool.c whose
// turn it is and what is kept for the next call, route.c where a call may go, call.c one request
// from its options to its answer.
#pragma once

#include <curl/curl.h>

#include "common/base/map.h"
#include "common/http/client/dns.h"
#include "common/http/client/http_client.h"

enum { PIN_MAX = 80, SPARE_MAX = 512 };

// Calls to one scheme, host and port. Without a guard all calls are of one.
typedef struct Origin {
    HttpClient *client;
    char *name;                                               // NULL: without a guard
    HttpCall *first[HTTP_CALL_LANES], *last[HTTP_CALL_LANES]; // that wait for their turn
    unsigned waiting, resolving, running, open;               // open: connections
    double connects;                                          // that may be opened now
    uint64_t connects_at_ms;                                  // when that was
    struct Origin *next; // in the ring of those that have waiting calls
    bool listed;
} Origin;

// A connection, for as long as it lasts; or a descriptor that libcurl made for itself.
typedef struct Socket {
    uv_poll_t poll;
    HttpClient *client;
    Origin *origin; // NULL: libcurl's own
    curl_socket_t fd;
    int events; // that the loop watches; 0: none
    bool idle;  // kept, no call uses it
} Socket;

struct HttpClient {
    uv_loop_t *loop;
    CURLM *multi;
    CURLSH *share; // TLS sessions: a handle that was not used for this origin yet resumes one too
    uv_timer_t timer; // libcurl's
    uv_timer_t pace;  // calls that wait because too many connections were opened just now
    unsigned handles; // of the loop that are not closed yet: timers, sockets, calls' timers
    unsigned running, calls_max;
    Origin all;           // without a guard
    Map *origins;         // with one: by name
    Origin *first, *last; // the ring: origins with calls that wait
    unsigned listed;
    HttpCall *open;  // all that have not ended
    HttpCall *spare; // ended, with their handles, for the next ones
    unsigned spare_count;
    Socket **sockets; // by descriptor
    size_t socket_room;
    Dns *dns; // NULL: without a guard, or not needed yet
    HttpGuard guard;
    bool guarded;
    char *dns_servers;
    long kept_idle_s, life_s;
    unsigned origin_calls; // of one origin on the way
    double connects_per_s;
    char *ca_file, *agent;
    bool pipe_ignored;    // SIGPIPE, by the program: services do, commands do not
    bool closing, inside; // inside: libcurl is on the stack, calls must not begin
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

typedef enum CallStep { CALL_RESOLVING, CALL_WAITING, CALL_RUNNING, CALL_REFUSED } CallStep;

struct HttpCall {
    HttpClient *client;
    CURL *easy;
    struct curl_slist *headers;
    struct curl_slist *pin; // CONNECT_TO, or NULL: kept with the handle, mostly for the same origin
    char pinned[PIN_MAX];   // what it says
    uv_timer_t timer;       // the next deadline, or now when it was cancelled
    HttpCall *next;         // in the queue, among the spare ones
    HttpCall *newer, *older; // among the open ones
    Origin *origin;
    DnsLookup *lookup;               // CALL_RESOLVING
    GuardedUrl url;                  // with a guard
    struct sockaddr_storage address; // that it is pinned to
    CallStep step;
    int lane;
    char method[16];
    const char *body;
    int fd;
    uint64_t body_len, handed; // bytes that libcurl took
    int64_t idle_ms, connect_ms, tls_ms;
    uint64_t head_max, answer_max, head_bytes, answer_bytes; // max 0: no limit
    uint64_t last_at_ms, ends_at_ms; // of the loop's clock; ends_at_ms 0: never
    uint64_t opened_at_ms;           // a new connection was begun; 0: none
    bool begun;                      // libcurl has had it: what it knows is of this call
    bool cancelled, stopped, body_failed, head_whole, head_too_long, blocked;
    Error refused; // CALL_REFUSED, or blocked
    char text[CURL_ERROR_SIZE];
    HttpPiece on_piece;
    HttpDone on_done;
    void *ctx;
};

// ---- call.c ----

void call_prepare_once(HttpCall *call); // what all calls of a handle share
// Puts the options into the easy handle; false when libcurl refuses one.
bool call_prepare(HttpCall *call, const HttpCallOptions *options);
// Takes it from the multi handle, says the end and lets go of it; its turn is another's.
void call_end(HttpCall *call, CURLcode code, ErrorKind kind, const char *why);
// Arms the timer for the nearest deadline.
void call_watch(HttpCall *call);

// ---- route.c ----

// Where it goes: into the queue of its origin at once, once its name is known, or nowhere.
void route_call(HttpCall *call, const char *url);
// No connection came about: the name's next address is tried by the next call.
void route_failed(HttpCall *call);
// libcurl opens a socket only to an address that the guard allows.
curl_socket_t route_open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address);

// ---- pool.c ----

HttpCall *pool_take(HttpClient *client); // a call with its handle, from those kept or new
void pool_give(HttpCall *call);
void pool_free(HttpClient *client); // those kept
void origin_free(void *origin);     // of the map
Origin *origin_of(HttpClient *client, const GuardedUrl *url);
void origin_let_go(Origin *origin); // freed when nothing is of it
void queue_push(HttpCall *call);    // behind its lane
void queue_remove(HttpCall *call);
void client_start_waiting(HttpClient *client);

// ---- loop.c ----

Socket *socket_add(HttpClient *client, curl_socket_t fd, Origin *origin); // NULL: the loop cannot
int client_close_socket(void *ctx, curl_socket_t fd);   // libcurl closes a connection
void client_forget(HttpClient *client, HttpCall *call); // it is neither open nor in a queue
void client_close_if_idle(HttpClient *client); // once it is to be freed and no call is open
void client_handle_closed(HttpClient *client); // of a uv_close callback
