// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/model/currency.h"

static void three_capitals_are_a_code(void **state)
{
    (void)state;
    static const char *const others[] = {"", "EU", "EURO", "eur", "E1R", "EU "};
    assert_true(currency_is_code(STR("EUR")));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(currency_is_code(str_from(others[i])));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(three_capitals_are_a_code)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
