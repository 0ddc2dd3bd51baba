// SPDX-License-Identifier: Apache-2.0
// libcurl's multi handle on the loop: it says which sockets and which time it waits for, the loop
// says what came. A connection's descriptor stays with the loop as long as the connection lasts:
// to leave and to come back for each call costs three system calls.
#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/arena.h"
#include "common/http/client/client_internal.h"

enum {
    CALLS = 16,
    KEPT_IDLE_S = 30,
    LIFE_S = 300,
    ORIGIN_CALLS = 256,
    TARGET_CALLS = 8, // of a tenant
    CONNECTS_PER_S = 50,
    CONNECTIONS_MAX = 1024,
    DRAIN_READS = 64,
};

// ---- what libcurl finished ----

static void read_messages(HttpClient *client)
{
    CURLMsg *message;
    int left;
    // A call's end may have freed the client, and with it the multi handle.
    while (client->multi != NULL &&
           (message = curl_multi_info_read(client->multi, &left)) != NULL) {
        if (message->msg == CURLMSG_DONE) {
            CURLcode code = message->data.result; // the message is gone with its handle
            HttpCall *call = NULL;
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &call);
            call_end(call, code, ERROR_NONE, NULL);
        }
    }
    client_start_waiting(client);
}

static void act(HttpClient *client, curl_socket_t fd, int events)
{
    int running;
    client->inside = true;
    curl_multi_socket_action(client->multi, fd, events, &running);
    client->inside = false;
    read_messages(client);
}

// ---- sockets ----

static void on_poll_closed(uv_handle_t *handle)
{
    Socket *at = handle->data;
    HttpClient *client = at->client;
    free(at);
    client_handle_closed(client);
}

static Socket *socket_of(HttpClient *client, curl_socket_t fd)
{
    return (size_t)fd < client->socket_room ? client->sockets[fd] : NULL;
}

// It ended, or says what no call asked for, which the next call would take for its answer. libcurl
// 7.88 does not look; with nothing left to read it finds the connection dead.
static void end_idle(Socket *at)
{
    char bytes[4096];
    int reads = 0;
    while (reads < DRAIN_READS && recv(at->fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
        reads++;
    }
    uv_poll_stop(&at->poll);
    at->events = 0;
    shutdown(at->fd, SHUT_RDWR);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    Socket *at = poll->data;
    if (at->idle) {
        end_idle(at);
        return;
    }
    int flags = status < 0 ? CURL_CSELECT_ERR : 0;
    flags |= (events & UV_READABLE) != 0 ? CURL_CSELECT_IN : 0;
    flags |= (events & UV_WRITABLE) != 0 ? CURL_CSELECT_OUT : 0;
    act(at->client, at->fd, flags);
}

static void make_room(HttpClient *client, curl_socket_t fd)
{
    size_t room = client->socket_room > 0 ? client->socket_room : 64;
    while (room <= (size_t)fd) {
        room *= 2;
    }
    if (room > client->socket_room) {
        size_t before = client->socket_room;
        client->sockets = xrealloc(client->sockets, room * sizeof(Socket *));
        memset(client->sockets + before, 0, (room - before) * sizeof(Socket *));
        client->socket_room = room;
    }
}

static void remove_socket(Socket *at)
{
    at->client->sockets[at->fd] = NULL;
    uv_close((uv_handle_t *)&at->poll, on_poll_closed);
    if (at->origin != NULL) {
        at->origin->open--;
        origin_let_go(at->origin);
    }
}

Socket *socket_add(HttpClient *client, curl_socket_t fd, Origin *origin)
{
    Socket *made = xcalloc(1, sizeof *made);
    made->client = client;
    made->fd = fd;
    made->origin = origin;
    if (uv_poll_init(client->loop, &made->poll, fd) != 0) {
        free(made);
        return NULL;
    }
    made->poll.data = made;
    make_room(client, fd);
    if (client->sockets[fd] != NULL) { // libcurl closed it without a word, before it was connected
        remove_socket(client->sockets[fd]);
    }
    client->sockets[fd] = made;
    client->handles++;
    if (origin != NULL) {
        origin->open++;
    }
    return made;
}

int client_close_socket(void *ctx, curl_socket_t fd)
{
    HttpClient *client = ctx;
    Socket *at = socket_of(client, fd);
    if (at != NULL) {
        remove_socket(at);
    }
    return close(fd);
}

// libcurl 7.88 closes a socket whose connection never came about, TLS included, past the function
// that it has for it: the loop must not keep such a one.
static bool is_kept(const Socket *at, CURL *easy)
{
    HttpCall *call = NULL;
    long head = 0;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &call);
    curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &head);
    return at->origin != NULL && (call == NULL || head > 0); // NULL: it closes an idle one
}

static void watch(Socket *at, int events)
{
    if (at->events != events) {
        at->events = events;
        uv_poll_start(&at->poll, events, on_poll);
    }
}

static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *kept)
{
    HttpClient *client = ctx;
    Socket *at = socket_of(client, fd);
    (void)kept;
    if (what == CURL_POLL_REMOVE) {
        if (at != NULL && is_kept(at, easy)) {
            at->idle = true;
            watch(at, UV_READABLE);
        } else if (at != NULL) {
            remove_socket(at);
        }
        return 0;
    }
    if (at == NULL) { // its own, of a thread that resolves a name
        at = socket_add(client, fd, NULL);
        if (at == NULL) {
            return -1; // libcurl ends its transfers with an error
        }
    }
    at->idle = false;
    int events = (what & CURL_POLL_IN) != 0 ? UV_READABLE : 0;
    watch(at, events | ((what & CURL_POLL_OUT) != 0 ? UV_WRITABLE : 0));
    return 0;
}

// ---- time ----

static void on_timer(uv_timer_t *timer)
{
    act(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static int on_curl_time(CURLM *multi, long timeout_ms, void *ctx)
{
    HttpClient *client = ctx;
    (void)multi;
    if (timeout_ms < 0) {
        uv_timer_stop(&client->timer);
    } else if (!uv_is_closing((uv_handle_t *)&client->timer)) {
        uv_timer_start(&client->timer, on_timer, (uint64_t)timeout_ms, 0);
    }
    return 0;
}

// ---- life ----

static bool is_pipe_ignored(void)
{
    struct sigaction action;
    return sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static int64_t or_default(int64_t value, int64_t value_if_0)
{
    return value > 0 ? value : value_if_0;
}

static void take_guard(HttpClient *client, const HttpClientOptions *options)
{
    if (options->guard == NULL) {
        return;
    }
    bool tenant = options->guard->tenant;
    client->guarded = true;
    client->guard = *options->guard;
    client->dns_servers = options->dns_servers != NULL ? xstrdup(options->dns_servers) : NULL;
    client->life_s = (long)or_default(options->life_s, LIFE_S);
    client->connects_per_s = (double)or_default(options->connects_per_s, CONNECTS_PER_S);
    client->origin_calls =
        (unsigned)or_default(options->calls_per_origin, tenant ? TARGET_CALLS : ORIGIN_CALLS);
    client->origins = map_new(origin_free);
}

static void open_multi(HttpClient *client)
{
    client->multi = curl_multi_init();
    client->share = curl_share_init();
    assert(client->multi != NULL && client->share != NULL);
    curl_share_setopt(client->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_curl_time);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
    unsigned kept = client->calls_max < CONNECTIONS_MAX ? client->calls_max : CONNECTIONS_MAX;
    curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)kept);
    curl_multi_setopt(client->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
}

HttpClient *http_client_new(uv_loop_t *loop, const HttpClientOptions *options, Error *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        error_set(err, ERROR_CONFIG, "libcurl does not start");
        return NULL;
    }
    HttpClient *client = xcalloc(1, sizeof *client);
    client->loop = loop;
    client->all.client = client;
    client->pipe_ignored = is_pipe_ignored();
    client->calls_max = (unsigned)or_default(options->calls, CALLS);
    client->kept_idle_s = (long)or_default(options->kept_idle_s, KEPT_IDLE_S);
    client->ca_file = options->ca_file != NULL ? xstrdup(options->ca_file) : NULL;
    client->agent = xstrdup(options->agent != NULL ? options->agent : "stentor");
    take_guard(client, options);
    open_multi(client);
    uv_timer_init(loop, &client->timer);
    uv_timer_init(loop, &client->pace);
    client->timer.data = client->pace.data = client;
    client->handles = 2;
    return client;
}

static void on_timer_closed(uv_handle_t *handle)
{
    client_handle_closed(handle->data);
}

static void on_dns_freed(void *ctx)
{
    client_handle_closed(ctx);
}

// All calls have ended: the kept connections close, then what the loop has.
static void close_multi(HttpClient *client)
{
    pool_free(client);
    curl_multi_cleanup(client->multi);
    curl_share_cleanup(client->share);
    client->multi = NULL;
    if (client->dns != NULL) {
        dns_free(client->dns, on_dns_freed, client);
    }
    uv_close((uv_handle_t *)&client->timer, on_timer_closed);
    uv_close((uv_handle_t *)&client->pace, on_timer_closed);
}

void http_client_free(HttpClient *client, void (*on_freed)(void *ctx), void *ctx)
{
    client->closing = true;
    client->on_freed = on_freed;
    client->freed_ctx = ctx;
    client_close_if_idle(client);
    for (HttpCall *call = client->open; call != NULL; call = call->older) {
        http_call_cancel(call);
    }
}

void client_handle_closed(HttpClient *client)
{
    assert(client->handles > 0);
    if (--client->handles > 0) {
        return;
    }
    void (*on_freed)(void *ctx) = client->on_freed;
    void *ctx = client->freed_ctx;
    map_free(client->origins);
    free(client->sockets);
    free(client->dns_servers);
    free(client->ca_file);
    free(client->agent);
    free(client);
    curl_global_cleanup();
    if (on_freed != NULL) {
        on_freed(ctx);
    }
}

// ---- ends ----

static void leave(HttpClient *client, HttpCall *call)
{
    switch (call->step) {
    case CALL_RUNNING:
        curl_multi_remove_handle(client->multi, call->easy);
        client->running--;
        call->origin->running--;
        break;
    case CALL_WAITING:
        queue_remove(call);
        break;
    case CALL_RESOLVING:
        dns_cancel(call->lookup);
        call->origin->resolving--;
        break;
    case CALL_REFUSED:
        break;
    }
    if (call->origin != NULL) {
        origin_let_go(call->origin);
        call->origin = NULL;
    }
}

void client_forget(HttpClient *client, HttpCall *call)
{
    leave(client, call);
    if (call->newer != NULL) {
        call->newer->older = call->older;
    } else {
        client->open = call->older;
    }
    if (call->older != NULL) {
        call->older->newer = call->newer;
    }
}

void client_close_if_idle(HttpClient *client)
{
    if (client->closing && client->open == NULL && client->multi != NULL) {
        close_multi(client);
    }
}
