// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/vendor/http/transport.h"

static bool on_piece(void *ctx, Http2Call *call, const void *bytes, size_t len)
{
    (void)call;
    TransportCall *own = ctx;
    return own->on_piece(own, (Str){bytes, len});
}

static void on_done(void *ctx, Http2Call *call, const HttpAnswer *answer)
{
    HttpAnswerHeader headers[TRANSPORT_ANSWER_HEADERS_MAX];
    size_t count = http2_call_headers(call, headers, TRANSPORT_ANSWER_HEADERS_MAX);
    transport_done(ctx, answer, headers, count);
}

// A body is written whenever a stream and a window are free, so the call ends at `held_ms`.
static void call_http2(const Transport *transport, TransportCall *call)
{
    const VendorRequest *request = call->request;
    bool held = call->held_ms > 0 && call->held_ms < call->whole_ms;
    Http2CallOptions options = {
        .method = request->method,
        .url = arena_cstr(call->arena, request->url),
        .body = request->body.ptr,
        .body_len = request->body.len,
        .whole_ms = held ? call->held_ms : call->whole_ms,
        .lane = call->lane,
        .pool = transport->pool,
        .on_piece = on_piece,
        .on_done = on_done,
        .ctx = call,
    };
    transport_take_headers(call, options.headers);
    (void)http2_call(transport->client, &options);
}

Transport transport_http2(Http2Client *client, const char *pool)
{
    return (Transport){.client = client, .call = call_http2, .pool = pool, .shares = true};
}
