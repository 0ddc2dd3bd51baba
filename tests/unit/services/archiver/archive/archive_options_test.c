// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "services/archiver/archive/archive_options.h"

static bool quiet_at(const char *text, int hour)
{
    QuietHours hours;
    assert_true(archive_quiet_parse(text, &hours, NULL));
    return archive_is_quiet(hours, (INT64_C(20000) * 24 + hour) * 3600 * 1000000);
}

static void quiet_hours_begin_with_the_first_and_end_before_the_last(void **state)
{
    (void)state;
    assert_false(quiet_at("1-5", 0));
    assert_true(quiet_at("1-5", 1));
    assert_true(quiet_at("1-5", 4));
    assert_false(quiet_at("1-5", 5));
}

static void quiet_hours_may_go_over_midnight_or_be_all(void **state)
{
    (void)state;
    assert_true(quiet_at("22-4", 23));
    assert_true(quiet_at("22-4", 3));
    assert_false(quiet_at("22-4", 12));
    assert_true(quiet_at("20-24", 23));
    assert_false(quiet_at("20-24", 0));
    for (int hour = 0; hour < 24; hour++) {
        assert_true(quiet_at("", hour));
        assert_true(quiet_at("0-24", hour));
    }
}

static void what_are_no_hours_is_refused_with_the_options_name(void **state)
{
    (void)state;
    static const char *const wrong[] = {"1", "5-25", "-1-3", "a-b", "1-", "24-3", "1-5-7"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        QuietHours hours;
        Error err = {0};
        assert_false(archive_quiet_parse(wrong[i], &hours, &err));
        assert_int_equal(err.kind, ERROR_CONFIG);
        assert_non_null(strstr(err.text, "STENTOR_ARCHIVE_QUIET_HOURS"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quiet_hours_begin_with_the_first_and_end_before_the_last),
        cmocka_unit_test(quiet_hours_may_go_over_midnight_or_be_all),
        cmocka_unit_test(what_are_no_hours_is_refused_with_the_options_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
