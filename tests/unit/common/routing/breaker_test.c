// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/routing/breaker.h"

static const int64_t START_US = INT64_C(1795199136000000);
static const int64_t SECOND_US = 1000000;
static const double MIDDLE = 0.5; // chance: the wait exactly

static BreakerMove tell(Breaker *breaker, BreakerResult result, int64_t begun_us, int64_t now_us)
{
    return breaker_tell(breaker, result, begun_us, MIDDLE, now_us);
}

static Breaker opened(int64_t now_us)
{
    Breaker breaker = {0};
    for (int i = 1; i < BREAKER_IN_ROW; i++) {
        assert_int_equal(tell(&breaker, BREAKER_FAILURE, now_us + i, now_us), BREAKER_STAYS);
    }
    assert_int_equal(tell(&breaker, BREAKER_FAILURE, now_us + 9, now_us), BREAKER_OPENS);
    return breaker;
}

static void results_count_as_the_table_says(void **state)
{
    (void)state;
    static const struct {
        SendResult result;
        BreakerResult expected;
    } rows[] = {
        {{.state = SEND_ANSWERED, .reply = REPLY_ACCEPTED}, BREAKER_SUCCESS},
        {{.state = SEND_ANSWERED, .reply = REPLY_TERMINAL}, BREAKER_SUCCESS},
        {{.state = SEND_ANSWERED, .reply = REPLY_BAD_ADDRESS}, BREAKER_SUCCESS},
        {{.state = SEND_ANSWERED, .reply = REPLY_ELSEWHERE}, BREAKER_SUCCESS},
        {{.state = SEND_ANSWERED, .reply = REPLY_CONFIG}, BREAKER_CONFIG},
        {{.state = SEND_ANSWERED, .reply = REPLY_THROTTLED}, BREAKER_NOTHING},
        {{.state = SEND_ANSWERED, .reply = REPLY_RETRY, .code = {"503", 3}}, BREAKER_FAILURE},
        {{.state = SEND_ANSWERED, .reply = REPLY_RETRY, .code = {"451", 3}}, BREAKER_NOTHING},
        {{.state = SEND_UNSENT}, BREAKER_FAILURE},
        {{.state = SEND_UNKNOWN}, BREAKER_FAILURE},
        {{.state = SEND_RELEASED}, BREAKER_NOTHING},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(breaker_result(&rows[i].result), rows[i].expected);
    }
}

static void five_failures_in_a_row_open_it_for_five_seconds(void **state)
{
    (void)state;
    Breaker breaker = opened(START_US);
    int64_t at_us = 0;
    assert_false(breaker_is_closed(&breaker));
    assert_int_equal(breaker_ask(&breaker, 0, START_US, &at_us), BREAKER_WAIT);
    assert_int_equal(at_us, START_US + 5 * SECOND_US);
    assert_int_equal(breaker_ask(&breaker, 0, at_us - 1, NULL), BREAKER_WAIT);
    assert_int_equal(breaker_ask(&breaker, 0, at_us, NULL), BREAKER_PROBE);
}

static void a_success_between_failures_begins_the_count_again(void **state)
{
    (void)state;
    Breaker breaker = {0};
    for (int round = 0; round < 3; round++) {
        int64_t at_us = START_US + round * 20 * SECOND_US;
        assert_int_equal(tell(&breaker, BREAKER_SUCCESS, at_us, at_us), BREAKER_STAYS);
        for (int i = 1; i < BREAKER_IN_ROW; i++) {
            assert_int_equal(tell(&breaker, BREAKER_FAILURE, at_us + i, at_us + i), BREAKER_STAYS);
        }
    }
    assert_true(breaker_is_closed(&breaker));
}

static void failures_of_sends_begun_before_the_last_success_do_not_count(void **state)
{
    (void)state;
    Breaker breaker = {0};
    int64_t late_us = START_US + 5 * SECOND_US;
    assert_int_equal(tell(&breaker, BREAKER_SUCCESS, START_US + 100, late_us), BREAKER_STAYS);
    for (int i = 0; i < 15; i++) { // of one blip; too few for the share of the window
        assert_int_equal(tell(&breaker, BREAKER_FAILURE, START_US + i, late_us), BREAKER_STAYS);
    }
    // A success that began later than counted failures takes them away.
    for (int i = 1; i < BREAKER_IN_ROW; i++) {
        tell(&breaker, BREAKER_FAILURE, START_US + 100 + i, late_us + 11 * SECOND_US);
    }
    tell(&breaker, BREAKER_SUCCESS, START_US + 102, late_us + 11 * SECOND_US); // 103, 104 stay
    assert_int_equal(
        tell(&breaker, BREAKER_FAILURE, START_US + 105, late_us + 11 * SECOND_US), BREAKER_STAYS);
    assert_int_equal(
        tell(&breaker, BREAKER_FAILURE, START_US + 106, late_us + 11 * SECOND_US), BREAKER_STAYS);
    assert_int_equal(
        tell(&breaker, BREAKER_FAILURE, START_US + 107, late_us + 11 * SECOND_US), BREAKER_OPENS);
}

static void half_of_twenty_within_ten_seconds_open_it(void **state)
{
    (void)state;
    Breaker breaker = {0};
    for (int i = 0; i < 9; i++) { // the success begins later, so never five in a row
        tell(&breaker, BREAKER_FAILURE, START_US + i, START_US + i * SECOND_US);
        tell(&breaker, BREAKER_SUCCESS, START_US + 100 + i, START_US + i * SECOND_US);
    }
    tell(&breaker, BREAKER_SUCCESS, START_US + 200, START_US + 9 * SECOND_US);
    assert_true(breaker_is_closed(&breaker)); // 9 of 19
    assert_int_equal(
        tell(&breaker, BREAKER_FAILURE, START_US + 150, START_US + 9 * SECOND_US), BREAKER_OPENS);
}

static void failures_older_than_ten_seconds_are_forgotten(void **state)
{
    (void)state;
    Breaker breaker = {0};
    for (int i = 0; i < 30; i++) {
        int64_t at_us = START_US + i * SECOND_US;
        bool failed = i < 12;
        tell(&breaker, failed ? BREAKER_FAILURE : BREAKER_SUCCESS, START_US - 100, at_us);
        tell(&breaker, BREAKER_SUCCESS, at_us, at_us);
    }
    assert_int_equal(
        tell(&breaker, BREAKER_FAILURE, START_US - 100, START_US + 30 * SECOND_US), BREAKER_STAYS);
    assert_true(breaker_is_closed(&breaker));
}

static void the_wait_doubles_to_a_minute_and_chance_moves_it_a_fifth(void **state)
{
    (void)state;
    static const int64_t waits_s[] = {10, 20, 40, 60, 60};
    int64_t now_us = START_US;
    Breaker breaker = opened(now_us);
    now_us = breaker.probe_at_us;
    for (size_t i = 0; i < sizeof waits_s / sizeof waits_s[0]; i++) {
        assert_int_equal(breaker_ask(&breaker, 0, now_us, NULL), BREAKER_PROBE);
        tell(&breaker, BREAKER_FAILURE, now_us, now_us);
        assert_int_equal(breaker.probe_at_us, now_us + waits_s[i] * SECOND_US);
        now_us = breaker.probe_at_us;
    }
    breaker_ask(&breaker, 0, now_us, NULL);
    breaker_tell(&breaker, BREAKER_FAILURE, now_us, 0.0, now_us);
    assert_int_equal(breaker.probe_at_us, now_us + 48 * SECOND_US);
    now_us = breaker.probe_at_us;
    breaker_ask(&breaker, 0, now_us, NULL);
    breaker_tell(&breaker, BREAKER_FAILURE, now_us, 0.999999, now_us);
    assert_in_range(breaker.probe_at_us, now_us + 71 * SECOND_US, now_us + 72 * SECOND_US);
}

static void a_refused_credential_opens_it_at_once_for_a_quarter_of_an_hour(void **state)
{
    (void)state;
    Breaker breaker = {0};
    assert_int_equal(tell(&breaker, BREAKER_CONFIG, START_US, START_US), BREAKER_OPENS);
    assert_int_equal(breaker.probe_at_us, START_US + 900 * SECOND_US);
    assert_int_equal(breaker_ask(&breaker, 0, START_US + SECOND_US, NULL), BREAKER_WAIT);
    breaker_credential_changed(&breaker, START_US + 2 * SECOND_US);
    assert_int_equal(breaker_ask(&breaker, 0, START_US + 2 * SECOND_US, NULL), BREAKER_PROBE);
}

static void one_probe_goes_at_a_time_and_three_successes_close_it(void **state)
{
    (void)state;
    Breaker breaker = opened(START_US);
    int64_t now_us = breaker.probe_at_us;
    for (int i = 1; i <= BREAKER_CLOSES_AFTER; i++) {
        assert_int_equal(breaker_ask(&breaker, 0, now_us, NULL), BREAKER_PROBE);
        assert_int_equal(breaker_ask(&breaker, 0, now_us, NULL), BREAKER_WAIT);
        // One that began before the breaker opened says nothing any more.
        assert_int_equal(tell(&breaker, BREAKER_FAILURE, START_US, now_us), BREAKER_STAYS);
        assert_int_equal(
            tell(&breaker, BREAKER_SUCCESS, now_us, now_us),
            i == BREAKER_CLOSES_AFTER ? BREAKER_CLOSES : BREAKER_STAYS);
    }
    assert_true(breaker_is_closed(&breaker));
}

static void a_probe_that_says_nothing_is_followed_by_another(void **state)
{
    (void)state;
    Breaker breaker = opened(START_US);
    int64_t now_us = breaker.probe_at_us;
    assert_int_equal(breaker_ask(&breaker, 0, now_us, NULL), BREAKER_PROBE);
    assert_int_equal(tell(&breaker, BREAKER_NOTHING, now_us, now_us), BREAKER_STAYS);
    assert_int_equal(breaker_ask(&breaker, 0, now_us, NULL), BREAKER_PROBE);
    // And one of which nothing is ever heard is given up.
    int64_t later_us = now_us + BREAKER_PROBE_MAX_MS * INT64_C(1000);
    assert_int_equal(breaker_ask(&breaker, 0, later_us - 1, NULL), BREAKER_WAIT);
    assert_int_equal(breaker_ask(&breaker, 0, later_us, NULL), BREAKER_PROBE);
}

static void a_probe_whose_right_another_replica_has_is_asked_for_later(void **state)
{
    (void)state;
    Breaker breaker = opened(START_US);
    int64_t now_us = breaker.probe_at_us;
    int64_t at_us = 0;
    assert_int_equal(breaker_ask(&breaker, 0, now_us, NULL), BREAKER_PROBE);
    breaker_no_probe(&breaker, now_us + 3 * SECOND_US);
    assert_int_equal(breaker_ask(&breaker, 0, now_us, &at_us), BREAKER_WAIT);
    assert_int_equal(at_us, now_us + 3 * SECOND_US);
}

static int sent_in_second(Breaker *breaker, int64_t limit_per_s, int64_t second_us)
{
    int sent = 0;
    for (int i = 0; i < 5000; i++) {
        sent += breaker_ask(breaker, limit_per_s, second_us + i, NULL) == BREAKER_SEND ? 1 : 0;
    }
    return sent;
}

static Breaker closed_again(int64_t *now_us)
{
    Breaker breaker = opened(*now_us);
    *now_us = breaker.probe_at_us;
    for (int i = 0; i < BREAKER_CLOSES_AFTER; i++) {
        breaker_ask(&breaker, 0, *now_us, NULL);
        tell(&breaker, BREAKER_SUCCESS, *now_us, *now_us);
    }
    return breaker;
}

static void it_starts_slowly_and_doubles_each_second_up_to_the_limit(void **state)
{
    (void)state;
    int64_t now_us = START_US;
    Breaker breaker = closed_again(&now_us);
    for (int second = 0; second < 5; second++) {
        assert_int_equal(
            sent_in_second(&breaker, 20, now_us + second * SECOND_US),
            second == 4 ? 16 : 1 << second);
    }
    assert_int_equal(sent_in_second(&breaker, 20, now_us + 5 * SECOND_US), 5000); // the limit's own
    assert_int_equal(breaker.state, BREAKER_CLOSED);
}

static void failures_of_the_slow_start_open_it_for_longer(void **state)
{
    (void)state;
    int64_t now_us = START_US;
    Breaker breaker = closed_again(&now_us);
    for (int i = 1; i < BREAKER_IN_ROW; i++) {
        tell(&breaker, BREAKER_FAILURE, now_us + i, now_us + i);
    }
    assert_int_equal(tell(&breaker, BREAKER_FAILURE, now_us + 9, now_us + 9), BREAKER_OPENS);
    assert_int_equal(breaker.probe_at_us, now_us + 9 + 10 * SECOND_US);
}

static void what_another_replica_found_counts_here_unless_it_is_older(void **state)
{
    (void)state;
    Breaker breaker = {0};
    assert_int_equal(
        breaker_hear(&breaker, true, false, START_US, MIDDLE, START_US), BREAKER_OPENS);
    assert_int_equal(
        breaker_hear(&breaker, true, false, START_US + 1, MIDDLE, START_US + 1), BREAKER_STAYS);
    assert_int_equal(
        breaker_hear(&breaker, false, false, START_US - 1, MIDDLE, START_US + 2), BREAKER_STAYS);
    assert_int_equal(
        breaker_hear(&breaker, false, false, START_US + 3, MIDDLE, START_US + 3), BREAKER_CLOSES);
    assert_int_equal(breaker.state, BREAKER_SLOW);
}

static void each_state_has_its_name(void **state)
{
    (void)state;
    assert_string_equal(breaker_state_name(BREAKER_CLOSED), "closed");
    assert_string_equal(breaker_state_name(BREAKER_OPEN), "open");
    assert_string_equal(breaker_state_name(BREAKER_HALF_OPEN), "half_open");
    assert_string_equal(breaker_state_name(BREAKER_SLOW), "slow_start");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_count_as_the_table_says),
        cmocka_unit_test(five_failures_in_a_row_open_it_for_five_seconds),
        cmocka_unit_test(a_success_between_failures_begins_the_count_again),
        cmocka_unit_test(failures_of_sends_begun_before_the_last_success_do_not_count),
        cmocka_unit_test(half_of_twenty_within_ten_seconds_open_it),
        cmocka_unit_test(failures_older_than_ten_seconds_are_forgotten),
        cmocka_unit_test(the_wait_doubles_to_a_minute_and_chance_moves_it_a_fifth),
        cmocka_unit_test(a_refused_credential_opens_it_at_once_for_a_quarter_of_an_hour),
        cmocka_unit_test(one_probe_goes_at_a_time_and_three_successes_close_it),
        cmocka_unit_test(a_probe_that_says_nothing_is_followed_by_another),
        cmocka_unit_test(a_probe_whose_right_another_replica_has_is_asked_for_later),
        cmocka_unit_test(it_starts_slowly_and_doubles_each_second_up_to_the_limit),
        cmocka_unit_test(failures_of_the_slow_start_open_it_for_longer),
        cmocka_unit_test(what_another_replica_found_counts_here_unless_it_is_older),
        cmocka_unit_test(each_state_has_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
