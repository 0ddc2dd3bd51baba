// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/content/text_search.h"

static void a_text_is_found_wherever_it_stands(void **state)
{
    (void)state;
    assert_true(text_search(STR("ntf_1 and more"), STR("ntf_1")));
    assert_true(text_search(STR("more of ntf_1"), STR("ntf_1")));
    assert_true(text_search(STR("nntf_ ntf_1."), STR("ntf_1")));
    assert_true(text_search(STR("a"), STR("a")));
    assert_true(text_search(STR("a"), STR_EMPTY));
    assert_true(text_search(STR("a\0b"), STR("\0b")));
}

static void a_part_of_it_is_not_it(void **state)
{
    (void)state;
    assert_false(text_search(STR("ntf_"), STR("ntf_1")));
    assert_false(text_search(STR("ntf_ntf_ntf_"), STR("ntf_1")));
    assert_false(text_search(STR_EMPTY, STR("n")));
    assert_false(text_search(STR("nnnn"), STR("nnnnn")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_found_wherever_it_stands),
        cmocka_unit_test(a_part_of_it_is_not_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
