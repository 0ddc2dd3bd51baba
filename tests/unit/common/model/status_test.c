// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "common/model/status.h"

// The order in which statuses replace each other.
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
        }
    }
}

// -2 and STATUS_COUNT stand for numbers that came over the wire and are no status.
static void a_number_that_is_no_status_has_no_rank(void **state)
{
    (void)state;
    assert_int_equal(status_rank((Status)-2), 0);
    assert_int_equal(status_rank(STATUS_COUNT), 0);
    assert_int_equal(status_rank(STATUS_NONE), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_names_every_status),
        cmocka_unit_test(of_every_pair_the_later_in_order_wins),
        cmocka_unit_test(a_number_that_is_no_status_has_no_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
