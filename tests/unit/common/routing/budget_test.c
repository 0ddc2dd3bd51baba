// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/routing/budget.h"

static const int64_t START_US = INT64_C(1795199136000000);
static const int64_t SECOND_US = 1000000;

static Budget new_budget(int64_t per_s, int64_t per_day)
{
    Budget budget;
    budget_init(&budget, per_s, per_day);
    return budget;
}

static bool take(Budget *budget, Priority lane, int64_t now_us)
{
    int64_t at_us = 0;
    return budget_take(budget, lane, 1, now_us, &at_us);
}

// Asks for a lease with so many mails waiting.
static uint32_t wants(Budget *budget, uint32_t waiting, uint32_t replicas, int64_t now_us)
{
    int64_t at_us = 0;
    (void)budget_take(budget, PRIORITY_NORMAL, waiting, now_us, &at_us);
    return budget_wants(budget, replicas, now_us);
}

static void a_lease_is_at_most_the_half_of_a_replica_s_share(void **state)
{
    (void)state;
    Budget budget = new_budget(100, 0);
    assert_int_equal(budget_wants(&budget, 1, START_US), 0); // no mail has asked
    assert_int_equal(wants(&budget, 3, 1, START_US), 3);
    assert_int_equal(wants(&budget, 500, 1, START_US), 50);
    assert_int_equal(wants(&budget, 500, 4, START_US), 12);
    assert_int_equal(wants(&budget, 500, 0, START_US), 50);
    Budget small = new_budget(2, 0);
    assert_int_equal(wants(&small, 500, 8, START_US), 1);
    Budget day = new_budget(0, 86400 * 10);
    assert_int_equal(wants(&day, 5000, 1, START_US), 300); // of 600 a minute
}

static void one_lease_is_asked_for_at_a_time_and_after_a_refusal_later(void **state)
{
    (void)state;
    Budget budget = new_budget(100, 0);
    assert_int_equal(wants(&budget, 9, 1, START_US), 9);
    budget_asked(&budget, START_US);
    assert_int_equal(wants(&budget, 9, 1, START_US + 1000), 0);
    budget_refused(&budget, START_US + 2000);
    assert_int_equal(wants(&budget, 9, 1, START_US + 3000), 0);
    assert_int_equal(wants(&budget, 9, 1, START_US + 2000 + 50000), 9);
    budget_asked(&budget, START_US + 60000);
    assert_int_equal(wants(&budget, 9, 1, START_US + 11 * SECOND_US), 9); // the answer is lost
}

static void each_token_has_its_moment_and_is_lost_a_tenth_of_a_second_after_it(void **state)
{
    (void)state;
    Budget budget = new_budget(100, 0);
    int64_t at_us = 0;
    budget_granted(&budget, 10, 5000, 100000, START_US); // from 5 ms on, each 10 ms
    assert_false(budget_take(&budget, PRIORITY_NORMAL, 1, START_US, &at_us));
    assert_int_equal(at_us, START_US + 5000);
    assert_true(take(&budget, PRIORITY_NORMAL, at_us));
    assert_false(budget_take(&budget, PRIORITY_NORMAL, 1, at_us, &at_us));
    assert_int_equal(at_us, START_US + 15000);
    // At 150 ms those of 15, 25 and 35 ms (and 45) are over: 55 to 95 ms are left.
    int taken = 0;
    for (int i = 0; i < 20; i++) {
        taken += take(&budget, PRIORITY_NORMAL, START_US + 150000) ? 1 : 0;
    }
    assert_in_range(taken, 5, 6);
    assert_false(take(&budget, PRIORITY_NORMAL, START_US + 300000));
}

static void the_next_lease_is_asked_for_when_less_than_a_third_is_left(void **state)
{
    (void)state;
    Budget budget = new_budget(1000, 0);
    budget_granted(&budget, 10, 0, 10000, START_US);
    for (int i = 0; i < 6; i++) {
        assert_true(take(&budget, PRIORITY_NORMAL, START_US + 9000));
        assert_int_equal(budget_wants(&budget, 1, START_US + 9000), 0);
    }
    assert_true(take(&budget, PRIORITY_NORMAL, START_US + 9000));
    assert_true(budget_wants(&budget, 1, START_US + 9000) > 0); // 3 of 10
    // It is used behind the first one.
    budget_granted(&budget, 4, 1000, 4000, START_US + 9000);
    assert_int_equal(budget_wants(&budget, 1, START_US + 9000), 0);
    for (int i = 0; i < 3; i++) {
        assert_true(take(&budget, PRIORITY_NORMAL, START_US + 9000));
    }
    assert_false(take(&budget, PRIORITY_NORMAL, START_US + 9000));
    assert_true(take(&budget, PRIORITY_NORMAL, START_US + 10000));
}

static void a_fifth_is_kept_for_urgent_lanes_while_they_are_used(void **state)
{
    (void)state;
    Budget budget = new_budget(1000, 0);
    int common = 0;
    budget_granted(&budget, 10, 0, 10, START_US);
    assert_true(take(&budget, PRIORITY_CRITICAL, START_US + 10));
    for (int i = 0; i < 20; i++) {
        common += take(&budget, PRIORITY_LOW, START_US + 10) ? 1 : 0;
    }
    assert_int_equal(common, 8);
    assert_true(take(&budget, PRIORITY_HIGH, START_US + 10));
    assert_false(take(&budget, PRIORITY_HIGH, START_US + 10));
    // Nothing urgent for ten seconds: all of a lease is for all.
    int64_t later_us = START_US + 11 * SECOND_US;
    budget_granted(&budget, 10, 0, 10, later_us);
    for (int i = 0; i < 10; i++) {
        assert_true(take(&budget, PRIORITY_LOW, later_us + 10));
    }
}

static void what_is_given_back_is_there_again(void **state)
{
    (void)state;
    Budget budget = new_budget(1000, 0);
    budget_granted(&budget, 1, 0, 10, START_US);
    assert_true(take(&budget, PRIORITY_LOW, START_US));
    assert_false(take(&budget, PRIORITY_LOW, START_US));
    budget_give_back(&budget, PRIORITY_LOW);
    assert_true(take(&budget, PRIORITY_LOW, START_US));
}

static void a_throttled_budget_gives_nothing_until_its_time(void **state)
{
    (void)state;
    Budget budget = new_budget(1000, 0);
    int64_t at_us = 0;
    budget_granted(&budget, 10, 0, 10, START_US);
    budget_granted(&budget, 10, 0, 10, START_US);
    budget_pause(&budget, START_US + 2 * SECOND_US);
    assert_false(budget_take(&budget, PRIORITY_CRITICAL, 5, START_US + 20, &at_us));
    assert_int_equal(at_us, START_US + 2 * SECOND_US);
    assert_int_equal(wants(&budget, 5, 1, START_US + SECOND_US), 0);
    assert_int_equal(wants(&budget, 5, 1, START_US + 2 * SECOND_US), 5);
}

static void demand_is_remembered_for_some_seconds(void **state)
{
    (void)state;
    Budget budget = new_budget(1000, 0);
    for (int second = 0; second < 20; second++) {
        int64_t now_us = START_US + second * SECOND_US;
        budget_granted(&budget, 40, 0, 40, now_us);
        for (int i = 0; i < 40; i++) {
            assert_true(take(&budget, PRIORITY_NORMAL, now_us + 40));
        }
    }
    int64_t now_us = START_US + 20 * SECOND_US;
    assert_in_range(wants(&budget, 1, 1, now_us), 38, 41);
    assert_int_equal(budget_wants(&budget, 1, now_us + 3 * SECOND_US), 0); // idle
}

static void a_span_is_what_the_tokens_take_at_full_pace(void **state)
{
    (void)state;
    Budget per_s = new_budget(100, 0);
    Budget per_day = new_budget(0, 8640);
    assert_int_equal((int)(budget_span_s(&per_s, 50) * 1000 + 0.5), 500);
    assert_int_equal((int)(budget_span_s(&per_day, 2) + 0.5), 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lease_is_at_most_the_half_of_a_replica_s_share),
        cmocka_unit_test(one_lease_is_asked_for_at_a_time_and_after_a_refusal_later),
        cmocka_unit_test(each_token_has_its_moment_and_is_lost_a_tenth_of_a_second_after_it),
        cmocka_unit_test(the_next_lease_is_asked_for_when_less_than_a_third_is_left),
        cmocka_unit_test(a_fifth_is_kept_for_urgent_lanes_while_they_are_used),
        cmocka_unit_test(what_is_given_back_is_there_again),
        cmocka_unit_test(a_throttled_budget_gives_nothing_until_its_time),
        cmocka_unit_test(demand_is_remembered_for_some_seconds),
        cmocka_unit_test(a_span_is_what_the_tokens_take_at_full_pace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
