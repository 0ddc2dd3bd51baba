// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/model/rules/quiet_hours.h"
#include "tests/unit/common/model/zone_cases.h"

static int set_up(void **state)
{
    *state = zones_new();
    return 0;
}

static int tear_down(void **state)
{
    zones_free(*state);
    return 0;
}

static void quiet_hours_end_as_the_wall_says(void **state)
{
    static const struct {
        const char *zone;
        QuietHours hours;
        const char *now, *end; // equal: not quiet
    } CASES[] = {
        {"UTC", {1320, 420}, "2026-05-01T21:59:59Z", "2026-05-01T21:59:59Z"},
        {"UTC", {1320, 420}, "2026-05-01T22:00:00Z", "2026-05-02T07:00:00Z"},
        {"UTC", {1320, 420}, "2026-05-02T06:59:59Z", "2026-05-02T07:00:00Z"},
        {"UTC", {1320, 420}, "2026-05-02T07:00:00Z", "2026-05-02T07:00:00Z"},
        {"UTC", {780, 840}, "2026-05-02T13:30:00Z", "2026-05-02T14:00:00Z"}, // within a day
        {"UTC", {600, 600}, "2026-05-02T10:00:00Z", "2026-05-02T10:00:00Z"}, // none
        {"UTC", {0, 1439}, "2026-05-02T00:00:00Z", "2026-05-02T23:59:00Z"},
        // The night in which summer begins is an hour shorter, and its end keeps to the wall.
        {"Europe/Berlin", {1320, 420}, "2026-03-28T21:00:00Z", "2026-03-29T05:00:00Z"},
        {"Europe/Berlin", {1320, 420}, "2026-10-24T20:00:00Z", "2026-10-25T06:00:00Z"},
        // Its end is skipped: with the gap they are over.
        {"Europe/Berlin", {1320, 150}, "2026-03-29T00:59:00Z", "2026-03-29T01:00:00Z"},
        // Wholly skipped: they never were.
        {"Europe/Berlin", {120, 150}, "2026-03-29T01:00:00Z", "2026-03-29T01:00:00Z"},
        // Shown twice: quiet twice, each with an end of its own.
        {"Europe/Berlin", {120, 150}, "2026-10-25T00:10:00Z", "2026-10-25T00:30:00Z"},
        {"Europe/Berlin", {120, 150}, "2026-10-25T00:40:00Z", "2026-10-25T00:40:00Z"},
        {"Europe/Berlin", {120, 150}, "2026-10-25T01:10:00Z", "2026-10-25T01:30:00Z"},
        {"Europe/Berlin", {120, 180}, "2026-10-25T00:10:00Z", "2026-10-25T02:00:00Z"},
        // The whole day of the end is skipped (Samoa): the night goes on in the next.
        {"Pacific/Apia", {1320, 360}, "2011-12-30T09:00:00Z", "2011-12-30T16:00:00Z"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Zone *zone = zone_named(*state, CASES[i].zone);
        int64_t now_us = instant(CASES[i].now);
        int64_t end_us = quiet_hours_end(CASES[i].hours, zone, now_us);
        char text[CLOCK_RFC3339_SIZE];
        clock_format(end_us, text);
        if (end_us != instant(CASES[i].end)) {
            fail_msg("case %zu: %s is not %s", i, text, CASES[i].end);
        }
        assert_int_equal(quiet_hours_hold(CASES[i].hours, zone, now_us), end_us != now_us);
    }
}

// Law: the end is never quiet, everything up to it is, and it is at most a night away.
static void the_end_of_quiet_hours_is_the_first_instant_that_is_not_quiet(void **state)
{
    uint64_t random = 99;
    int quiet = 0;
    for (int i = 0; i < RANDOM_ROUNDS; i++) {
        int64_t now_us = random_instant(&random);
        Zone *zone = zone_named(*state, ODD_ZONES[next_random(&random) % ODD_ZONE_COUNT]);
        QuietHours hours = {
            (int32_t)(next_random(&random) % MINUTES_OF_DAY),
            (int32_t)(next_random(&random) % MINUTES_OF_DAY)};
        int64_t end_us = quiet_hours_end(hours, zone, now_us);
        assert_false(quiet_hours_hold(hours, zone, end_us));
        if (end_us == now_us) {
            continue;
        }
        quiet++;
        assert_true(end_us > now_us && end_us - now_us <= DAY_US + 60 * MINUTE_US);
        for (int step = 0; step < 16; step++) {
            int64_t between_us = now_us + (end_us - now_us) / 16 * step;
            assert_true(quiet_hours_hold(hours, zone, between_us));
        }
        assert_true(quiet_hours_hold(hours, zone, end_us - 1));
    }
    assert_true(quiet > RANDOM_ROUNDS / 4);
}

static void minutes_that_no_day_has_are_refused(void **state)
{
    (void)state;
    Error err = {0};
    assert_true(quiet_hours_check((QuietHours){0, 1439}, &err));
    assert_false(quiet_hours_check((QuietHours){1440, 0}, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(err.text, "1440"));
    assert_false(quiet_hours_check((QuietHours){0, 1440}, &err));
    assert_false(quiet_hours_check((QuietHours){-1, 0}, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(quiet_hours_end_as_the_wall_says, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            the_end_of_quiet_hours_is_the_first_instant_that_is_not_quiet, set_up, tear_down),
        cmocka_unit_test(minutes_that_no_day_has_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
