// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/service/health/clock_off.h"

enum { SECOND = 1000000 };

static void a_clock_within_the_span_of_asking_is_right(void **state)
{
    (void)state;
    assert_int_equal(clock_off_us(5, 5, 9), 0);
    assert_int_equal(clock_off_us(9, 5, 9), 0);
    assert_int_equal(clock_off_us(4, 5, 9), -1);
    assert_int_equal(clock_off_us(19, 5, 9), 10);
}

static void a_slow_answer_is_no_wrong_clock(void **state)
{
    (void)state;
    assert_false(clock_is_off(clock_off_us(20 * SECOND, 0, 60 * SECOND)));
    assert_false(clock_is_off(clock_off_us(4 * SECOND, 0, SECOND)));
    assert_true(clock_is_off(clock_off_us(300 * SECOND, 0, SECOND)));
    assert_true(clock_is_off(clock_off_us(0, 300 * SECOND, 301 * SECOND)));
}

static void it_goes_wrong_and_is_right_again(void **state)
{
    (void)state;
    ClockCheck check = {.server = "Postgres"};
    clock_check_note(&check, 300 * SECOND);
    assert_true(check.off);
    assert_int_equal(check.off_us, 300 * SECOND);
    clock_check_note(&check, 0);
    assert_false(check.off);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clock_within_the_span_of_asking_is_right),
        cmocka_unit_test(a_slow_answer_is_no_wrong_clock),
        cmocka_unit_test(it_goes_wrong_and_is_right_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
