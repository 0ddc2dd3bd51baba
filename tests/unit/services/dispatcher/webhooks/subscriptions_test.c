// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/webhooks/webhook_event.h"
#include "tests/unit/services/dispatcher/webhooks/subscriptions_stage.h"

static int set_up(void **state)
{
    static SubscriptionsStage stage;
    subscriptions_stage_open(&stage);
    *state = &stage;
    return 0;
}

static int tear_down(void **state)
{
    subscriptions_stage_close(*state);
    return 0;
}

static const Subscription *get(const SubscriptionsStage *stage, const char *tenant, unsigned number)
{
    return subscription_get(
        stage->subscriptions, str_from(tenant), str_from(subscriptions_stage_id(stage, number)));
}

static void an_entry_is_found_by_its_tenant_with_what_it_does_not_say_filled_in(void **state)
{
    SubscriptionsStage *stage = *state;
    subscriptions_stage_make(stage, "acme", 1);
    assert_true(subscriptions_stage_put(stage));
    const Subscription *found = get(stage, "acme", 1);
    assert_non_null(found);
    assert_int_equal(found->sequence, 1);
    assert_int_equal(found->secret_count, 1);
    assert_int_equal(found->rate_per_s, WEBHOOK_RATE_DEFAULT);
    assert_int_equal(found->in_flight, WEBHOOK_IN_FLIGHT_DEFAULT);
    assert_int_equal(found->disable_after, WEBHOOK_DISABLE_AFTER_DEFAULT);
    assert_null(get(stage, "globex", 1));
    assert_null(get(stage, "acme", 2));
}

static void a_later_entry_takes_the_place_of_the_one_before(void **state)
{
    SubscriptionsStage *stage = *state;
    subscriptions_stage_make(stage, "acme", 1);
    assert_true(subscriptions_stage_put(stage));
    stage->entry.rate_per_s = 3;
    assert_true(subscriptions_stage_put(stage));
    assert_int_equal(subscriptions_count(stage->subscriptions), 1);
    assert_int_equal(get(stage, "acme", 1)->rate_per_s, 3);
    assert_int_equal(get(stage, "acme", 1)->sequence, 2);
}

static void a_removed_entry_leaves_the_others_of_its_tenant(void **state)
{
    SubscriptionsStage *stage = *state;
    Subscription *const *list = NULL;
    for (unsigned i = 3; i > 0; i--) {
        subscriptions_stage_make(stage, "acme", i);
        assert_true(subscriptions_stage_put(stage));
    }
    assert_true(subscriptions_stage_remove(stage));
    assert_true(subscriptions_stage_remove(stage)); // once more, as a mirror may bring it
    assert_int_equal(subscriptions_of(stage->subscriptions, STR("acme"), &list), 2);
    assert_int_equal(subscriptions_count(stage->subscriptions), 2);
    assert_null(get(stage, "acme", 1));
    assert_non_null(get(stage, "acme", 2));
    assert_non_null(get(stage, "acme", 3));
    assert_int_equal(subscriptions_of(stage->subscriptions, STR("globex"), &list), 0);
}

static void one_more_than_a_tenant_may_have_is_refused_and_no_other_tenants(void **state)
{
    SubscriptionsStage *stage = *state;
    for (unsigned i = 0; i < SUBSCRIPTIONS_OF_TENANT_MAX; i++) {
        subscriptions_stage_make(stage, "acme", i);
        assert_true(subscriptions_stage_put(stage));
    }
    subscriptions_stage_make(stage, "acme", SUBSCRIPTIONS_OF_TENANT_MAX);
    assert_false(subscriptions_stage_put(stage));
    assert_string_equal(stage->err.text, "the tenant has 100 subscriptions already");
    subscriptions_stage_make(stage, "acme", 0);
    assert_true(subscriptions_stage_put(stage)); // that is there already
    subscriptions_stage_make(stage, "globex", 1);
    assert_true(subscriptions_stage_put(stage));
}

static void an_entry_whose_secret_does_not_open_is_kept_without_it(void **state)
{
    SubscriptionsStage *stage = *state;
    subscriptions_stage_make(stage, "acme", 1);
    stage->entry.id = arena_cstr(stage->arena, str_from(subscriptions_stage_id(stage, 2)));
    assert_false(subscriptions_stage_put(stage)); // sealed for another one
    assert_int_equal(stage->err.kind, ERROR_CONFIG);
    assert_non_null(get(stage, "acme", 2));
    assert_int_equal(get(stage, "acme", 2)->secret_count, 0);
}

static void an_entry_of_another_kind_is_none(void **state)
{
    SubscriptionsStage *stage = *state;
    BusMessage message = {.sequence = 1, .payload = STR("\xff")};
    assert_true(subscriptions_changed(
        stage->subscriptions, STR("tenant"), STR("acme"), STR("settings"), &message, &stage->err));
    assert_int_equal(subscriptions_count(stage->subscriptions), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            an_entry_is_found_by_its_tenant_with_what_it_does_not_say_filled_in, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_later_entry_takes_the_place_of_the_one_before, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_removed_entry_leaves_the_others_of_its_tenant, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            one_more_than_a_tenant_may_have_is_refused_and_no_other_tenants, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_entry_whose_secret_does_not_open_is_kept_without_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_entry_of_another_kind_is_none, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
