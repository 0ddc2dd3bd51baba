// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "services/gateway/preferences/preference_choices.h"

static PreferenceChoice choices[CHOICES_MAX];
static PreferencePlan plan;

static PreferenceChoice *of(size_t count, Category category, Channel channel)
{
    for (size_t i = 0; i < count; i++) {
        if (choices[i].category == category && choices[i].channel == channel) {
            return &choices[i];
        }
    }
    return NULL;
}

static void set_all(size_t count, bool on)
{
    for (size_t i = 0; i < count; i++) {
        choices[i].on = on;
    }
}

static void an_address_without_a_record_chooses_its_mails(void **state)
{
    (void)state;
    PreferenceState now = {.opted_out = {[CATEGORY_SOCIAL] = true}};
    size_t count = preference_choices(&now, choices);
    assert_int_equal(count, 7);
    assert_null(of(count, CATEGORY_TRANSACTIONAL, CHANNEL_EMAIL));
    assert_null(of(count, CATEGORY_SECURITY, CHANNEL_EMAIL));
    assert_null(of(count, CATEGORY_COMPLIANCE, CHANNEL_EMAIL));
    assert_null(of(count, CATEGORY_SOCIAL, CHANNEL_SMS));
    assert_false(of(count, CATEGORY_SOCIAL, CHANNEL_EMAIL)->on);
    assert_true(of(count, CATEGORY_MARKETING, CHANNEL_EMAIL)->on);
    of(count, CATEGORY_SOCIAL, CHANNEL_EMAIL)->on = true;
    of(count, CATEGORY_MARKETING, CHANNEL_EMAIL)->on = false;
    preference_plan(&now, choices, count, &plan);
    assert_int_equal(plan.fact_count, 0);
    for (int i = CATEGORY_NONE; i < CATEGORY_COUNT; i++) {
        assert_int_equal(plan.suppress[i], i == CATEGORY_MARKETING);
        assert_int_equal(plan.release[i], i == CATEGORY_SOCIAL);
    }
}

static void the_most_specific_preference_counts(void **state)
{
    (void)state;
    const PersonPreference entries[] = {
        {.category = CATEGORY_NONE, .channel = CHANNEL_NONE, .off = true},
        {.category = CATEGORY_NONE, .channel = CHANNEL_SMS, .off = false},
        {.category = CATEGORY_SOCIAL, .channel = CHANNEL_NONE, .off = false},
        {.category = CATEGORY_SOCIAL, .channel = CHANNEL_SMS, .off = true},
    };
    PreferenceState now = {
        .has_record = true,
        .channels = {[CHANNEL_EMAIL] = true, [CHANNEL_SMS] = true},
        .entries = entries,
        .entry_count = 4,
    };
    size_t count = preference_choices(&now, choices);
    assert_int_equal(count, 14);
    assert_false(of(count, CATEGORY_MARKETING, CHANNEL_EMAIL)->on);
    assert_true(of(count, CATEGORY_MARKETING, CHANNEL_SMS)->on);
    assert_true(of(count, CATEGORY_SOCIAL, CHANNEL_EMAIL)->on);
    assert_false(of(count, CATEGORY_SOCIAL, CHANNEL_SMS)->on);
    preference_plan(&now, choices, count, &plan);
    assert_int_equal(plan.fact_count, 0); // as it is
}

static void how_often_stays_when_it_is_switched(void **state)
{
    (void)state;
    const PersonPreference entries[] = {
        {.category = CATEGORY_SOCIAL,
         .channel = CHANNEL_EMAIL,
         .frequency = FREQUENCY_WEEKLY,
         .at_minute = 510,
         .on_weekday = 3},
    };
    PreferenceState now = {.has_record = true, .entries = entries, .entry_count = 1};
    size_t count = preference_choices(&now, choices);
    of(count, CATEGORY_SOCIAL, CHANNEL_EMAIL)->on = false;
    preference_plan(&now, choices, count, &plan);
    assert_int_equal(plan.fact_count, 1);
    assert_int_equal(plan.facts[0].part, PERSON_PREFERENCE);
    assert_true(plan.facts[0].preference.off);
    assert_int_equal(plan.facts[0].preference.frequency, FREQUENCY_WEEKLY);
    assert_int_equal(plan.facts[0].preference.at_minute, 510);
    assert_int_equal(plan.facts[0].preference.on_weekday, 3);
    assert_true(plan.suppress[CATEGORY_SOCIAL]); // the address too, as the one-click link does
}

static void who_left_everything_comes_back_for_what_is_chosen_alone(void **state)
{
    (void)state;
    PreferenceState now = {.has_record = true, .unsubscribed = true};
    size_t count = preference_choices(&now, choices);
    for (size_t i = 0; i < count; i++) {
        assert_false(choices[i].on);
    }
    preference_plan(&now, choices, count, &plan);
    assert_int_equal(plan.fact_count, 0);
    of(count, CATEGORY_BILLING, CHANNEL_EMAIL)->on = true;
    preference_plan(&now, choices, count, &plan);
    assert_int_equal(plan.facts[0].part, PERSON_UNSUBSCRIPTION);
    assert_false(plan.facts[0].unsubscribed);
    assert_int_equal(plan.fact_count, 7); // six others are off by their own entries
    for (size_t i = 1; i < plan.fact_count; i++) {
        assert_true(plan.facts[i].preference.off);
        assert_int_not_equal(plan.facts[i].preference.category, CATEGORY_BILLING);
    }
}

static void an_opt_out_of_every_category_is_divided(void **state)
{
    (void)state;
    PreferenceState now = {.opted_out = {[CATEGORY_NONE] = true, [CATEGORY_SOCIAL] = true}};
    size_t count = preference_choices(&now, choices);
    set_all(count, false);
    preference_plan(&now, choices, count, &plan);
    assert_false(plan.release[CATEGORY_NONE]);
    assert_false(plan.suppress[CATEGORY_MARKETING]);
    of(count, CATEGORY_BILLING, CHANNEL_EMAIL)->on = true;
    preference_plan(&now, choices, count, &plan);
    assert_true(plan.release[CATEGORY_NONE]);
    assert_true(plan.suppress[CATEGORY_MARKETING]);
    assert_false(plan.suppress[CATEGORY_SOCIAL]); // has its own
    assert_false(plan.suppress[CATEGORY_BILLING]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_without_a_record_chooses_its_mails),
        cmocka_unit_test(the_most_specific_preference_counts),
        cmocka_unit_test(how_often_stays_when_it_is_switched),
        cmocka_unit_test(who_left_everything_comes_back_for_what_is_chosen_alone),
        cmocka_unit_test(an_opt_out_of_every_category_is_divided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
