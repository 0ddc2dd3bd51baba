// SPDX-License-Identifier: Apache-2.0
// libcurl's multi handle on the loop: it says which sockets and which time it waits for, the loop
// says what came. The turn of calls that wait is here too.
#include <assert.h>
#include <signal.h>
#include <stdlib.h>

#include "common/base/arena.h"
#include "common/http/client/client_internal.h"

enum { CALLS = 16, KEPT_IDLE_S = 30 };

typedef struct Socket {
    uv_poll_t poll;
    HttpClient *client;
    curl_socket_t fd;
} Socket;

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
    Socket *socket = handle->data;
    HttpClient *client = socket->client;
    free(socket);
    client_handle_closed(client);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    Socket *socket = poll->data;
    int flags = status < 0 ? CURL_CSELECT_ERR : 0;
    flags |= (events & UV_READABLE) != 0 ? CURL_CSELECT_IN : 0;
    flags |= (events & UV_WRITABLE) != 0 ? CURL_CSELECT_OUT : 0;
    act(socket->client, socket->fd, flags);
}

static Socket *socket_new(HttpClient *client, curl_socket_t fd)
{
    Socket *socket = xcalloc(1, sizeof *socket);
    socket->client = client;
    socket->fd = fd;
    if (uv_poll_init(client->loop, &socket->poll, fd) != 0) {
        free(socket);
        return NULL;
    }
    socket->poll.data = socket;
    client->handles++;
    return socket;
}

static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *kept)
{
    HttpClient *client = ctx;
    Socket *socket = kept;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (socket != NULL) {
            uv_poll_stop(&socket->poll);
            uv_close((uv_handle_t *)&socket->poll, on_poll_closed);
            curl_multi_assign(client->multi, fd, NULL);
        }
        return 0;
    }
    if (socket == NULL) {
        socket = socket_new(client, fd);
        if (socket == NULL) {
            return -1; // libcurl ends its transfers with an error
        }
        curl_multi_assign(client->multi, fd, socket);
    }
    int events = (what & CURL_POLL_IN) != 0 ? UV_READABLE : 0;
    events |= (what & CURL_POLL_OUT) != 0 ? UV_WRITABLE : 0;
    uv_poll_start(&socket->poll, events, on_poll);
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

HttpClient *http_client_new(uv_loop_t *loop, const HttpClientOptions *options, Error *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        error_set(err, ERROR_CONFIG, "libcurl does not start");
        return NULL;
    }
    HttpClient *client = xcalloc(1, sizeof *client);
    client->loop = loop;
    client->pipe_ignored = is_pipe_ignored();
    client->calls_max = options->calls > 0 ? (unsigned)options->calls : CALLS;
    client->kept_idle_s = options->kept_idle_s > 0 ? (long)options->kept_idle_s : KEPT_IDLE_S;
    client->ca_file = options->ca_file != NULL ? xstrdup(options->ca_file) : NULL;
    client->agent = xstrdup(options->agent != NULL ? options->agent : "stentor");
    client->multi = curl_multi_init();
    assert(client->multi != NULL);
    uv_timer_init(loop, &client->timer);
    client->timer.data = client;
    client->handles = 1;
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_curl_time);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
    curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)client->calls_max);
    curl_multi_setopt(client->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
    return client;
}

static void on_timer_closed(uv_handle_t *handle)
{
    client_handle_closed(handle->data);
}

// All calls have ended: the kept connections close, then the timer.
static void close_multi(HttpClient *client)
{
    curl_multi_cleanup(client->multi);
    client->multi = NULL;
    uv_close((uv_handle_t *)&client->timer, on_timer_closed);
}

void http_client_free(HttpClient *client, void (*on_freed)(void *ctx), void *ctx)
{
    client->closing = true;
    client->on_freed = on_freed;
    client->freed_ctx = ctx;
    if (client->open == NULL) {
        close_multi(client);
    }
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
    free(client->ca_file);
    free(client->agent);
    free(client);
    curl_global_cleanup();
    if (on_freed != NULL) {
        on_freed(ctx);
    }
}

// ---- turns ----

void client_start_waiting(HttpClient *client)
{
    if (client->inside || client->closing) {
        return;
    }
    while (client->first != NULL && client->running < client->calls_max) {
        HttpCall *call = client->first;
        client->first = call->next;
        client->last = client->first == NULL ? NULL : client->last;
        call->next = NULL;
        call->running = true;
        client->running++;
        call->last_at_ms = uv_now(client->loop);
        call_watch(call);
        curl_multi_add_handle(client->multi, call->easy); // arms the timer: it begins on the loop
    }
}

static void leave_queue(HttpClient *client, const HttpCall *call)
{
    HttpCall *before = NULL;
    for (HttpCall *at = client->first; at != NULL; before = at, at = at->next) {
        if (at == call) {
            *(before == NULL ? &client->first : &before->next) = at->next;
            client->last = client->last == at ? before : client->last;
            return;
        }
    }
}

void client_forget(HttpClient *client, HttpCall *call)
{
    if (call->running) {
        curl_multi_remove_handle(client->multi, call->easy);
        call->running = false;
        client->running--;
    } else {
        leave_queue(client, call);
    }
    if (call->newer != NULL) {
        call->newer->older = call->older;
    } else {
        client->open = call->older;
    }
    if (call->older != NULL) {
        call->older->newer = call->newer;
    }
    if (client->closing && client->open == NULL) {
        close_multi(client);
    }
}
