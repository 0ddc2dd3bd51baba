// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/history/passed.h"

static void each_request_behind_the_position_is_named(void **state)
{
    (void)state;
    HistoryPassed passed;
    history_passed_init(&passed, 1024);
    history_passed_note(&passed, STR("ntf_1"), 7, 9);
    history_passed_note(&passed, STR("ntf_2"), 9, 9);
    history_passed_note(&passed, STR("ntf_3"), 12, 0);
    assert_true(str_eq(buf_view(&passed.ids), STR("ntf_1,ntf_2,ntf_3")));
    assert_false(passed.cut);
    history_passed_done(&passed);
}

static void what_came_after_the_live_rows_were_read_is_not(void **state)
{
    (void)state;
    HistoryPassed passed;
    history_passed_init(&passed, 16);
    for (uint64_t sequence = 10; sequence < 1000; sequence++) {
        history_passed_note(&passed, STR("ntf_2"), sequence, 9);
    }
    assert_int_equal(passed.ids.len, 0);
    assert_false(passed.cut);
    history_passed_done(&passed);
}

static void a_list_that_lacks_some_says_so(void **state)
{
    (void)state;
    HistoryPassed passed;
    history_passed_init(&passed, 16);
    history_passed_note(&passed, STR("ntf_1"), 1, 9);
    history_passed_note(&passed, STR("ntf_2"), 2, 9);
    assert_false(passed.cut);
    history_passed_note(&passed, STR("ntf_3"), 3, 9);
    assert_true(passed.cut);
    history_passed_note(&passed, STR("n"), 4, 9); // one that fits makes it no whole list
    assert_true(passed.cut);
    assert_true(str_starts(buf_view(&passed.ids), STR("ntf_1,ntf_2")));
    history_passed_done(&passed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_request_behind_the_position_is_named),
        cmocka_unit_test(what_came_after_the_live_rows_were_read_is_not),
        cmocka_unit_test(a_list_that_lacks_some_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
