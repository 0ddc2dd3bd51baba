// SPDX-License-Identifier: Apache-2.0
// One request, in the order in which things happen: on_mhd_uri, begin, take_body, hand_over,
// http_respond, request_send_answer, finish. libmicrohttpd calls on_mhd_request for begin (the
// headers), take_body (each piece of body), hand_over (the end) and, for an answer that came later,
// request_send_answer once the connection was resumed; on_mhd_completed for finish.
#include "common/http/internal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/http/uri.h"

enum {
    FIRST_ARENA_BYTES = 4096,
    FIRST_BODY_BYTES = 64 * 1024, // reserved for a Content-Length, no more
    LINGER_BYTES = 16 * 1024 * 1024,
    QUERY_ARGUMENTS_MAX = 200, // each takes some of libmicrohttpd's memory for the headers
};

// clang-format off
static const HttpRefusal NO_PLACE = {429, "too-many-connections", "Too many connections",
    "this address has too many requests that have not shown a valid key"};
static const HttpRefusal NO_MEMORY = {503, "unavailable", "Temporarily unavailable",
    "too many large bodies are being read; send the request again"};
static const HttpRefusal TOO_MANY_FIELDS = {431, "head-too-large", "The head is too large",
    "a request may have at most 100 headers"};
static const HttpRefusal TOO_MANY_ARGUMENTS = {414, "target-too-long", "The URI is too long",
    "a query may have at most 200 arguments"};
static const HttpRefusal NOT_A_TARGET = {400, "malformed-request", "The request is malformed",
    "method and target must be one word each, without a control character; escape them as %20"};
static const HttpRefusal NOT_A_LENGTH = {400, "ambiguous-request", "The request's length is ambiguous",
    "Content-Length is not a number of 1 to 15 digits, or the cookies are too long"};
static const HttpRefusal NOT_PLAIN = {400, "ambiguous-request", "The request's length is ambiguous",
    "each header must end with CR LF and be on one line, without a NUL"};
static const HttpRefusal NOT_A_PATH = {400, "malformed-request", "The request is malformed",
    "the target must be a path that begins with '/'"};
// clang-format on

// ---- start and end ----

static Connection *connection_of(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
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

void request_free(Request *request)
{
    buf_done(&request->body);
    arena_free(request->shown.arena);
}

static Request *new_request(HttpServer *server, struct MHD_Connection *mhd)
{
    Arena *arena = arena_new(FIRST_ARENA_BYTES);
    Request *request = arena_zalloc(arena, sizeof *request);
    request->shown.arena = arena;
    request->shown.received_at_us = clock_now_us();
    id_new(REQUEST_ID_PREFIX, request->shown.received_at_us, request->shown.id);
    request->shown.body_max = server->options.body_max;
    request->server = server;
    request->connection = connection_of(mhd);
    request->mhd = mhd;
    buf_init(&request->body, server->options.body_max);
    request->next = server->requests;
    if (server->requests != NULL) {
        server->requests->previous = request;
    }
    server->requests = request;
    return request;
}

// libmicrohttpd has sent the answer, or the client has left. A request that is with the handler
// outlives its connection: http_respond frees it.
static void finish(Request *request)
{
    Connection *c = request->connection;
    c->served = true;
    if (c->behind_proxy) {
        connection_leave_place(c);
    }
    if (c->state == CONNECTION_SENDING) {
        connection_move(c, CONNECTION_WAITING);
    }
    if (!c->behind_proxy && c->placed) { // the place stays, the memory is free again
        (void)http_places_bytes(request->server->places, &c->client, -c->place_bytes, 0);
        c->place_bytes = 0;
    }
    request->server->bodies_bytes -= request->counted;
    unlink_request(request);
    if (request->state == REQUEST_HANDLED) {
        request->connection = NULL;
        request->mhd = NULL;
        request->server = NULL;
        return;
    }
    request_free(request);
}

void http_request_known(HttpRequest *shown)
{
    Connection *connection = ((Request *)shown)->connection;
    if (connection != NULL) {
        connection->known = true;
        connection_leave_place(connection);
    }
}

// ---- arriving ----

static void refuse_connection(Connection *c, const HttpRefusal *refusal)
{
    Buf answer;
    buf_init(&answer, HTTP_PROBLEM_MAX + HEAD_MAX);
    request_write_refusal(refusal, &answer);
    connection_answer_early(c, buf_view(&answer));
    buf_done(&answer);
}

static bool is_one_word(Str target)
{
    for (size_t i = 0; i < target.len; i++) {
        unsigned char c = (unsigned char)target.ptr[i];
        if (c <= ' ' || c == 0x7f) {
            return false;
        }
    }
    return target.len > 0;
}

// The request line is there. libmicrohttpd keeps the arguments in its memory for the headers and
// closes without an answer when that is full.
void *on_mhd_uri(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    (void)cls;
    Connection *c = connection_of(mhd);
    if (c->state != CONNECTION_WAITING) {
        return NULL; // behind an answer that ended the connection
    }
    connection_move(c, CONNECTION_HEAD);
    c->target = str_from(uri);
    size_t arguments = 0;
    for (const char *p = strchr(uri, '?'); p != NULL; p = strchr(p + 1, '&')) {
        arguments++;
    }
    if (!is_one_word(c->target)) {
        refuse_connection(c, &NOT_A_TARGET);
    } else if (arguments > QUERY_ARGUMENTS_MAX) {
        refuse_connection(c, &TOO_MANY_ARGUMENTS);
    }
    return NULL;
}

// libmicrohttpd 0.9 answers 400 to some heads by itself, a length that is no number among them, and
// then writes the head of its answer twice. It says so in its log first: the request whose headers
// are whole, were not shown to us and have no answer yet is the one.
void on_mhd_trouble(void *cls, const char *format, va_list args)
{
    (void)format;
    (void)args;
    HttpServer *server = cls;
    for (Connection *c = server->lenient ? server->connections : NULL; c != NULL; c = c->next) {
        if (c->state == CONNECTION_HEAD &&
            MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE) != NULL &&
            MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_HTTP_STATUS) == NULL) {
            refuse_connection(c, &NOT_A_LENGTH);
        }
    }
}

typedef struct FieldList {
    HttpField *fields;
    size_t count; // also of those beyond the limit
} FieldList;

static enum MHD_Result on_mhd_field(
    void *cls, enum MHD_ValueKind kind, const char *name, size_t name_len, const char *value,
    size_t value_len)
{
    (void)kind;
    FieldList *list = cls;
    if (list->count < HTTP_FIELDS_MAX) {
        list->fields[list->count] =
            (HttpField){str_of(name, name_len), str_of(value, value == NULL ? 0 : value_len)};
    }
    list->count++;
    return MHD_YES;
}

// What the server itself refuses at the headers. NULL: nothing.
static const HttpRefusal *check_head(Request *request, const HttpHead *head, HttpRefusal *slot)
{
    if (!http_is_token(request->shown.method)) {
        return &NOT_A_TARGET;
    }
    HttpField fields[HTTP_FIELDS_MAX];
    FieldList list = {fields, 0};
    MHD_get_connection_values_n(request->mhd, MHD_HEADER_KIND, on_mhd_field, &list);
    if (list.count > HTTP_FIELDS_MAX) {
        return &TOO_MANY_FIELDS;
    }
    if (request->server->lenient && !http_head_is_plain(head, fields, list.count)) {
        return &NOT_PLAIN;
    }
    if (!http_framing_read(fields, list.count, str_from(head->version), &request->framing, slot)) {
        return slot;
    }
    if (!str_starts(request->shown.path, STR("/")) && !str_eq(request->shown.path, STR("*"))) {
        return &NOT_A_PATH;
    }
    bool placed = connection_find_client(request->connection, fields, list.count);
    request->shown.client = request->connection->client;
    return placed ? NULL : &NO_PLACE;
}

// ---- what was escaped ----

typedef struct TextScan {
    Request *request;
    bool wrong; // what and field tell
    const char *what;
    const char *field; // NULL: its name is wrong itself
} TextScan;

static enum MHD_Result on_mhd_argument(
    void *cls, enum MHD_ValueKind kind, const char *name, size_t name_len, const char *value,
    size_t value_len)
{
    (void)kind;
    TextScan *scan = cls;
    Str key = str_of(name, name_len);
    if (!str_is_utf8(key)) {
        *scan = (TextScan){scan->request, true, "the name of a query argument", NULL};
        return MHD_NO;
    }
    if (value != NULL && !str_is_utf8(str_of(value, value_len))) {
        const char *field = arena_cstr(scan->request->shown.arena, key);
        *scan = (TextScan){scan->request, true, "the argument's value", field};
        return MHD_NO;
    }
    return MHD_YES;
}

// The one place where what a client escaped is judged: path and query are UTF-8 for every handler.
// false: answered, with the argument's name.
static bool check_text(Request *request)
{
    TextScan scan = {.request = request};
    if (!str_is_utf8(request->shown.path)) {
        scan = (TextScan){request, true, "the path", NULL};
    } else {
        MHD_get_connection_values_n(request->mhd, MHD_GET_ARGUMENT_KIND, on_mhd_argument, &scan);
    }
    if (scan.wrong) {
        request->state = REQUEST_HANDLED;
        http_problem(
            &request->shown, 400, "invalid-text", "The address is not text", scan.field,
            "%s is not UTF-8 once its escapes are decoded", scan.what);
    }
    return !scan.wrong;
}

static bool admit(Request *request)
{
    const HttpServerOptions *options = &request->server->options;
    request->state = REQUEST_HANDLED;
    bool admitted = options->admit == NULL || options->admit(options->ctx, &request->shown);
    assert(admitted == (request->state == REQUEST_HANDLED));
    if (admitted) {
        request->state = REQUEST_READING;
    }
    if (admitted && request->framing.length > request->shown.body_max) {
        request_write_too_large(request);
        return false;
    }
    return admitted;
}

// What the body takes of the memory that all bodies have, before it takes it.
static bool make_room(Request *request, size_t more)
{
    Buf *body = &request->body;
    size_t need = body->len + more + 1;
    if (need <= body->cap || more == 0) {
        return true;
    }
    size_t cap = body->cap * 2 > need ? body->cap * 2 : need; // as Buf grows
    cap = cap > body->max + 1 ? body->max + 1 : cap;
    return connection_count_body(request->connection, request, cap);
}

static enum MHD_Result hand_over(Request *request)
{
    HttpServer *server = request->server;
    request->state = REQUEST_HANDLED;
    connection_move(request->connection, CONNECTION_HANDLED);
    request->shown.body = buf_view(&request->body);
    server->options.handler(server->options.ctx, &request->shown);
    if (request->state == REQUEST_ANSWERED) {
        return request_send_answer(request);
    }
    if (request->state != REQUEST_STREAMED) { // else it is suspended
        request->suspended = true;
        MHD_suspend_connection(request->mhd);
    }
    return MHD_YES;
}

static enum MHD_Result begin(
    Request *request, const char *url, const char *method, const char *version)
{
    request->shown.method = arena_str(request->shown.arena, str_from(method));
    request->shown.path = arena_str(request->shown.arena, str_from(url));
    connection_move(request->connection, CONNECTION_BODY);
    size_t size =
        MHD_get_connection_info(request->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)->header_size;
    HttpHead head = {method, size, request->connection->target, version};
    HttpRefusal slot;
    const HttpRefusal *refusal = check_head(request, &head, &slot);
    if (refusal != NULL) {
        return request_refuse(request, refusal);
    }
    bool has_body = request->framing.chunked || request->framing.length > 0;
    request->last = request->framing.chunked; // only the client says where it ends
    if (!check_text(request) || !admit(request)) {
        if (has_body && !request->framing.wants_100) {
            return request_answer_early(request);
        }
        request->last = has_body; // of a client that waits for the go-ahead to send it
        return request_send_answer(request);
    }
    if (!has_body && request->framing.wants_100) {
        return hand_over(request); // libmicrohttpd 0.9 takes an answer now or after a body
    }
    uint64_t length = request->framing.length;
    size_t first = length < FIRST_BODY_BYTES ? (size_t)length : FIRST_BODY_BYTES;
    if (!make_room(request, first)) {
        return request_refuse(request, &NO_MEMORY);
    }
    buf_reserve(&request->body, first);
    return MHD_YES;
}

static enum MHD_Result take_body(Request *request, Str data)
{
    request->connection->moved += data.len;
    if (request->state == REQUEST_DISCARDING) {
        return request->connection->moved <= LINGER_BYTES ? MHD_YES : MHD_NO;
    }
    assert(request->state == REQUEST_READING);
    if (data.len > request->shown.body_max - request->body.len) {
        request_write_too_large(request);
        return request_answer_early(request);
    }
    if (!make_room(request, data.len)) {
        return request_refuse(request, &NO_MEMORY);
    }
    (void)buf_str(&request->body, data);
    return MHD_YES;
}

enum MHD_Result on_mhd_request(
    void *cls, struct MHD_Connection *mhd, const char *url, const char *method, const char *version,
    const char *data, size_t *size, void **slot)
{
    Request *request = *slot;
    if (request == NULL) {
        if (connection_of(mhd)->state != CONNECTION_HEAD) {
            return MHD_NO; // what follows an answer that ended the connection is no request
        }
        request = new_request(cls, mhd);
        *slot = request;
        return begin(request, url, method, version);
    }
    if (*size > 0) {
        Str piece = str_of(data, *size);
        *size = 0;
        return take_body(request, piece);
    }
    switch (request->state) {
    case REQUEST_READING:
        return request->connection->state == CONNECTION_BODY ? hand_over(request) : MHD_NO;
    case REQUEST_ANSWERED:
        return request_send_answer(request);
    case REQUEST_DISCARDING:
    case REQUEST_HANDLED:  // resumed without an answer: the server is going away
    case REQUEST_STREAMED: // without its socket: it is at its end
    case REQUEST_SENDING:
        break;
    }
    return MHD_NO;
}

void on_mhd_completed(
    void *cls, struct MHD_Connection *mhd, void **slot, enum MHD_RequestTerminationCode why)
{
    (void)cls;
    (void)mhd;
    (void)why;
    Request *request = *slot;
    *slot = NULL;
    if (request != NULL) {
        finish(request);
    }
}

size_t on_mhd_unescape(void *cls, struct MHD_Connection *mhd, char *text)
{
    (void)cls;
    (void)mhd;
    return uri_unescape(text);
}

// ---- what the handler asks ----

// A copy: libmicrohttpd's memory goes with the connection, which http_server_free ends before the
// handler's answer.
static Str look_up(const HttpRequest *shown, enum MHD_ValueKind kind, const char *name)
{
    const Request *request = (const Request *)shown;
    if (request->mhd == NULL) {
        return STR_EMPTY;
    }
    const char *value = NULL;
    size_t len = 0;
    if (MHD_lookup_connection_value_n(request->mhd, kind, name, str_from(name).len, &value, &len) !=
            MHD_YES ||
        value == NULL) {
        return STR_EMPTY;
    }
    return arena_str(shown->arena, str_of(value, len));
}

Str http_header(const HttpRequest *request, const char *name)
{
    return str_trim(look_up(request, MHD_HEADER_KIND, name)); // libmicrohttpd leaves a tab
}

Str http_query(const HttpRequest *request, const char *name)
{
    return look_up(request, MHD_GET_ARGUMENT_KIND, name);
}

typedef struct ArgumentList {
    const HttpRequest *shown;
    HttpArgument *to;
    size_t count, max;
} ArgumentList;

static enum MHD_Result on_mhd_listed(
    void *cls, enum MHD_ValueKind kind, const char *name, size_t name_len, const char *value,
    size_t value_len)
{
    (void)kind;
    ArgumentList *list = cls;
    if (list->count < list->max) {
        Arena *arena = list->shown->arena;
        list->to[list->count] = (HttpArgument){
            arena_str(arena, str_of(name, name_len)),
            arena_str(arena, str_of(value, value == NULL ? 0 : value_len))};
    }
    list->count++;
    return MHD_YES;
}

size_t http_arguments(const HttpRequest *shown, HttpArgument *ret, size_t max)
{
    const Request *request = (const Request *)shown;
    ArgumentList list = {shown, ret, 0, max};
    if (request->mhd != NULL) {
        MHD_get_connection_values_n(request->mhd, MHD_GET_ARGUMENT_KIND, on_mhd_listed, &list);
    }
    return list.count;
}
