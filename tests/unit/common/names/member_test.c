// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/names/member.h"

static void assert_alike(const char *a, const char *b, bool alike)
{
    if (member_is_alike(str_from(a), str_from(b)) != alike ||
        member_is_alike(str_from(b), str_from(a)) != alike) {
        fail_msg("'%s' and '%s' are %salike", a, b, alike ? "not " : "");
    }
}

static void spellings_of_one_name_are_alike(void **state)
{
    (void)state;
    assert_alike("order_id", "orderId", true);
    assert_alike("order_id", "OrderId", true);
    assert_alike("order_id", "order_id_", true);
    assert_alike("orderID", "OrderId", true);
    assert_alike("address1", "address_1", true);
}

static void other_names_are_not(void **state)
{
    (void)state;
    assert_alike("order_id", "order", false);
    assert_alike("order_id", "orderIds", false);
    assert_alike("order_id", "order-id", false);
    assert_alike("_", "__", false);
    assert_alike("", "_", false);
    assert_alike("_", "_", true);
    assert_alike("straße", "STRASSE", false);
    assert_alike("\xc3\xa4", "\xc3\x84", false); // letters of ASCII alone
}

static json_t *object_of(const char *text)
{
    json_t *object = json_loads(text, 0, NULL);
    assert_non_null(object);
    return object;
}

static void the_exact_name_wins(void **state)
{
    (void)state;
    json_t *object = object_of("{\"orderId\": 1, \"order_id\": 2, \"OrderId\": 3}");
    assert_int_equal(json_integer_value(member_find(object, STR("order_id"))), 2);
    assert_int_equal(json_integer_value(member_find(object, STR("OrderId"))), 3);
    assert_int_equal(json_integer_value(member_find(object, STR("orderID"))), 1); // the first
    json_decref(object);
}

static void null_is_only_found_by_its_exact_name(void **state)
{
    (void)state;
    json_t *object = object_of("{\"orderId\": null, \"OrderId\": 3, \"full_name\": null}");
    assert_int_equal(json_integer_value(member_find(object, STR("order_id"))), 3);
    assert_true(json_is_null(member_find(object, STR("orderId"))));
    assert_null(member_value(object, "orderId"));
    assert_null(member_find(object, STR("fullName")));
    json_decref(object);
}

static void what_is_no_object_has_no_members(void **state)
{
    (void)state;
    json_t *array = json_array();
    assert_null(member_find(array, STR("a")));
    assert_null(member_find(NULL, STR("a")));
    assert_null(member_value(NULL, "a"));
    json_decref(array);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spellings_of_one_name_are_alike),
        cmocka_unit_test(other_names_are_not),
        cmocka_unit_test(the_exact_name_wins),
        cmocka_unit_test(null_is_only_found_by_its_exact_name),
        cmocka_unit_test(what_is_no_object_has_no_members),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
