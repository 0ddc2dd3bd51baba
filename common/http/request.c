// SPDX-License-Identifier: Apache-2.0
// One request as the handler sees it: what it asks, and the answer it gives.
#include "common/http/internal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/http/uri.h"

enum {
    FIRST_ARENA_BYTES = 4096,
    DETAIL_MAX = 1024,
    PROBLEM_MAX = 16 * 1024,
    ANSWER_HEAD_MAX = 16 * 1024,
};

// ---- life ----

Request *request_new(Connection *connection)
{
    Arena *arena = arena_new(FIRST_ARENA_BYTES);
    Request *request = arena_zalloc(arena, sizeof *request);
    request->shown.arena = arena;
    request->shown.received_at_us = clock_now_us();
    request->shown.body_max = connection->server->options.body_max;
    request->connection = connection;
    buf_init(&request->body, connection->server->options.body_max);
    connection->server->request_count++;
    return request;
}

static void free_request(Request *request)
{
    buf_done(&request->body);
    arena_free(request->shown.arena);
}

void request_end(Request *request)
{
    HttpServer *server = request->connection->server;
    bool handled = request->connection->state == CONNECTION_HANDLED && !request->responded;
    server->request_count--;
    server->bodies_bytes -= request->counted;
    request->connection->request = NULL;
    request->connection = NULL;
    if (!handled) {
        free_request(request);
    }
}

void http_request_known(HttpRequest *shown)
{
    Connection *connection = ((Request *)shown)->connection;
    if (connection != NULL) {
        connection->known = true;
        connection_leave_place(connection);
    }
}

// ---- what the handler asks ----

Str http_header(const HttpRequest *shown, const char *name)
{
    return http_head_field(&((const Request *)shown)->head, str_from(name));
}

static Str decode(Str text, Arena *arena)
{
    char *copy = arena_cstr(arena, text);
    for (size_t i = 0; i < text.len; i++) {
        copy[i] = copy[i] == '+' ? ' ' : copy[i];
    }
    return str_of(copy, uri_unescape(copy));
}

Str http_query(const HttpRequest *shown, const char *name)
{
    Str rest = ((const Request *)shown)->head.query;
    Str wanted = str_from(name);
    Str pair = STR_EMPTY;
    while (rest.len > 0 && str_split(&rest, '&', &pair)) {
        Str key = STR_EMPTY;
        if (!str_split(&pair, '=', &key)) {
            continue;
        }
        bool plain = str_find(key, '%') < 0 && str_find(key, '+') < 0;
        if (str_eq(plain ? key : decode(key, shown->arena), wanted)) {
            return pair.len == 0 ? STR_EMPTY : decode(pair, shown->arena);
        }
    }
    return STR_EMPTY;
}

// ---- the answer ----

static const char *reason_of(int status)
{
    // clang-format off
    static const struct { int status; const char *reason; } REASONS[] = {
        {200, "OK"}, {201, "Created"}, {202, "Accepted"}, {204, "No Content"}, {302, "Found"}, {303, "See Other"},
        {304, "Not Modified"}, {400, "Bad Request"}, {401, "Unauthorized"}, {403, "Forbidden"}, {404, "Not Found"},
        {405, "Method Not Allowed"}, {408, "Request Timeout"}, {409, "Conflict"}, {410, "Gone"},
        {412, "Precondition Failed"}, {413, "Content Too Large"}, {414, "URI Too Long"}, {415, "Unsupported Media Type"},
        {417, "Expectation Failed"}, {422, "Unprocessable Content"}, {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"}, {500, "Internal Server Error"}, {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };
    // clang-format on
    for (size_t i = 0; i < sizeof REASONS / sizeof REASONS[0]; i++) {
        if (REASONS[i].status == status) {
            return REASONS[i].reason;
        }
    }
    return "Status";
}

static void put_header(Buf *out, Str name, Str value)
{
    buf_str(out, name);
    buf_str(out, STR(": "));
    buf_str(out, value);
    buf_str(out, STR("\r\n"));
}

static void put_head(Request *request, int status, const char *content_type, size_t len, Buf *out)
{
    buf_printf(out, "HTTP/1.1 %d %s\r\n", status, reason_of(status));
    put_header(out, STR("Date"), server_date(request->connection->server, clock_now_us()));
    if (status != 204 && status != 304) {
        buf_printf(out, "Content-Length: %zu\r\n", len);
    }
    if (content_type != NULL) {
        put_header(out, STR("Content-Type"), str_from(content_type));
    }
    for (size_t i = 0; i < request->header_count; i++) {
        put_header(out, request->headers[i].name, request->headers[i].value);
    }
    if (request->last) {
        buf_str(out, STR("Connection: close\r\n"));
    }
    buf_str(out, STR("\r\n"));
}

void http_respond(HttpRequest *shown, int status, const char *content_type, Str body)
{
    Request *request = (Request *)shown;
    assert(!request->responded);
    assert(status >= 200 && status <= 599);
    request->responded = true;
    if (request->connection == NULL) {
        free_request(request);
        return;
    }
    assert(request->connection->state == CONNECTION_HANDLED);
    // What is left of a body is not read only to be thrown away, and is no next request.
    request->last = request->last || !request->head.keep_alive || !request->body_whole ||
                    request->connection->server->stopping ||
                    (request->connection->eof && request->connection->in.len == 0);
    Buf head;
    buf_init(&head, ANSWER_HEAD_MAX);
    put_head(request, status, content_type, body.len, &head);
    assert(!head.full);
    bool bare = status == 204 || status == 304 || str_eq(shown->method, STR("HEAD"));
    connection_send(request->connection, (const Str[2]){buf_view(&head), bare ? STR_EMPTY : body});
    buf_done(&head);
}

void http_response_header(HttpRequest *shown, const char *name, Str value)
{
    Request *request = (Request *)shown;
    assert(request->header_count < HTTP_RESPONSE_HEADERS_MAX);
    if (str_has_control(value)) {
        return;
    }
    request->headers[request->header_count++] =
        (ResponseHeader){arena_str(shown->arena, str_from(name)), arena_str(shown->arena, value)};
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

void request_refuse(Request *request, const HttpRefusal *refusal)
{
    request->last = true;
    if (refusal->status == 503 || refusal->status == 429) {
        http_response_header(&request->shown, "Retry-After", STR("2"));
    }
    http_problem(
        &request->shown, refusal->status, refusal->slug, refusal->title, NULL, "%s",
        refusal->detail);
}
