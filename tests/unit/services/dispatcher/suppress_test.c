// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "services/dispatcher/suppress.h"

typedef struct Case {
    const char *vendor;
    const char *code;
    const char *enhanced;
    int32_t rung;
    LedgerState state;
    SuppressionReason expected;
} Case;

static void only_a_terminal_word_about_the_address_suppresses(void **state)
{
    (void)state;
    static const Case cases[] = {
        {"smtp", "550", "5.1.1", -1, LEDGER_FAILED, SUPPRESSION_HARD_BOUNCE},
        {"smtp", "550", "5.1.6", -1, LEDGER_FAILED, SUPPRESSION_HARD_BOUNCE},
        {"smtp", "550", "5.1.2", -1, LEDGER_FAILED, SUPPRESSION_INVALID_ADDRESS},
        {"smtp", "553", "5.1.3", -1, LEDGER_FAILED, SUPPRESSION_INVALID_ADDRESS},
        {"smtp", "556", "5.1.10", -1, LEDGER_FAILED, SUPPRESSION_INVALID_ADDRESS},
        {"smtp", "550", "", -1, LEDGER_FAILED, SUPPRESSION_NONE},
        {"smtp", "550", "5.7.1", -1, LEDGER_FAILED, SUPPRESSION_NONE},
        {"smtp", "550", "5.6.7", -1, LEDGER_FAILED, SUPPRESSION_NONE},
        {"smtp", "552", "5.2.2", -1, LEDGER_FAILED, SUPPRESSION_NONE},
        {"smtp", "451", "5.1.1", -1, LEDGER_FAILED, SUPPRESSION_NONE},
        {"smtp", "550", "5.1.1", 5, LEDGER_FAILED, SUPPRESSION_NONE},
        {"smtp", "550", "5.1.1", 1, LEDGER_DEFERRED, SUPPRESSION_NONE},
        {"smtp", "250", "2.0.0", -1, LEDGER_SENT, SUPPRESSION_NONE},
        {"smtp", "", "", -1, LEDGER_FAILED, SUPPRESSION_NONE},
        {"", "invalid_address", "", -1, LEDGER_FAILED, SUPPRESSION_INVALID_ADDRESS},
        {"", "expired", "", -1, LEDGER_FAILED, SUPPRESSION_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        LedgerRow row = {
            .vendor = str_from(cases[i].vendor),
            .code = str_from(cases[i].code),
            .enhanced = str_from(cases[i].enhanced),
            .rung = cases[i].rung,
            .state = cases[i].state,
        };
        assert_int_equal(suppress_reason(&row), cases[i].expected);
    }
}

static void who_has_opted_out_at_the_vendor_has_here_too(void **state)
{
    (void)state;
    LedgerRow row = {
        .vendor = STR("twilio"),
        .state = LEDGER_FAILED,
        .rung = -1,
        .reply_class = STR("terminal")};
    row.reply = STR("21610 Attempt to send to unsubscribed recipient");
    assert_int_equal(suppress_reason(&row), SUPPRESSION_OPT_OUT);
    row.reply = STR("21611 full");
    assert_int_equal(suppress_reason(&row), SUPPRESSION_NONE);
    row.vendor = STR("meta"); // of marketing alone
    row.reply = STR("131050 stopped");
    assert_int_equal(suppress_reason(&row), SUPPRESSION_NONE);
}

// A vendor with an HTTP API has codes of its own: what it said was judged when it said it.
static void the_stored_class_counts_where_there_is_one(void **state)
{
    (void)state;
    LedgerRow row = {.vendor = STR("sendgrid"), .state = LEDGER_FAILED, .rung = -1};
    row.code = STR("400");
    row.reply_class = STR("bad_address");
    assert_int_equal(suppress_reason(&row), SUPPRESSION_INVALID_ADDRESS);
    row.enhanced = STR("5.1.1");
    assert_int_equal(suppress_reason(&row), SUPPRESSION_HARD_BOUNCE);
    row.code = STR("550");
    row.reply_class = STR("terminal");
    assert_int_equal(suppress_reason(&row), SUPPRESSION_NONE);
    row.reply_class = STR("elsewhere"); // the vendor's own list
    assert_int_equal(suppress_reason(&row), SUPPRESSION_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_terminal_word_about_the_address_suppresses),
        cmocka_unit_test(who_has_opted_out_at_the_vendor_has_here_too),
        cmocka_unit_test(the_stored_class_counts_where_there_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
