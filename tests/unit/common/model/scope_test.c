// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/model/scope.h"

static void finding_11_each_scope_has_a_name_that_leads_back_to_it(void **state)
{
    (void)state;
    for (Scope scope = SCOPE_NONE + 1; scope < SCOPE_COUNT; scope++) {
        assert_true(scope_name(scope)[0] != '\0');
        assert_int_equal(scope_set_from_name(str_from(scope_name(scope))), SCOPE_BIT(scope));
    }
    assert_int_equal(scope_set_from_name(STR("")), 0);
    assert_int_equal(scope_set_from_name(STR("Read")), 0);
    assert_int_equal(scope_set_from_name(STR("recipients:reveal ")), 0);
}

static void finding_11_what_is_dangerous_is_in_the_set_admin_alone(void **state)
{
    (void)state;
    static const Scope dangerous[] = {
        SCOPE_RECIPIENTS_REVEAL, SCOPE_SUPPRESSIONS_EXPORT, SCOPE_SUPPRESSIONS_RELEASE,
        SCOPE_TEMPLATES_ACTIVATE};
    for (size_t i = 0; i < sizeof dangerous / sizeof *dangerous; i++) {
        assert_int_equal(scope_set_from_name(STR("send")) & SCOPE_BIT(dangerous[i]), 0);
        assert_int_equal(scope_set_from_name(STR("read")) & SCOPE_BIT(dangerous[i]), 0);
        assert_int_equal(scope_set_from_name(STR("manage")) & SCOPE_BIT(dangerous[i]), 0);
        assert_true((scope_set_from_name(STR("admin")) & SCOPE_BIT(dangerous[i])) != 0);
    }
    assert_int_equal(scope_set_from_name(STR("manage")) & SCOPE_BIT(SCOPE_NOTIFICATIONS_SEND), 0);
    assert_int_equal(scope_set_from_name(STR("admin")), SCOPE_ALL);
}

static void names_add_up_and_what_is_unknown_adds_nothing(void **state)
{
    (void)state;
    static char read[] = "batches:read";
    static char odd[] = "batches:fly";
    static char write[] = "batches:write";
    char *names[] = {read, odd, write};
    assert_int_equal(
        scope_set_from_names(names, 3),
        SCOPE_BIT(SCOPE_BATCHES_READ) | SCOPE_BIT(SCOPE_BATCHES_WRITE));
    assert_int_equal(scope_set_from_names(names + 1, 1), 0);
    assert_int_equal(scope_set_from_names(NULL, 0), SCOPE_ALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finding_11_each_scope_has_a_name_that_leads_back_to_it),
        cmocka_unit_test(finding_11_what_is_dangerous_is_in_the_set_admin_alone),
        cmocka_unit_test(names_add_up_and_what_is_unknown_adds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
