// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/sparkpost/sparkpost.h"
#include "tests/unit/common/vendor/vendor_case.h"

#define SAYS(code, message) "{\"errors\":[{\"message\":\"" message "\",\"code\":\"" code "\"}]}"
#define DESCRIBES(code, message, description)                                                      \
    "{\"errors\":[{\"description\":\"" description "\",\"code\":\"" code                           \
    "\",\"message\":\"" message "\"}]}"

// clang-format off
static const CaseRow rows[] = {
    {"other payload", 409, NULL, NULL, SAYS("1600", "x"), SEND_ANSWERED, REPLY_TERMINAL, 0, "1600 x"},
    {"in progress", 409, NULL, NULL, SAYS("1601", "x"), SEND_ANSWERED, REPLY_RETRY, 1000, "1601 x"},
    {"bad key", 400, NULL, NULL, SAYS("1602", "x"), SEND_ANSWERED, REPLY_TERMINAL, 0, "1602 x"},
    {"in use", 409, NULL, NULL, SAYS("1602", "Resource in use"), SEND_ANSWERED, REPLY_RETRY, 1000, "1602 Resource in use"},
    {"no such path", 404, NULL, NULL, SAYS("1600", "resource not found"), SEND_ANSWERED, REPLY_CONFIG, 0, "1600 resource not found"},
    {"no licence", 403, NULL, NULL, SAYS("1601", "No license"), SEND_ANSWERED, REPLY_CONFIG, 0, "1601 No license"},
    {"resources", 400, NULL, NULL, SAYS("1502", "x"), SEND_ANSWERED, REPLY_RETRY, 0, "1502 x"},
    {"hour", 420, NULL, NULL, SAYS("2101", "Exceed Sending Limit (hourly)"), SEND_ANSWERED, REPLY_THROTTLED, 600000, "2101 Exceed Sending Limit (hourly)"},
    {"day", 420, NULL, NULL, SAYS("2102", "x"), SEND_ANSWERED, REPLY_THROTTLED, 3600000, "2102 x"},
    {"420 without a code", 420, NULL, NULL, "", SEND_ANSWERED, REPLY_THROTTLED, 60000, ""},
    {"429", 429, "Retry-After", "5", "", SEND_ANSWERED, REPLY_THROTTLED, 5000, ""},
    {"429 without", 429, NULL, NULL, "", SEND_ANSWERED, REPLY_THROTTLED, 0, ""},
    {"no valid recipient", 400, NULL, NULL, SAYS("5002", "x"), SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "5002 x"},
    {"its own list", 400, NULL, NULL, DESCRIBES("1902", "Message generation rejected", "recipient address suppressed due to customer policy"), SEND_ANSWERED, REPLY_ELSEWHERE, 0, "1902 Message generation rejected: recipient address suppressed due to customer policy"},
    {"not made", 400, NULL, NULL, SAYS("1902", "x"), SEND_ANSWERED, REPLY_TERMINAL, 0, "1902 x"},
    {"domain", 400, NULL, NULL, DESCRIBES("7001", "Invalid domain", "Unconfigured or unverified sending domain."), SEND_ANSWERED, REPLY_CONFIG, 0, "7001 Invalid domain: Unconfigured or unverified sending domain."},
    {"domain blocked", 400, NULL, NULL, SAYS("7000", "x"), SEND_ANSWERED, REPLY_CONFIG, 0, "7000 x"},
    {"tracking domain", 400, NULL, NULL, SAYS("2010", "x"), SEND_ANSWERED, REPLY_CONFIG, 0, "2010 x"},
    {"401", 401, NULL, NULL, SAYS("1303", "x"), SEND_ANSWERED, REPLY_CONFIG, 0, "1303 x"},
    {"403", 403, NULL, NULL, SAYS("1100", "x"), SEND_ANSWERED, REPLY_CONFIG, 0, "1100 x"},
    {"422", 422, NULL, NULL, SAYS("1400", "x"), SEND_ANSWERED, REPLY_TERMINAL, 0, "1400 x"},
    {"413", 413, NULL, NULL, "", SEND_ANSWERED, REPLY_TERMINAL, 0, ""},
    {"503", 503, NULL, NULL, SAYS("1900", "x"), SEND_ANSWERED, REPLY_RETRY, 0, "1900 x"},
    {"500", 500, NULL, NULL, SAYS("1500", "x"), SEND_UNKNOWN, REPLY_RETRY, 0, "1500 x"},
    {"502", 502, NULL, NULL, "", SEND_UNKNOWN, REPLY_RETRY, 0, ""},
    {"504", 504, NULL, NULL, "", SEND_UNKNOWN, REPLY_RETRY, 0, ""},
    {"408", 408, NULL, NULL, "", SEND_UNKNOWN, REPLY_RETRY, 0, ""},
    {"errors no array", 400, NULL, NULL, "{\"errors\":\"1602\"}", SEND_ANSWERED, REPLY_TERMINAL, 0, ""},
    {"all rejected", 200, NULL, NULL, "{\"results\":{\"total_rejected_recipients\":1,\"total_accepted_recipients\":0,\"id\":\"1\"}}", SEND_ANSWERED, REPLY_ELSEWHERE, 0, "every recipient was rejected"},
};
// clang-format on

static void every_row_of_the_class_table_holds(void **state)
{
    (void)state;
    case_rows(&sparkpost_api, rows, sizeof rows / sizeof *rows);
}

static void an_accepted_mail_has_its_id(void **state)
{
    (void)state;
    case_accepted(
        &sparkpost_api, 200, "X-Idempotent-Replayed", "true",
        "{\"results\":{\"total_rejected_recipients\":0,\"total_accepted_recipients\":2,"
        "\"id\":\"11668787484950529\"}}",
        "11668787484950529");
    case_accepted(&sparkpost_api, 200, NULL, NULL, "{\"results\":[]}", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_class_table_holds),
        cmocka_unit_test(an_accepted_mail_has_its_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
