// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/model/company.h"

static const int64_t START_US = INT64_C(1795199136000000);
static const int64_t WHILE_US = COMPANY_MS * INT64_C(1000);

static void one_tenant_is_no_company(void **state)
{
    (void)state;
    Company company = {0};
    company_note(&company, STR("acme"), START_US);
    company_note(&company, STR("acme"), START_US + 1);
    assert_false(company_is(&company, START_US + 1));
}

static void two_in_turn_are_company_for_a_while(void **state)
{
    (void)state;
    Company company = {0};
    company_note(&company, STR("acme"), START_US);
    company_note(&company, STR("other"), START_US);
    company_note(&company, STR("other"), START_US + WHILE_US / 2);
    assert_true(company_is(&company, START_US + WHILE_US - 1));
    assert_false(company_is(&company, START_US + WHILE_US));
    company_note(&company, STR("acme"), START_US + 2 * WHILE_US);
    assert_true(company_is(&company, START_US + 2 * WHILE_US));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_tenant_is_no_company),
        cmocka_unit_test(two_in_turn_are_company_for_a_while),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
