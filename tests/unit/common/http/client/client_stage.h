// SPDX-License-Identifier: Apache-2.0
// A client and a server of plain sockets on one loop. The server reads each request whole, notes
// it, and does what the path says; it counts what it saw, so that a request that went out twice is
// seen twice.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/http/client/http_client.h"

enum { SEEN_MAX = 1 << 22, PATIENCE_US = 5 * 1000 * 1000 };

typedef struct Stage Stage;

typedef struct Peer {
    uv_tcp_t tcp;
    Stage *stage;
    Buf got;
    int requests; // of this connection
    struct Peer *older;
} Peer;

struct Stage {
    uv_loop_t loop;
    uv_tcp_t listener;
    uv_timer_t tick; // so that uv_run returns when nothing comes
    int port;
    HttpClient *client;
    int connections, requests; // that the server saw whole
    int kept_requests;         // not the first of their connection
    size_t loose_bytes;        // of connections that ended in the middle of a request
    char last[256];            // request line and headers of the last one, as far as they fit
    size_t last_body;
    Buf all; // the bodies, one after the other
    Peer *peers;
    bool client_freed;
};

// How a call ended.
typedef struct Ended {
    int times;
    HttpAnswer answer;
    char etag[64];
    Buf body;
    size_t body_stop; // on_piece wants no more beyond this
    bool cancels;     // on_piece cancels
} Ended;

static inline void on_peer_closed(uv_handle_t *handle)
{
    Peer *peer = handle->data;
    for (Peer **at = &peer->stage->peers; *at != NULL; at = &(*at)->older) {
        if (*at == peer) {
            *at = peer->older;
            break;
        }
    }
    peer->stage->loose_bytes += peer->got.len;
    buf_done(&peer->got);
    free(peer);
}

static inline void close_peer(Peer *peer)
{
    if (!uv_is_closing((uv_handle_t *)&peer->tcp)) {
        uv_close((uv_handle_t *)&peer->tcp, on_peer_closed);
    }
}

static inline void answer_text(Peer *peer, const char *text)
{
    uv_buf_t buf = uv_buf_init(strdup(text), (unsigned)strlen(text));
    uv_try_write((uv_stream_t *)&peer->tcp, &buf, 1);
    free(buf.base);
}

// "/cut-second": the first request of a connection is answered, the next one taken and cut.
static inline void answer(Peer *peer, const char *line)
{
    if (strstr(line, "/silent") != NULL) {
        return;
    }
    if (strstr(line, "/cut-second") != NULL && peer->requests > 1) {
        close_peer(peer);
    } else if (strstr(line, "/cut") != NULL && strstr(line, "/cut-second") == NULL) {
        close_peer(peer);
    } else if (strstr(line, "/half") != NULL) {
        answer_text(peer, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
        close_peer(peer);
    } else if (strstr(line, "/stall") != NULL) {
        answer_text(peer, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
    } else if (strstr(line, "/moved") != NULL) {
        answer_text(peer, "HTTP/1.1 302 Found\r\nLocation: /ok\r\nContent-Length: 0\r\n\r\n");
    } else if (strncmp(line, "HEAD", 4) == 0) {
        answer_text(peer, "HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: 4711\r\n\r\n");
    } else {
        answer_text(
            peer, "HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nContent-Length: 11\r\n\r\nhello world");
    }
}

// true: a whole request was there and is answered.
static inline bool take_request(Peer *peer)
{
    const char *text = buf_c(&peer->got);
    const char *end = strstr(text, "\r\n\r\n");
    if (end == NULL) {
        return false;
    }
    size_t head = (size_t)(end - text) + 4;
    const char *length = strstr(text, "Content-Length: ");
    size_t body = length != NULL && length < end ? strtoul(length + 16, NULL, 10) : 0;
    if (peer->got.len < head + body) {
        return false;
    }
    Stage *stage = peer->stage;
    stage->requests++;
    stage->kept_requests += peer->requests > 0;
    peer->requests++;
    snprintf(stage->last, sizeof stage->last, "%.*s", (int)head, text);
    stage->last_body = body;
    buf_append(&stage->all, text + head, body);
    buf_drop_front(&peer->got, head + body);
    answer(peer, stage->last);
    return true;
}

static inline void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    (void)handle;
    *ret = uv_buf_init(malloc(suggested), (unsigned)suggested);
}

static inline void on_bytes(uv_stream_t *stream, ssize_t len, const uv_buf_t *buf)
{
    Peer *peer = stream->data;
    if (len < 0) {
        close_peer(peer); // what it had of a request counts as loose
    } else {
        assert_true(buf_append(&peer->got, buf->base, (size_t)len));
        while (!uv_is_closing((uv_handle_t *)stream) && take_request(peer)) {
        }
    }
    free(buf->base);
}

static inline void on_client(uv_stream_t *listener, int status)
{
    assert_int_equal(status, 0);
    Stage *stage = listener->data;
    Peer *peer = xcalloc(1, sizeof *peer);
    peer->stage = stage;
    peer->older = stage->peers;
    stage->peers = peer;
    buf_init(&peer->got, SEEN_MAX);
    uv_tcp_init(&stage->loop, &peer->tcp);
    peer->tcp.data = peer;
    stage->connections++;
    assert_int_equal(uv_accept(listener, (uv_stream_t *)&peer->tcp), 0);
    uv_read_start((uv_stream_t *)&peer->tcp, on_room, on_bytes);
}

static inline void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

static inline int stage_up(void **state)
{
    Stage *stage = xcalloc(1, sizeof *stage);
    uv_loop_init(&stage->loop);
    uv_timer_init(&stage->loop, &stage->tick);
    uv_timer_start(&stage->tick, on_tick, 10, 10);
    buf_init(&stage->all, SEEN_MAX);
    struct sockaddr_in address;
    uv_ip4_addr("127.0.0.1", 0, &address);
    uv_tcp_init(&stage->loop, &stage->listener);
    stage->listener.data = stage;
    uv_tcp_bind(&stage->listener, (struct sockaddr *)&address, 0);
    assert_int_equal(uv_listen((uv_stream_t *)&stage->listener, 16, on_client), 0);
    int len = sizeof address;
    uv_tcp_getsockname(&stage->listener, (struct sockaddr *)&address, &len);
    stage->port = ntohs(address.sin_port);
    Error err = {0};
    stage->client = http_client_new(&stage->loop, &(HttpClientOptions){.calls = 2}, &err);
    assert_non_null(stage->client);
    *state = stage;
    return 0;
}

static inline void on_client_freed(void *ctx)
{
    ((Stage *)ctx)->client_freed = true;
}

static inline void free_client(Stage *stage)
{
    http_client_free(stage->client, on_client_freed, stage);
    stage->client = NULL;
    int64_t deadline = clock_mono_us() + PATIENCE_US;
    while (!stage->client_freed && clock_mono_us() < deadline) {
        uv_run(&stage->loop, UV_RUN_ONCE);
    }
    assert_true(stage->client_freed);
}

static inline int stage_down(void **state)
{
    Stage *stage = *state;
    if (stage->client != NULL) {
        free_client(stage);
    }
    uv_close((uv_handle_t *)&stage->listener, NULL);
    uv_close((uv_handle_t *)&stage->tick, NULL);
    for (Peer *peer = stage->peers; peer != NULL; peer = peer->older) {
        close_peer(peer);
    }
    uv_run(&stage->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&stage->loop), 0);
    buf_done(&stage->all);
    free(stage);
    return 0;
}

// ---- calls ----

static inline bool on_piece(void *ctx, HttpCall *call, const void *bytes, size_t len)
{
    Ended *ended = ctx;
    assert_true(http_call_status(call) > 0);
    buf_append(&ended->body, bytes, len);
    if (ended->cancels) {
        http_call_cancel(call);
    }
    return ended->body_stop == 0 || ended->body.len < ended->body_stop;
}

static inline void on_done(void *ctx, HttpCall *call, const HttpAnswer *answer)
{
    Ended *ended = ctx;
    ended->times++;
    ended->answer = *answer;
    str_to_c(http_call_header(call, "eTaG"), ended->etag, sizeof ended->etag);
}

// The URL is of the stage's server; the options' other fields stay.
static inline HttpCall *start(Stage *stage, HttpCallOptions options, const char *path, Ended *ended)
{
    char url[128];
    snprintf(url, sizeof url, "http://127.0.0.1:%d%s", stage->port, path);
    options.method = options.method != NULL ? options.method : "GET";
    options.url = options.url != NULL ? options.url : url;
    options.on_piece = on_piece;
    options.on_done = on_done;
    options.ctx = ended;
    buf_init(&ended->body, SEEN_MAX);
    HttpCall *call = http_call(stage->client, &options);
    assert_int_equal(ended->times, 0); // callbacks come from the loop
    return call;
}

static inline void await(Stage *stage, const Ended *ended)
{
    int64_t deadline = clock_mono_us() + PATIENCE_US;
    while (ended->times == 0 && clock_mono_us() < deadline) {
        uv_run(&stage->loop, UV_RUN_ONCE);
    }
    assert_int_equal(ended->times, 1);
}

static inline void call_and_await(
    Stage *stage, HttpCallOptions options, const char *path, Ended *ended)
{
    start(stage, options, path, ended);
    await(stage, ended);
}
