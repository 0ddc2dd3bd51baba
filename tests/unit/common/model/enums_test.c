// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/model/enums.h"

static void every_name_leads_back_to_its_value(void **state)
{
    (void)state;
    for (int i = 1; i < CHANNEL_COUNT; i++) {
        Channel back = CHANNEL_NONE;
        assert_true(channel_from_name(str_from(channel_name((Channel)i)), &back));
        assert_non_null(strstr(CHANNEL_NAMES, channel_name((Channel)i)));
        assert_int_equal(back, i);
    }
    for (int i = 1; i < CATEGORY_COUNT; i++) {
        Category back = CATEGORY_NONE;
        assert_true(category_from_name(str_from(category_name((Category)i)), &back));
        assert_int_equal(back, i);
    }
    for (int i = 1; i < PRIORITY_COUNT; i++) {
        Priority back = PRIORITY_NONE;
        assert_true(priority_from_name(str_from(priority_name((Priority)i)), &back));
        assert_int_equal(back, i);
    }
    for (int i = 1; i < STATUS_COUNT; i++) {
        Status back = STATUS_NONE;
        assert_true(status_from_name(str_from(status_name((Status)i)), &back));
        assert_int_equal(back, i);
    }
}

static void numbers_from_outside_have_no_name(void **state)
{
    (void)state;
    const int foreign[] = {0, 99, -1, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        assert_string_equal(channel_name((Channel)foreign[i]), "");
        assert_string_equal(category_name((Category)foreign[i]), "");
        assert_string_equal(priority_name((Priority)foreign[i]), "");
        assert_string_equal(priority_stream_suffix((Priority)foreign[i]), "");
        assert_string_equal(status_name((Status)foreign[i]), "");
        assert_string_equal(outcome_name((Outcome)foreign[i]), "");
    }
}

static void what_is_not_a_name_changes_nothing(void **state)
{
    (void)state;
    const char *bad[] = {"", "none", "Email", "email ", "EMAIL", "unspecified"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        Channel channel = CHANNEL_PUSH;
        Category category = CATEGORY_SOCIAL;
        Priority priority = PRIORITY_LOW;
        Status status = STATUS_SENT;
        assert_false(channel_from_name(str_from(bad[i]), &channel));
        assert_false(category_from_name(str_from(bad[i]), &category));
        assert_false(priority_from_name(str_from(bad[i]), &priority));
        assert_false(status_from_name(str_from(bad[i]), &status));
        assert_int_equal(channel, CHANNEL_PUSH);
        assert_int_equal(category, CATEGORY_SOCIAL);
        assert_int_equal(priority, PRIORITY_LOW);
        assert_int_equal(status, STATUS_SENT);
    }
}

static void urgent_is_critical(void **state)
{
    (void)state;
    Priority priority = PRIORITY_NONE;
    assert_true(priority_from_name(STR("urgent"), &priority));
    assert_int_equal(priority, PRIORITY_CRITICAL);
}

static void a_lane_is_its_priority_in_upper_case(void **state)
{
    (void)state;
    for (int i = 1; i < PRIORITY_COUNT; i++) {
        Str name = str_from(priority_name((Priority)i));
        Str suffix = str_from(priority_stream_suffix((Priority)i));
        assert_true(str_eq_nocase(name, suffix));
        assert_false(str_eq(name, suffix));
    }
    assert_string_equal(priority_stream_suffix(PRIORITY_CRITICAL), "CRITICAL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_leads_back_to_its_value),
        cmocka_unit_test(numbers_from_outside_have_no_name),
        cmocka_unit_test(what_is_not_a_name_changes_nothing),
        cmocka_unit_test(urgent_is_critical),
        cmocka_unit_test(a_lane_is_its_priority_in_upper_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
