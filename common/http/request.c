// SPDX-License-Identifier: Apache-2.0
// One request, in the order in which things happen: begin, take_body, hand_over, http_respond,
// send_answer, finish. libmicrohttpd calls on_mhd_request for the first four steps (headers; each
// piece of body; the end; and, for an answer that came later, once more after the connection was
// resumed) and on_mhd_completed for the last one.
#include "common/http/internal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/http/uri.h"

enum {
    FIRST_ARENA_BYTES = 4096,
    FIRST_BODY_BYTES = 64 * 1024, // reserved on the word of a Content-Length, no more
    DETAIL_MAX = 1024,
    PROBLEM_MAX = 16 * 1024,
};

// ---- begin and finish ----

static void link_request(HttpServer *server, Request *request)
{
    request->next = server->requests;
    if (server->requests != NULL) {
        server->requests->previous = request;
    }
    server->requests = request;
}

static void unlink_request(Request *request)
{
    if (request->previous != NULL) {
        request->previous->next = request->next;
    } else {
        request->server->requests = request->next;
    }
    if (request->next != NULL) {
        request->next->previous = request->previous;
    }
}

static void free_request(Request *request)
{
    buf_done(&request->body);
    arena_free(request->shown.arena);
}

static Request *new_request(HttpServer *server, struct MHD_Connection *connection)
{
    Arena *arena = arena_new(FIRST_ARENA_BYTES);
    Request *request = arena_zalloc(arena, sizeof *request);
    request->shown.arena = arena;
    request->shown.received_at_us = clock_now_us();
    request->server = server;
    request->connection = connection;
    buf_init(&request->body, server->options.body_max);
    link_request(server, request);
    return request;
}

// libmicrohttpd has sent the answer, or the client has left. A request that is with the handler
// outlives its connection: http_respond frees it.
static void finish(Request *request)
{
    unlink_request(request);
    if (request->state == REQUEST_HANDLED) {
        request->connection = NULL;
        request->server = NULL;
        return;
    }
    free_request(request);
}

// ---- the answer ----

// false when memory is out inside libmicrohttpd: the connection is closed then.
static bool fill_headers(struct MHD_Response *response, const Request *request)
{
    bool ok = true;
    if (request->content_type != NULL) {
        ok = MHD_add_response_header(response, "Content-Type", request->content_type) == MHD_YES;
    }
    for (size_t i = 0; i < request->header_count; i++) {
        const ResponseHeader *header = &request->headers[i];
        ok = ok && MHD_add_response_header(response, header->name, header->value) == MHD_YES;
    }
    if (request->server->stopping || request->dropped_bytes > 0) {
        ok = ok && MHD_add_response_header(response, "Connection", "close") == MHD_YES;
    }
    return ok;
}

static enum MHD_Result send_answer(Request *request)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        request->answer_len, request->answer, MHD_RESPMEM_PERSISTENT);
    if (response == NULL) {
        return MHD_NO;
    }
    enum MHD_Result result = MHD_NO;
    if (fill_headers(response, request)) {
        request->state = REQUEST_SENDING;
        result = MHD_queue_response(request->connection, (unsigned int)request->status, response);
    }
    MHD_destroy_response(response);
    return result;
}

void request_resume(Request *request)
{
    if (request->suspended) {
        request->suspended = false;
        MHD_resume_connection(request->connection);
        server_run_soon(request->server);
    }
}

void http_respond(HttpRequest *shown, int status, const char *content_type, Str body)
{
    Request *request = (Request *)shown;
    assert(request->state == REQUEST_HANDLED);
    assert(status >= 200 && status <= 599);
    request->state = REQUEST_ANSWERED;
    if (request->connection == NULL) {
        free_request(request);
        return;
    }
    request->status = status;
    request->content_type = content_type;
    request->answer = arena_copy(shown->arena, body.ptr, body.len);
    request->answer_len = body.len;
    request_resume(request);
}

void http_response_header(HttpRequest *shown, const char *name, Str value)
{
    Request *request = (Request *)shown;
    assert(request->header_count < HTTP_RESPONSE_HEADERS_MAX);
    if (str_has_control(value)) {
        return;
    }
    ResponseHeader *header = &request->headers[request->header_count++];
    header->name = arena_cstr(shown->arena, str_from(name));
    header->value = arena_cstr(shown->arena, value);
}

void http_problem(
    HttpRequest *request, int status, const char *slug, const char *title, const char *field,
    const char *format, ...)
{
    char detail[DETAIL_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    Buf json;
    buf_init(&json, PROBLEM_MAX);
    buf_printf(&json, "{\"type\":\"urn:stentor:problem:%s\",\"title\":", slug);
    buf_json(&json, str_from(title));
    buf_printf(&json, ",\"status\":%d,\"detail\":", status);
    buf_json(&json, str_from(detail));
    if (field != NULL) {
        buf_cstr(&json, ",\"field\":");
        buf_json(&json, str_slice(str_from(field), 0, DETAIL_MAX));
    }
    buf_char(&json, '}');
    assert(!json.full);
    http_respond(request, status, "application/problem+json", buf_view(&json));
    buf_done(&json);
}

// ---- arriving ----

static enum MHD_Result refuse_too_large(Request *request)
{
    request->state = REQUEST_HANDLED;
    request->dropped_bytes++; // so that the connection is closed: its rest is not a request
    http_problem(
        &request->shown, MHD_HTTP_CONTENT_TOO_LARGE, "body-too-large", "The body is too large",
        NULL, "the body may have at most %zu bytes", request->server->options.body_max);
    return send_answer(request);
}

static enum MHD_Result begin(Request *request, const char *url, const char *method)
{
    request->shown.method = arena_str(request->shown.arena, str_from(method));
    request->shown.path = arena_str(request->shown.arena, str_from(url));
    Str announced = http_header(&request->shown, "Content-Length");
    int64_t length = 0;
    // libmicrohttpd has refused what is not a number; what lies about its length is caught by
    // take_body.
    if (announced.len == 0 || !str_to_i64(announced, &length) || length <= 0) {
        return MHD_YES;
    }
    if ((uint64_t)length > request->server->options.body_max) {
        return refuse_too_large(request);
    }
    buf_reserve(&request->body, length < FIRST_BODY_BYTES ? (size_t)length : FIRST_BODY_BYTES);
    return MHD_YES;
}

// A body without a length (chunked) that grows past the limit: libmicrohttpd takes an answer only
// at its end, so as much again is read and thrown away, and then the connection is cut.
static enum MHD_Result take_body(Request *request, const char *data, size_t *size)
{
    size_t len = *size;
    *size = 0;
    if (request->state == REQUEST_READING && !buf_append(&request->body, data, len)) {
        request->state = REQUEST_TOO_LARGE;
        buf_done(&request->body);
        buf_init(&request->body, 0);
    }
    if (request->state == REQUEST_TOO_LARGE) {
        request->dropped_bytes += len;
    }
    return request->dropped_bytes <= request->server->options.body_max ? MHD_YES : MHD_NO;
}

static enum MHD_Result hand_over(Request *request)
{
    HttpServer *server = request->server;
    request->state = REQUEST_HANDLED;
    request->shown.body = buf_view(&request->body);
    server->options.handler(server->options.ctx, &request->shown);
    if (request->state == REQUEST_ANSWERED) {
        return send_answer(request);
    }
    request->suspended = true;
    MHD_suspend_connection(request->connection);
    return MHD_YES;
}

enum MHD_Result on_mhd_request(
    void *cls, struct MHD_Connection *connection, const char *url, const char *method,
    const char *version, const char *data, size_t *size, void **slot)
{
    (void)version;
    Request *request = *slot;
    if (request == NULL) {
        request = new_request(cls, connection);
        *slot = request;
        return begin(request, url, method);
    }
    if (*size > 0) {
        return take_body(request, data, size);
    }
    switch (request->state) {
    case REQUEST_READING:
        return hand_over(request);
    case REQUEST_TOO_LARGE:
        return refuse_too_large(request);
    case REQUEST_ANSWERED:
        return send_answer(request);
    case REQUEST_HANDLED: // resumed without an answer: the server is going away
    case REQUEST_SENDING:
        break;
    }
    return MHD_NO;
}

void on_mhd_completed(
    void *cls, struct MHD_Connection *connection, void **slot, enum MHD_RequestTerminationCode why)
{
    (void)cls;
    (void)connection;
    (void)why;
    Request *request = *slot;
    *slot = NULL;
    if (request != NULL) {
        finish(request);
    }
}

size_t on_mhd_unescape(void *cls, struct MHD_Connection *connection, char *text)
{
    (void)cls;
    (void)connection;
    return uri_unescape(text);
}

// ---- what the handler asks ----

static Str look_up(const HttpRequest *shown, enum MHD_ValueKind kind, const char *name)
{
    const Request *request = (const Request *)shown;
    if (request->connection == NULL) {
        return STR_EMPTY;
    }
    const char *value = NULL;
    size_t len = 0;
    if (MHD_lookup_connection_value_n(
            request->connection, kind, name, str_from(name).len, &value, &len) != MHD_YES ||
        value == NULL) {
        return STR_EMPTY;
    }
    return str_of(value, len);
}

Str http_header(const HttpRequest *request, const char *name)
{
    return look_up(request, MHD_HEADER_KIND, name);
}

Str http_query(const HttpRequest *request, const char *name)
{
    return look_up(request, MHD_GET_ARGUMENT_KIND, name);
}
