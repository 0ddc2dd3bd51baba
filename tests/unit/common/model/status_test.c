// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "common/model/status.h"

// domain.md, "status, ranked for merging".
static const Status in_order[] = {
    STATUS_NONE,       STATUS_QUEUED,    STATUS_SCHEDULED, STATUS_RENDERING, STATUS_SENDING,
    STATUS_SENT,       STATUS_DELIVERED, STATUS_OPENED,    STATUS_CLICKED,   STATUS_SUPPRESSED,
    STATUS_SUPERSEDED, STATUS_FAILED,    STATUS_BOUNCED,   STATUS_COMPLAINED};
enum { IN_ORDER = sizeof in_order / sizeof in_order[0] };

static void the_order_names_every_status(void **state)
{
    (void)state;
    assert_int_equal(IN_ORDER, STATUS_COUNT);
}

static void of_every_pair_the_later_in_order_wins(void **state)
{
    (void)state;
    for (size_t a = 0; a < IN_ORDER; a++) {
        for (size_t b = 0; b < IN_ORDER; b++) {
            assert_int_equal(status_rank(in_order[a]) < status_rank(in_order[b]), a < b);
            assert_int_equal(status_merge(in_order[a], in_order[b]), in_order[a > b ? a : b]);
        }
    }
}

static void ends_are_the_last_five(void **state)
{
    (void)state;
    for (size_t i = 0; i < IN_ORDER; i++) {
        assert_int_equal(status_is_end(in_order[i]), i >= IN_ORDER - 5);
    }
}

// -2 and STATUS_COUNT stand for numbers that came over the wire and are no status.
static void merging_is_a_lattice(void **state)
{
    (void)state;
    for (int a = -2; a <= STATUS_COUNT; a++) {
        assert_int_equal(status_merge((Status)a, STATUS_NONE), a > 0 && a < STATUS_COUNT ? a : 0);
        for (int b = -2; b <= STATUS_COUNT; b++) {
            Status ab = status_merge((Status)a, (Status)b);
            assert_int_equal(ab, status_merge((Status)b, (Status)a));
            assert_int_equal(ab, status_merge(ab, (Status)a));
            assert_int_equal(ab, status_merge(ab, ab));
            for (int c = -2; c <= STATUS_COUNT; c++) {
                Status bc = status_merge((Status)b, (Status)c);
                assert_int_equal(status_merge(ab, (Status)c), status_merge((Status)a, bc));
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_names_every_status),
        cmocka_unit_test(of_every_pair_the_later_in_order_wins),
        cmocka_unit_test(ends_are_the_last_five),
        cmocka_unit_test(merging_is_a_lattice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
