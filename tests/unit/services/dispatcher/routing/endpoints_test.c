// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/routing/endpoints.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define URL STR("https://discord.com/api/webhooks/1/a")
#define SECOND INT64_C(1000000)
#define NOW (INT64_C(1795723200) * SECOND)

static const EndpointPace PACE = {.interval_ms = 2000, .burst = 3};

static void a_burst_goes_and_the_others_get_a_time_each(void **state)
{
    (void)state;
    Endpoints *endpoints = endpoints_new();
    int64_t due_us = 0;
    for (int i = 0; i < 3; i++) {
        assert_true(endpoints_take(endpoints, URL, PACE, NOW, &due_us));
    }
    for (int i = 1; i <= 3; i++) {
        assert_false(endpoints_take(endpoints, URL, PACE, NOW, &due_us));
        assert_int_equal(due_us, NOW + 2 * i * SECOND);
    }
    assert_true(endpoints_take(endpoints, STR("https://other"), PACE, NOW, &due_us));
    for (int i = 1; i <= 3; i++) { // each finds its time free
        assert_true(endpoints_take(endpoints, URL, PACE, NOW + 2 * i * SECOND, &due_us));
    }
    assert_false(endpoints_take(endpoints, URL, PACE, NOW + 6 * SECOND, &due_us));
    assert_true(endpoints_take(endpoints, URL, PACE, NOW + 60 * SECOND, &due_us));
    endpoints_free(endpoints);
}

static void one_that_throttled_is_left_alone(void **state)
{
    (void)state;
    Endpoints *endpoints = endpoints_new();
    int64_t due_us = 0;
    endpoints_hold(endpoints, URL, 5000, NOW);
    endpoints_hold(endpoints, URL, 0, NOW);
    assert_false(endpoints_take(endpoints, URL, PACE, NOW + 4 * SECOND, &due_us));
    assert_int_equal(due_us, NOW + 5 * SECOND);
    assert_false(endpoints_take(endpoints, URL, PACE, NOW + 4 * SECOND, &due_us));
    assert_int_equal(due_us, NOW + 7 * SECOND);
    assert_true(endpoints_take(endpoints, URL, PACE, NOW + 5 * SECOND, &due_us));
    assert_true(endpoints_take(endpoints, URL, (EndpointPace){0}, NOW, &due_us));
    endpoints_free(endpoints);
}

static void the_line_ends_and_so_does_the_table(void **state)
{
    (void)state;
    Endpoints *endpoints = endpoints_new();
    int64_t due_us = 0;
    for (int i = 0; i < 4 + ENDPOINT_LINE_MAX_S / 2 + 10; i++) {
        (void)endpoints_take(endpoints, URL, PACE, NOW, &due_us);
    }
    assert_int_equal(due_us, NOW + ENDPOINT_LINE_MAX_S * SECOND);
    for (int i = 0; i < ENDPOINTS_MAX + 10; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "https://%d", i);
        assert_true(endpoints_take(endpoints, str_from(name), PACE, NOW, &due_us));
    }
    // What is idle makes room for what comes.
    assert_true(endpoints_take(endpoints, STR("new"), PACE, NOW + 10 * SECOND, &due_us));
    endpoints_hold(endpoints, STR("new"), 5000, NOW + 10 * SECOND);
    assert_false(endpoints_take(endpoints, STR("new"), PACE, NOW + 11 * SECOND, &due_us));
    endpoints_free(endpoints);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_goes_and_the_others_get_a_time_each),
        cmocka_unit_test(one_that_throttled_is_left_alone),
        cmocka_unit_test(the_line_ends_and_so_does_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
