// SPDX-License-Identifier: Apache-2.0
#include "http_stage.h"

static void a_request_is_handed_over_whole(void **state)
{
    Fixture *f = *state;
    int fd = dial(f);
    send_text(f, fd, "POST /a%20b?q=1%202+3&r=4 HTTP/1.1\r\nHost: x\r\nX-Test: agent\r\n");
    send_text(f, fd, "Content-Length: 5\r\n\r\nhe");
    turn_for(f, 20);
    assert_int_equal(f->handled, 0);
    send_text(f, fd, "llo");
    await_text(f, fd, "POST /a b [agent] [1 2 3] 5 hello");
    assert_true(has(f, "HTTP/1.1 200 OK\r\n"));
    assert_true(has(f, "Content-Type: text/plain\r\n"));
    close(fd);
}

static void a_header_with_a_line_break_is_left_out(void **state)
{
    Fixture *f = *state;
    int fd = dial(f);
    send_text(f, fd, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
    await_text(f, fd, "GET /x [] [] 0 ");
    assert_true(has(f, "X-Good: yes\r\n"));
    assert_false(has(f, "Evil"));
    assert_false(has(f, "Injected"));
    close(fd);
}

static void a_connection_serves_many_requests(void **state)
{
    Fixture *f = *state;
    int fd = dial(f);
    for (int i = 0; i < 3; i++) {
        char text[64];
        buf_clear(&f->got);
        snprintf(text, sizeof text, "GET /%d HTTP/1.1\r\nHost: x\r\n\r\n", i);
        send_text(f, fd, text);
        snprintf(text, sizeof text, "GET /%d ", i);
        await_text(f, fd, text);
    }
    buf_clear(&f->got);
    send_text(f, fd, "GET /p HTTP/1.1\r\nHost: x\r\n\r\nGET /q HTTP/1.1\r\nHost: x\r\n\r\n");
    await_text(f, fd, "GET /q "); // pipelined
    assert_true(has(f, "GET /p "));
    close(fd);
}

static void an_answer_may_come_later(void **state)
{
    Fixture *f = *state;
    int first = dial(f);
    int second = dial(f);
    send_text(f, first, GET_LATER);
    send_text(f, second, GET_LATER);
    await_held(f, 2);
    http_respond(f->held[1], 202, "text/plain", STR("two"));
    http_respond(f->held[0], 202, "text/plain", STR("one"));
    await_text(f, first, "one");
    assert_false(has(f, "two"));
    await_text(f, second, "two");
    send_text(f, first, "GET /again HTTP/1.1\r\nHost: x\r\n\r\n");
    await_text(f, first, "GET /again");
    close(first);
    close(second);
}

static void a_client_that_left_does_not_hurt(void **state)
{
    Fixture *f = *state;
    int fd = dial(f);
    send_text(f, fd, "POST /later?q=still HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
    await_held(f, 1);
    struct linger reset = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
    turn_for(f, 20);
    assert_true(str_eq(f->held[0]->body, STR("abc")));
    assert_true(str_eq(http_query(f->held[0], "q"), STR("still")));
    http_respond(f->held[0], 200, "text/plain", STR("the client is gone"));
    turn_for(f, 20);
    int other = dial(f);
    send_text(f, other, "GET /alive HTTP/1.1\r\nHost: x\r\n\r\n");
    await_text(f, other, "GET /alive");
    close(other);
}

static void a_client_that_leaves_in_the_middle_is_forgotten(void **state)
{
    Fixture *f = *state;
    int fd = dial(f);
    send_text(f, fd, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 30\r\n\r\nhalf");
    close(fd);
    turn_for(f, 20);
    assert_int_equal(f->handled, 0);
}

static void a_problem_names_the_field(void **state)
{
    Fixture *f = *state;
    int fd = dial(f);
    send_text(f, fd, "GET /problem HTTP/1.1\r\nHost: x\r\n\r\n");
    await_text(f, fd, "\"}");
    assert_true(has(f, "HTTP/1.1 422 "));
    assert_true(has(f, "Content-Type: application/problem+json\r\n"));
    assert_true(
        has(f, "{\"type\":\"urn:stentor:problem:bad-field\","
               "\"title\":\"A \\\"field\\\" is wrong\",\"status\":422,"
               "\"detail\":\"'x\\ny' is no address\",\"field\":\"notifications[3].to\","
               "\"errors\":[{\"field\":\"notifications[3].to\","
               "\"detail\":\"'x\\ny' is no address\"}],"
               "\"instance\":\"urn:stentor:request:req_"));
    close(fd);
}

static void a_body_of_the_limit_passes(void **state)
{
    Fixture *f = *state;
    static char body[BODY_MAX];
    memset(body, 'b', sizeof body);
    int fd = dial(f);
    char head[128];
    snprintf(
        head, sizeof head, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", BODY_MAX);
    send_text(f, fd, head);
    assert_true(try_send(f, fd, body, sizeof body));
    await_text(f, fd, "POST /x [] [] 100000 bbb");
    close(fd);
}

static void a_length_over_the_limit_is_refused_before_reading(void **state)
{
    Fixture *f = *state;
    int fd = dial(f);
    char head[128];
    snprintf(
        head, sizeof head, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n",
        BODY_MAX + 1);
    send_text(f, fd, head);
    await_end(f, fd);
    assert_true(has(f, "HTTP/1.1 413 "));
    assert_true(has(f, "urn:stentor:problem:body-too-large"));
    assert_true(has(f, "at most 100000 bytes"));
    assert_int_equal(f->handled, 0);
    close(fd);
}

static bool send_chunks(Fixture *f, int fd, int count)
{
    static char chunk[10 + 10000 + 2];
    memset(chunk, 'c', sizeof chunk);
    memcpy(chunk, "00002710\r\n", 10);
    memcpy(chunk + sizeof chunk - 2, "\r\n", 2);
    send_text(f, fd, "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    bool alive = true;
    for (int i = 0; i < count && alive; i++) {
        alive = try_send(f, fd, chunk, sizeof chunk);
    }
    return alive && try_send(f, fd, "0\r\n\r\n", 5);
}

static void a_chunked_body_within_the_limit_passes(void **state)
{
    Fixture *f = *state;
    int fd = dial(f);
    assert_true(send_chunks(f, fd, 10));
    await_text(f, fd, "POST /x [] [] 100000 ccc");
    close(fd);
}

static void a_chunked_body_over_the_limit_is_refused(void **state)
{
    Fixture *f = *state;
    int fd = dial(f);
    assert_true(send_chunks(f, fd, 12));
    await_end(f, fd);
    assert_true(has(f, "HTTP/1.1 413 "));
    assert_true(has(f, "urn:stentor:problem:body-too-large"));
    assert_int_equal(f->handled, 0);
    close(fd);
}

static void a_chunked_body_without_end_is_cut(void **state)
{
    Fixture *f = *state;
    int fd = dial(f);
    assert_false(send_chunks(f, fd, 2000));
    assert_int_equal(f->handled, 0);
    close(fd);
}

static void nonsense_is_answered_with_400(void **state)
{
    Fixture *f = *state;
    const char *const nonsense[] = {
        "GET /x HTTP/1.1\r\n\r\n", // no Host
        "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\n"};
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        buf_clear(&f->got);
        int fd = dial(f);
        send_text(f, fd, nonsense[i]);
        await_text(f, fd, "HTTP/1.1 400 ");
        close(fd);
    }
    assert_int_equal(f->handled, 0);
}

static void a_silent_connection_is_closed(void **state)
{
    Fixture *f = *state;
    free_server(f);
    start_server(f, (HttpLimits){.request_ms = 300});
    int fd = dial(f);
    send_text(f, fd, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nslow");
    int64_t from = clock_mono_us();
    await_end(f, fd);
    assert_true(clock_mono_us() - from < 4 * 1000 * 1000);
    close(fd);
}

static void a_client_beyond_the_limit_waits_its_turn(void **state)
{
    Fixture *f = *state;
    free_server(f);
    start_server(f, (HttpLimits){.connections = 2});
    int first = dial(f);
    int second = dial(f);
    send_text(f, first, GET_LATER);
    send_text(f, second, GET_LATER);
    await_held(f, 2);
    int third = dial(f);
    send_text(f, third, "GET /third HTTP/1.1\r\nHost: x\r\n\r\n");
    turn_for(f, 50);
    assert_int_equal(f->handled, 2);
    http_respond(f->held[0], 200, "text/plain", STR("done"));
    await_text(f, first, "done");
    close(first);
    await_text(f, third, "GET /third");
    http_respond(f->held[1], 200, "text/plain", STR("done"));
    close(second);
    close(third);
}

static void stopping_answers_what_is_there_and_nothing_new(void **state)
{
    Fixture *f = *state;
    int busy = dial(f);
    send_text(f, busy, GET_LATER);
    await_held(f, 1);
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)http_server_port(f->server)),
        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    http_server_stop(f->server, on_server_stopped, f);
    int late = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_not_equal(connect(late, (struct sockaddr *)&address, sizeof address), 0);
    close(late);
    turn_for(f, 300);
    assert_false(f->stopped);
    http_respond(f->held[0], 202, "text/plain", STR("the last"));
    await_end(f, busy);
    assert_true(has(f, "the last"));
    assert_true(has(f, "Connection: close\r\n"));
    turn_for(f, 20);
    assert_true(f->stopped);
    close(busy);
}

static void stopping_never_calls_back_from_inside(void **state)
{
    Fixture *f = *state;
    http_server_stop(f->server, on_server_stopped, f);
    assert_false(f->stopped);
    turn_for(f, 5);
    assert_true(f->stopped);
}

static void a_held_request_outlives_the_server(void **state)
{
    Fixture *f = *state;
    int fd = dial(f);
    send_text(f, fd, "POST /later HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
    await_held(f, 1);
    Str host = http_header(f->held[0], "Host");
    free_server(f);
    assert_true(str_eq(host, STR("x"))); // what was asked while it could be stays
    assert_true(str_eq(f->held[0]->body, STR("abc")));
    assert_true(str_eq(http_header(f->held[0], "Host"), STR_EMPTY));
    http_respond(f->held[0], 200, "text/plain", STR("x"));
    close(fd);
}

static void a_taken_port_is_a_configuration_error(void **state)
{
    Fixture *f = *state;
    Error err = {0};
    HttpServerOptions options = {
        .bind = "127.0.0.1",
        .port = http_server_port(f->server),
        .handler = on_http_request,
        .ctx = f};
    assert_null(http_server_new(&f->loop, &options, &err));
    assert_int_equal(err.kind, ERROR_CONFIG);
    char port[16];
    snprintf(port, sizeof port, "port %d", options.port);
    assert_non_null(strstr(err.text, port));
    assert_non_null(strstr(err.text, "HINT: choose another port"));
}

static void an_address_must_be_an_address(void **state)
{
    Fixture *f = *state;
    Error err = {0};
    HttpServerOptions options = {.bind = "localhost", .handler = on_http_request, .ctx = f};
    assert_null(http_server_new(&f->loop, &options, &err));
    assert_int_equal(err.kind, ERROR_CONFIG);
    assert_non_null(strstr(err.text, "'localhost'"));
}

static void an_idle_server_lets_the_loop_sleep(void **state)
{
    Fixture *f = *state;
    int idle = dial(f);
    int held = dial(f);
    send_text(f, idle, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
    await_text(f, idle, "GET /x");
    send_text(f, held, GET_LATER);
    await_held(f, 1);
    turn_for(f, 50);
    int turns = 0;
    for (int64_t end = clock_mono_us() + 500 * 1000; clock_mono_us() < end; turns++) {
        uv_run(&f->loop, UV_RUN_ONCE);
    }
    assert_true(turns <= 10); // the 200 ms tick, not a spin
    http_respond(f->held[0], 200, "text/plain", STR("x"));
    await_text(f, held, "x");
    close(idle);
    close(held);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_request_is_handed_over_whole),
        TEST(a_header_with_a_line_break_is_left_out),
        TEST(a_connection_serves_many_requests),
        TEST(an_answer_may_come_later),
        TEST(a_client_that_left_does_not_hurt),
        TEST(a_client_that_leaves_in_the_middle_is_forgotten),
        TEST(a_problem_names_the_field),
        TEST(a_body_of_the_limit_passes),
        TEST(a_length_over_the_limit_is_refused_before_reading),
        TEST(a_chunked_body_within_the_limit_passes),
        TEST(a_chunked_body_over_the_limit_is_refused),
        TEST(a_chunked_body_without_end_is_cut),
        TEST(nonsense_is_answered_with_400),
        TEST(a_silent_connection_is_closed),
        TEST(a_client_beyond_the_limit_waits_its_turn),
        TEST(stopping_answers_what_is_there_and_nothing_new),
        TEST(stopping_never_calls_back_from_inside),
        TEST(a_held_request_outlives_the_server),
        TEST(a_taken_port_is_a_configuration_error),
        TEST(an_address_must_be_an_address),
        TEST(an_idle_server_lets_the_loop_sleep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
