// SPDX-License-Identifier: Apache-2.0
// Whole processes without NATS: what is said, what is answered, and how they end. With NATS:
// service_nats_test.c.
#include "tests/unit/common/service/probe_service.h"

#define NO_NATS "--nats-url", "nats://127.0.0.1:1", "--log-format", "json"
#define AS(behaviour) PROBE_ARGS(NO_NATS, "--probe-behaviour", behaviour)

static void start_probe(Probe *probe, const char *const *arguments)
{
    probe_launch(probe, &probe_service, arguments);
    probe_await_start(probe);
}

static void end_probe(Probe *probe, int expected_code)
{
    int code = probe_exit_code(probe);
    if (code != expected_code) {
        fail_msg("ended with %d: %s", code, buf_c(&probe->text));
    }
    probe_done(probe);
}

static void a_signal_ends_it_in_order(void **state)
{
    (void)state;
    const int signals[] = {SIGTERM, SIGINT};
    for (size_t i = 0; i < 2; i++) {
        Probe probe;
        start_probe(&probe, AS("plain"));
        kill(probe.pid, signals[i]);
        probe_await(&probe, "\"stopped\"");
        probe_expect_text(&probe, "\"draining\"");
        end_probe(&probe, 0);
    }
}

static void it_answers_probes(void **state)
{
    (void)state;
    Probe probe;
    start_probe(&probe, AS("not-ready"));
    probe_expect_answer(&probe, "GET /healthz", "200", "\r\n\r\nok\n");
    // Between them stands why, as soon as the first attempt to connect has failed.
    probe_expect_answer(&probe, "GET /readyz", "503", "\r\n\r\nnot connected to nats");
    probe_expect_answer(&probe, "GET /readyz", "503", "; the probe sulks\n");
    probe_expect_answer(&probe, "GET /elsewhere", "404", "urn:stentor:problem:not-found");
    probe_expect_answer(&probe, "DELETE /healthz", "405", "Allow: GET, HEAD\r\n");
    kill(probe.pid, SIGTERM);
    end_probe(&probe, 0);
}

static void it_shows_its_metrics(void **state)
{
    (void)state;
    Probe probe;
    start_probe(&probe, AS("plain"));
    static const char *const parts[] = {
        "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n",
        "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total 0.",
        "# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes ",
        "process_start_time_seconds 1",
        "stentor_build_info{service=\"stentor-probe\",version=\"",
        "\nstentor_bus_connected 0\n",
        "\nstentor_bus_pending 0\n",
        "stentor_loop_lag_seconds_bucket{le=\"+Inf\"} ",
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        probe_expect_answer(&probe, "GET /metrics", "200", parts[i]);
    }
    kill(probe.pid, SIGTERM);
    end_probe(&probe, 0);
}

static void while_it_drains_it_is_alive_but_not_ready(void **state)
{
    (void)state;
    Probe probe;
    start_probe(&probe, AS("stops-later"));
    kill(probe.pid, SIGTERM);
    probe_await(&probe, "\"draining\"");
    probe_expect_answer(&probe, "GET /healthz", "200", "ok");
    probe_expect_answer(&probe, "GET /readyz", "503", "the service is stopping");
    end_probe(&probe, 0);
}

static void a_drain_has_an_end(void **state)
{
    (void)state;
    Probe probe;
    start_probe(
        &probe, PROBE_ARGS(NO_NATS, "--probe-behaviour", "never-stops", "--drain-ms", "100"));
    kill(probe.pid, SIGTERM);
    probe_await(&probe, "longer than STENTOR_DRAIN_MS");
    end_probe(&probe, 1);
}

static void a_second_signal_ends_it_at_once(void **state)
{
    (void)state;
    Probe probe;
    start_probe(&probe, AS("never-stops"));
    kill(probe.pid, SIGTERM);
    probe_await(&probe, "\"draining\"");
    kill(probe.pid, SIGTERM);
    probe_await(&probe, "second signal");
    end_probe(&probe, 1);
}

static void a_failure_while_running_drains_and_ends_with_1(void **state)
{
    (void)state;
    Probe probe;
    probe_launch(&probe, &probe_service, AS("fails-later"));
    probe_await(&probe, "\"stopped\"");
    probe_expect_text(&probe, "config: the probe met something");
    probe_expect_text(&probe, "\"draining\"");
    end_probe(&probe, 1);
}

static void a_failing_start_says_why(void **state)
{
    (void)state;
    Probe probe;
    probe_launch(&probe, &probe_service, AS("start-fails"));
    probe_await(&probe, "config: the probe does not want");
    end_probe(&probe, 1);
}

static void what_the_options_name_wrongly_ends_it_as_wrong_options_do(void **state)
{
    (void)state;
    Probe probe;
    probe_launch(&probe, &probe_service, AS("start-refuses"));
    probe_await(&probe, "config: the probe's file is wrong");
    end_probe(&probe, 2);
    probe_launch(&probe, &probe_service, AS("refuses-later"));
    probe_await(&probe, "\"stopped\"");
    end_probe(&probe, 2);
}

static void a_taken_admin_port_says_so(void **state)
{
    (void)state;
    Probe first, second;
    start_probe(&first, AS("plain"));
    char port[16];
    snprintf(port, sizeof port, "%d", first.port);
    probe_launch(&second, &probe_service, PROBE_ARGS(NO_NATS, "--admin-port", port));
    probe_await(&second, "STENTOR_ADMIN_PORT): cannot listen on 127.0.0.1 port ");
    probe_expect_text(&second, "Address already in use");
    end_probe(&second, 1);
    kill(first.pid, SIGTERM);
    end_probe(&first, 0);
}

static void wrong_options_end_with_2(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value, *said;
    } cases[] = {
        {"--admin-port", "x", "stentor-probe: STENTOR_ADMIN_PORT is 'x': expected a whole number"},
        {"--log-level", "loud", "STENTOR_LOG_LEVEL is 'loud': expected debug, info, warn or error"},
        {"--log-format", "xml", "STENTOR_LOG_FORMAT is 'xml': expected auto, json or logfmt"},
        {"--nothing", "x", "unknown option '--nothing'"},
        {"--database-url", "x", "unknown option '--database-url'"}, // it wants none
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Probe probe;
        probe_launch(&probe, &probe_service, PROBE_ARGS(cases[i].name, cases[i].value));
        probe_await(&probe, cases[i].said);
        end_probe(&probe, 2);
    }
}

static void what_a_service_wants_it_must_be_given(void **state)
{
    (void)state;
    ServiceSpec spec = probe_service;
    spec.wants_database = true;
    Probe probe;
    probe_launch(&probe, &spec, AS("plain"));
    probe_await(&probe, "STENTOR_DATABASE_URL is not set");
    end_probe(&probe, 2);
    spec.wants_database = false;
    spec.wants_master_key = true;
    probe_launch(&probe, &spec, PROBE_ARGS(NO_NATS, "--master-key-file", "no/such/file"));
    probe_await(&probe, "STENTOR_MASTER_KEY_FILE: cannot open 'no/such/file'");
    end_probe(&probe, 1);
}

static void what_a_service_wants_it_is_given(void **state)
{
    (void)state;
    char path[64];
    char key[132];
    snprintf(path, sizeof path, "service_test_%ld", (long)getpid());
    master_key_generate(key);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(key, file);
    fclose(file);
    ServiceSpec spec = probe_service;
    spec.wants_database = true;
    spec.wants_master_key = true;
    Probe probe;
    probe_launch(
        &probe, &spec,
        PROBE_ARGS(
            NO_NATS, "--probe-behaviour", "needs-all", "--master-key-file", path, "--database-url",
            "postgresql://me:geheim@127.0.0.1:1/none"));
    probe_await_start(&probe);
    unlink(path);
    probe_expect_text(&probe, "\"STENTOR_DATABASE_URL\":\"***\"");
    probe_expect_answer(
        &probe, "GET /readyz", "503", "not connected to nats; not connected to postgres");
    probe_expect_answer(
        &probe, "GET /readyz", "503",
        "the master key has not been compared with the registered one yet\n");
    probe_expect_answer(&probe, "GET /metrics", "200", "\nstentor_db_ready 0\n");
    kill(probe.pid, SIGTERM);
    end_probe(&probe, 0);
}

static void the_start_line_hides_secrets(void **state)
{
    (void)state;
    Probe probe;
    start_probe(
        &probe, PROBE_ARGS(
                    "--nats-url", "nats://me:geheim@127.0.0.1:1", "--log-format", "json",
                    "--nats-password", "geheim"));
    probe_expect_text(&probe, "\"STENTOR_NATS_URL\":\"nats://***@127.0.0.1:1\"");
    probe_expect_text(&probe, "\"STENTOR_NATS_PASSWORD\":\"***\"");
    probe_expect_text(&probe, "\"STENTOR_PROBE_BEHAVIOUR\":\"plain\"");
    probe_await(
        &probe, "\"nats is not reachable, trying again\",\"url\":\"nats://***@127.0.0.1:1\"");
    kill(probe.pid, SIGTERM);
    probe_await(&probe, "\"stopped\"");
    assert_null(strstr(buf_c(&probe.text), "geheim"));
    end_probe(&probe, 0);
}

static void it_explains_itself(void **state)
{
    (void)state;
    static const struct {
        const char *argument, *said;
    } cases[] = {
        {"--help", "--probe-behaviour  (STENTOR_PROBE_BEHAVIOUR, default plain)"},
        {"--version", "stentor-probe "},
        {"--options-markdown", "| `STENTOR_ADMIN_PORT` | `0` | "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Probe probe;
        probe_launch(&probe, &probe_service, PROBE_ARGS(cases[i].argument));
        probe_await(&probe, cases[i].said);
        end_probe(&probe, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_ends_it_in_order),
        cmocka_unit_test(it_answers_probes),
        cmocka_unit_test(it_shows_its_metrics),
        cmocka_unit_test(while_it_drains_it_is_alive_but_not_ready),
        cmocka_unit_test(a_drain_has_an_end),
        cmocka_unit_test(a_second_signal_ends_it_at_once),
        cmocka_unit_test(a_failure_while_running_drains_and_ends_with_1),
        cmocka_unit_test(a_failing_start_says_why),
        cmocka_unit_test(what_the_options_name_wrongly_ends_it_as_wrong_options_do),
        cmocka_unit_test(a_taken_admin_port_says_so),
        cmocka_unit_test(wrong_options_end_with_2),
        cmocka_unit_test(what_a_service_wants_it_must_be_given),
        cmocka_unit_test(what_a_service_wants_it_is_given),
        cmocka_unit_test(the_start_line_hides_secrets),
        cmocka_unit_test(it_explains_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
