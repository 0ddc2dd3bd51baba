// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/model/rules/limits.h"
#include "tests/unit/common/model/zone_cases.h"

static void what_is_over_the_limit_has_its_turn_later(void **state)
{
    (void)state;
    static const struct {
        Limits limits;
        LimitPlace place;
        const char *turn; // NULL: now
    } CASES[] = {
        {{0, 0}, {1000000, 1000000}, NULL},
        {{10, 0}, {0, 0}, NULL}, // not counted
        {{10, 0}, {10, 10}, NULL},
        {{10, 0}, {11, 11}, "2026-05-01T10:21:00Z"},
        {{10, 0}, {20, 20}, "2026-05-01T10:21:00Z"},
        {{10, 0}, {21, 21}, "2026-05-01T10:22:00Z"},
        {{0, 100}, {100, 100}, NULL},
        {{0, 100}, {101, 101}, "2026-05-02T00:00:00Z"},
        {{0, 100}, {1, 301}, "2026-05-04T00:00:00Z"},
        {{10, 100}, {11, 99}, "2026-05-01T10:21:00Z"},
        {{10, 100}, {1, 101}, "2026-05-02T00:00:00Z"}, // the day counts, not only the minute
        {{10, 100}, {1, 121}, "2026-05-02T00:02:00Z"}, // at the minutes' pace there too
    };
    int64_t now_us = instant("2026-05-01T10:20:30Z");
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        int64_t turn_us = limits_turn(&CASES[i].limits, &CASES[i].place, now_us);
        int64_t wanted_us = CASES[i].turn == NULL ? 0 : instant(CASES[i].turn);
        if (turn_us != wanted_us) {
            fail_msg("case %zu", i);
        }
    }
}

// Law: no minute gets more than its limit, whatever the burst.
static void a_burst_comes_out_at_the_limits_own_pace(void **state)
{
    (void)state;
    Limits limits = {.per_minute = 7};
    int64_t now_us = instant("2026-05-01T10:20:30Z");
    int64_t base_us = now_us - now_us % MINUTE_US;
    int64_t counts[200] = {0};
    for (int64_t place = 1; place <= 1000; place++) {
        int64_t turn_us = limits_turn(&limits, &(LimitPlace){place, place}, now_us);
        int64_t minute = turn_us == 0 ? 0 : (turn_us - base_us) / MINUTE_US;
        assert_true(minute >= 0 && minute < 200);
        counts[minute]++;
    }
    for (int i = 0; i < 142; i++) {
        assert_int_equal(counts[i], 7);
    }
    assert_int_equal(counts[142], 6);
}

static void limits_are_there_when_one_is(void **state)
{
    (void)state;
    assert_false(limits_any(&(Limits){0, 0}));
    assert_true(limits_any(&(Limits){1, 0}));
    assert_true(limits_any(&(Limits){0, 1}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_over_the_limit_has_its_turn_later),
        cmocka_unit_test(a_burst_comes_out_at_the_limits_own_pace),
        cmocka_unit_test(limits_are_there_when_one_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
