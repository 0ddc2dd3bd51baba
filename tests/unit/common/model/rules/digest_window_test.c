// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/model/rules/digest_window.h"
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

static void a_window_is_flushed_at_its_border(void **state)
{
    static const struct {
        const char *zone;
        DigestPlan plan;
        const char *now, *flush;
    } CASES[] = {
        {"UTC", {FREQUENCY_HOURLY, 0, 0}, "2026-05-01T10:00:00Z", "2026-05-01T11:00:00Z"},
        {"UTC", {FREQUENCY_HOURLY, 0, 0}, "2026-05-01T10:59:59.999999Z", "2026-05-01T11:00:00Z"},
        {"Asia/Kolkata", {FREQUENCY_HOURLY, 0, 0}, "2026-05-01T10:10:00Z", "2026-05-01T11:00:00Z"},
        {"UTC", {FREQUENCY_DAILY, 480, 0}, "2026-05-01T07:59:59Z", "2026-05-01T08:00:00Z"},
        {"UTC", {FREQUENCY_DAILY, 480, 0}, "2026-05-01T08:00:00Z", "2026-05-02T08:00:00Z"},
        {"Europe/Berlin",
         {FREQUENCY_DAILY, 480, 0},
         "2026-03-28T12:00:00Z",
         "2026-03-29T06:00:00Z"},
        {"Europe/Berlin",
         {FREQUENCY_DAILY, 150, 0},
         "2026-03-28T12:00:00Z",
         "2026-03-29T01:00:00Z"},
        {"Europe/Berlin",
         {FREQUENCY_DAILY, 150, 0},
         "2026-10-25T00:29:00Z",
         "2026-10-25T00:30:00Z"},
        {"Europe/Berlin",
         {FREQUENCY_DAILY, 150, 0},
         "2026-10-25T01:10:00Z",
         "2026-10-26T01:30:00Z"},
        {"UTC", {FREQUENCY_WEEKLY, 540, 1}, "2026-11-21T12:00:00Z", "2026-11-23T09:00:00Z"},
        {"UTC", {FREQUENCY_WEEKLY, 540, 0}, "2026-11-23T09:00:00Z", "2026-11-30T09:00:00Z"},
        {"UTC", {FREQUENCY_WEEKLY, 540, 7}, "2026-11-21T12:00:00Z", "2026-11-22T09:00:00Z"},
        {"Pacific/Auckland",
         {FREQUENCY_WEEKLY, 0, 1},
         "2026-11-22T10:59:59Z",
         "2026-11-22T11:00:00Z"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Zone *zone = zone_named(*state, CASES[i].zone);
        int64_t flush_us = digest_window_flush_at(&CASES[i].plan, zone, instant(CASES[i].now));
        char text[CLOCK_RFC3339_SIZE];
        clock_format(flush_us, text);
        if (flush_us != instant(CASES[i].flush)) {
            fail_msg("case %zu: %s is not %s", i, text, CASES[i].flush);
        }
    }
}

static DigestPlan random_plan(uint64_t *random)
{
    static const Frequency KINDS[] = {FREQUENCY_HOURLY, FREQUENCY_DAILY, FREQUENCY_WEEKLY};
    return (DigestPlan){
        .frequency = KINDS[next_random(random) % 3],
        .at_minute = (int32_t)(next_random(random) % MINUTES_OF_DAY),
        .on_weekday = (int32_t)(next_random(random) % 8),
    };
}

static void check_border(const DigestPlan *plan, Zone *zone, int64_t flush_us)
{
    LocalTime at = zone_local(zone, flush_us);
    LocalTime before = zone_local(zone, flush_us - 1);
    bool leapt = at.offset_s > before.offset_s; // the wanted minute was in a gap
    if (plan->frequency == FREQUENCY_HOURLY) {
        assert_int_equal(flush_us % (60 * MINUTE_US), 0);
        return;
    }
    assert_true(at.minute == plan->at_minute || leapt);
    if (plan->frequency == FREQUENCY_WEEKLY && !leapt) {
        assert_int_equal(weekday_of(at.day), plan->on_weekday == 0 ? 1 : plan->on_weekday);
    }
}

// Law: flush_at lies after the instant, at the wanted local minute unless in a gap, and every
// instant up to it has the same.
static void all_instants_of_a_window_share_its_border(void **state)
{
    uint64_t random = 4711;
    for (int i = 0; i < RANDOM_ROUNDS; i++) {
        int64_t now_us = random_instant(&random);
        Zone *zone = zone_named(*state, ODD_ZONES[next_random(&random) % ODD_ZONE_COUNT]);
        DigestPlan plan = random_plan(&random);
        int64_t flush_us = digest_window_flush_at(&plan, zone, now_us);
        assert_true(flush_us > now_us);
        assert_true(flush_us - now_us <= 8 * DAY_US);
        check_border(&plan, zone, flush_us);
        int64_t between_us =
            now_us + (int64_t)(next_random(&random) % (uint64_t)(flush_us - now_us));
        assert_int_equal(digest_window_flush_at(&plan, zone, between_us), flush_us);
        assert_true(digest_window_flush_at(&plan, zone, flush_us) > flush_us);
    }
}

static void only_what_is_not_immediate_gathers(void **state)
{
    (void)state;
    for (int f = 0; f < FREQUENCY_COUNT; f++) {
        DigestPlan plan = {.frequency = (Frequency)f};
        assert_int_equal(digest_plan_gathers(&plan), f >= FREQUENCY_HOURLY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_window_is_flushed_at_its_border, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            all_instants_of_a_window_share_its_border, set_up, tear_down),
        cmocka_unit_test(only_what_is_not_immediate_gathers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
