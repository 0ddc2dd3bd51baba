// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/vendor/http/transport.h"

static bool on_piece(void *ctx, HttpCall *call, const void *bytes, size_t len)
{
    (void)call;
    TransportCall *own = ctx;
    return own->on_piece(own, (Str){bytes, len});
}

static void on_done(void *ctx, HttpCall *call, const HttpAnswer *answer)
{
    HttpAnswerHeader headers[TRANSPORT_ANSWER_HEADERS_MAX];
    size_t count = http_call_headers(call, headers, TRANSPORT_ANSWER_HEADERS_MAX);
    transport_done(ctx, answer, headers, count);
}

// The body is written as soon as there is a connection, so there must be one before `held_ms`.
static void call_http1(const Transport *transport, TransportCall *call)
{
    const VendorRequest *request = call->request;
    bool held = call->held_ms > 0 && call->held_ms < call->connect_ms;
    HttpCallOptions options = {
        .method = request->method,
        .url = arena_cstr(call->arena, request->url),
        .body = request->body.ptr,
        .body_len = request->body.len,
        .fd = -1,
        .connect_ms = held ? call->held_ms : call->connect_ms,
        .idle_ms = call->whole_ms,
        .whole_ms = call->whole_ms,
        .lane = call->lane,
        .on_piece = on_piece,
        .on_done = on_done,
        .ctx = call,
    };
    transport_take_headers(call, options.headers);
    (void)http_call(transport->client, &options);
}

Transport transport_http1(HttpClient *client)
{
    return (Transport){.client = client, .call = call_http1, .shares = false};
}
