// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/service/health/steady.h"

static void the_first_time_it_is_ready_at_once(void **state)
{
    (void)state;
    Steady steady = {0};
    assert_false(steady_update(&steady, false, 0));
    assert_true(steady_update(&steady, true, 10));
    assert_true(steady_update(&steady, true, 20));
}

static void after_a_break_it_must_be_well_for_a_while(void **state)
{
    (void)state;
    Steady steady = {0};
    assert_true(steady_update(&steady, true, 0));
    assert_false(steady_update(&steady, false, 100)); // down at once
    assert_false(steady_update(&steady, true, 200));
    assert_false(steady_update(&steady, true, 200 + STEADY_MS - 1));
    assert_true(steady_update(&steady, true, 200 + STEADY_MS));
    assert_true(steady_update(&steady, true, 300 + STEADY_MS));
}

static void what_comes_and_goes_stays_down(void **state)
{
    (void)state;
    Steady steady = {0};
    assert_true(steady_update(&steady, true, 0));
    int64_t now_ms = 0;
    for (int i = 0; i < 100; i++) {
        now_ms += STEADY_MS / 2;
        assert_false(steady_update(&steady, i % 2 == 1, now_ms));
    }
    assert_true(steady_update(&steady, true, now_ms + STEADY_MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_time_it_is_ready_at_once),
        cmocka_unit_test(after_a_break_it_must_be_well_for_a_while),
        cmocka_unit_test(what_comes_and_goes_stays_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
