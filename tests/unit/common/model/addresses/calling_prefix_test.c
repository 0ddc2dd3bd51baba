// SPDX-License-Identifier: Apache-2.0
#include "common/model/addresses/calling_prefix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_number_has_the_code_of_its_country(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"+4915112345678", "49"}, {"+436641234567", "43"},  {"+420123456789", "420"},
        {"+35312345678", "353"},  {"+12125550100", "1212"}, {"+12425550100", "1242"},
        {"+77012345678", "77"},   {"+79161234567", "79"},   {"+919812345678", "91"},
        {"+886912345678", "886"}, {"+390612345678", "39"},  {"+87012345678", "870"},
        {"+4912345", "49"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Str code = calling_prefix(str_from(rows[i][0]));
        assert_true(code.len <= CALLING_PREFIX_MAX);
        assert_true(str_eq(code, str_from(rows[i][1])));
    }
}

static void what_is_no_number_has_none(void **state)
{
    (void)state;
    static const char *const rows[] = {"",
                                       "+",
                                       "+49",
                                       "4915112345678",
                                       "bob@a.test",
                                       "+49151 123456",
                                       "+0123456789",
                                       "+49151x12345",
                                       "+491234"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(calling_prefix(str_from(rows[i])).len, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_has_the_code_of_its_country),
        cmocka_unit_test(what_is_no_number_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
