// SPDX-License-Identifier: Apache-2.0
#include "common/routing/quota.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void expect(VendorQuota quota, int64_t per_s, int64_t per_day)
{
    int64_t found_s = -1;
    int64_t found_day = -1;
    quota_limits(&quota, &found_s, &found_day);
    assert_int_equal(found_s, per_s);
    assert_int_equal(found_day, per_day);
}

static void the_pace_of_a_second_holds_always(void **state)
{
    (void)state;
    expect((VendorQuota){.per_s = 14.9}, 14, 0);
    expect((VendorQuota){.per_s = 0.5}, 1, 0);
    expect((VendorQuota){0}, 0, 0);
    expect((VendorQuota){.per_s = 1e300}, 1000000000, 0);
}

static void a_day_is_spread_when_four_fifths_are_used(void **state)
{
    (void)state;
    expect((VendorQuota){.per_day = 50000, .used_of_day = 39999}, 0, 0);
    expect((VendorQuota){.per_day = 50000, .used_of_day = 40000}, 0, 10000);
    expect((VendorQuota){.per_day = 50000, .used_of_day = 60000}, 0, 1);
}

static void of_two_limits_the_stricter_counts(void **state)
{
    (void)state;
    assert_int_equal(quota_stricter(0, 0), 0);
    assert_int_equal(quota_stricter(5, 0), 5);
    assert_int_equal(quota_stricter(0, 5), 5);
    assert_int_equal(quota_stricter(7, 5), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pace_of_a_second_holds_always),
        cmocka_unit_test(a_day_is_spread_when_four_fifths_are_used),
        cmocka_unit_test(of_two_limits_the_stricter_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
