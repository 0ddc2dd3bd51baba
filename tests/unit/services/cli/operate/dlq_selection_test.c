// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "services/cli/operate/dlq_selection.h"

#define NOW_US INT64_C(1763648968320000)

static void since_is_a_span_or_a_time(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t before_s; // -1: refused
    } rows[] = {
        {"90s", 90},
        {"30m", 1800},
        {"2h", 7200},
        {"7d", 604800},
        {"0s", 0},
        {"d", -1},
        {"", -1},
        {"7", -1},
        {"7w", -1},
        {"-1h", -1},
        {"1.5h", -1},
        {"99999999d", -1},
        {"9223372036854775807s", -1},
        {"yesterday", -1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t at = -1;
        Error err = {0};
        bool ok = selection_since(rows[i].text, NOW_US, &at, &err);
        assert_int_equal(ok, rows[i].before_s >= 0);
        if (ok) {
            assert_int_equal(at, NOW_US - rows[i].before_s * 1000000);
        } else {
            assert_int_equal(err.kind, ERROR_CONFIG);
            assert_non_null(strstr(err.text, "--since"));
        }
    }
    int64_t at = 0;
    assert_true(selection_since("2025-11-20T14:29:28.320Z", 0, &at, NULL));
    assert_int_equal(at, NOW_US);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(since_is_a_span_or_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
