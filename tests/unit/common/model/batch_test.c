// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/model/batch.h"

// One letter a state: d s r c x f are the statuses, upper case is paused; '.' is refused.
static const char LETTERS[] = " dsrcxf";

static char letter_of(BatchState state)
{
    char c = LETTERS[state.status];
    return state.paused ? (char)(c - 'a' + 'A') : c;
}

static char after(BatchStatus status, bool paused, BatchCommand command)
{
    BatchState next = {0};
    Error err = {0};
    if (batch_decide((BatchState){status, paused}, command, &next, &err)) {
        return letter_of(next);
    }
    assert_int_equal(err.kind, ERROR_CONFLICT);
    assert_non_null(strstr(err.text, batch_command_name(command)));
    assert_non_null(strstr(err.text, batch_status_name(status)));
    return '.';
}

static void every_pair_of_state_and_command(void **state)
{
    (void)state;
    // draft scheduled running completed cancelled failed, then scheduled and running when paused
    static const char *const want[BATCH_COMMAND_COUNT] = {
        [BATCH_DO_SCHEDULE] = "ss....S.", [BATCH_DO_START] = "rrr...RR",
        [BATCH_DO_PAUSE] = ".SR...SR",    [BATCH_DO_RESUME] = ".sr...sr",
        [BATCH_DO_CANCEL] = "xxx.x.xx",
    };
    for (int command = 0; command < BATCH_COMMAND_COUNT; command++) {
        char got[9] = "";
        for (int status = BATCH_DRAFT; status < BATCH_STATUS_COUNT; status++) {
            got[status - 1] = after((BatchStatus)status, false, (BatchCommand)command);
        }
        got[6] = after(BATCH_SCHEDULED, true, (BatchCommand)command);
        got[7] = after(BATCH_RUNNING, true, (BatchCommand)command);
        assert_string_equal(got, want[command]);
    }
}

static void every_status_has_a_name_and_is_found_by_it(void **state)
{
    (void)state;
    for (int i = BATCH_DRAFT; i < BATCH_STATUS_COUNT; i++) {
        BatchStatus found = BATCH_NONE;
        assert_true(batch_status_from_name(str_from(batch_status_name((BatchStatus)i)), &found));
        assert_int_equal(found, i);
    }
    BatchStatus none = BATCH_NONE;
    assert_false(batch_status_from_name(STR(""), &none));
    assert_false(batch_status_from_name(STR("paused"), &none));
    assert_string_equal(batch_status_name(BATCH_STATUS_COUNT), "");
}

static void a_step_is_a_tenth_of_a_second_within_its_bounds(void **state)
{
    (void)state;
    assert_int_equal(batch_step(0), BATCH_STEP_MAX);
    assert_int_equal(batch_step(1), 1);
    assert_int_equal(batch_step(19), 1);
    assert_int_equal(batch_step(100), 10);
    assert_int_equal(batch_step(1000000), BATCH_STEP_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_of_state_and_command),
        cmocka_unit_test(every_status_has_a_name_and_is_found_by_it),
        cmocka_unit_test(a_step_is_a_tenth_of_a_second_within_its_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
