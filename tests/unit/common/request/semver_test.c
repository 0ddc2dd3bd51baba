// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/request/semver.h"

static void what_is_a_version(void **state)
{
    (void)state;
    static const char *const GOOD[] = {
        "0.0.0",
        "1.2.3",
        "10.20.30",
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-0.3.7",
        "1.0.0-x-y.z",
        "1.0.0+20130313144700",
        "1.0.0-beta+exp.sha.5114f85",
        "99999999999999999999.0.0",
        "1.0.0+001",
    };
    static const char *const BAD[] = {
        "",
        "1",
        "1.2",
        "1.2.3.4",
        "01.2.3",
        "1.02.3",
        "a.b.c",
        "1.2.3-",
        "1.2.3-01",
        "1.2.3+",
        "1.2.3-a..b",
        "v1.2.3",
        " 1.2.3",
        "1.2.-3",
        "1.2.3-\xc3\xbc",
        "1_2_3",
        "1.0.0-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    };
    for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++) {
        if (!semver_is(str_from(GOOD[i]))) {
            fail_msg("'%s' is a version", GOOD[i]);
        }
    }
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        if (semver_is(str_from(BAD[i]))) {
            fail_msg("'%s' is no version", BAD[i]);
        }
    }
}

// The order of semver.org's section 11, all pairs.
static void the_order_is_that_of_the_specification(void **state)
{
    (void)state;
    static const char *const ASCENDING[] = {
        "1.0.0-alpha",  "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta",
        "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1",       "1.0.0",
        "1.0.1",        "1.2.0",         "1.10.0",           "2.0.0",
        "10.0.0",
    };
    size_t count = sizeof ASCENDING / sizeof ASCENDING[0];
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            int order = semver_compare(str_from(ASCENDING[i]), str_from(ASCENDING[j]));
            if ((order < 0) != (i < j) || (order > 0) != (i > j)) {
                fail_msg("'%s' against '%s' gives %d", ASCENDING[i], ASCENDING[j], order);
            }
        }
    }
    assert_int_equal(semver_compare(STR("1.0.0+a"), STR("1.0.0+b")), 0);
}

static void the_next_release_is_above_the_highest(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", "1.0.0"},
        {"1.0.0", "1.0.1"},
        {"1.2.9", "1.2.10"},
        {"2.0.0-rc.1", "2.0.0"},
        {"2.0.0-rc.1+b.5", "2.0.0"},
        {"3.1.4+build", "3.1.5"},
        {"1.0.99999999999999999999", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char next[SEMVER_MAX + 1] = "";
        assert_int_equal(semver_next(str_from(rows[i][0]), next), rows[i][1] != NULL);
        if (rows[i][1] != NULL) {
            assert_string_equal(next, rows[i][1]);
            assert_true(semver_is(str_from(next)));
            assert_true(
                rows[i][0][0] == '\0' || semver_compare(str_from(next), str_from(rows[i][0])) > 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_a_version),
        cmocka_unit_test(the_order_is_that_of_the_specification),
        cmocka_unit_test(the_next_release_is_above_the_highest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
