// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/api/faults.h"

static const int64_t NOW_US = INT64_C(1790000000000000);
static const int64_t SECOND_US = 1000000;

static bool note(Faults *faults, const char *text, int64_t at_us, char id[ID_SIZE])
{
    Error err = {0};
    bool is_new = false;
    (void)error_set(&err, ERROR_TRANSIENT, "%s", text);
    (void)snprintf(id, ID_SIZE, "%s", faults_note(faults, &err, at_us, &is_new));
    return is_new;
}

static void finding_16_the_same_trouble_has_one_name_and_one_line_for_a_while(void **state)
{
    (void)state;
    Faults faults = {0};
    char first[ID_SIZE];
    char again[ID_SIZE];
    assert_true(note(&faults, "disk full", NOW_US, first));
    assert_false(note(&faults, "disk full", NOW_US + 9 * SECOND_US, again));
    assert_string_equal(first, again);
    assert_true(note(&faults, "disk full", NOW_US + 10 * SECOND_US, again));
    assert_string_not_equal(first, again);
    assert_true(strncmp(first, "flt_", 4) == 0);
}

static void other_trouble_has_another_name(void **state)
{
    (void)state;
    Faults faults = {0};
    char ids[FAULTS_KEPT + 1][ID_SIZE];
    for (int i = 0; i <= FAULTS_KEPT; i++) {
        char text[16];
        (void)snprintf(text, sizeof text, "trouble %d", i);
        assert_true(note(&faults, text, NOW_US, ids[i]));
        assert_true(i == 0 || strcmp(ids[i], ids[i - 1]) != 0);
    }
    char id[ID_SIZE];
    assert_false(note(&faults, "trouble 8", NOW_US, id));
    assert_true(note(&faults, "trouble 0", NOW_US, id)); // its place was needed
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finding_16_the_same_trouble_has_one_name_and_one_line_for_a_while),
        cmocka_unit_test(other_trouble_has_another_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
