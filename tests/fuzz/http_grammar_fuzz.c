// SPDX-License-Identifier: Apache-2.0
// links: stentor_http
// Requests built by the grammar of RFC 9112, one behind the other on a connection to a real server
// on the loopback, some with one fault. Law: what is well-formed comes to the handler as it was
// meant, to the byte; what two programs could read in two ways never does, and ends the connection.
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/http/server.h"
#include "tests/fuzz/choices.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    REQUESTS_MAX = 4,
    EXTRA_MAX = 12,
    BODY_MAX = 200,
    BYTES_MAX = 64 * 1024,
    GOT_MAX = 64 * 1024,
    PATIENCE_US = 20 * 1000 * 1000,
};

typedef enum Framing { FRAMING_NONE, FRAMING_LENGTH, FRAMING_CHUNKED } Framing;

typedef enum Fault {
    FAULT_NONE,
    FAULT_TWO_LENGTHS,
    FAULT_LENGTH_AND_CODING,
    FAULT_BLANK_BEFORE_COLON,
    FAULT_UNKNOWN_CODING,
    FAULT_TWO_CODINGS,
    FAULT_SIGNED_LENGTH,
    FAULT_LIST_OF_LENGTHS,
    FAULT_EMPTY_LENGTH,
    FAULT_TWO_HOSTS,
    FAULT_TWO_KEYS,
    FAULT_NO_HOST,
    FAULT_BARE_LF,
    FAULT_FOLDED,
    FAULT_FOLDED_LENGTH,
    FAULT_NUL,
    FAULT_NUL_LINE,
    FAULT_BARE_CR,
    FAULT_NO_COLON,
    FAULT_VERSION,
    FAULT_COUNT,
} Fault;

// What is written for a fault that is a line of its own.
#define LINE(text)                                                                                 \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }
static const Str fault_lines[FAULT_COUNT] = {
    [FAULT_TWO_LENGTHS] = LINE("Content-Length: 0\r\ncontent-length: 0\r\n"),
    [FAULT_LENGTH_AND_CODING] = LINE("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
    [FAULT_BLANK_BEFORE_COLON] = LINE("Content-Length : 5\r\n"),
    [FAULT_UNKNOWN_CODING] = LINE("Transfer-Encoding: xchunked\r\n"),
    [FAULT_TWO_CODINGS] = LINE("Transfer-Encoding: gzip, chunked\r\n"),
    [FAULT_SIGNED_LENGTH] = LINE("Content-Length: +5\r\n"),
    [FAULT_LIST_OF_LENGTHS] = LINE("Content-Length: 5, 5\r\n"),
    [FAULT_EMPTY_LENGTH] = LINE("Content-Length:\r\n"),
    [FAULT_TWO_HOSTS] = LINE("host: other\r\n"),
    [FAULT_TWO_KEYS] = LINE("Authorization: Bearer a\r\nAUTHORIZATION: Bearer b\r\n"),
    [FAULT_BARE_LF] = LINE("X-A: b\n"),
    [FAULT_FOLDED] = LINE("X-A: b\r\n c\r\n"),
    [FAULT_FOLDED_LENGTH] = LINE("Content-Leng: 5\r\n\tth\r\n"),
    [FAULT_NUL_LINE] = LINE("\0X-A: b\r\n"),
    [FAULT_NUL] = LINE("X-A: b\0c\r\n"),
    [FAULT_BARE_CR] = LINE("X-A: b\rc\r\n"),
    [FAULT_NO_COLON] = LINE("nonsense\r\n"),
};
#undef LINE

typedef struct Meant {
    Fault fault;
    Framing framing;
    Str method;
    Str path;
    Str body;
    bool keep_alive;
    bool extended; // has a chunk extension, which libmicrohttpd 1.0.1 refuses
} Meant;

static void put_chunk_end(Choices *choices, Meant *meant, Buf *out)
{
    bool extended = choose(choices, 4) == 1;
    meant->extended = meant->extended || extended;
    buf_str(out, extended ? STR(";ext=\"a\"\r\n") : STR("\r\n"));
}

static void put_chunks(Choices *choices, Meant *meant, Buf *out)
{
    Str body = meant->body;
    while (body.len > 0) {
        size_t len = 1 + choose(choices, 64);
        Str chunk = str_slice(body, 0, len);
        buf_printf(out, choose(choices, 2) == 0 ? "%zx" : "0%zX", chunk.len);
        put_chunk_end(choices, meant, out);
        buf_str(out, chunk);
        buf_str(out, STR("\r\n"));
        body = str_slice(body, chunk.len, body.len);
    }
    buf_str(out, STR("0\r\n"));
    if (choose(choices, 4) == 1) {
        buf_str(out, STR("X-Trailer: t\r\n"));
    }
    buf_str(out, STR("\r\n"));
}

static void put_extra(Choices *choices, Buf *out)
{
    static const char *const values[] = {"", "a", " a b\t", "a:b", "\xc3\xbc", "chunked", "5"};
    for (uint32_t i = choose(choices, EXTRA_MAX); i > 0; i--) {
        buf_printf(out, "X-%u!#$%%&'*+-.^_`|~:", i);
        buf_str(out, CHOOSE_TEXT(choices, values));
        buf_str(out, STR("\r\n"));
    }
}

static void put_framing(Choices *choices, Meant *meant, Buf *out)
{
    static const char *const codings[] = {
        "Transfer-Encoding: chunked\r\n", "transfer-encoding:\tCHUNKED\r\n"};
    meant->framing = (Framing)choose(choices, 3);
    if (meant->framing == FRAMING_NONE || meant->fault != FAULT_NONE) {
        meant->framing = FRAMING_NONE;
        return;
    }
    meant->body = choose_bytes(choices, BODY_MAX);
    if (meant->framing == FRAMING_CHUNKED) {
        buf_str(out, CHOOSE_TEXT(choices, codings));
    } else {
        buf_printf(
            out, "cOnTeNt-LeNgTh: %s%zu\r\n", choose(choices, 3) == 1 ? "000" : "",
            meant->body.len);
    }
}

static void put_request_line(Choices *choices, Meant *meant, Buf *out)
{
    static const char *const methods[] = {"GET", "POST", "PUT", "DELETE", "PATCH"};
    static const char *const paths[] = {"/", "/v1/notifications", "/v1/a-b_c~d", "/a;b=c,d"};
    static const char *const queries[] = {"", "?", "?a=b", "?a=b&c=%20d&e", "?a=b?c=d"};
    meant->method = CHOOSE_TEXT(choices, methods);
    meant->path = CHOOSE_TEXT(choices, paths);
    buf_str(out, meant->method);
    buf_char(out, ' ');
    buf_str(out, meant->path);
    buf_str(out, CHOOSE_TEXT(choices, queries));
    buf_str(out, meant->fault == FAULT_VERSION ? STR(" HTTP/2.0\r\n") : STR(" HTTP/1.1\r\n"));
}

static void put_request(Choices *choices, Meant *meant, Buf *out)
{
    *meant = (Meant){.fault = (Fault)choose(choices, FAULT_COUNT * 2), .keep_alive = true};
    meant->fault = meant->fault < FAULT_COUNT ? meant->fault : FAULT_NONE;
    put_request_line(choices, meant, out);
    if (meant->fault != FAULT_NO_HOST) {
        buf_str(out, STR("Host: a\r\n"));
    }
    put_extra(choices, out);
    buf_str(out, fault_lines[meant->fault]);
    put_framing(choices, meant, out);
    if (choose(choices, 4) == 1) {
        buf_str(out, STR("Connection: foo, close\r\n"));
        meant->keep_alive = false;
    }
    buf_str(out, STR("\r\n"));
    if (meant->fault == FAULT_NONE && meant->framing == FRAMING_CHUNKED) {
        put_chunks(choices, meant, out);
    } else {
        buf_str(out, meant->body);
    }
}

// ---- the server ----

typedef struct Stage {
    uv_loop_t loop;
    HttpServer *server;
    struct sockaddr_in at;
    const Meant *meant; // of the input that is tried
    size_t count;
    size_t handled;
    Str sent;
    Buf got;
} Stage;

static void on_request(void *ctx, HttpRequest *request)
{
    Stage *stage = ctx;
    assert(stage->handled < stage->count);
    const Meant *meant = &stage->meant[stage->handled++];
    assert(meant->fault == FAULT_NONE);
    assert(str_eq(request->method, meant->method) && str_eq(request->path, meant->path));
    assert(str_eq(request->body, meant->body));
    assert(str_eq(http_header(request, "HOST"), STR("a")));
    http_respond(request, 200, "text/plain", STR("ok"));
}

static Stage *open_stage(void)
{
    static Stage stage;
    if (stage.server != NULL) {
        return &stage;
    }
    Error err = {0};
    HttpServerOptions options = {
        .bind = "127.0.0.1", .body_max = 1024, .handler = on_request, .ctx = &stage};
    assert(uv_loop_init(&stage.loop) == 0);
    stage.server = http_server_new(&stage.loop, &options, &err);
    assert(stage.server != NULL);
    stage.at.sin_family = AF_INET;
    stage.at.sin_port = htons((uint16_t)http_server_port(stage.server));
    stage.at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    buf_init(&stage.got, GOT_MAX);
    return &stage;
}

static int dial(const Stage *stage)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct linger reset = {.l_onoff = 1}; // so that no port waits
    assert(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset) == 0);
    assert(connect(fd, (const struct sockaddr *)&stage->at, sizeof stage->at) == 0);
    assert(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    return fd;
}

// A turn of the loop; what has come is in `got`. false: the connection is closed.
static bool turn(Stage *stage, int fd)
{
    (void)uv_run(&stage->loop, UV_RUN_NOWAIT);
    if (!buf_reserve(&stage->got, 4096)) {
        return false;
    }
    ssize_t len = recv(fd, stage->got.ptr + stage->got.len, 4096, 0);
    stage->got.len += len > 0 ? (size_t)len : 0;
    return len > 0 || (len < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

static size_t answers(Stage *stage)
{
    size_t count = 0;
    for (const char *at = buf_c(&stage->got); (at = strstr(at, "HTTP/1.1 ")) != NULL; at++) {
        count++;
    }
    return count;
}

static void fail(Stage *stage, const char *what)
{
    (void)fprintf(
        stderr, "%s\n--- sent\n" STR_FMT "\n--- got\n%s\n", what, STR_ARG(stage->sent),
        buf_c(&stage->got));
    abort();
}

// Until `expected` answers are there and, if it must be, the connection is closed.
static void await(Stage *stage, int fd, Str bytes, size_t expected, bool closed)
{
    int64_t until_us = clock_mono_us() + PATIENCE_US;
    bool open = true;
    while (open && (closed || answers(stage) < expected)) {
        if (clock_mono_us() > until_us) {
            fail(stage, "no answer in time");
        }
        ssize_t sent = bytes.len > 0 ? send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL) : 0;
        bytes = sent > 0 ? str_slice(bytes, (size_t)sent, bytes.len) : bytes;
        open = turn(stage, fd);
    }
    if (answers(stage) < expected) {
        fail(stage, "an answer is missing");
    }
}

// How many of the requests are answered; *ret_closed: and then the connection ends.
static size_t expected_of(const Meant *meant, size_t count, bool *ret_closed)
{
    for (size_t i = 0; i < count; i++) {
        if (meant[i].fault != FAULT_NONE || !meant[i].keep_alive ||
            meant[i].framing == FRAMING_CHUNKED) { // which end a connection too
            *ret_closed = true;
            return i + 1;
        }
    }
    *ret_closed = false;
    return count;
}

// The last one that is answered: refused if it has a fault, and not handed over.
static void check_last(Stage *stage, const Meant *last, size_t expected)
{
    const char *status = last->fault == FAULT_VERSION ? "HTTP/1.1 505 " : "HTTP/1.1 400 ";
    bool answered_so = strstr(buf_c(&stage->got), status) != NULL;
    bool refused = last->fault != FAULT_NONE || (last->extended && answered_so);
    assert(stage->handled == (refused ? expected - 1 : expected));
    assert(answered_so == refused);
}

static void try_requests(Stage *stage, const Meant *meant, size_t count, Str bytes)
{
    bool closed = false;
    size_t expected = expected_of(meant, count, &closed);
    stage->meant = meant;
    stage->count = count;
    stage->handled = 0;
    stage->sent = bytes;
    buf_clear(&stage->got);
    int fd = dial(stage);
    await(stage, fd, bytes, expected, closed);
    if (closed) {
        check_last(stage, &meant[expected - 1], expected);
    }
    close(fd);
    for (int i = 0; i < 8; i++) { // the server sees that it is gone
        (void)uv_run(&stage->loop, UV_RUN_NOWAIT);
    }
    stage->count = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Choices choices = {data, data + size};
    Meant meant[REQUESTS_MAX];
    size_t count = 1 + choose(&choices, REQUESTS_MAX);
    Buf out;
    buf_init(&out, BYTES_MAX);
    for (size_t i = 0; i < count; i++) {
        put_request(&choices, &meant[i], &out);
    }
    assert(!out.full);
    try_requests(open_stage(), meant, count, buf_view(&out));
    buf_done(&out);
    return 0;
}
