// SPDX-License-Identifier: Apache-2.0
// The answer of a request: through libmicrohttpd, or past it before the end of a body.
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/http/access_log.h"

enum { DATE_MAX = 40 };

#define REQUEST_ID_HEADER "Stentor-Request-Id"

// ---- the answer through libmicrohttpd ----

// false when memory is out inside libmicrohttpd: the connection is closed then.
static bool fill_headers(struct MHD_Response *response, const Request *request)
{
    bool ok = true;
    if (request->content_type != NULL) {
        ok = MHD_add_response_header(response, "Content-Type", request->content_type) == MHD_YES;
    }
    ok = ok && MHD_add_response_header(response, REQUEST_ID_HEADER, request->shown.id) == MHD_YES;
    for (size_t i = 0; i < request->header_count; i++) {
        const ResponseHeader *header = &request->headers[i];
        ok = ok && MHD_add_response_header(response, header->name, header->value) == MHD_YES;
    }
    if (request->server->stopping || request->last) {
        ok = ok && MHD_add_response_header(response, "Connection", "close") == MHD_YES;
    }
    return ok;
}

enum MHD_Result request_send_answer(Request *request)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        request->answer_len, request->answer, MHD_RESPMEM_PERSISTENT);
    if (response == NULL) {
        return MHD_NO;
    }
    enum MHD_Result result = MHD_NO;
    if (fill_headers(response, request)) {
        request->state = REQUEST_SENDING;
        connection_move(request->connection, CONNECTION_SENDING);
        result = MHD_queue_response(request->mhd, (unsigned int)request->status, response);
    }
    MHD_destroy_response(response);
    return result;
}

void request_resume(Request *request)
{
    if (request->suspended) {
        request->suspended = false;
        MHD_resume_connection(request->mhd);
        server_run_soon(request->server);
    }
}

static void respond(Request *request, int status, const char *content_type, Str body)
{
    assert(request->state == REQUEST_HANDLED);
    assert(status >= 200 && status <= 599);
    if (request->shown.on_respond != NULL) {
        void (*on_respond)(void *, int, const char *, Str) = request->shown.on_respond;
        request->shown.on_respond = NULL;
        on_respond(request->shown.on_respond_ctx, status, content_type, body);
        return;
    }
    request->state = REQUEST_ANSWERED;
    if (request->server != NULL) {
        access_log_write(request->server, &request->shown, status);
    }
    if (request->connection == NULL) {
        request_free(request);
        return;
    }
    request->status = status;
    request->content_type = content_type;
    request->answer = (void *)(uintptr_t)body.ptr; // libmicrohttpd only reads it
    request->answer_len = body.len;
    request_resume(request);
}

void http_respond(HttpRequest *shown, int status, const char *content_type, Str body)
{
    respond((Request *)shown, status, content_type, arena_str(shown->arena, body));
}

void http_respond_kept(HttpRequest *shown, int status, const char *content_type, Str body)
{
    respond((Request *)shown, status, content_type, body);
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

Str http_response_header_of(const HttpRequest *shown, const char *name)
{
    const Request *request = (const Request *)shown;
    for (size_t i = 0; i < request->header_count; i++) {
        if (strcmp(request->headers[i].name, name) == 0) {
            return str_from(request->headers[i].value);
        }
    }
    return STR_EMPTY;
}

// ---- the answer before the body's end ----

static void write_status(Buf *out, int status)
{
    char date[DATE_MAX];
    time_t now_s = (time_t)(clock_now_us() / 1000000);
    struct tm now;
    (void)gmtime_r(&now_s, &now);
    (void)strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &now); // in the locale "C"
    buf_printf(
        out, "HTTP/1.1 %d %s\r\nDate: %s\r\nConnection: close\r\n", status,
        MHD_get_reason_phrase_for((unsigned int)status), date);
}

static void write_headers(
    Buf *out, const ResponseHeader *headers, size_t count, const char *request_id)
{
    for (size_t i = 0; i < count; i++) {
        buf_printf(out, "%s: %s\r\n", headers[i].name, headers[i].value);
    }
    buf_printf(out, REQUEST_ID_HEADER ": %s\r\n\r\n", request_id);
}

static void write_answer(
    Buf *out, int status, const char *content_type, const ResponseHeader *headers, size_t count,
    const char *request_id, Str body)
{
    write_status(out, status);
    buf_printf(out, "Content-Length: %zu\r\n", body.len);
    if (content_type != NULL) {
        buf_printf(out, "Content-Type: %s\r\n", content_type);
    }
    write_headers(out, headers, count, request_id);
    buf_str(out, body);
}

// Its end is the connection's. nginx does not gather it, and nothing keeps it.
void request_write_stream_head(const Request *request, Buf *out)
{
    write_status(out, 200);
    buf_cstr(
        out, "Content-Type: text/event-stream\r\nCache-Control: no-store\r\n"
             "X-Accel-Buffering: no\r\n");
    write_headers(out, request->headers, request->header_count, request->shown.id);
}

static const ResponseHeader RETRY_AFTER = {"Retry-After", "2"};

static bool is_for_now(const HttpRefusal *refusal)
{
    return refusal->status == 503 || refusal->status == 429;
}

void request_write_refusal(const HttpRefusal *refusal, Buf *out)
{
    Buf json;
    char id[ID_SIZE];
    id_new(REQUEST_ID_PREFIX, clock_now_us(), id);
    buf_init(&json, HTTP_PROBLEM_MAX);
    const HttpProblem problem = {
        .status = refusal->status,
        .slug = refusal->slug,
        .title = refusal->title,
        .detail = refusal->detail,
        .request_id = id,
    };
    problem_write(&json, &problem);
    write_answer(
        out, refusal->status, "application/problem+json", &RETRY_AFTER, is_for_now(refusal), id,
        buf_view(&json));
    buf_done(&json);
}

enum MHD_Result request_answer_early(Request *request)
{
    Buf bytes;
    buf_init(&bytes, HEAD_MAX + request->answer_len);
    write_answer(
        &bytes, request->status, request->content_type, request->headers, request->header_count,
        request->shown.id, str_of(request->answer, request->answer_len));
    assert(!bytes.full);
    request->state = REQUEST_DISCARDING;
    request->server->bodies_bytes -= request->counted;
    request->counted = 0;
    buf_done(&request->body);
    buf_init(&request->body, 0);
    connection_answer_early(request->connection, buf_view(&bytes));
    buf_done(&bytes);
    return MHD_YES;
}

enum MHD_Result request_refuse(Request *request, const HttpRefusal *refusal)
{
    request->state = REQUEST_HANDLED;
    if (is_for_now(refusal)) {
        http_response_header(&request->shown, RETRY_AFTER.name, str_from(RETRY_AFTER.value));
    }
    http_problem(
        &request->shown, refusal->status, refusal->slug, refusal->title, NULL, "%s",
        refusal->detail);
    return request_answer_early(request);
}

void request_write_too_large(Request *request)
{
    request->state = REQUEST_HANDLED;
    http_problem(
        &request->shown, MHD_HTTP_CONTENT_TOO_LARGE, "body-too-large", "The body is too large",
        NULL, "the body may have at most %zu bytes", request->shown.body_max);
}
