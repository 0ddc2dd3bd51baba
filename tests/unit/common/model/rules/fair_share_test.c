// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "common/model/rules/fair_share.h"

static const int64_t START_US = INT64_C(1795199136000000);
static const int64_t SECOND_US = 1000000;

// How many of `count` keep their lane.
static int keep(FairShare *share, Str tenant, Priority wanted, int count, int64_t now_us)
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        Priority lane = fair_share_lane(share, tenant, wanted, now_us);
        assert_true(lane >= wanted && lane <= PRIORITY_LOW);
        kept += lane == wanted;
    }
    return kept;
}

static void a_share_is_what_keeps_its_lane(void **state)
{
    (void)state;
    static const struct {
        int64_t after_us; // since the row before
        int sent;
        int kept;
    } rows[] = {
        {0, 150, 100}, // what a silent tenant has saved: a second's worth
        {0, 10, 0},
        {SECOND_US / 10, 50, 10}, // what came since
        {SECOND_US / 100, 5, 1},
        {SECOND_US / 5, 3, 3}, // below its share
        {3600 * SECOND_US, 150, 100},
        {-SECOND_US, 5, 0}, // a clock that goes back gives nothing
    };
    FairShare *share = fair_share_new(100);
    int64_t now_us = START_US;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        now_us += rows[i].after_us;
        int kept = keep(share, STR("acme"), PRIORITY_NORMAL, rows[i].sent, now_us);
        if (kept != rows[i].kept) {
            fail_msg("row %zu: %d kept", i, kept);
        }
    }
    fair_share_free(share);
}

static void each_tenant_and_each_lane_has_a_share_of_its_own(void **state)
{
    (void)state;
    FairShare *share = fair_share_new(100);
    assert_int_equal(keep(share, STR("flood"), PRIORITY_NORMAL, 10000, START_US), 100);
    assert_int_equal(keep(share, STR("flood"), PRIORITY_HIGH, 100, START_US), 100);
    assert_int_equal(keep(share, STR("flood"), PRIORITY_LOW, 300, START_US), 300);
    assert_int_equal(keep(share, STR("other"), PRIORITY_NORMAL, 300, START_US), 100);
    fair_share_free(share);
}

static void what_is_beyond_goes_down_step_by_step(void **state)
{
    (void)state;
    FairShare *share = fair_share_new(100);
    int lanes[PRIORITY_COUNT] = {0};
    for (int i = 0; i < 1000; i++) {
        lanes[fair_share_lane(share, STR("acme"), PRIORITY_CRITICAL, START_US)]++;
    }
    assert_int_equal(lanes[PRIORITY_CRITICAL], 100);
    assert_int_equal(lanes[PRIORITY_HIGH], 100);
    assert_int_equal(lanes[PRIORITY_NORMAL], 100);
    assert_int_equal(lanes[PRIORITY_LOW], 700);
    fair_share_free(share);
}

static void without_a_share_every_lane_is_kept(void **state)
{
    (void)state;
    FairShare *share = fair_share_new(0);
    assert_int_equal(keep(share, STR("acme"), PRIORITY_CRITICAL, 10000, START_US), 10000);
    fair_share_free(share);
}

// `count` new tenants.
static void meet(FairShare *share, const char *prefix, int count)
{
    for (int i = 0; i < count; i++) {
        char name[24];
        snprintf(name, sizeof name, "%s%d", prefix, i);
        assert_int_equal(keep(share, str_from(name), PRIORITY_NORMAL, 3, START_US), 1);
    }
}

static void past_the_table_a_flood_is_remembered_and_the_silent_are_forgotten(void **state)
{
    (void)state;
    FairShare *share = fair_share_new(1);
    assert_int_equal(keep(share, STR("flood"), PRIORITY_NORMAL, 3, START_US), 1);
    assert_int_equal(keep(share, STR("silent"), PRIORITY_NORMAL, 3, START_US), 1);
    for (int round = 0; round < 4; round++) {
        char prefix[16];
        snprintf(prefix, sizeof prefix, "r%d-", round);
        meet(share, prefix, FAIR_SHARE_TENANTS_MAX - 1);
        assert_int_equal(keep(share, STR("flood"), PRIORITY_NORMAL, 3, START_US), 0);
    }
    assert_int_equal(keep(share, STR("silent"), PRIORITY_NORMAL, 3, START_US), 1);
    assert_int_equal(keep(share, STR("r3-0"), PRIORITY_NORMAL, 3, START_US), 0);
    fair_share_free(share);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_share_is_what_keeps_its_lane),
        cmocka_unit_test(each_tenant_and_each_lane_has_a_share_of_its_own),
        cmocka_unit_test(what_is_beyond_goes_down_step_by_step),
        cmocka_unit_test(without_a_share_every_lane_is_kept),
        cmocka_unit_test(past_the_table_a_flood_is_remembered_and_the_silent_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
