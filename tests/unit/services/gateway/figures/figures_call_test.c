// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "services/gateway/figures/figures_internal.h"

static void assert_amount(int64_t micros, const char *expected)
{
    json_t *json = figures_amount(micros);
    assert_string_equal(json_string_value(json), expected);
    json_decref(json);
}

static void an_amount_has_the_digits_that_it_needs(void **state)
{
    (void)state;
    assert_amount(0, "0");
    assert_amount(7500, "0.0075");
    assert_amount(45000, "0.045");
    assert_amount(1000000, "1");
    assert_amount(10000000, "10");
    assert_amount(123456789, "123.456789");
    assert_amount(INT64_MAX, "9223372036854.775807");
}

static void a_share_of_nothing_is_null(void **state)
{
    (void)state;
    json_t *none = figures_share(0, 0);
    json_t *some = figures_share(3, 1000);
    assert_true(json_is_null(none));
    assert_true(json_real_value(some) > 0.00299 && json_real_value(some) < 0.00301);
    json_decref(none);
    json_decref(some);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_amount_has_the_digits_that_it_needs),
        cmocka_unit_test(a_share_of_nothing_is_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
