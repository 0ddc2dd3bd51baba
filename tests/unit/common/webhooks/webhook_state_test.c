// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "common/webhooks/webhook_state.h"

static void a_state_goes_to_its_name_and_back(void **state)
{
    (void)state;
    Str rest = STR(WEBHOOK_STATES), name = STR_EMPTY;
    for (WebhookState one = WEBHOOK_QUEUED; one <= WEBHOOK_FAILED; one++) {
        assert_true(str_split(&rest, ',', &name)); // the list for people has each, in order
        assert_int_equal(webhook_state_from_name(str_trim(name)), one);
        assert_true(str_eq(str_from(webhook_state_name(one)), str_trim(name)));
    }
    assert_false(str_split(&rest, ',', &name));
}

static void what_is_none_has_no_state(void **state)
{
    (void)state;
    assert_string_equal(webhook_state_name(WEBHOOK_NONE), "");
    assert_int_equal(webhook_state_from_name(STR("")), WEBHOOK_NONE);
    assert_int_equal(webhook_state_from_name(STR("sent")), WEBHOOK_NONE);
    assert_int_equal(webhook_state_from_name(STR("Failed")), WEBHOOK_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_goes_to_its_name_and_back),
        cmocka_unit_test(what_is_none_has_no_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
