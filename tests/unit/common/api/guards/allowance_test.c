// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/api/guards/allowance.h"

enum { SECOND = 1000000 };

static AllowanceLeft take(Allowance *allowance, const char *key, int64_t second)
{
    return allowance_take(allowance, STR("acme"), str_from(key), false, second * SECOND);
}

static void a_key_has_its_own_bound_and_a_tenant_one_for_all_its_keys(void **state)
{
    (void)state;
    Allowance allowance;
    allowance_init(&allowance, 3, 2);
    AllowanceLeft left = take(&allowance, "k1", 10);
    assert_null(left.violated);
    assert_int_equal(left.of_tenant, 2);
    assert_int_equal(left.of_key, 1);
    assert_int_equal(left.seconds, 60);
    assert_null(take(&allowance, "k1", 11).violated);
    left = take(&allowance, "k1", 12);
    assert_string_equal(left.violated, "key");
    assert_int_equal(left.of_key, 0);
    assert_int_equal(left.of_tenant, 1); // what is refused counts for nothing
    assert_int_equal(left.seconds, 58);
    assert_null(take(&allowance, "k2", 12).violated);
    assert_string_equal(take(&allowance, "k2", 13).violated, "tenant");
    left = allowance_take(&allowance, STR("other"), STR("k3"), false, 13 * SECOND);
    assert_null(left.violated);
    allowance_done(&allowance);
}

static void with_the_next_window_everything_is_free_again(void **state)
{
    (void)state;
    Allowance allowance;
    allowance_init(&allowance, 1, 1);
    assert_null(take(&allowance, "k1", 10).violated);
    assert_string_equal(take(&allowance, "k1", 69).violated, "tenant");
    assert_int_equal(take(&allowance, "k1", 69).seconds, 1);
    assert_null(take(&allowance, "k1", 70).violated);
    assert_int_equal(map_count(allowance.counts), 2);
    allowance_done(&allowance);
}

static void no_bound_is_none_and_an_operator_is_not_stopped_by_a_tenant_s(void **state)
{
    (void)state;
    Allowance allowance;
    allowance_init(&allowance, 0, 0);
    for (int i = 0; i < 1000; i++) {
        AllowanceLeft left = take(&allowance, "k1", 10);
        assert_null(left.violated);
        assert_int_equal(left.of_tenant, -1);
        assert_int_equal(left.of_key, -1);
    }
    allowance_done(&allowance);
    allowance_init(&allowance, 1, 0);
    assert_null(take(&allowance, "k1", 10).violated);
    assert_string_equal(take(&allowance, "k1", 10).violated, "tenant");
    AllowanceLeft left = allowance_take(&allowance, STR("acme"), STR("op"), true, 10 * SECOND);
    assert_null(left.violated);
    assert_int_equal(left.of_tenant, -1);
    allowance_done(&allowance);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_has_its_own_bound_and_a_tenant_one_for_all_its_keys),
        cmocka_unit_test(with_the_next_window_everything_is_free_again),
        cmocka_unit_test(no_bound_is_none_and_an_operator_is_not_stopped_by_a_tenant_s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
