// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/model/rules/pace.h"

static const int64_t START_US = INT64_C(1795199136000000);
static const int64_t SECOND_US = 1000000;

static void a_new_bucket_is_empty_and_says_how_long_to_wait(void **state)
{
    (void)state;
    Pace pace;
    int64_t wait_us = 0;
    pace_init(&pace, 100, 10, START_US);
    assert_false(pace_take(&pace, 10, START_US, &wait_us));
    assert_int_equal(wait_us, 100000); // ten at a hundred a second
    assert_false(pace_take(&pace, 10, START_US + wait_us - 1, NULL));
    assert_true(pace_take(&pace, 10, START_US + wait_us, NULL));
    assert_false(pace_take(&pace, 1, START_US + wait_us, NULL));
}

static void no_more_than_the_burst_is_saved_up(void **state)
{
    (void)state;
    Pace pace;
    pace_init(&pace, 100, 10, START_US);
    int64_t later_us = START_US + 3600 * SECOND_US;
    assert_true(pace_take(&pace, 10, later_us, NULL));
    assert_false(pace_take(&pace, 1, later_us, NULL));
}

static void without_a_limit_everything_goes(void **state)
{
    (void)state;
    Pace pace;
    pace_init(&pace, 0, 500, START_US);
    for (int i = 0; i < 1000; i++) {
        assert_true(pace_take(&pace, 500, START_US, NULL));
    }
    pace_give_back(&pace, 500);
    assert_true(pace_take(&pace, 500, START_US, NULL));
}

static void what_was_not_used_is_there_again(void **state)
{
    (void)state;
    Pace pace;
    pace_init(&pace, 10, 10, START_US);
    int64_t at_us = START_US + SECOND_US;
    assert_true(pace_take(&pace, 10, at_us, NULL));
    pace_give_back(&pace, 10);
    assert_true(pace_take(&pace, 10, at_us, NULL));
    pace_give_back(&pace, 10);
    pace_give_back(&pace, 10); // never beyond the burst
    assert_true(pace_take(&pace, 10, at_us, NULL));
    assert_false(pace_take(&pace, 1, at_us, NULL));
}

// A caller that waits as it is asked to gets exactly the rate, at any rate and step, also with a
// clock that jumps back.
static void over_a_long_time_the_rate_is_kept(void **state)
{
    (void)state;
    static const int64_t rates[] = {1, 3, 7, 99, 1000, 12345, PACE_PER_S_MAX};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        int64_t step = rates[i] < 10 ? 1 : rates[i] / 10;
        Pace pace;
        pace_init(&pace, rates[i], step, START_US);
        int64_t now_us = START_US;
        int64_t sent = 0;
        while (now_us < START_US + 60 * SECOND_US) {
            int64_t wait_us = 0;
            if (pace_take(&pace, step, now_us, &wait_us)) {
                sent += step;
            } else {
                assert_true(wait_us >= 1);
                assert_false(pace_take(&pace, step, now_us - SECOND_US, NULL));
                now_us += wait_us;
            }
        }
        int64_t wanted = rates[i] * 60;
        assert_in_range(sent, wanted - 2 * step - wanted / 1000, wanted + step);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_bucket_is_empty_and_says_how_long_to_wait),
        cmocka_unit_test(no_more_than_the_burst_is_saved_up),
        cmocka_unit_test(without_a_limit_everything_goes),
        cmocka_unit_test(what_was_not_used_is_there_again),
        cmocka_unit_test(over_a_long_time_the_rate_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
