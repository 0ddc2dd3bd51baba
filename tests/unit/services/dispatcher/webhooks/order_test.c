// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "services/dispatcher/webhooks/hooks_internal.h"

enum { ROUND_MS = 150000, S = 1000000, GONE_S = 900 };

// The one that waits, whose rounds are counted, and what it sees of the one before it.
static Stentor__V1__WebhookDelivery waiting;
static HookBlocker first;

static int set_up(void **state)
{
    (void)state;
    stentor__v1__webhook_delivery__init(&waiting);
    first = (HookBlocker){.sequence = 7, .sign_us = 1000, .silent_ms = ROUND_MS + 1};
    return 0;
}

static void rounds(int count)
{
    for (int i = 0; i < count; i++) {
        assert_false(hook_is_gone(&waiting, &first, ROUND_MS));
    }
}

static void what_gives_no_sign_for_all_rounds_is_gone(void **state)
{
    (void)state;
    rounds(HOOK_MISSED_MAX);
    assert_true(hook_is_gone(&waiting, &first, ROUND_MS));
}

static void a_sign_begins_the_count_again(void **state)
{
    (void)state;
    rounds(HOOK_MISSED_MAX);
    first.sign_us++;
    rounds(HOOK_MISSED_MAX);
    assert_true(hook_is_gone(&waiting, &first, ROUND_MS));
}

static void each_of_several_that_do_not_come_has_its_own_count(void **state)
{
    (void)state;
    rounds(HOOK_MISSED_MAX);
    first.sequence = 8;
    rounds(HOOK_MISSED_MAX);
}

static void what_is_on_its_way_or_has_its_time_still_is_not_missed(void **state)
{
    (void)state;
    rounds(HOOK_MISSED_MAX);
    first.silent_ms = -5000; // its next attempt is in five seconds
    rounds(3 * HOOK_MISSED_MAX);
    assert_int_equal(waiting.missed, 0);
}

static void an_event_in_order_gives_a_sign_each_third_of_the_time(void **state)
{
    (void)state;
    Hooks hooks = {.parts = {.gone_s = GONE_S}};
    HookJob job = {.hooks = &hooks, .event = &waiting};
    int64_t now_us = INT64_C(10000) * S;
    waiting.matched_at_us = now_us - INT64_C(301) * S;
    assert_false(hook_wants_sign(&job, now_us)); // it blocks none
    waiting.in_order = true;
    assert_true(hook_wants_sign(&job, now_us));
    waiting.noted_at_us = now_us - INT64_C(299) * S;
    assert_false(hook_wants_sign(&job, now_us));
    assert_int_equal(hook_round_ms(&hooks), ROUND_MS);
}

// A sign comes at most this late: the third, and the longest wait behind it.
static void all_rounds_take_longer_than_a_sign_may(void **state)
{
    (void)state;
    for (int64_t gone_s = 10; gone_s <= 86400; gone_s++) {
        Hooks hooks = {.parts = {.gone_s = gone_s}};
        int64_t round_ms = hook_round_ms(&hooks);
        int64_t hold_ms = round_ms < HOOK_HOLD_MAX_S * 1000 ? round_ms : HOOK_HOLD_MAX_S * 1000;
        assert_true(gone_s * 1000 / 3 + hold_ms * 3 / 2 < round_ms * (HOOK_MISSED_MAX - 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_gives_no_sign_for_all_rounds_is_gone, set_up),
        cmocka_unit_test_setup(a_sign_begins_the_count_again, set_up),
        cmocka_unit_test_setup(each_of_several_that_do_not_come_has_its_own_count, set_up),
        cmocka_unit_test_setup(what_is_on_its_way_or_has_its_time_still_is_not_missed, set_up),
        cmocka_unit_test_setup(an_event_in_order_gives_a_sign_each_third_of_the_time, set_up),
        cmocka_unit_test_setup(all_rounds_take_longer_than_a_sign_may, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
