// SPDX-License-Identifier: Apache-2.0
#include "client_stage.h"

#include <arpa/inet.h>

static void an_answer_comes_with_status_headers_and_body(void **state)
{
    Stage *stage = *state;
    Ended ended = {0};
    call_and_await(
        stage, (HttpCallOptions){.headers = {{"X-One", "a b"}, {"X-Empty", ""}, {"Accept", "*/*"}}},
        "/a%2Fb/../c?q=1+2", &ended);
    assert_int_equal(ended.answer.outcome, HTTP_ANSWERED);
    assert_int_equal(ended.answer.status, 200);
    assert_string_equal(buf_c(&ended.body), "hello world");
    assert_string_equal(ended.etag, "\"abc\"");
    assert_non_null(strstr(stage->last, "GET /a%2Fb/../c?q=1+2 HTTP/1.1\r\n"));
    assert_non_null(strstr(stage->last, "X-One: a b\r\n"));
    assert_non_null(strstr(stage->last, "X-Empty:\r\n"));
    assert_non_null(strstr(stage->last, "User-Agent: stentor\r\n"));
    buf_done(&ended.body);
}

static void a_head_has_no_body_and_a_post_without_one_says_so(void **state)
{
    Stage *stage = *state;
    Ended head = {0}, post = {0};
    call_and_await(stage, (HttpCallOptions){.method = "HEAD"}, "/x", &head);
    assert_int_equal(head.answer.outcome, HTTP_ANSWERED);
    assert_string_equal(head.etag, "\"e\"");
    assert_int_equal(head.body.len, 0);
    call_and_await(stage, (HttpCallOptions){.method = "POST"}, "/x", &post);
    assert_non_null(strstr(stage->last, "POST /x HTTP/1.1\r\n"));
    assert_non_null(strstr(stage->last, "Content-Length: 0\r\n"));
    buf_done(&post.body);
}

static void a_body_comes_from_memory_without_expect(void **state)
{
    Stage *stage = *state;
    size_t len = 2 * 1000 * 1000; // libcurl would say Expect beyond 1 MiB
    char *body = xmalloc(len);
    for (size_t i = 0; i < len; i++) {
        body[i] = (char)(i * 7 % 251);
    }
    Ended ended = {0};
    call_and_await(
        stage, (HttpCallOptions){.method = "PUT", .body = body, .body_len = len}, "/x", &ended);
    assert_int_equal(ended.answer.status, 200);
    assert_int_equal(stage->last_body, len);
    assert_memory_equal(stage->all.ptr, body, len);
    assert_null(strstr(stage->last, "Expect"));
    assert_null(strstr(stage->last, "Transfer-Encoding"));
    free(body);
    buf_done(&ended.body);
}

static int file_with(const char *text)
{
    char path[] = "/tmp/http-client-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    unlink(path);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    return fd;
}

static void a_body_comes_from_a_file(void **state)
{
    Stage *stage = *state;
    int fd = file_with("0123456789");
    Ended ended = {0};
    call_and_await(
        stage, (HttpCallOptions){.method = "PUT", .fd = fd, .body_len = 7}, "/x", &ended);
    assert_int_equal(ended.answer.status, 200);
    assert_string_equal(buf_c(&stage->all), "0123456");
    buf_done(&ended.body);
    close(fd);
}

static void a_file_that_is_shorter_than_said_is_permanent(void **state)
{
    Stage *stage = *state;
    int fd = file_with("0123");
    Ended ended = {0};
    call_and_await(
        stage, (HttpCallOptions){.method = "PUT", .fd = fd, .body_len = 7}, "/x", &ended);
    assert_int_equal(ended.answer.outcome, HTTP_UNKNOWN);
    assert_int_equal(ended.answer.err.kind, ERROR_PERMANENT);
    assert_int_equal(stage->requests, 0);
    close(fd);
}

// What libcurl does by itself when a kept connection ends without an answer: send it again.
static void a_body_is_sent_once_when_a_kept_connection_is_cut(void **state)
{
    Stage *stage = *state;
    HttpCallOptions post = {.method = "POST", .body = "message", .body_len = 7};
    Ended first = {0}, second = {0};
    call_and_await(stage, post, "/cut-second", &first);
    assert_int_equal(first.answer.outcome, HTTP_ANSWERED);
    call_and_await(stage, post, "/cut-second", &second);
    assert_int_equal(second.answer.outcome, HTTP_UNKNOWN);
    assert_int_equal(second.answer.err.kind, ERROR_TRANSIENT);
    assert_int_equal(second.answer.status, 0);
    assert_int_equal(stage->requests, 2);
    assert_int_equal(stage->kept_requests, 1); // the second went over the kept connection
    assert_int_equal(stage->loose_bytes, 0);   // and nothing of it over another one
    assert_string_equal(buf_c(&stage->all), "messagemessage");
    buf_done(&first.body);
}

static void a_post_without_a_body_is_sent_once_too(void **state)
{
    Stage *stage = *state;
    Ended first = {0}, second = {0};
    call_and_await(stage, (HttpCallOptions){.method = "GET"}, "/ok", &first);
    call_and_await(stage, (HttpCallOptions){.method = "POST"}, "/cut", &second);
    assert_int_equal(second.answer.outcome, HTTP_UNKNOWN);
    assert_int_equal(stage->requests, 2);
    buf_done(&first.body);
}

static void what_was_taken_and_cut_is_unknown(void **state)
{
    Stage *stage = *state;
    Ended ended = {0};
    call_and_await(stage, (HttpCallOptions){.method = "GET"}, "/cut", &ended);
    assert_int_equal(ended.answer.outcome, HTTP_UNKNOWN);
    assert_int_equal(stage->requests, 1);
}

static int free_port(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof address;
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    close(fd);
    return ntohs(address.sin_port);
}

static void what_nothing_listens_to_was_never_sent(void **state)
{
    Stage *stage = *state;
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", free_port());
    Ended ended = {0};
    call_and_await(
        stage, (HttpCallOptions){.method = "PUT", .url = url, .body = "x", .body_len = 1}, "",
        &ended);
    assert_int_equal(ended.answer.outcome, HTTP_NEVER_SENT);
    assert_int_equal(ended.answer.err.kind, ERROR_TRANSIENT);
    assert_true(strlen(ended.answer.err.text) > 0);
}

static void a_url_of_another_kind_is_refused(void **state)
{
    Stage *stage = *state;
    const char *const urls[] = {"file:///etc/passwd", "ftp://127.0.0.1/", "http://[::"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        Ended ended = {0};
        call_and_await(stage, (HttpCallOptions){.url = urls[i]}, "", &ended);
        assert_int_equal(ended.answer.outcome, HTTP_NEVER_SENT);
        assert_int_equal(ended.answer.err.kind, ERROR_CONFIG);
    }
}

static void an_answer_that_is_cut_is_unknown_with_its_status(void **state)
{
    Stage *stage = *state;
    Ended ended = {0};
    call_and_await(stage, (HttpCallOptions){.method = "GET"}, "/half", &ended);
    assert_int_equal(ended.answer.outcome, HTTP_UNKNOWN);
    assert_int_equal(ended.answer.status, 200);
    assert_string_equal(buf_c(&ended.body), "hello");
    buf_done(&ended.body);
}

static void silence_ends_a_call(void **state)
{
    Stage *stage = *state;
    const char *const paths[] = {"/silent", "/stall"};
    for (int i = 0; i < 2; i++) {
        Ended ended = {0};
        int64_t from = clock_mono_us();
        call_and_await(stage, (HttpCallOptions){.idle_ms = 60}, paths[i], &ended);
        assert_int_equal(ended.answer.outcome, HTTP_UNKNOWN);
        assert_int_equal(ended.answer.err.kind, ERROR_TRANSIENT);
        assert_true(clock_mono_us() - from >= 59 * 1000);
        buf_done(&ended.body);
    }
}

static void the_whole_may_take_so_long_even_while_it_waits_for_its_turn(void **state)
{
    Stage *stage = *state;
    Ended running[2] = {{0}, {0}}, waiting = {0};
    HttpCall *calls[2];
    for (int i = 0; i < 2; i++) { // as many as may be on the way
        calls[i] = start(stage, (HttpCallOptions){0}, "/silent", &running[i]);
    }
    start(stage, (HttpCallOptions){.whole_ms = 50}, "/ok", &waiting);
    await(stage, &waiting);
    assert_int_equal(waiting.answer.outcome, HTTP_NEVER_SENT);
    assert_int_equal(waiting.answer.err.kind, ERROR_TRANSIENT);
    for (int i = 0; i < 2; i++) {
        http_call_cancel(calls[i]);
        await(stage, &running[i]);
    }
}

static void calls_wait_for_their_turn(void **state)
{
    Stage *stage = *state;
    Ended ended[7];
    memset(ended, 0, sizeof ended);
    for (int i = 0; i < 7; i++) {
        start(stage, (HttpCallOptions){0}, "/ok", &ended[i]);
    }
    for (int i = 0; i < 7; i++) {
        await(stage, &ended[i]);
        assert_string_equal(buf_c(&ended[i].body), "hello world");
        buf_done(&ended[i].body);
    }
    assert_int_equal(stage->connections, 2);
    assert_int_equal(stage->requests, 7);
}

static void a_call_is_cancelled(void **state)
{
    Stage *stage = *state;
    Ended at_once = {0}, in_answer = {.cancels = true}, next = {0};
    http_call_cancel(start(stage, (HttpCallOptions){0}, "/silent", &at_once));
    await(stage, &at_once);
    assert_int_equal(at_once.answer.err.kind, ERROR_CANCELLED);
    call_and_await(stage, (HttpCallOptions){0}, "/stall", &in_answer);
    assert_int_equal(in_answer.answer.err.kind, ERROR_CANCELLED);
    assert_int_equal(in_answer.answer.outcome, HTTP_UNKNOWN);
    buf_done(&in_answer.body);
    call_and_await(stage, (HttpCallOptions){0}, "/ok", &next);
    assert_int_equal(next.answer.status, 200);
    buf_done(&next.body);
}

static void enough_of_an_answer_is_an_answer(void **state)
{
    Stage *stage = *state;
    Ended ended = {.body_stop = 3};
    call_and_await(stage, (HttpCallOptions){0}, "/stall", &ended);
    assert_int_equal(ended.answer.outcome, HTTP_ANSWERED);
    assert_true(ended.answer.stopped);
    assert_int_equal(ended.answer.status, 200);
    buf_done(&ended.body);
}

static void a_redirect_is_an_answer(void **state)
{
    Stage *stage = *state;
    Ended ended = {0};
    call_and_await(stage, (HttpCallOptions){0}, "/moved", &ended);
    assert_int_equal(ended.answer.status, 302);
    assert_int_equal(stage->requests, 1);
}

static void retry_after_is_seconds_or_a_date_and_at_most_a_day(void **state)
{
    (void)state;
    int64_t now_us = 0;
    assert_true(http_date_parse(STR("Thu, 26 Nov 2026 20:00:00 GMT"), &now_us));
    assert_int_equal(http_retry_after_ms(STR(""), now_us), 0);
    assert_int_equal(http_retry_after_ms(STR("soon"), now_us), 0);
    assert_int_equal(http_retry_after_ms(STR("-5"), now_us), 0);
    assert_int_equal(http_retry_after_ms(STR("-9223372036854775808"), now_us), 0);
    assert_int_equal(http_retry_after_ms(STR(" 120 "), now_us), 120000);
    assert_int_equal(http_retry_after_ms(STR("9223372036854775807"), now_us), 86400000);
    assert_int_equal(http_retry_after_ms(STR("Thu, 26 Nov 2026 20:00:30 GMT"), now_us), 30000);
    assert_int_equal(http_retry_after_ms(STR("Thu, 26 Nov 2026 19:59:59 GMT"), now_us), 0);
    assert_int_equal(http_retry_after_ms(STR("Fri, 26 Nov 2027 20:00:00 GMT"), now_us), 86400000);
}

static void freeing_ends_what_is_on_the_way_and_what_waits(void **state)
{
    Stage *stage = *state;
    Ended ended[4];
    memset(ended, 0, sizeof ended);
    for (int i = 0; i < 4; i++) {
        start(stage, (HttpCallOptions){0}, "/silent", &ended[i]);
    }
    while (stage->requests < 2) { // two are on the way, two wait
        uv_run(&stage->loop, UV_RUN_ONCE);
    }
    free_client(stage);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ended[i].times, 1);
        assert_int_equal(ended[i].answer.err.kind, ERROR_CANCELLED);
    }
    assert_int_equal(ended[0].answer.outcome, HTTP_UNKNOWN);
    assert_int_equal(ended[3].answer.outcome, HTTP_NEVER_SENT);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, stage_up, stage_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(an_answer_comes_with_status_headers_and_body),
        CASE(a_head_has_no_body_and_a_post_without_one_says_so),
        CASE(a_body_comes_from_memory_without_expect),
        CASE(a_body_comes_from_a_file),
        CASE(a_file_that_is_shorter_than_said_is_permanent),
        CASE(a_body_is_sent_once_when_a_kept_connection_is_cut),
        CASE(a_post_without_a_body_is_sent_once_too),
        CASE(what_was_taken_and_cut_is_unknown),
        CASE(what_nothing_listens_to_was_never_sent),
        CASE(a_url_of_another_kind_is_refused),
        CASE(an_answer_that_is_cut_is_unknown_with_its_status),
        CASE(silence_ends_a_call),
        CASE(the_whole_may_take_so_long_even_while_it_waits_for_its_turn),
        CASE(calls_wait_for_their_turn),
        CASE(a_call_is_cancelled),
        CASE(enough_of_an_answer_is_an_answer),
        CASE(a_redirect_is_an_answer),
        CASE(retry_after_is_seconds_or_a_date_and_at_most_a_day),
        CASE(freeing_ends_what_is_on_the_way_and_what_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
