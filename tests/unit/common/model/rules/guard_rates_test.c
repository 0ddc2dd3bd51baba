// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "common/model/rules/guard_rates.h"

#define MINUTE_US INT64_C(60000000)
#define HOUR_US (60 * MINUTE_US)
#define NOW_US (INT64_C(1790000000) / 300 * 300 * 1000000)

static const GuardLimits LIMITS = {
    .warn = {[GUARD_BOUNCED] = 20, [GUARD_COMPLAINED] = 1},
    .pause = {[GUARD_BOUNCED] = 50, [GUARD_COMPLAINED] = 3},
    .min_sends = 50,
};

static GuardRates *rates;

static int begin(void **state)
{
    (void)state;
    rates = guard_rates_new();
    return 0;
}

static int end(void **state)
{
    (void)state;
    guard_rates_free(rates);
    return 0;
}

static void note(uint64_t sent, uint64_t bounced, uint64_t complained, int64_t at_us)
{
    guard_rates_note(rates, STR("acme"), GUARD_SENT, sent, at_us);
    guard_rates_note(rates, STR("acme"), GUARD_BOUNCED, bounced, at_us);
    guard_rates_note(rates, STR("acme"), GUARD_COMPLAINED, complained, at_us);
}

static GuardVerdict judge(int64_t since_us, int64_t now_us)
{
    GuardQuestion question = {.scope = STR("acme"), .since_us = since_us, .now_us = now_us};
    return guard_rates_judge(rates, &question, &LIMITS);
}

static void each_limit_is_reached_at_its_part_of_a_thousand(void **state)
{
    (void)state;
    static const struct {
        uint64_t sent, bounced, complained;
        GuardLevel level;
        GuardOutcome of;
    } rows[] = {
        {1000, 19, 0, GUARD_FINE, 0},
        {1000, 20, 0, GUARD_WARN, GUARD_BOUNCED},
        {1000, 50, 0, GUARD_PAUSE, GUARD_BOUNCED},
        {1000, 0, 1, GUARD_WARN, GUARD_COMPLAINED},
        {1000, 0, 3, GUARD_PAUSE, GUARD_COMPLAINED},
        {1000, 20, 3, GUARD_PAUSE, GUARD_COMPLAINED},
        {49, 49, 49, GUARD_FINE, 0}, // too few to say anything
        {50, 3, 0, GUARD_PAUSE, GUARD_BOUNCED},
        {0, 5, 5, GUARD_FINE, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        guard_rates_clear(rates);
        note(rows[i].sent, rows[i].bounced, rows[i].complained, NOW_US);
        GuardVerdict verdict = judge(0, NOW_US);
        assert_int_equal(verdict.level, rows[i].level);
        if (verdict.level != GUARD_FINE) {
            assert_int_equal(verdict.of, rows[i].of);
            assert_int_equal(verdict.sent, rows[i].sent);
        }
    }
}

static void an_hour_and_a_day_are_two_spans(void **state)
{
    (void)state;
    note(100, 10, 0, NOW_US - 2 * HOUR_US);
    note(50, 0, 0, NOW_US);
    GuardVerdict verdict = judge(0, NOW_US);
    assert_int_equal(verdict.level, GUARD_PAUSE); // 10 of 150 in the day
    assert_int_equal(verdict.span_us, 24 * HOUR_US);
    assert_int_equal(verdict.bad, 10);
    note(2000, 0, 0, NOW_US - 3 * HOUR_US);
    assert_int_equal(judge(0, NOW_US).level, GUARD_FINE);
    note(50, 10, 0, NOW_US);
    assert_int_equal(judge(0, NOW_US).span_us, HOUR_US); // 10 of 100 in the hour
}

static void what_is_older_than_a_day_does_not_count(void **state)
{
    (void)state;
    note(100, 50, 0, NOW_US);
    assert_int_equal(judge(0, NOW_US).level, GUARD_PAUSE);
    assert_int_equal(judge(0, NOW_US + 23 * HOUR_US).level, GUARD_PAUSE);
    assert_int_equal(judge(0, NOW_US + 25 * HOUR_US).level, GUARD_FINE);
    note(100, 0, 0, NOW_US + 25 * HOUR_US);
    note(100, 50, 0, NOW_US - HOUR_US); // late, and of a step that is in use again or gone
    assert_int_equal(judge(0, NOW_US + 25 * HOUR_US).level, GUARD_FINE);
}

static void a_resumption_begins_again(void **state)
{
    (void)state;
    note(100, 50, 0, NOW_US);
    assert_int_equal(judge(NOW_US + MINUTE_US, NOW_US + 2 * MINUTE_US).level, GUARD_FINE);
    note(100, 50, 0, NOW_US + 10 * MINUTE_US);
    assert_int_equal(judge(NOW_US + MINUTE_US, NOW_US + 10 * MINUTE_US).level, GUARD_PAUSE);
}

static GuardVerdict judge_of(Str scope)
{
    GuardQuestion question = {.scope = scope, .now_us = NOW_US};
    return guard_rates_judge(rates, &question, &LIMITS);
}

static void what_a_part_has_is_taken_away(void **state)
{
    (void)state;
    note(200, 12, 0, NOW_US);
    assert_int_equal(judge(0, NOW_US).level, GUARD_PAUSE);
    guard_rates_note(rates, STR("part"), GUARD_SENT, 100, NOW_US);
    guard_rates_note(rates, STR("part"), GUARD_BOUNCED, 11, NOW_US);
    const Str without[] = {STR("part"), STR("none")};
    GuardQuestion question = {
        .scope = STR("acme"), .without = without, .without_count = 2, .now_us = NOW_US};
    assert_int_equal(guard_rates_judge(rates, &question, &LIMITS).level, GUARD_FINE);
    guard_rates_note(rates, STR("acme"), GUARD_BOUNCED, 4, NOW_US);
    GuardVerdict verdict = guard_rates_judge(rates, &question, &LIMITS);
    assert_int_equal(verdict.level, GUARD_PAUSE);
    assert_int_equal(verdict.sent, 100);
    assert_int_equal(verdict.bad, 5);
}

static void tenants_are_apart(void **state)
{
    (void)state;
    note(100, 50, 0, NOW_US);
    guard_rates_note(rates, STR("beta"), GUARD_SENT, 100, NOW_US);
    assert_int_equal(judge_of(STR("beta")).level, GUARD_FINE);
    assert_int_equal(judge_of(STR("none")).level, GUARD_FINE);
    size_t cursor = 0, count = 0;
    for (Str tenant; guard_rates_next(rates, &cursor, &tenant);) {
        count++;
    }
    assert_int_equal(count, 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(each_limit_is_reached_at_its_part_of_a_thousand),
        TEST(an_hour_and_a_day_are_two_spans),
        TEST(what_is_older_than_a_day_does_not_count),
        TEST(a_resumption_begins_again),
        TEST(tenants_are_apart),
        TEST(what_a_part_has_is_taken_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
