// SPDX-License-Identifier: Apache-2.0
// The session against nghttp2's server side, byte for byte and without a socket.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/http2/session.h"

enum { WIRE_MAX = 1 << 22, STREAMS = 100, SENT_MAX = 8, SMALL = 1024 };

typedef struct Sent {
    Http2Exchange exchange; // the first member
    int ends;
    Http2End how;
    uint32_t code;
    size_t got;
    size_t enough; // on_piece wants no more beyond this; 0: all
} Sent;

typedef struct Stage {
    Http2Session *client;
    nghttp2_session *server;
    Buf wire;
    size_t requests, bytes; // that the server saw whole; of bodies
    char path[64];
    Sent sent[SENT_MAX];
} Stage;

// ---- the server ----

static int on_header(
    nghttp2_session *server, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
    const uint8_t *value, size_t value_len, uint8_t flags, void *ctx)
{
    Stage *stage = ctx;
    (void)server, (void)frame, (void)flags;
    if (str_eq(str_of(name, name_len), STR(":path"))) {
        str_to_c(str_of(value, value_len), stage->path, sizeof stage->path);
    }
    return 0;
}

static int on_frame(nghttp2_session *server, const nghttp2_frame *frame, void *ctx)
{
    Stage *stage = ctx;
    (void)server;
    bool is_request = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    stage->requests += is_request && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    return 0;
}

static int on_data(
    nghttp2_session *server, uint8_t flags, int32_t stream, const uint8_t *bytes, size_t len,
    void *ctx)
{
    (void)server, (void)flags, (void)stream, (void)bytes;
    ((Stage *)ctx)->bytes += len;
    return 0;
}

static void serve(Stage *stage, uint32_t window)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 5},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window}};
    assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    assert_int_equal(nghttp2_session_server_new(&stage->server, callbacks, stage), 0);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(stage->server, NGHTTP2_FLAG_NONE, settings, 2);
}

// What the client has for the server.
static void up(Stage *stage)
{
    Error err = {0};
    do {
        buf_clear(&stage->wire);
        assert_true(http2_session_pull(stage->client, &stage->wire, &err));
        ssize_t taken = nghttp2_session_mem_recv(
            stage->server, (const uint8_t *)stage->wire.ptr, stage->wire.len);
        assert_int_equal(taken, stage->wire.len);
    } while (stage->wire.len > 0);
}

// What the server has for the client, in pieces of one byte too.
static void down(Stage *stage, size_t piece)
{
    const uint8_t *bytes;
    ssize_t len;
    Error err = {0};
    while ((len = nghttp2_session_mem_send(stage->server, &bytes)) > 0) {
        for (Str rest = str_of(bytes, (size_t)len); rest.len > 0;) {
            Str part = str_slice(rest, 0, piece);
            assert_true(http2_session_feed(stage->client, part, &err));
            rest = str_slice(rest, part.len, rest.len);
        }
    }
    assert_int_equal(len, 0);
}

static void both(Stage *stage)
{
    for (int i = 0; i < 4; i++) {
        up(stage);
        down(stage, 7);
    }
}

static ssize_t on_filler(
    nghttp2_session *server, int32_t stream, uint8_t *to, size_t len, uint32_t *flags,
    nghttp2_data_source *source, void *ctx)
{
    size_t *left = source->ptr;
    size_t taken = *left < len ? *left : len;
    (void)server, (void)stream, (void)ctx;
    memset(to, 'y', taken);
    *left -= taken;
    *flags |= *left == 0 ? NGHTTP2_DATA_FLAG_EOF : 0;
    return (ssize_t)taken;
}

#define NV(n, v)                                                                                   \
    {                                                                                              \
        .name = (uint8_t *)(uintptr_t)(n), .namelen = strlen(n),                                   \
        .value = (uint8_t *)(uintptr_t)(v), .valuelen = strlen(v)                                  \
    }

// `left` bytes of body; NULL: none.
static void answer(Stage *stage, int32_t stream, const char *status, size_t *left)
{
    nghttp2_nv head[] = {NV(":status", status), NV("x-one", "1"), NV("Content-Type", "a/b")};
    nghttp2_data_provider body = {.source = {.ptr = left}, .read_callback = on_filler};
    head[2].name = (uint8_t *)(uintptr_t) "content-type";
    nghttp2_submit_response(stage->server, stream, head, 3, left != NULL ? &body : NULL);
}

// ---- the client ----

static bool on_piece(Http2Exchange *exchange, Str bytes)
{
    Sent *sent = (Sent *)(void *)exchange;
    sent->got += bytes.len;
    return sent->enough == 0 || sent->got < sent->enough;
}

static void on_end(Http2Exchange *exchange, Http2End how, uint32_t code)
{
    Sent *sent = (Sent *)(void *)exchange;
    sent->ends++;
    sent->how = how;
    sent->code = code;
}

static Sent *send_body(Stage *stage, size_t n, Str body)
{
    Sent *sent = &stage->sent[n];
    sent->exchange = (Http2Exchange){
        .method = STR("POST"),
        .authority = STR("push.example"),
        .path = STR("/3/device/1"),
        .body = body,
        .head_max = SMALL,
        .answer_max = SMALL,
        .on_piece = on_piece,
        .on_end = on_end,
    };
    assert_true(http2_session_start(stage->client, &sent->exchange));
    return sent;
}

static Sent *send_one(Stage *stage, size_t n)
{
    return send_body(stage, n, STR("{}"));
}

static Stage *open_stage(void **state, uint32_t window)
{
    Stage *stage = xcalloc(1, sizeof *stage);
    Error err = {0};
    buf_init(&stage->wire, WIRE_MAX);
    stage->client = http2_session_new(STREAMS, &err);
    assert_non_null(stage->client);
    serve(stage, window);
    *state = stage;
    return stage;
}

static int stage_up(void **state)
{
    open_stage(state, 65535);
    return 0;
}

static int narrow_up(void **state)
{
    open_stage(state, 10);
    return 0;
}

static int stage_down(void **state)
{
    Stage *stage = *state;
    Http2Exchange *exchange;
    while ((exchange = http2_session_first(stage->client)) != NULL) {
        http2_session_abandon(exchange);
    }
    for (size_t i = 0; i < SENT_MAX; i++) {
        http2_exchange_done(&stage->sent[i].exchange);
    }
    http2_session_free(stage->client);
    nghttp2_session_del(stage->server);
    buf_done(&stage->wire);
    free(stage);
    return 0;
}

static void prove(Stage *stage)
{
    both(stage);
    Sent *first = send_one(stage, 0);
    both(stage);
    answer(stage, first->exchange.stream, "200", NULL);
    both(stage);
    assert_int_equal(first->ends, 1);
    assert_int_equal(first->how, HTTP2_END_ANSWERED);
}

// ---- tests ----

static void nothing_is_started_before_the_servers_settings(void **state)
{
    Stage *stage = *state;
    assert_int_equal(http2_session_room(stage->client), 0);
    assert_false(http2_session_is_ready(stage->client));
    both(stage);
    assert_true(http2_session_is_ready(stage->client));
    assert_int_equal(http2_session_room(stage->client), 1);
}

static void one_exchange_until_the_first_answer_then_as_many_as_the_server_allows(void **state)
{
    Stage *stage = *state;
    both(stage);
    Sent *first = send_one(stage, 0);
    assert_int_equal(http2_session_room(stage->client), 0);
    both(stage);
    assert_int_equal(stage->requests, 1);
    assert_string_equal(stage->path, "/3/device/1");
    assert_true(first->exchange.handed);
    answer(stage, first->exchange.stream, "200", NULL);
    both(stage);
    assert_int_equal(first->exchange.status, 200);
    Str type = http2_exchange_field(&first->exchange, STR("Content-Type"));
    assert_true(str_eq(type, STR("a/b")));
    assert_int_equal(http2_session_room(stage->client), 5);
}

static void goaway_refuses_what_is_above_and_lets_the_rest_go_on(void **state)
{
    Stage *stage = *state;
    prove(stage);
    Sent *below = send_one(stage, 1), *above = send_one(stage, 2);
    up(stage);
    static const uint8_t why[] = "{\"reason\":\"Shut\x01\"}";
    nghttp2_submit_goaway(
        stage->server, NGHTTP2_FLAG_NONE, below->exchange.stream, NGHTTP2_NO_ERROR, why,
        sizeof why - 1);
    down(stage, 3);
    assert_int_equal(above->ends, 1);
    assert_int_equal(above->how, HTTP2_END_REFUSED);
    assert_false(above->exchange.handed); // though its bytes went out
    assert_int_equal(below->ends, 0);
    assert_true(http2_session_is_draining(stage->client));
    assert_int_equal(http2_session_room(stage->client), 0);
    assert_string_equal(http2_session_goaway_text(stage->client), "{\"reason\":\"Shut?\"}");
    answer(stage, below->exchange.stream, "200", NULL);
    both(stage);
    assert_int_equal(below->how, HTTP2_END_ANSWERED);
    assert_int_equal(http2_session_open(stage->client), 0);
}

static void a_refused_stream_is_not_handed_and_a_reset_one_is(void **state)
{
    Stage *stage = *state;
    prove(stage);
    Sent *refused = send_one(stage, 1), *cut = send_one(stage, 2);
    up(stage);
    nghttp2_submit_rst_stream(stage->server, 0, refused->exchange.stream, NGHTTP2_REFUSED_STREAM);
    nghttp2_submit_rst_stream(stage->server, 0, cut->exchange.stream, NGHTTP2_INTERNAL_ERROR);
    down(stage, 100);
    assert_int_equal(refused->how, HTTP2_END_REFUSED);
    assert_false(refused->exchange.handed);
    assert_int_equal(cut->how, HTTP2_END_RESET);
    assert_int_equal(cut->code, NGHTTP2_INTERNAL_ERROR);
    assert_true(cut->exchange.handed);
    assert_int_equal(refused->ends + cut->ends, 2);
}

static void a_refusal_behind_a_status_is_no_refusal(void **state)
{
    Stage *stage = *state;
    prove(stage);
    size_t left = SMALL / 2;
    Sent *sent = send_one(stage, 1);
    up(stage);
    answer(stage, sent->exchange.stream, "200", &left);
    const uint8_t *bytes;
    ssize_t len = nghttp2_session_mem_send(stage->server, &bytes); // the head alone
    assert_true(http2_session_feed(stage->client, str_of(bytes, (size_t)len), NULL));
    nghttp2_submit_rst_stream(stage->server, 0, sent->exchange.stream, NGHTTP2_REFUSED_STREAM);
    down(stage, 100);
    assert_int_equal(sent->ends, 1);
    assert_int_not_equal(sent->how, HTTP2_END_REFUSED);
    assert_true(sent->exchange.handed && sent->exchange.head);
}

static void a_body_that_the_window_holds_back_is_not_handed(void **state)
{
    Stage *stage = *state;
    both(stage);
    Sent *sent = send_body(stage, 0, STR("0123456789abcdef"));
    up(stage);
    assert_false(sent->exchange.handed);
    assert_int_equal(stage->bytes, 10);
    down(stage, 100); // the window opens: the server has read what came
    up(stage);
    assert_true(sent->exchange.handed);
    assert_int_equal(stage->bytes, 16);
    assert_int_equal(stage->requests, 1);
}

static void an_answer_before_the_bodys_end_is_an_answer(void **state)
{
    Stage *stage = *state;
    both(stage);
    Sent *sent = send_body(stage, 0, STR("0123456789abcdef"));
    up(stage);
    answer(stage, sent->exchange.stream, "413", NULL);
    down(stage, 100);
    up(stage);
    assert_int_equal(sent->ends, 1);
    assert_int_equal(sent->how, HTTP2_END_ANSWERED);
    assert_int_equal(sent->exchange.status, 413);
    assert_int_equal(http2_session_open(stage->client), 0);
}

static void what_is_abandoned_does_not_end_and_what_was_not_sent_never_goes_out(void **state)
{
    Stage *stage = *state;
    prove(stage);
    size_t before = stage->requests;
    Sent *unsent = send_one(stage, 1);
    http2_session_abandon(&unsent->exchange);
    both(stage);
    assert_int_equal(stage->requests, before);
    Sent *sent = send_one(stage, 2);
    up(stage);
    http2_session_abandon(&sent->exchange);
    answer(stage, sent->exchange.stream, "200", NULL);
    down(stage, 100);
    both(stage);
    assert_int_equal(unsent->ends + sent->ends, 0);
    assert_int_equal(http2_session_open(stage->client), 0);
    assert_int_equal(http2_session_room(stage->client), 5); // and the session goes on
}

static void an_answer_beyond_its_bounds_is_stopped(void **state)
{
    Stage *stage = *state;
    prove(stage);
    size_t much = 10 * SMALL, little = 100;
    Sent *sent = send_one(stage, 1), *wanted = send_one(stage, 2);
    wanted->enough = 1;
    up(stage);
    answer(stage, sent->exchange.stream, "200", &much);
    answer(stage, wanted->exchange.stream, "200", &little);
    both(stage);
    assert_int_equal(sent->how, HTTP2_END_STOPPED);
    assert_int_equal(sent->got, SMALL);
    assert_int_equal(wanted->how, HTTP2_END_STOPPED);
    assert_int_equal(sent->ends + wanted->ends, 2);
}

static void a_head_beyond_its_bound_ends_the_exchange(void **state)
{
    Stage *stage = *state;
    prove(stage);
    char value[SMALL + 1];
    memset(value, 'v', SMALL);
    value[SMALL] = '\0';
    Sent *sent = send_one(stage, 1);
    up(stage);
    nghttp2_nv head[] = {NV(":status", "200"), NV("x-long", value)};
    nghttp2_submit_response(stage->server, sent->exchange.stream, head, 2, NULL);
    both(stage);
    assert_int_equal(sent->ends, 1);
    assert_int_equal(sent->how, HTTP2_END_LONG_HEAD);
    assert_false(sent->exchange.head);
}

static void headers_of_a_1xx_are_not_the_answers(void **state)
{
    Stage *stage = *state;
    prove(stage);
    Sent *sent = send_one(stage, 1);
    up(stage);
    nghttp2_nv early[] = {NV(":status", "103"), NV("link", "</a>")};
    nghttp2_submit_headers(
        stage->server, NGHTTP2_FLAG_NONE, sent->exchange.stream, NULL, early, 2, NULL);
    down(stage, 100);
    assert_false(sent->exchange.head);
    answer(stage, sent->exchange.stream, "200", NULL);
    both(stage);
    assert_int_equal(sent->exchange.status, 200);
    assert_int_equal(http2_exchange_field(&sent->exchange, STR("link")).len, 0);
    assert_int_equal(http2_exchange_field(&sent->exchange, STR("x-one")).len, 1);
}

static void a_ping_is_answered_and_counted(void **state)
{
    Stage *stage = *state;
    both(stage);
    http2_session_ping(stage->client);
    both(stage);
    assert_int_equal(http2_session_pongs(stage->client), 1);
}

static void bytes_that_are_not_http2_end_the_session(void **state)
{
    Stage *stage = *state;
    Error err = {0};
    up(stage);
    bool fed = http2_session_feed(stage->client, STR("HTTP/1.1 400 Bad Request\r\n\r\n"), &err);
    buf_clear(&stage->wire);
    bool pulled = http2_session_pull(stage->client, &stage->wire, &err);
    assert_true(!fed || !pulled || http2_session_is_over(stage->client));
    assert_int_equal(http2_session_room(stage->client), 0);
}

static void a_session_that_leaves_takes_no_more(void **state)
{
    Stage *stage = *state;
    prove(stage);
    Sent *sent = send_one(stage, 1);
    up(stage);
    http2_session_leave(stage->client);
    assert_int_equal(http2_session_room(stage->client), 0);
    up(stage);
    answer(stage, sent->exchange.stream, "200", NULL);
    both(stage);
    assert_int_equal(sent->how, HTTP2_END_ANSWERED);
}

#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, stage_up, stage_down)
#define NARROW(test) cmocka_unit_test_setup_teardown(test, narrow_up, stage_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE(nothing_is_started_before_the_servers_settings),
        ON_STAGE(one_exchange_until_the_first_answer_then_as_many_as_the_server_allows),
        ON_STAGE(goaway_refuses_what_is_above_and_lets_the_rest_go_on),
        ON_STAGE(a_refused_stream_is_not_handed_and_a_reset_one_is),
        ON_STAGE(a_refusal_behind_a_status_is_no_refusal),
        NARROW(a_body_that_the_window_holds_back_is_not_handed),
        NARROW(an_answer_before_the_bodys_end_is_an_answer),
        ON_STAGE(what_is_abandoned_does_not_end_and_what_was_not_sent_never_goes_out),
        ON_STAGE(an_answer_beyond_its_bounds_is_stopped),
        ON_STAGE(a_head_beyond_its_bound_ends_the_exchange),
        ON_STAGE(headers_of_a_1xx_are_not_the_answers),
        ON_STAGE(a_ping_is_answered_and_counted),
        ON_STAGE(bytes_that_are_not_http2_end_the_session),
        ON_STAGE(a_session_that_leaves_takes_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
