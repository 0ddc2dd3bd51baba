// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/routing/bulkhead.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { ROOM = 40 };

static const int64_t SECOND_US = 1000000;

static int up(void **state)
{
    *state = bulkhead_new();
    return 0;
}

static int down(void **state)
{
    bulkhead_free(*state);
    return 0;
}

static bool enter(Bulkhead *bulkhead, const char *tenant, const char *vendor, int64_t now_us)
{
    return bulkhead_enter(
        bulkhead, PRIORITY_NORMAL, str_from(tenant), str_from(vendor), ROOM, now_us);
}

static void fill(Bulkhead *bulkhead, const char *vendor, int count, int64_t now_us)
{
    for (int i = 0; i < count; i++) {
        (void)enter(bulkhead, "acme", vendor, now_us);
    }
}

static void a_vendor_has_a_quarter_of_a_lane_that_others_use(void **state)
{
    assert_false(enter(*state, "acme", "sendgrid", SECOND_US));
    for (int i = 0; i < ROOM / 4; i++) {
        assert_false(enter(*state, "acme", "postmark", SECOND_US));
    }
    assert_true(enter(*state, "acme", "postmark", SECOND_US));
    assert_false(enter(*state, "acme", "sendgrid", SECOND_US));
    assert_false(enter(*state, "other", "postmark", SECOND_US)); // another tenant's are its own
    assert_false(bulkhead_enter(
        *state, PRIORITY_HIGH, STR("acme"), STR("postmark"), ROOM, SECOND_US)); // and a lane's
}

static void a_lane_that_one_tenant_uses_with_one_vendor_holds_nothing_back(void **state)
{
    fill(*state, "postmark", ROOM, SECOND_US);
    assert_false(enter(*state, "acme", "postmark", SECOND_US));
}

static void others_are_company_for_ten_minutes(void **state)
{
    fill(*state, "sendgrid", 1, SECOND_US);
    fill(*state, "postmark", ROOM, SECOND_US);
    int64_t last_us = (1 + BULKHEAD_COMPANY_S) * SECOND_US;
    assert_true(enter(*state, "acme", "postmark", last_us - 1));
    assert_false(enter(*state, "acme", "postmark", last_us));
}

static void what_the_vendor_has_answered_makes_room(void **state)
{
    fill(*state, "sendgrid", 1, SECOND_US);
    fill(*state, "postmark", ROOM / 4 + 1, SECOND_US);
    bulkhead_leave(*state, PRIORITY_NORMAL, STR("acme"), STR("postmark"));
    assert_int_equal(
        bulkhead_count(*state, PRIORITY_NORMAL, STR("acme"), STR("postmark")), ROOM / 4);
    assert_true(enter(*state, "acme", "postmark", SECOND_US));
    for (int i = 0; i < ROOM / 4 + 1; i++) {
        bulkhead_leave(*state, PRIORITY_NORMAL, STR("acme"), STR("postmark"));
    }
    assert_int_equal(bulkhead_count(*state, PRIORITY_NORMAL, STR("acme"), STR("postmark")), 0);
}

static void what_had_no_turn_comes_again_within_a_minute(void **state)
{
    (void)state;
    assert_int_equal(bulkhead_back_ms(0), BULKHEAD_BACK_MIN_MS);
    assert_in_range(bulkhead_back_ms(0.5), 30000, 31000);
    assert_true(bulkhead_back_ms(0.9999) <= BULKHEAD_BACK_MAX_MS);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, up, down)
    const struct CMUnitTest tests[] = {
        TEST(a_vendor_has_a_quarter_of_a_lane_that_others_use),
        TEST(a_lane_that_one_tenant_uses_with_one_vendor_holds_nothing_back),
        TEST(others_are_company_for_ten_minutes),
        TEST(what_the_vendor_has_answered_makes_room),
        TEST(what_had_no_turn_comes_again_within_a_minute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
