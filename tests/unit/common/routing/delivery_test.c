// SPDX-License-Identifier: Apache-2.0
#include "common/routing/delivery.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const int64_t MINUTE_US = 60000000;

static void fifteen_of_a_hundred_that_bounce_for_now_are_poor(void **state)
{
    (void)state;
    assert_int_equal(delivery_poor_percent(&(DeliveryCount){.delivered = 85, .failed = 15}), 15);
    assert_int_equal(delivery_poor_percent(&(DeliveryCount){.delivered = 86, .failed = 14}), 14);
    assert_int_equal(delivery_poor_percent(&(DeliveryCount){.delivered = 0, .failed = 19}), 0);
    assert_int_equal(delivery_poor_percent(&(DeliveryCount){.delivered = 0, .failed = 20}), 100);
}

static void silence_is_poor_of_a_vendor_that_reports_otherwise(void **state)
{
    (void)state;
    DeliveryCount count = {.due = 200, .reported = 160, .reports = true};
    assert_int_equal(delivery_poor_percent(&count), 20);
    count.reported = 300; // on mails of before and after
    assert_int_equal(delivery_poor_percent(&count), 0);
    count = (DeliveryCount){.due = 200}; // its callbacks are not set up
    assert_int_equal(delivery_poor_percent(&count), 0);
    count = (DeliveryCount){.due = 19, .reports = true};
    assert_int_equal(delivery_poor_percent(&count), 0);
}

static void when_every_vendor_is_poor_the_mailboxes_are_at_fault(void **state)
{
    (void)state;
    DeliveryCount counts[] = {
        {.delivered = 50, .failed = 50}, {.delivered = 10, .failed = 90}, {.delivered = 3}};
    bool poor[3];
    delivery_judge(counts, 3, poor);
    assert_false(poor[0] || poor[1] || poor[2]); // three mails of the third say nothing
    counts[2].delivered = 30;
    delivery_judge(counts, 3, poor);
    assert_true(poor[0] && poor[1]);
    assert_false(poor[2]);
}

static void a_vendor_alone_is_compared_with_none(void **state)
{
    (void)state;
    bool poor = true;
    delivery_judge(&(DeliveryCount){.failed = 100}, 1, &poor);
    assert_false(poor);
}

static void a_poor_vendor_loses_ten_points_and_ten_more_each_five_minutes(void **state)
{
    (void)state;
    assert_int_equal(delivery_points(0, true, 0, 0), 10);
    assert_int_equal(delivery_points(10, true, 5 * MINUTE_US - 1, 0), 10);
    assert_int_equal(delivery_points(10, true, 5 * MINUTE_US, 0), 20);
    assert_int_equal(delivery_points(90, true, 60 * MINUTE_US, 0), 90);
}

static void fifteen_quiet_minutes_give_ten_points_back(void **state)
{
    (void)state;
    assert_int_equal(delivery_points(20, false, 15 * MINUTE_US, 15 * MINUTE_US), 10);
    assert_int_equal(delivery_points(20, false, 14 * MINUTE_US, 60 * MINUTE_US), 20);
    assert_int_equal(delivery_points(20, false, 60 * MINUTE_US, 14 * MINUTE_US), 20);
    assert_int_equal(delivery_points(10, false, 15 * MINUTE_US, 15 * MINUTE_US), 0);
    assert_int_equal(delivery_points(0, false, 15 * MINUTE_US, 15 * MINUTE_US), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fifteen_of_a_hundred_that_bounce_for_now_are_poor),
        cmocka_unit_test(silence_is_poor_of_a_vendor_that_reports_otherwise),
        cmocka_unit_test(when_every_vendor_is_poor_the_mailboxes_are_at_fault),
        cmocka_unit_test(a_vendor_alone_is_compared_with_none),
        cmocka_unit_test(a_poor_vendor_loses_ten_points_and_ten_more_each_five_minutes),
        cmocka_unit_test(fifteen_quiet_minutes_give_ten_points_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
