// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/bus/topology/trim.h"

typedef struct Case {
    const char *name;
    TrimState state;
    uint64_t keep_from;
} Case;

// Messages of 10 bytes: max_bytes 1,000 is 100 of them, trimming begins above 75 and ends at 60.
static const Case cases[] = {
    {"empty", {.first = 1, .max_bytes = 1000, .floor = 90}, 1},
    {"no limit", {.first = 1, .messages = 99, .bytes = 990, .floor = 90}, 1},
    {"room", {.first = 1, .messages = 75, .bytes = 750, .max_bytes = 1000, .floor = 75}, 1},
    {"all read", {.first = 1, .messages = 80, .bytes = 800, .max_bytes = 1000, .floor = 80}, 21},
    {"further on",
     {.first = 501, .messages = 80, .bytes = 800, .max_bytes = 1000, .floor = 580},
     521},
    {"part read", {.first = 1, .messages = 100, .bytes = 1000, .max_bytes = 1000, .floor = 7}, 8},
    {"none read",
     {.first = 11, .messages = 100, .bytes = 1000, .max_bytes = 1000, .floor = 10},
     11},
    {"no floor", {.first = 1, .messages = 100, .bytes = 1000, .max_bytes = 1000, .floor = 0}, 1},
    {"no projection reads it",
     {.first = 1, .messages = 100, .bytes = 1000, .max_bytes = 1000, .floor = UINT64_MAX},
     41},
    {"smaller than a byte each",
     {.first = 1, .messages = 2000, .bytes = 900, .max_bytes = 1000, .floor = 2000},
     301},
};

static void only_what_everybody_has_read_goes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t keep_from = trim_keep_from(&cases[i].state);
        if (keep_from != cases[i].keep_from) {
            fail_msg(
                "%s: keeps from %llu, expected %llu", cases[i].name, (unsigned long long)keep_from,
                (unsigned long long)cases[i].keep_from);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_what_everybody_has_read_goes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
