// SPDX-License-Identifier: Apache-2.0
// A whole process beside a real NATS.
#include "tests/unit/common/service/probe_service.h"

static void with_nats_it_becomes_ready_and_ends_cleanly(void **state)
{
    (void)state;
    const char *url = getenv("STENTOR_TEST_NATS_URL");
    assert_non_null(url);
    Probe probe;
    probe_launch(&probe, &probe_service, PROBE_ARGS("--nats-url", url, "--log-format", "json"));
    probe_await_start(&probe);
    Buf answer;
    buf_init(&answer, PROBE_TEXT_MAX);
    for (int i = 0; i < 200; i++) {
        probe_request(&probe, "GET /readyz", &answer);
        if (strstr(buf_c(&answer), "\r\n\r\nready\n") != NULL) {
            break;
        }
        nanosleep(&(struct timespec){.tv_nsec = 25 * 1000 * 1000}, NULL);
    }
    assert_true(str_starts(buf_view(&answer), STR("HTTP/1.1 200 ")));
    buf_done(&answer);
    probe_expect_answer(&probe, "GET /metrics", "200", "\nstentor_bus_connected 1\n");
    kill(probe.pid, SIGTERM);
    probe_await(&probe, "\"stopped\"");
    probe_expect_text(&probe, "\"draining\"");
    int code = probe_exit_code(&probe);
    if (code != 0) {
        fail_msg("ended with %d: %s", code, buf_c(&probe.text));
    }
    probe_done(&probe);
}

// A warning changes the text and not the verdict: a probe that restarts or takes away what is not
// ready leaves it alone.
static void what_it_warns_of_stands_in_an_answer_of_200(void **state)
{
    (void)state;
    Probe probe;
    probe_launch(
        &probe, &probe_service,
        PROBE_ARGS(
            "--nats-url", getenv("STENTOR_TEST_NATS_URL"), "--log-format", "json",
            "--probe-behaviour", "warns"));
    probe_await_start(&probe);
    Buf answer;
    buf_init(&answer, PROBE_TEXT_MAX);
    for (int i = 0; i < 200 && !str_starts(buf_view(&answer), STR("HTTP/1.1 200 ")); i++) {
        nanosleep(&(struct timespec){.tv_nsec = 25 * 1000 * 1000}, NULL);
        probe_request(&probe, "GET /readyz", &answer);
    }
    buf_done(&answer);
    probe_expect_answer(
        &probe, "GET /readyz", "200", "\r\n\r\nready\nwarning: the probe's vendor is away\n");
    kill(probe.pid, SIGTERM);
    assert_int_equal(probe_exit_code(&probe), 0);
    probe_done(&probe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_nats_it_becomes_ready_and_ends_cleanly),
        cmocka_unit_test(what_it_warns_of_stands_in_an_answer_of_200),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
