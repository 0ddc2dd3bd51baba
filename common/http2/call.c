// SPDX-License-Identifier: Apache-2.0
// One call: its options as a request of HTTP/2, its place in the queue, its end.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/http2/http2_internal.h"

enum {
    VENDOR_WHOLE_MS = 10000,
    TENANT_WHOLE_MS = 15000,
    HEAD_MAX = 16 * 1024,
    ANSWER_MAX = 64 * 1024,
};

static Http2Call *call_of(Http2Exchange *exchange)
{
    return (Http2Call *)(void *)exchange; // its first member
}

// ---- the request ----

static Str copy(char **at, Str text)
{
    memcpy(*at, text.ptr, text.len);
    Str kept = str_of(*at, text.len);
    *at += text.len;
    return kept;
}

static Str copy_lower(char **at, Str text)
{
    char *from = *at;
    Str kept = copy(at, text);
    for (size_t i = 0; i < kept.len; i++) {
        from[i] = from[i] >= 'A' && from[i] <= 'Z' ? (char)(from[i] - 'A' + 'a') : from[i];
    }
    return kept;
}

// What stands behind the authority of a URL that the guard has read, without a fragment.
static Str path_of(const char *url)
{
    const char *slashes = strstr(url, "://");
    const char *at = slashes == NULL ? url + strlen(url) : slashes + 3;
    at += strcspn(at, "/?#");
    return str_of(at, strcspn(at, "#"));
}

static size_t text_size(const Http2CallOptions *options, Str path)
{
    size_t size = strlen(options->method) + path.len + 1;
    for (size_t i = 0; i < HTTP_CALL_HEADERS_MAX && options->headers[i].name != NULL; i++) {
        size += strlen(options->headers[i].name) + strlen(options->headers[i].value);
    }
    return size;
}

static void take_headers(Http2Call *call, const Http2CallOptions *options, char **at)
{
    size_t count = 0;
    for (; count < HTTP_CALL_HEADERS_MAX && options->headers[count].name != NULL; count++) {
        Str name = str_from(options->headers[count].name);
        Str value = str_from(options->headers[count].value);
        assert(!str_has_control(name) && !str_has_control(value));
        call->headers[count] = (Http2Pair){copy_lower(at, name), copy(at, value)};
    }
    call->headers[count++] = (Http2Pair){STR("user-agent"), str_from(call->client->agent)};
    call->exchange.headers = call->headers;
    call->exchange.header_count = count;
}

static void take_request(Http2Call *call, const Http2CallOptions *options)
{
    Str path = path_of(options->url);
    call->text = xmalloc(text_size(options, path));
    char *at = call->text;
    call->exchange.method = copy(&at, str_from(options->method));
    if (path.len == 0 || path.ptr[0] != '/') {
        *at++ = '/';
        Str rest = copy(&at, path);
        call->exchange.path = str_of(rest.ptr - 1, rest.len + 1);
    } else {
        call->exchange.path = copy(&at, path);
    }
    take_headers(call, options, &at);
    call->exchange.body = str_of(options->body, options->body_len);
}

// ---- the answer ----

static bool on_piece(Http2Exchange *exchange, Str bytes)
{
    Http2Call *call = call_of(exchange);
    return call->on_piece == NULL || call->on_piece(call->ctx, call, bytes.ptr, bytes.len);
}

static void on_end(Http2Exchange *exchange, Http2End how, uint32_t error_code)
{
    Http2Call *call = call_of(exchange);
    const char *why = "the server reset the stream";
    switch (how) {
    case HTTP2_END_STOPPED:
        call->answer.stopped = true;
        // fall through
    case HTTP2_END_ANSWERED:
        http2_call_end(call, HTTP_ANSWERED, HTTP_FAILURE_NONE, ERROR_NONE, NULL);
        break;
    case HTTP2_END_REFUSED:
        why = "the server refused the stream and did nothing with it";
        http2_call_end(call, HTTP_NEVER_SENT, HTTP_FAILURE_CUT, ERROR_TRANSIENT, why);
        break;
    case HTTP2_END_RESET:
        http2_call_fail(call, HTTP_FAILURE_CUT, ERROR_TRANSIENT, why);
        error_wrap(&call->answer.err, "error %u", (unsigned)error_code);
        break;
    case HTTP2_END_INVALID:
        http2_call_fail(call, HTTP_FAILURE_INVALID, ERROR_TRANSIENT, "the answer is not HTTP");
        break;
    case HTTP2_END_LONG_HEAD:
        why = "the answer's headers are too long";
        http2_call_fail(call, HTTP_FAILURE_INVALID, ERROR_TRANSIENT, why);
        break;
    }
}

int http2_call_status(const Http2Call *call)
{
    return call->exchange.status;
}

Str http2_call_header(const Http2Call *call, const char *name)
{
    return http2_exchange_field(&call->exchange, str_from(name));
}

size_t http2_call_headers(const Http2Call *call, HttpAnswerHeader *ret, size_t max)
{
    const Http2Exchange *exchange = &call->exchange;
    size_t count = exchange->field_count < max ? exchange->field_count : max;
    for (size_t i = 0; i < count; i++) {
        const char *text = exchange->text.ptr;
        ret[i] = (HttpAnswerHeader){
            str_of(text + exchange->fields[i].name, exchange->fields[i].name_len),
            str_of(text + exchange->fields[i].value, exchange->fields[i].value_len)};
    }
    return count;
}

// ---- life ----

static void open_call(Http2Call *call)
{
    Http2Client *client = call->client;
    call->older = client->open;
    if (client->open != NULL) {
        client->open->newer = call;
    }
    client->open = call;
}

static void take_limits(Http2Call *call, const Http2CallOptions *options)
{
    int64_t whole_ms = call->client->guard.tenant ? TENANT_WHOLE_MS : VENDOR_WHOLE_MS;
    whole_ms = options->whole_ms > 0 ? options->whole_ms : whole_ms;
    call->ends_at_ms = uv_now(call->client->loop) + (uint64_t)whole_ms;
    call->exchange.head_max = (size_t)(options->head_max > 0 ? options->head_max : HEAD_MAX);
    call->exchange.answer_max =
        (size_t)(options->answer_max > 0 ? options->answer_max : ANSWER_MAX);
}

static void route(Http2Call *call, const char *url, const char *pool)
{
    GuardedUrl found;
    Error err = {0};
    bool allowed = guard_url(&call->client->guard, url, &found, &err);
    if (allowed && !found.https) {
        allowed = error_set(&err, ERROR_CONFIG, "the URL must begin with https://");
    }
    if (!allowed) {
        http2_call_end(call, HTTP_NEVER_SENT, HTTP_FAILURE_BLOCKED, err.kind, err.text);
        return;
    }
    call->origin = http2_origin_of(call->client, &found, pool);
    call->exchange.authority = str_from(call->origin->authority);
    http2_queue_push(call);
}

Http2Call *http2_call(Http2Client *client, const Http2CallOptions *options)
{
    assert(!client->closing && strlen(options->url) <= HTTP_URL_MAX);
    assert(options->lane >= 0 && options->lane < HTTP_CALL_LANES);
    assert(options->pool == NULL || strlen(options->pool) <= HTTP2_POOL_MAX);
    Http2Call *call = xcalloc(1, sizeof *call);
    call->client = client;
    call->lane = options->lane;
    call->on_piece = options->on_piece;
    call->on_done = options->on_done;
    call->ctx = options->ctx;
    call->exchange.on_piece = on_piece;
    call->exchange.on_end = on_end;
    uv_update_time(client->loop);
    take_limits(call, options);
    take_request(call, options);
    open_call(call);
    route(call, options->url, options->pool != NULL ? options->pool : "");
    http2_client_soon(client);
    return call;
}

void http2_call_cancel(Http2Call *call)
{
    http2_call_fail(call, HTTP_FAILURE_OTHER, ERROR_CANCELLED, "cancelled");
    http2_client_soon(call->client);
}

void http2_call_free(Http2Call *call)
{
    http2_exchange_done(&call->exchange);
    free(call->text);
    free(call);
}

// ---- the end ----

static void leave(Http2Call *call)
{
    Http2Client *client = call->client;
    if (call->step == HTTP2_CALL_WAITING && call->origin != NULL) {
        http2_queue_remove(call);
    } else if (call->exchange.session != NULL) {
        http2_session_abandon(&call->exchange);
    }
    *(call->newer != NULL ? &call->newer->older : &client->open) = call->older;
    if (call->older != NULL) {
        call->older->newer = call->newer;
    }
}

void http2_call_end(
    Http2Call *call, HttpOutcome outcome, HttpFailure failure, ErrorKind kind, const char *why)
{
    Http2Client *client = call->client;
    if (call->step == HTTP2_CALL_ENDED) {
        return;
    }
    leave(call);
    call->step = HTTP2_CALL_ENDED;
    call->answer.outcome = outcome;
    call->answer.status = call->exchange.status;
    call->answer.head = call->exchange.head;
    call->answer.handed = call->exchange.handed;
    call->answer.failure = failure;
    if (kind != ERROR_NONE) {
        error_set(&call->answer.err, kind, "%s", why);
    }
    call->next = NULL;
    *(client->ended_last != NULL ? &client->ended_last->next : &client->ended_first) = call;
    client->ended_last = call;
}

void http2_call_fail(Http2Call *call, HttpFailure failure, ErrorKind kind, const char *why)
{
    HttpOutcome outcome = call->exchange.stream != 0 ? HTTP_UNKNOWN : HTTP_NEVER_SENT;
    http2_call_end(call, outcome, failure, kind, why);
}
