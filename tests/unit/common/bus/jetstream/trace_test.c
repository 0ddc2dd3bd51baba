// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/bus/jetstream/trace.h"

#define IDS "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"

static void what_is_a_traceparent(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_one;
    } CASES[] = {
        {"00-" IDS "-01", true},
        {"cc-" IDS "-01", true},
        {"cc-" IDS "-01-what-comes-then", true},
        {"", false},
        {"\xff\xfe", false},
        {"00-" IDS "-0", false},
        {"00-" IDS "-01-more", false},
        {"cc-" IDS "-01more", false},
        {"cc-" IDS "-01-\xff", false},
        {"ff-" IDS "-01", false},
        {"0x-" IDS "-01", false},
        {"00_" IDS "-01", false},
        {"00-" IDS "-0g", false},
        {"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", false},
        {"00-00000000000000000000000000000000-00f067aa0ba902b7-01", false},
        {"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        if (trace_is_parent(str_from(CASES[i].text)) != CASES[i].is_one) {
            fail_msg("case %zu: '%s'", i, CASES[i].text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_a_traceparent)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
