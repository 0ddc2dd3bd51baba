// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "services/archiver/retention.h"

static Retention parsed(const char *text)
{
    Retention retention;
    Error err = {0};
    if (!retention_parse(str_from(text), &retention, &err)) {
        fail_msg("%s", err.text);
    }
    return retention;
}

static void every_category_has_a_time_and_none_the_longest(void **state)
{
    (void)state;
    Retention retention = parsed("");
    for (int i = 0; i < CATEGORY_COUNT; i++) {
        assert_true(retention.months[i] >= 24);
    }
    assert_int_equal(retention.months[CATEGORY_TRANSACTIONAL], 84);
    assert_int_equal(retention.months[CATEGORY_MARKETING], 24);
    assert_int_equal(retention.months[CATEGORY_NONE], 84);
    retention = parsed(" social = 120 , marketing=6,marketing=7");
    assert_int_equal(retention.months[CATEGORY_NONE], 120);
    assert_int_equal(retention.months[CATEGORY_SOCIAL], 120);
    assert_int_equal(retention.months[CATEGORY_MARKETING], 7);
    assert_int_equal(retention.months[CATEGORY_TRANSACTIONAL], 84);
}

static void a_rule_is_the_functions_argument(void **state)
{
    (void)state;
    Retention retention = parsed("marketing=6");
    char rule[RETENTION_RULE_SIZE];
    retention_rule(&retention, CATEGORY_MARKETING, rule);
    assert_string_equal(rule, "marketing=6 months");
    retention_rule(&retention, CATEGORY_NONE, rule);
    assert_string_equal(rule, "=84 months");
}

static void what_does_not_fit_is_named(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"advert=3", "'advert'"},     {"=3", "''"},
        {"marketing", "'marketing'"}, {"marketing=", "'marketing='"},
        {"marketing=2", "3 to 1200"}, {"marketing=1201", "3 to 1200"},
        {"social=24,,", "''"},        {"social=2x", "'social=2x'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Retention retention;
        Error err = {0};
        assert_false(retention_parse(str_from(rows[i][0]), &retention, &err));
        assert_int_equal(err.kind, ERROR_CONFIG);
        if (strstr(err.text, rows[i][1]) == NULL) {
            fail_msg("%s: '%s' does not say %s", rows[i][0], err.text, rows[i][1]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_category_has_a_time_and_none_the_longest),
        cmocka_unit_test(a_rule_is_the_functions_argument),
        cmocka_unit_test(what_does_not_fit_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
