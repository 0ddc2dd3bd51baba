// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "common/base/clock.h"

static void known_instants_are_written(void **state)
{
    (void)state;
    static const struct {
        int64_t at_us;
        const char *text;
    } rows[] = {
        {0, "1970-01-01T00:00:00.000000Z"},
        {INT64_C(1), "1970-01-01T00:00:00.000001Z"},
        {INT64_C(951782399999999), "2000-02-28T23:59:59.999999Z"},
        {INT64_C(951782400000000), "2000-02-29T00:00:00.000000Z"},
        {INT64_C(1795199136123456), "2026-11-20T18:25:36.123456Z"},
        {INT64_C(4107542400000000), "2100-03-01T00:00:00.000000Z"},
        {INT64_C(253402300799999999), "9999-12-31T23:59:59.999999Z"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[CLOCK_RFC3339_SIZE];
        int64_t back = -1;
        clock_format(rows[i].at_us, text);
        assert_string_equal(text, rows[i].text);
        assert_true(clock_parse(str_from(text), &back));
        assert_true(back == rows[i].at_us);
    }
}

static void every_day_for_four_centuries_comes_back(void **state)
{
    (void)state;
    const int64_t day_us = INT64_C(86400000000);
    for (int64_t day = 0; day < 146097; day++) {
        char text[CLOCK_RFC3339_SIZE];
        int64_t back = -1;
        clock_format(day * day_us + 1, text);
        assert_true(clock_parse(str_from(text), &back));
        assert_true(back == day * day_us + 1);
    }
}

static void offsets_and_fractions_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t at_us;
    } rows[] = {
        {"2026-11-20T18:25:36Z", INT64_C(1795199136000000)},
        {"2026-11-20t18:25:36z", INT64_C(1795199136000000)},
        {"2026-11-20T22:55:36+04:30", INT64_C(1795199136000000)},
        {"2026-11-20T10:25:36-08:00", INT64_C(1795199136000000)},
        {"2026-11-20T18:25:36.1Z", INT64_C(1795199136100000)},
        {"2026-11-20T18:25:36.123456999Z", INT64_C(1795199136123456)},
        {"2016-12-31T23:59:60Z", INT64_C(1483228800000000)},
        {"1969-12-31T23:00:00-01:00", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t at_us = -1;
        assert_true(clock_parse(str_from(rows[i].text), &at_us));
        assert_true(at_us == rows[i].at_us);
    }
}

static void what_is_not_rfc_3339_is_refused(void **state)
{
    (void)state;
    const char *bad[] = {
        "",
        "2026-11-20",
        "2026-11-20T18:25:36",
        "2026-11-20 18:25:36Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "2100-02-29T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-01-00T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z",
        "2026-01-01T00:00:61Z",
        "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00+0100",
        "2026-01-01T00:00:00+24:00",
        "2026-01-01T00:00:00+01:60",
        "2026-01-01T00:00:00Z ",
        " 2026-01-01T00:00:00Z",
        "1969-12-31T23:59:59Z",
        "1970-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "26-01-01T00:00:00Z",
        "2026-1-1T00:00:00Z",
        "-026-01-01T00:00:00Z"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t at_us = 7;
        assert_false(clock_parse(str_from(bad[i]), &at_us));
        assert_true(at_us == 7);
    }
}

static int64_t parsed(const char *text)
{
    int64_t at_us = -1;
    assert_true(clock_parse(str_from(text), &at_us));
    return at_us;
}

static void a_month_holds_its_first_and_last_instant(void **state)
{
    (void)state;
    static const char *const months[][2] = {
        {"2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
        {"2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"},
        {"1970-01-01T00:00:00Z", "1970-02-01T00:00:00Z"},
    };
    for (size_t i = 0; i < 3; i++) {
        int64_t first = parsed(months[i][0]);
        int64_t next = parsed(months[i][1]);
        const int64_t instants[] = {first, first + (next - first) / 2, next - 1};
        for (size_t k = 0; k < 3; k++) {
            int64_t start;
            int64_t end;
            clock_month(instants[k], &start, &end);
            assert_true(start == first && end == next);
        }
    }
}

static void the_monotonic_clock_does_not_go_back(void **state)
{
    (void)state;
    int64_t before = clock_mono_us();
    for (int i = 0; i < 1000; i++) {
        int64_t now = clock_mono_us();
        assert_true(now >= before);
        before = now;
    }
    assert_true(clock_now_us() > parsed("2026-01-01T00:00:00Z"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_instants_are_written),
        cmocka_unit_test(every_day_for_four_centuries_comes_back),
        cmocka_unit_test(offsets_and_fractions_are_read),
        cmocka_unit_test(what_is_not_rfc_3339_is_refused),
        cmocka_unit_test(a_month_holds_its_first_and_last_instant),
        cmocka_unit_test(the_monotonic_clock_does_not_go_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
