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

static void a_role_has_what_its_work_needs_and_no_key_gains_a_reveal_by_an_update(void **state)
{
    (void)state;
    static const Scope named_only[] = {
        SCOPE_KEYS_MANAGE, SCOPE_CONTENT_REVEAL, SCOPE_AUDIT_READ, SCOPE_OPS_READ,
        SCOPE_TENANTS_OPERATE};
    for (size_t i = 0; i < sizeof named_only / sizeof *named_only; i++) {
        assert_int_equal(SCOPE_ALL & SCOPE_BIT(named_only[i]), 0);
        assert_true((scope_set_from_name(STR("operator")) & SCOPE_BIT(named_only[i])) != 0);
    }
    ScopeSet owner = scope_set_from_name(STR("owner")), viewer = scope_set_from_name(STR("viewer"));
    ScopeSet developer = scope_set_from_name(STR("developer"));
    ScopeSet writer = scope_set_from_name(STR("template-writer"));
    ScopeSet support = scope_set_from_name(STR("support"));
    ScopeSet not_an_owners = SCOPE_BIT(SCOPE_OPS_READ) | SCOPE_BIT(SCOPE_TENANTS_OPERATE);
    assert_int_equal(owner, scope_set_from_name(STR("operator")) & ~not_an_owners);
    assert_int_equal((developer | writer | support | viewer) & ~SCOPE_ALL, 0);
    assert_int_equal(viewer, scope_set_from_name(STR("read")) | SCOPE_BIT(SCOPE_DEAD_READ));
    assert_int_equal(developer & SCOPE_BIT(SCOPE_RECIPIENTS_REVEAL), 0);
    assert_int_equal(writer & SCOPE_BIT(SCOPE_TEMPLATES_ACTIVATE), 0);
    assert_int_equal(writer & SCOPE_BIT(SCOPE_RECIPIENTS_READ), 0);
    assert_int_equal(support & SCOPE_BIT(SCOPE_NOTIFICATIONS_SEND), 0);
    assert_true((support & SCOPE_BIT(SCOPE_RECIPIENTS_REVEAL)) != 0);
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
        cmocka_unit_test(a_role_has_what_its_work_needs_and_no_key_gains_a_reveal_by_an_update),
        cmocka_unit_test(names_add_up_and_what_is_unknown_adds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
