// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "services/cli/rebuild/rebuild_gaps.h"

static void what_has_a_copy_is_not_missing(void **state)
{
    (void)state;
    RebuildGaps gaps = {.next = 0};
    gaps_see(&gaps, 10, (GapCopy){0, 100 + 0}, true);
    gaps_see(&gaps, 14, (GapCopy){0, 100 + 0}, true); // 11, 12 and 13 are missing
    gaps_see(&gaps, 15, (GapCopy){12, 100 + 12}, true);
    gaps_see(&gaps, 16, (GapCopy){12, 100 + 12}, true); // stored twice
    gaps_see(&gaps, 17, (GapCopy){14, 100 + 14}, true); // its original is still there
    assert_int_equal(gaps_unfilled(&gaps), 2);
    gaps_see(&gaps, 18, (GapCopy){13, 100 + 13}, true);
    gaps_see(&gaps, 19, (GapCopy){11, 100 + 11}, true);
    assert_int_equal(gaps_unfilled(&gaps), 0);
    gaps_done(&gaps);
}

static void what_does_not_count_and_what_came_before_the_first_are_no_gap(void **state)
{
    (void)state;
    RebuildGaps gaps = {.next = 0};
    gaps_see(&gaps, 1000, (GapCopy){7, 100 + 7}, true);
    gaps_see(&gaps, 1005, (GapCopy){0, 100 + 0}, false);
    assert_int_equal(gaps_unfilled(&gaps), 0);
    gaps_see(&gaps, 1007, (GapCopy){0, 100 + 0}, true);
    assert_int_equal(gaps_unfilled(&gaps), 1);
    gaps_done(&gaps);
}

static void what_was_erased_at_the_beginning_and_has_copies_counts(void **state)
{
    (void)state;
    RebuildGaps gaps = {.next = 0};
    int64_t at_us = 1;
    gaps_see(&gaps, 9, (GapCopy){7, 107}, true);
    gaps_see(&gaps, 10, (GapCopy){8, 108}, true);
    gaps_see(&gaps, 11, (GapCopy){8, 108}, true);
    gaps_see(&gaps, 12, (GapCopy){5, 105}, true); // 6 has none
    assert_int_equal(gaps_beginning(&gaps, 9, &at_us), 7);
    assert_int_equal(at_us, 107);
    at_us = 1;
    assert_int_equal(gaps_beginning(&gaps, 20, &at_us), 20);
    assert_int_equal(at_us, 1);
    gaps_done(&gaps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_a_copy_is_not_missing),
        cmocka_unit_test(what_was_erased_at_the_beginning_and_has_copies_counts),
        cmocka_unit_test(what_does_not_count_and_what_came_before_the_first_are_no_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
