// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

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

// Days since 1970 of a date, through the clock's own reading of it.
static int64_t day_of(const char *date)
{
    char text[CLOCK_RFC3339_SIZE];
    snprintf(text, sizeof text, "%sT00:00:00Z", date);
    return instant(text) / DAY_US;
}

static void a_local_time_becomes_the_instant_that_the_law_says(void **state)
{
    static const struct {
        const char *zone, *date;
        int hour, minute;
        const char *at;
    } CASES[] = {
        {"Europe/Berlin", "2026-01-15", 9, 0, "2026-01-15T08:00:00Z"},
        {"Europe/Berlin", "2026-07-15", 9, 0, "2026-07-15T07:00:00Z"},
        {"Europe/Berlin", "2026-03-29", 1, 59, "2026-03-29T00:59:00Z"},
        {"Europe/Berlin", "2026-03-29", 2, 0, "2026-03-29T01:00:00Z"},  // the gap's first minute
        {"Europe/Berlin", "2026-03-29", 2, 59, "2026-03-29T01:00:00Z"}, // and its last
        {"Europe/Berlin", "2026-03-29", 3, 0, "2026-03-29T01:00:00Z"},
        {"Europe/Berlin", "2026-10-25", 2, 30, "2026-10-25T00:30:00Z"}, // the first of two
        {"Europe/Berlin", "2026-10-25", 3, 0, "2026-10-25T02:00:00Z"},
        {"America/New_York", "2026-03-08", 2, 30, "2026-03-08T07:00:00Z"},
        {"America/New_York", "2026-11-01", 1, 30, "2026-11-01T05:30:00Z"},
        {"Australia/Lord_Howe", "2026-10-04", 2, 15, "2026-10-03T15:30:00Z"}, // a gap of 30 min
        {"Pacific/Apia", "2011-12-30", 12, 0, "2011-12-30T10:00:00Z"}, // a day that never was
        {"Asia/Kathmandu", "2026-06-01", 5, 45, "2026-06-01T00:00:00Z"},
        {"UTC", "2026-06-01", 23, 59, "2026-06-01T23:59:00Z"},
        {"", "2026-06-01", 0, 0, "2026-06-01T00:00:00Z"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Zone *zone = zone_named(*state, CASES[i].zone);
        int64_t at_us =
            zone_instant(zone, day_of(CASES[i].date), CASES[i].hour * 60 + CASES[i].minute);
        char text[CLOCK_RFC3339_SIZE];
        clock_format(at_us, text);
        if (at_us != instant(CASES[i].at)) {
            fail_msg("case %zu: %s is not %s", i, text, CASES[i].at);
        }
    }
}

static void an_instant_has_its_local_time(void **state)
{
    Zone *berlin = zone_named(*state, "Europe/Berlin");
    LocalTime local = zone_local(berlin, instant("2026-10-25T00:30:07.5Z"));
    assert_int_equal(local.day, day_of("2026-10-25"));
    assert_int_equal(local.minute, 150);
    assert_int_equal(local.rest_us, 7500000);
    assert_int_equal(local.offset_s, 7200);
    local = zone_local(berlin, instant("2026-10-25T01:30:00Z"));
    assert_int_equal(local.minute, 150); // again
    assert_int_equal(local.offset_s, 3600);
    local = zone_local(zone_named(*state, "America/New_York"), instant("1970-01-01T00:00:00Z"));
    assert_int_equal(local.day, -1);
    assert_int_equal(local.minute, 19 * 60);
}

static void every_instant_is_found_again_by_its_local_time(void **state)
{
    uint64_t random = 20261121;
    for (int i = 0; i < RANDOM_ROUNDS; i++) {
        int64_t at_us = random_instant(&random);
        Zone *zone = zone_named(*state, ODD_ZONES[next_random(&random) % ODD_ZONE_COUNT]);
        LocalTime local = zone_local(zone, at_us);
        int64_t minute_us = at_us - local.rest_us;
        int64_t found_us = zone_instant(zone, local.day, local.minute);
        // Itself, or the first of two instants that the wall shows alike.
        assert_true(found_us <= minute_us);
        LocalTime again = zone_local(zone, found_us);
        assert_int_equal(again.day, local.day);
        assert_int_equal(again.minute, local.minute);
        assert_true(found_us == minute_us || again.offset_s != local.offset_s);
    }
}

static void a_local_time_is_missed_only_by_a_gap(void **state)
{
    uint64_t random = 7;
    for (int i = 0; i < RANDOM_ROUNDS; i++) {
        Zone *zone = zone_named(*state, ODD_ZONES[next_random(&random) % ODD_ZONE_COUNT]);
        int64_t day = random_instant(&random) / DAY_US;
        int32_t minute = (int32_t)(next_random(&random) % MINUTES_OF_DAY);
        int64_t at_us = zone_instant(zone, day, minute);
        LocalTime after = zone_local(zone, at_us);
        LocalTime before = zone_local(zone, at_us - 1);
        if (after.day != day || after.minute != minute) {
            // Just after a leap of the clock that passes over the time asked for.
            int64_t wanted = day * MINUTES_OF_DAY + minute;
            assert_true(after.day * MINUTES_OF_DAY + after.minute > wanted);
            assert_true(before.day * MINUTES_OF_DAY + before.minute < wanted);
            assert_true(after.offset_s > before.offset_s);
        }
    }
}

static void what_is_no_zone_is_refused_by_its_name(void **state)
{
    static const char *const NONE[] = {
        "Europe/Atlantis",
        "GMT+3",
        "BST",
        "PST",
        "Etc/Unknown",
        "europe/berlin ",
        "+01:00",
        "Zürich",
        "../etc",
        "Europe/Berlin\n",
        "local",
        "A/name/that/is/longer/than/any/zone/could/ever/be/named/by/anybody"};
    for (size_t i = 0; i < sizeof NONE / sizeof NONE[0]; i++) {
        Error err = {0};
        assert_null(zones_get(*state, str_from(NONE[i]), &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
        char shown[32];
        snprintf(shown, sizeof shown, "'%.20s", NONE[i]);
        assert_non_null(strstr(err.text, shown));
    }
    assert_int_equal(zones_count(*state), 0); // what is wrong is not remembered
}

static void a_zone_is_opened_once(void **state)
{
    Zone *first = zone_named(*state, "Europe/Berlin");
    assert_ptr_equal(zone_named(*state, "Europe/Berlin"), first);
    assert_ptr_equal(zone_named(*state, ""), zone_named(*state, "UTC"));
    assert_int_equal(zones_count(*state), 2);
}

static void weekdays_are_counted_from_monday(void **state)
{
    (void)state;
    assert_int_equal(weekday_of(0), 4); // 1970-01-01
    assert_int_equal(weekday_of(-1), 3);
    assert_int_equal(weekday_of(-4), 7);
    assert_int_equal(weekday_of(day_of("2026-11-23")), 1);
    assert_int_equal(weekday_of(day_of("2026-11-22")), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_local_time_becomes_the_instant_that_the_law_says, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_instant_has_its_local_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            every_instant_is_found_again_by_its_local_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_local_time_is_missed_only_by_a_gap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_zone_is_refused_by_its_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_zone_is_opened_once, set_up, tear_down),
        cmocka_unit_test(weekdays_are_counted_from_monday),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
