// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/deadletter/dead_trim.h"

typedef struct Row {
    DeadState state;
    uint64_t wanted;
} Row;

// 1,000 bytes a letter of a stream of 1,000,000: it is trimmed above 750 letters, down to 600.
static void a_pass_takes_the_excess_from_the_fullest_subject(void **state)
{
    (void)state;
    static const Row rows[] = {
        {{.bytes = 0, .messages = 0, .max_bytes = 1000000}, 0},
        {{.bytes = 750000, .messages = 750, .max_bytes = 1000000, .first = 750}, 0},
        {{.bytes = 760000, .messages = 760, .max_bytes = 1000000, .first = 760}, 161},
        // a flood of 400 over the next: down to that one, and on with a later pass
        {{.bytes = 900000, .messages = 900, .max_bytes = 1000000, .first = 600, .second = 300}, 300},
        // as full as the next: a quarter of it
        {{.bytes = 900000, .messages = 900, .max_bytes = 1000000, .first = 450, .second = 450}, 113},
        {{.bytes = 900000, .messages = 900, .max_bytes = 0, .first = 900}, 0}, // no limit
        {{.bytes = 2000000000, .messages = 2000000, .max_bytes = 2100000000, .first = 2000000},
         10000}, // what one pass may do
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t wanted = dead_trim_wanted(&rows[i].state);
        if (wanted != rows[i].wanted) {
            fail_msg("row %zu: %llu", i, (unsigned long long)wanted);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pass_takes_the_excess_from_the_fullest_subject),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
