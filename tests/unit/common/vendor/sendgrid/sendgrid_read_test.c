// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/sendgrid/sendgrid.h"
#include "tests/unit/common/vendor/vendor_case.h"

#define FIELD(field, message)                                                                      \
    "{\"errors\":[{\"message\":\"" message "\",\"field\":\"" field "\",\"help\":null}]}"
#define MESSAGE(message) "{\"errors\":[{\"message\":\"" message "\",\"field\":null}]}"

// clang-format off
static const CaseRow rows[] = {
    {"503", 503, NULL, NULL, "", SEND_ANSWERED, REPLY_RETRY, 0, ""},
    {"500", 500, NULL, NULL, MESSAGE("oops"), SEND_UNKNOWN, REPLY_RETRY, 0, "oops"},
    {"502", 502, NULL, NULL, "", SEND_UNKNOWN, REPLY_RETRY, 0, ""},
    {"504", 504, NULL, NULL, "", SEND_UNKNOWN, REPLY_RETRY, 0, ""},
    {"408", 408, NULL, NULL, "", SEND_UNKNOWN, REPLY_RETRY, 0, ""},
    {"429 until a time", 429, "X-RateLimit-Reset", "1795723230", MESSAGE("too many requests"), SEND_ANSWERED, REPLY_THROTTLED, 30000, "too many requests"},
    {"429 in the past", 429, "X-RateLimit-Reset", "1795723199", "", SEND_ANSWERED, REPLY_THROTTLED, 0, ""},
    {"429 in a year", 429, "x-ratelimit-reset", "1827259200", "", SEND_ANSWERED, REPLY_THROTTLED, 86400000, ""},
    {"429, no number", 429, "X-RateLimit-Reset", "soon", "", SEND_ANSWERED, REPLY_THROTTLED, 0, ""},
    {"429, Retry-After", 429, "Retry-After", "2", "", SEND_ANSWERED, REPLY_THROTTLED, 2000, ""},
    {"to", 400, NULL, NULL, FIELD("personalizations.0.to.0.email", "Does not contain a valid address: bobby@example."), SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "personalizations.0.to.0.email Does not contain a valid address: bob***@example."},
    {"to behind another", 400, NULL, NULL, "{\"errors\":[{\"message\":\"a\",\"field\":\"subject\"},{\"message\":\"b\",\"field\":\"personalizations.0.to.0.email\"}]}", SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "personalizations.0.to.0.email b"},
    {"cc", 400, NULL, NULL, FIELD("personalizations.0.cc.0.email", "x"), SEND_ANSWERED, REPLY_TERMINAL, 0, "personalizations.0.cc.0.email x"},
    {"from", 400, NULL, NULL, FIELD("from.email", "x"), SEND_ANSWERED, REPLY_TERMINAL, 0, "from.email x"},
    {"to's name", 400, NULL, NULL, FIELD("personalizations.0.to.0.name", "x"), SEND_ANSWERED, REPLY_TERMINAL, 0, "personalizations.0.to.0.name x"},
    {"400", 400, NULL, NULL, MESSAGE("Bad Request"), SEND_ANSWERED, REPLY_TERMINAL, 0, "Bad Request"},
    {"413", 413, NULL, NULL, "", SEND_ANSWERED, REPLY_TERMINAL, 0, ""},
    {"415", 415, NULL, NULL, "", SEND_ANSWERED, REPLY_TERMINAL, 0, ""},
    {"401", 401, NULL, NULL, MESSAGE("The provided authorization grant is invalid"), SEND_ANSWERED, REPLY_CONFIG, 0, "The provided authorization grant is invalid"},
    {"403 with a field", 403, NULL, NULL, FIELD("personalizations.0.to.0.email", "x"), SEND_ANSWERED, REPLY_CONFIG, 0, "personalizations.0.to.0.email x"},
    {"404", 404, NULL, NULL, "", SEND_ANSWERED, REPLY_CONFIG, 0, ""},
    {"errors no array", 400, NULL, NULL, "{\"errors\":{\"0\":1}}", SEND_ANSWERED, REPLY_TERMINAL, 0, ""},
    {"errors of numbers", 400, NULL, NULL, "{\"errors\":[1,null,[]]}", SEND_ANSWERED, REPLY_TERMINAL, 0, ""},
};
// clang-format on

static void every_row_of_the_class_table_holds(void **state)
{
    (void)state;
    case_rows(&sendgrid_api, rows, sizeof rows / sizeof *rows);
}

static void an_accepted_mail_has_its_id(void **state)
{
    (void)state;
    case_accepted(
        &sendgrid_api, 202, "x-message-id", "LRzXl_NHStOGhQ4kofSm_A", "", "LRzXl_NHStOGhQ4kofSm_A");
    case_accepted(&sendgrid_api, 202, NULL, NULL, "", "");
    case_accepted(&sendgrid_api, 200, NULL, NULL, "not JSON", ""); // the sandbox
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_class_table_holds),
        cmocka_unit_test(an_accepted_mail_has_its_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
