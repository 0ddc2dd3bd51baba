// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "services/dispatcher/health.h"

enum { S = 1000000 }; // microseconds

typedef struct Case {
    const char *what;
    int64_t down_s, reached_s;         // the vendor's own, 0: not
    int64_t entry_down_s, entry_at_s;  // in CONFIG, 0: none
    HealthMove expected;
} Case;

// Now is second 1000.
static void one_entry_speaks_for_all_replicas(void **state)
{
    (void)state;
    static const Case cases[] = {
        {"nothing is wrong", 0, 990, 0, 0, HEALTH_STAY},
        {"away for long enough", 990, 900, 0, 0, HEALTH_DOWN},
        {"away for a moment", 998, 900, 0, 0, HEALTH_STAY},
        {"another replica has said so", 990, 900, 980, 985, HEALTH_STAY},
        {"away again after it was back", 990, 980, 0, 950, HEALTH_DOWN},
        {"the last entry is too young", 990, 985, 0, 980, HEALTH_STAY},
        {"another replica has reached it since", 900, 890, 0, 950, HEALTH_STAY},
        {"back", 0, 999, 950, 960, HEALTH_UP},
        {"back, as far as it was tried before", 0, 955, 950, 960, HEALTH_STAY},
        {"a new process knows nothing yet", 0, 0, 950, 960, HEALTH_STAY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Case *c = &cases[i];
        VendorHealth own = {.down_since_us = c->down_s * S, .reached_at_us = c->reached_s * S};
        ChannelState known = {.down_since_us = c->entry_down_s * S, .changed_at_us = c->entry_at_s * S};
        if (health_decide(&own, &known, INT64_C(1000) * S) != c->expected) {
            fail_msg("%s", c->what);
        }
    }
}

static void the_line_says_since_when_why_and_how_much_waits(void **state)
{
    (void)state;
    VendorHealth own = {
        .down_since_us = INT64_C(1763935200) * S, .waiting = 12, .reason = "connection refused"};
    Buf text;
    buf_init(&text, 256);
    health_describe("smtp", &own, &text);
    assert_string_equal(
        buf_c(&text), "smtp cannot be reached since 2025-11-23T22:00:00.000000Z, 12 mails wait "
                      "here: connection refused");
    buf_done(&text);
}

static void a_suspended_vendor_is_not_spoken_for_until_its_time_is_over(void **state)
{
    (void)state;
    VendorHealth own = {.down_since_us = 900 * INT64_C(1000000)};
    ChannelState known = {.disabled_until_us = INT64_MAX};
    int64_t now_us = 1000 * INT64_C(1000000);
    assert_int_equal(health_decide(&own, &known, now_us), HEALTH_STAY);
    known.disabled_until_us = now_us;
    assert_int_equal(health_decide(&own, &known, now_us), HEALTH_DOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_entry_speaks_for_all_replicas),
        cmocka_unit_test(a_suspended_vendor_is_not_spoken_for_until_its_time_is_over),
        cmocka_unit_test(the_line_says_since_when_why_and_how_much_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
