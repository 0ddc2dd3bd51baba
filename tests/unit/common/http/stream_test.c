// SPDX-License-Identifier: Apache-2.0
#include "http_stage.h"

#include <sys/resource.h>

#include "common/http/stream.h"

enum { MANY = 1000, SMALL_BUFFER = 4096 };

#define GET_STREAM "GET /later HTTP/1.1\r\nHost: x\r\nAuthorization: k\r\n\r\n"

static int ended; // streams whose on_end came

static void on_stream_ended(void *ctx)
{
    (void)ctx;
    ended++;
}

static HttpStream *open_stream(Fixture *f, int fd)
{
    int before = f->held_count;
    send_text(f, fd, GET_STREAM);
    await_held(f, before + 1);
    HttpRequest *request = f->held[--f->held_count];
    http_response_header(request, "X-Own", STR("yes"));
    HttpStream *stream = http_stream_begin(request, on_stream_ended, NULL);
    assert_non_null(stream);
    return stream;
}

static void await_ended(Fixture *f, int count)
{
    for (int64_t end = clock_mono_us() + PATIENCE_US; ended < count && clock_mono_us() < end;) {
        pump(f);
    }
    assert_int_equal(ended, count);
}

static int set_up_streams(void **state)
{
    ended = 0;
    return set_up(state);
}

static void an_event_has_an_id_a_name_and_one_line(void **state)
{
    (void)state;
    Buf out;
    buf_init(&out, 1024);
    http_event_write(&out, 42, "status", STR("{\"a\":1}"));
    http_event_write(&out, 0, "reset", STR("{}"));
    assert_string_equal(
        buf_c(&out), "id: 42\nevent: status\ndata: {\"a\":1}\n\nevent: reset\ndata: {}\n\n");
    buf_done(&out);
}

static void a_stream_brings_what_is_written_as_it_is_written(void **state)
{
    Fixture *f = *state;
    int fd = dial(f);
    HttpStream *stream = open_stream(f, fd);
    await_text(f, fd, "retry: 2000\n\n");
    assert_true(has(f, "HTTP/1.1 200 OK\r\n"));
    assert_true(has(f, "Content-Type: text/event-stream\r\n"));
    assert_true(has(f, "X-Accel-Buffering: no\r\n"));
    assert_true(has(f, "X-Own: yes\r\n"));
    assert_true(has(f, "Stentor-Request-Id: req_"));
    assert_false(has(f, "Content-Length"));
    assert_true(http_stream_write(stream, STR("data: one\n\n")));
    await_text(f, fd, "data: one\n\n");
    turn_for(f, 20);
    assert_true(http_stream_write(stream, STR("data: two\n\n")));
    assert_true(http_stream_write(stream, STR("data: three\n\n")));
    await_text(f, fd, "data: two\n\ndata: three\n\n");
    http_stream_close(stream);
    assert_false(http_stream_write(stream, STR("data: late\n\n")));
    await_end(f, fd);
    await_ended(f, 1);
    assert_false(has(f, "late"));
    close(fd);
}

static void writes_of_100_ms_are_one_send(void **state)
{
    Fixture *f = *state;
    int fd = dial(f);
    HttpStream *stream = open_stream(f, fd);
    await_text(f, fd, "retry: 2000\n\n");
    (void)http_stream_write(stream, STR("data: first\n\n"));
    await_text(f, fd, "first"); // at once
    int64_t begin_us = clock_mono_us();
    (void)http_stream_write(stream, STR("data: second\n\n"));
    await_text(f, fd, "second");
    assert_true(clock_mono_us() - begin_us > 50 * 1000);
    close(fd);
    await_ended(f, 1);
}

static HttpStream *inside;

static void on_request_streamed(void *ctx, HttpRequest *request)
{
    (void)ctx;
    inside = http_stream_begin(request, on_stream_ended, NULL);
}

static void a_stream_can_begin_inside_the_handler(void **state)
{
    Fixture *f = *state;
    Error err = {0};
    HttpServerOptions options = {
        .bind = "127.0.0.1", .body_max = 10, .handler = on_request_streamed, .ctx = f};
    free_server(f);
    f->server = http_server_new(&f->loop, &options, &err);
    assert_non_null(f->server);
    int fd = dial(f);
    send_text(f, fd, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
    await_text(f, fd, "retry: 2000\n\n");
    assert_true(http_stream_write(inside, STR("data: here\n\n")));
    await_text(f, fd, "data: here\n\n");
    http_stream_close(inside);
    await_end(f, fd);
    await_ended(f, 1);
    close(fd);
}

static void a_quiet_stream_gets_a_comment(void **state)
{
    Fixture *f = *state;
    free_server(f);
    start_server(f, (HttpLimits){.comment_ms = 300});
    int fd = dial(f);
    HttpStream *stream = open_stream(f, fd);
    await_text(f, fd, "retry: 2000\n\n:\n\n");
    await_text(f, fd, ":\n\n:\n\n");
    http_stream_close(stream);
    await_end(f, fd);
    await_ended(f, 1);
    close(fd);
}

static void a_client_that_goes_ends_its_stream(void **state)
{
    Fixture *f = *state;
    int fd = dial(f);
    HttpStream *stream = open_stream(f, fd);
    await_text(f, fd, "retry");
    assert_int_equal(http_server_streams(f->server), 1);
    close(fd);
    await_ended(f, 1);
    (void)stream;
    assert_int_equal(http_server_streams(f->server), 0);
}

static void a_reset_connection_ends_its_stream(void **state)
{
    Fixture *f = *state;
    int fd = dial(f);
    HttpStream *stream = open_stream(f, fd);
    struct linger reset = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
    (void)http_stream_write(stream, STR("data: unheard\n\n"));
    await_ended(f, 1);
}

// Writes until the server gives it up. The number of whole events that were taken.
static int flood(Fixture *f, HttpStream *stream)
{
    static char event[8 * 1024];
    memset(event, 'e', sizeof event);
    memcpy(event, "data: ", 6);
    event[sizeof event - 2] = event[sizeof event - 1] = '\n';
    int taken = 0;
    while (http_stream_write(stream, str_of(event, sizeof event))) {
        taken++;
        assert_true(taken < 10000);
        turn_for(f, taken % 8 == 0 ? 10 : 0);
    }
    return taken;
}

static void a_client_that_never_reads_is_told_and_closed(void **state)
{
    Fixture *f = *state;
    int small = SMALL_BUFFER;
    int fd = dial(f);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    HttpStream *stream = open_stream(f, fd);
    assert_true(flood(f, stream) > 2);
    assert_false(http_stream_write(stream, STR("data: late\n\n")));
    buf_done(&f->got);
    buf_init(&f->got, 64 * 1024 * 1024);
    await_end(f, fd);
    await_ended(f, 1);
    const char *all = buf_c(&f->got);
    const char *reset = strstr(all, "event: reset\ndata: {\"reason\":\"slow\"}\n\n");
    assert_non_null(reset);
    assert_int_equal(strlen(reset), strlen("event: reset\ndata: {\"reason\":\"slow\"}\n\n"));
    assert_memory_equal(reset - 2, "\n\n", 2); // the event before it is whole
    const char *events = strstr(all, "data: e");
    assert_int_equal((reset - events) % (8 * 1024), 0);
    close(fd);
}

static void a_slow_client_holds_up_no_other(void **state)
{
    Fixture *f = *state;
    int small = SMALL_BUFFER;
    int slow = dial(f);
    setsockopt(slow, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    HttpStream *stuck = open_stream(f, slow);
    int fast = dial(f);
    HttpStream *stream = open_stream(f, fast);
    (void)flood(f, stuck);
    assert_true(http_stream_write(stream, STR("data: quick\n\n")));
    await_text(f, fast, "data: quick\n\n");
    close(slow);
    close(fast);
    await_ended(f, 2);
}

static void a_stream_takes_no_place_of_a_request(void **state)
{
    Fixture *f = *state;
    free_server(f);
    start_server(f, (HttpLimits){.connections = 2, .streams = 4});
    int fds[4];
    for (int i = 0; i < 4; i++) {
        fds[i] = dial(f);
        (void)open_stream(f, fds[i]);
        turn_for(f, 5);
    }
    assert_int_equal(http_server_streams(f->server), 4);
    int fd = dial(f);
    send_text(f, fd, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
    await_text(f, fd, "GET /x ");
    close(fd);
    fd = dial(f);
    send_text(f, fd, GET_STREAM);
    await_held(f, 1);
    assert_null(http_stream_begin(f->held[--f->held_count], on_stream_ended, NULL));
    await_text(f, fd, "urn:stentor:problem:too-many-streams");
    assert_true(has(f, "HTTP/1.1 503 "));
    close(fd);
    for (int i = 0; i < 4; i++) {
        close(fds[i]);
    }
    await_ended(f, 4);
}

static void a_head_request_gets_the_headers_alone(void **state)
{
    Fixture *f = *state;
    int fd = dial(f);
    send_text(f, fd, "HEAD /later HTTP/1.1\r\nHost: x\r\n\r\n");
    await_held(f, 1);
    assert_null(http_stream_begin(f->held[--f->held_count], on_stream_ended, NULL));
    await_text(f, fd, "Content-Type: text/event-stream");
    close(fd);
}

static void a_stopping_server_ends_its_streams_after_what_was_written(void **state)
{
    Fixture *f = *state;
    int fd = dial(f);
    HttpStream *stream = open_stream(f, fd);
    (void)http_stream_write(stream, STR("data: last\n\n"));
    assert_false(http_server_idle(f->server));
    http_server_stop(f->server, on_server_stopped, f);
    await_end(f, fd);
    assert_true(has(f, "data: last\n\n"));
    await_ended(f, 1);
    turn_for(f, 20);
    assert_true(f->stopped);
    close(fd);
}

static void a_stopping_server_waits_for_no_reader(void **state)
{
    Fixture *f = *state;
    int small = SMALL_BUFFER;
    int fd = dial(f);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    (void)flood(f, open_stream(f, fd));
    http_server_stop(f->server, on_server_stopped, f);
    await_ended(f, 1); // within 5 s
    turn_for(f, 300);
    assert_true(f->stopped);
    close(fd);
}

static void a_freed_server_ends_its_streams(void **state)
{
    Fixture *f = *state;
    int fd = dial(f);
    (void)open_stream(f, fd);
    free_server(f);
    assert_int_equal(ended, 1);
    close(fd);
}

static void a_thousand_streams_get_each_event(void **state)
{
    Fixture *f = *state;
    static int fds[MANY];
    static HttpStream *streams[MANY];
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    for (int i = 0; i < MANY; i++) {
        fds[i] = dial(f);
        streams[i] = open_stream(f, fds[i]);
    }
    for (int i = 0; i < MANY; i++) {
        assert_true(http_stream_write(streams[i], STR("data: all\n\n")));
    }
    for (int i = 0; i < MANY; i++) {
        buf_clear(&f->got);
        await_text(f, fds[i], "data: all\n\n");
        close(fds[i]);
    }
    await_ended(f, MANY);
}

int main(void)
{
#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_streams, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_has_an_id_a_name_and_one_line),
        TEST(a_stream_brings_what_is_written_as_it_is_written),
        TEST(writes_of_100_ms_are_one_send),
        TEST(a_stream_can_begin_inside_the_handler),
        TEST(a_quiet_stream_gets_a_comment),
        TEST(a_client_that_goes_ends_its_stream),
        TEST(a_reset_connection_ends_its_stream),
        TEST(a_client_that_never_reads_is_told_and_closed),
        TEST(a_slow_client_holds_up_no_other),
        TEST(a_stream_takes_no_place_of_a_request),
        TEST(a_head_request_gets_the_headers_alone),
        TEST(a_stopping_server_ends_its_streams_after_what_was_written),
        TEST(a_stopping_server_waits_for_no_reader),
        TEST(a_freed_server_ends_its_streams),
        TEST(a_thousand_streams_get_each_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
