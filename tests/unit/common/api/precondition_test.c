// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/api/precondition.h"

static bool holds(const char *if_match, const char *if_none_match, uint64_t there)
{
    Precondition what;
    const char *wrong = NULL;
    assert_true(precondition_parse(str_from(if_match), str_from(if_none_match), &what, &wrong));
    return precondition_holds(&what, there);
}

static void without_a_precondition_anything_may_be_there(void **state)
{
    (void)state;
    assert_true(holds(NULL, NULL, 0));
    assert_true(holds(NULL, NULL, 7));
}

static void if_match_names_what_is_there(void **state)
{
    (void)state;
    assert_true(holds("\"7\"", NULL, 7));
    assert_false(holds("\"7\"", NULL, 8));
    assert_false(holds("\"7\"", NULL, 0));
    assert_true(holds(" \"6\" , \"7\",\"8\"", NULL, 7));
    assert_false(holds("W/\"7\"", NULL, 7)); // a weak tag is never equal
    assert_false(holds("\"07\"", NULL, 7));
    assert_false(holds("\"+7\"", NULL, 7));
    assert_false(holds("\"abc\"", NULL, 7));
    assert_false(holds("\"0\"", NULL, 0));
    assert_false(holds("\"\"", NULL, 0));
}

static void a_star_is_anything_or_nothing(void **state)
{
    (void)state;
    assert_true(holds("*", NULL, 7));
    assert_false(holds("*", NULL, 0));
    assert_true(holds(NULL, "*", 0));
    assert_false(holds(NULL, "*", 7));
}

static void what_is_no_precondition_names_its_header(void **state)
{
    (void)state;
    static const struct {
        const char *if_match, *if_none_match, *wrong;
    } rows[] = {
        {"7", NULL, "If-Match"},
        {"\"7", NULL, "If-Match"},
        {"\"7\",", NULL, "If-Match"},
        {"\"7\" \"8\"", NULL, "If-Match"},
        {"*, \"7\"", NULL, "If-Match"},
        {"\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\"", NULL, "If-Match"},
        {NULL, "\"7\"", "If-None-Match"},
        {"\"7\"", "*", "If-None-Match"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Precondition what;
        const char *wrong = NULL;
        assert_false(precondition_parse(
            str_from(rows[i].if_match), str_from(rows[i].if_none_match), &what, &wrong));
        assert_string_equal(wrong, rows[i].wrong);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_precondition_anything_may_be_there),
        cmocka_unit_test(if_match_names_what_is_there),
        cmocka_unit_test(a_star_is_anything_or_nothing),
        cmocka_unit_test(what_is_no_precondition_names_its_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
