// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/archive/unit/unit_state.h"
#include "common/base/clock.h"

static int64_t at(const char *text)
{
    int64_t us = 0;
    assert_true(clock_parse(str_from(text), &us));
    return us;
}

static UnitRules rules_at(const char *now)
{
    RetentionPlan plan;
    assert_true(retention_plan_parse(STR_EMPTY, &plan, NULL));
    return (UnitRules){
        .spans = plan.of[RETENTION_STANDARD], // hot 6 months, 24 in all
        .hot_us = -1,
        .grace_us = INT64_C(7) * 86400 * 1000000,
        .now_us = at(now)};
}

static UnitFacts facts_of(UnitState state)
{
    return (UnitFacts){
        .state = state,
        .ends_us = at("2026-01-01T00:00:00Z"),
        .folded_us = at("2026-01-01T02:00:00Z"),
        .removed_us = at("2026-07-02T00:00:00Z")};
}

// The table, pair by pair.
static void a_unit_moves_along_the_diagram_only(void **state)
{
    (void)state;
    for (int from = 0; from < UNIT_STATE_COUNT; from++) {
        for (int to = 0; to < UNIT_STATE_COUNT; to++) {
            bool forward = to == from + 1 && to <= UNIT_RESTORED;
            bool back = from == UNIT_RESTORED && to == UNIT_REMOVED;
            bool end = from == UNIT_REMOVED && to == UNIT_EXPIRED;
            assert_int_equal(
                unit_state_allows((UnitState)from, (UnitState)to), forward || back || end);
        }
    }
}

static void every_state_is_found_by_its_name(void **state)
{
    (void)state;
    for (int i = 0; i < UNIT_STATE_COUNT; i++) {
        UnitState found = UNIT_STATE_COUNT;
        assert_true(unit_state_from_name(str_from(unit_state_name((UnitState)i)), &found));
        assert_int_equal(found, i);
    }
    UnitState unused;
    assert_false(unit_state_from_name(STR("closed"), &unused));
}

static void a_span_of_months_ends_on_the_same_day_or_the_months_last(void **state)
{
    (void)state;
    static const struct {
        const char *from;
        RetentionSpan span;
        const char *to;
    } cases[] = {
        {"2026-01-01T00:00:00Z", {6, 0}, "2026-07-01T00:00:00Z"},
        {"2026-01-31T05:00:00Z", {1, 0}, "2026-02-28T05:00:00Z"},
        {"2024-01-31T00:00:00Z", {1, 0}, "2024-02-29T00:00:00Z"},
        {"2026-03-31T23:59:59Z", {1, 0}, "2026-04-30T23:59:59Z"},
        {"2026-01-05T00:00:00Z", {84, 0}, "2033-01-05T00:00:00Z"},
        {"2026-02-01T00:00:00Z", {0, 30}, "2026-03-03T00:00:00Z"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(unit_span_after(at(cases[i].from), cases[i].span), at(cases[i].to));
    }
}

static void a_unit_is_sealed_when_its_hot_span_is_over_and_all_is_folded(void **state)
{
    (void)state;
    UnitFacts facts = facts_of(UNIT_OPEN);
    UnitRules rules = rules_at("2026-06-30T23:59:59Z");
    assert_int_equal(unit_next(&facts, &rules), UNIT_WAIT);
    rules.now_us = at("2026-07-01T00:00:00Z");
    assert_int_equal(unit_next(&facts, &rules), UNIT_SEAL);
    facts.folded_us = at("2026-01-01T00:30:00Z");
    assert_int_equal(unit_next(&facts, &rules), UNIT_WAIT);
}

static void an_age_that_is_asked_for_counts_instead_of_the_hot_span(void **state)
{
    (void)state;
    UnitFacts facts = facts_of(UNIT_OPEN);
    UnitRules rules = rules_at("2026-01-02T00:00:00Z");
    rules.hot_us = 0;
    assert_int_equal(unit_next(&facts, &rules), UNIT_SEAL);
    rules.now_us = at("2025-12-31T00:00:00Z");
    assert_int_equal(unit_next(&facts, &rules), UNIT_WAIT);
}

static void a_sealed_unit_goes_on_step_by_step(void **state)
{
    (void)state;
    UnitRules rules = rules_at("2026-07-01T00:00:00Z");
    static const UnitStep steps[] = {
        [UNIT_SEALED] = UNIT_COUNT,
        [UNIT_COUNTED] = UNIT_WRITE,
        [UNIT_WRITTEN] = UNIT_VERIFY,
        [UNIT_VERIFIED] = UNIT_COMMIT};
    for (int i = UNIT_SEALED; i <= UNIT_VERIFIED; i++) {
        UnitFacts facts = facts_of((UnitState)i);
        assert_int_equal(unit_next(&facts, &rules), steps[i]);
    }
}

static void tables_are_detached_at_a_quiet_hour_and_dropped_after_the_grace(void **state)
{
    (void)state;
    UnitFacts facts = facts_of(UNIT_COMMITTED);
    UnitRules rules = rules_at("2026-07-02T00:00:00Z");
    assert_int_equal(unit_next(&facts, &rules), UNIT_WAIT);
    rules.quiet = true;
    assert_int_equal(unit_next(&facts, &rules), UNIT_REMOVE);
    facts.state = UNIT_REMOVING;
    assert_int_equal(unit_next(&facts, &rules), UNIT_WAIT);
    rules.now_us = at("2026-07-09T00:00:00Z");
    assert_int_equal(unit_next(&facts, &rules), UNIT_DROP);
}

static void a_removed_unit_is_restored_cooled_and_expires(void **state)
{
    (void)state;
    UnitFacts facts = facts_of(UNIT_REMOVED);
    UnitRules rules = rules_at("2027-01-01T00:00:00Z");
    assert_int_equal(unit_next(&facts, &rules), UNIT_WAIT);
    facts.deletable = true;
    assert_int_equal(unit_next(&facts, &rules), UNIT_DELETE);
    facts.restore_us = rules.now_us + 1;
    assert_int_equal(unit_next(&facts, &rules), UNIT_ATTACH);
    facts.state = UNIT_RESTORED;
    assert_int_equal(unit_next(&facts, &rules), UNIT_WAIT);
    rules.now_us = facts.restore_us;
    assert_int_equal(unit_next(&facts, &rules), UNIT_DETACH);

    facts = facts_of(UNIT_REMOVED);
    facts.warm = true;
    rules.spans.warm = (RetentionSpan){12, 0};
    assert_int_equal(unit_next(&facts, &rules), UNIT_COOL);
    rules.now_us = at("2028-01-01T00:00:00Z");
    assert_int_equal(unit_next(&facts, &rules), UNIT_EXPIRE);
}

static void an_expired_unit_is_deleted_a_day_later_or_when_asked_for(void **state)
{
    (void)state;
    UnitFacts facts = facts_of(UNIT_EXPIRED);
    facts.state_us = at("2028-01-01T00:00:00Z");
    UnitRules rules = rules_at("2028-01-02T00:00:00Z");
    assert_int_equal(unit_next(&facts, &rules), UNIT_WAIT);
    facts.deletable = true;
    assert_int_equal(unit_next(&facts, &rules), UNIT_DELETE);
    rules.now_us--;
    assert_int_equal(unit_next(&facts, &rules), UNIT_WAIT);
    rules.at_once = true;
    assert_int_equal(unit_next(&facts, &rules), UNIT_DELETE);
    facts.deletable = false;
    facts.gone = true;
    assert_int_equal(unit_next(&facts, &rules), UNIT_CONFIRM);
    facts = facts_of(UNIT_REMOVED); // a replaced object has waited 7 days of its own
    facts.state_us = rules.now_us;
    facts.deletable = true;
    rules = rules_at("2027-01-01T00:00:00Z");
    assert_int_equal(unit_next(&facts, &rules), UNIT_DELETE);
}

static void a_period_is_named_by_its_month_or_day(void **state)
{
    (void)state;
    char name[UNIT_PERIOD_SIZE];
    unit_period(at("2026-10-01T00:00:00Z"), at("2026-11-01T00:00:00Z"), name);
    assert_string_equal(name, "2026-10");
    unit_period(at("2026-10-05T00:00:00Z"), at("2026-10-06T00:00:00Z"), name);
    assert_string_equal(name, "2026-10-05");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_unit_moves_along_the_diagram_only),
        cmocka_unit_test(every_state_is_found_by_its_name),
        cmocka_unit_test(a_span_of_months_ends_on_the_same_day_or_the_months_last),
        cmocka_unit_test(a_unit_is_sealed_when_its_hot_span_is_over_and_all_is_folded),
        cmocka_unit_test(an_age_that_is_asked_for_counts_instead_of_the_hot_span),
        cmocka_unit_test(a_sealed_unit_goes_on_step_by_step),
        cmocka_unit_test(tables_are_detached_at_a_quiet_hour_and_dropped_after_the_grace),
        cmocka_unit_test(a_removed_unit_is_restored_cooled_and_expires),
        cmocka_unit_test(an_expired_unit_is_deleted_a_day_later_or_when_asked_for),
        cmocka_unit_test(a_period_is_named_by_its_month_or_day),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
