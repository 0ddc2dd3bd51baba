// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/model/addresses/calling_code.h"

// clang-format off
static const char *const COUNTRIES[][2] = {
    {"+4915112345678", "DE"}, {"+436641234567", "AT"},  {"+41791234567", "CH"},  {"+33612345678", "FR"},
    {"+14155550100",   "US"}, {"+14165550100",  "CA"},  {"+18765550100", "JM"},  {"+16585550100", "JM"},
    {"+17875550100",   "PR"}, {"+18095550100",  "DO"},  {"+12425550100", "BS"},  {"+16715550100", "GU"},
    {"+18005550100",   ""},   {"+18885550100",  ""},    {"+19005550100", ""},
    {"+79161234567",   "RU"}, {"+77011234567",  "KZ"},  {"+76001234567", "KZ"},  {"+78121234567", "RU"},
    {"+447400123456",  "GB"}, {"+447911123456", "GG"},  {"+447797123456", "JE"}, {"+441624123456", "IM"},
    {"+390612345678",  "IT"}, {"+390669812345", "VA"},  {"+61412345678", "AU"},  {"+61891641234", "CX"},
    {"+4741234567",    "NO"}, {"+4779123456",   "SJ"},  {"+358401234567", "FI"}, {"+358181234567", "AX"},
    {"+262692123456",  "RE"}, {"+262639123456", "YT"},  {"+5999123456", "CW"},   {"+5997123456", "BQ"},
    {"+38344123456",   "XK"}, {"+85261234567",  "HK"},  {"+861381234567", "CN"}, {"+886912345678", "TW"},
    {"+212612345678",  "MA"}, {"+2348021234567", "NG"}, {"+5511912345678", "BR"}, {"+919812345678", "IN"},
    {"+881612345678",  ""},   {"+8001234567",   ""},    {"+21012345", ""},
    {"4915112345678",  ""},   {"", ""},                 {"+", ""},               {"+4", ""},
};
// clang-format on

static void a_number_has_the_country_of_its_longest_code(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof COUNTRIES / sizeof *COUNTRIES; i++) {
        Str found = calling_code_country(str_from(COUNTRIES[i][0]));
        if (!str_eq(found, str_from(COUNTRIES[i][1]))) {
            fail_msg("%s: " STR_FMT, COUNTRIES[i][0], STR_ARG(found));
        }
    }
}

static bool is_country(Str text)
{
    return text.len == 0 || (text.len == 2 && text.ptr[0] >= 'A' && text.ptr[0] <= 'Z' &&
                             text.ptr[1] >= 'A' && text.ptr[1] <= 'Z');
}

static void the_table_is_sorted_and_each_row_is_found(void **state)
{
    (void)state;
    Str before = STR_EMPTY, country = STR_EMPTY;
    size_t count = 0;
    for (Str code; (code = calling_code_at(count, &country)).len > 0; count++) {
        assert_true(str_cmp(before, code) < 0);
        assert_true(is_country(country));
        char number[16] = "+";
        for (size_t i = 0; i < code.len; i++) {
            assert_true(ascii_is_digit(code.ptr[i]));
            number[i + 1] = code.ptr[i];
        }
        assert_true(str_eq(calling_code_country(str_from(number)), country));
        before = code;
    }
    assert_true(count > 250);
}

// Digits behind the code change nothing, unless they make a longer one.
static void every_digit_is_read_without_a_border(void **state)
{
    (void)state;
    assert_true(str_eq(calling_code_country(STR("+49")), STR("DE")));
    assert_true(str_eq(calling_code_country(STR("+1")), STR("US")));
    assert_true(str_eq(calling_code_country(STR("+49x")), STR("DE")));
    assert_true(str_eq(
        calling_code_country(str_of(
            "+4\0"
            "9",
            4)),
        STR_EMPTY));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_has_the_country_of_its_longest_code),
        cmocka_unit_test(the_table_is_sorted_and_each_row_is_found),
        cmocka_unit_test(every_digit_is_read_without_a_border),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
