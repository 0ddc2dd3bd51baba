// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/campaign/batch_member.h"

#define BATCH "dbt_01HZZZZZZZZZZZZZZZZZZZZZZZ"
#define OTHER "dbt_01HZZZZZZZZZZZZZZZZZZZZZZY"

static void a_members_id_is_derived_from_its_place(void **state)
{
    (void)state;
    const int64_t at_us = INT64_C(1795199136000000);
    char first[ID_SIZE];
    char again[ID_SIZE];
    char next[ID_SIZE];
    char other[ID_SIZE];
    batch_notification_id(STR(BATCH), 7, at_us, first);
    batch_notification_id(STR(BATCH), 7, at_us, again);
    batch_notification_id(STR(BATCH), 8, at_us, next);
    batch_notification_id(STR(OTHER), 7, at_us, other);
    int64_t ms = 0;
    assert_true(id_parse(str_from(first), "ntf_", &ms));
    assert_int_equal(ms, at_us / 1000);
    assert_string_equal(first, again);
    assert_string_not_equal(first, next);
    assert_string_not_equal(first, other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_members_id_is_derived_from_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
