// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/orders/machine.h"

// Every pair, as a person would write it down: the verdict and, of what is applied, where it leads.
// A: applied, C: conflict, S: stale, U: unmatched, D: duplicate.
static const struct {
    OrderState from;
    const char
        *verdicts; // by event: checked out, completed, cancelled, timed out, gave up, old wait
} EXPECTED[] = {
    {ORDER_NONE, "AUUSSS"},      {ORDER_PLACED, "DAAAAS"}, {ORDER_COMPLETED, "DDCSSS"},
    {ORDER_CANCELLED, "DCDSSS"}, {ORDER_FAILED, "DCCSSS"},
};

static Verdict verdict_of(char letter)
{
    switch (letter) {
    case 'A':
        return VERDICT_APPLIED;
    case 'C':
        return VERDICT_CONFLICT;
    case 'S':
        return VERDICT_STALE;
    case 'U':
        return VERDICT_UNMATCHED;
    default:
        return VERDICT_DUPLICATE;
    }
}

static void every_pair_has_its_verdict(void **state)
{
    (void)state;
    assert_int_equal(sizeof EXPECTED / sizeof EXPECTED[0], ORDER_STATE_COUNT);
    for (size_t i = 0; i < ORDER_STATE_COUNT; i++) {
        assert_int_equal(strlen(EXPECTED[i].verdicts), ORDER_EVENT_COUNT);
        for (OrderEvent event = 0; event < ORDER_EVENT_COUNT; event++) {
            const OrderStep *step = machine_step(EXPECTED[i].from, event);
            assert_int_equal(step->from, EXPECTED[i].from);
            assert_int_equal(step->event, event);
            assert_int_equal(step->verdict, verdict_of(EXPECTED[i].verdicts[event]));
        }
    }
}

static void only_what_is_applied_changes_or_commands_anything(void **state)
{
    (void)state;
    for (OrderState from = 0; from < ORDER_STATE_COUNT; from++) {
        for (OrderEvent event = 0; event < ORDER_EVENT_COUNT; event++) {
            const OrderStep *step = machine_step(from, event);
            bool applied = step->verdict == VERDICT_APPLIED;
            assert_true(
                applied || (step->to == from && step->command == COMMAND_NONE && !step->waits));
            assert_int_equal(step->reason[0] == '\0', applied);
            assert_true(!step->waits || step->to == ORDER_PLACED); // only a placed order waits
        }
    }
}

static void an_order_is_placed_and_ends_with_its_command(void **state)
{
    (void)state;
    const OrderStep *step = machine_step(ORDER_NONE, ORDER_CHECKED_OUT);
    assert_true(step->to == ORDER_PLACED && step->command == COMMAND_PLACE && step->waits);
    step = machine_step(ORDER_PLACED, ORDER_TIMED_OUT);
    assert_true(step->to == ORDER_PLACED && step->command == COMMAND_PLACE && step->waits);
    step = machine_step(ORDER_PLACED, ORDER_WAS_COMPLETED);
    assert_true(step->to == ORDER_COMPLETED && step->command == COMMAND_COMPLETE);
    step = machine_step(ORDER_PLACED, ORDER_WAS_CANCELLED);
    assert_true(step->to == ORDER_CANCELLED && step->command == COMMAND_CANCEL);
    step = machine_step(ORDER_PLACED, ORDER_GAVE_UP);
    assert_true(step->to == ORDER_FAILED && step->command == COMMAND_FAIL);
}

static void an_order_gives_up_with_its_last_attempt(void **state)
{
    (void)state;
    for (int64_t most = 1; most <= 10; most++) {
        for (int32_t retries = 0; retries < most; retries++) {
            OrderEvent event = machine_timeout(true, retries, most);
            assert_int_equal(event, retries + 1 == most ? ORDER_GAVE_UP : ORDER_TIMED_OUT);
            assert_int_equal(machine_timeout(false, retries, most), ORDER_OLD_WAIT);
        }
    }
}

static void states_are_found_by_their_names(void **state)
{
    (void)state;
    for (OrderState each = ORDER_PLACED; each < ORDER_STATE_COUNT; each++) {
        OrderState found = ORDER_NONE;
        assert_true(order_state_from_name(str_from(order_state_name(each)), &found));
        assert_int_equal(found, each);
    }
    OrderState none = ORDER_PLACED;
    assert_false(order_state_from_name(STR(""), &none));
    assert_false(order_state_from_name(STR("placed"), &none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_has_its_verdict),
        cmocka_unit_test(only_what_is_applied_changes_or_commands_anything),
        cmocka_unit_test(an_order_is_placed_and_ends_with_its_command),
        cmocka_unit_test(an_order_gives_up_with_its_last_attempt),
        cmocka_unit_test(states_are_found_by_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
