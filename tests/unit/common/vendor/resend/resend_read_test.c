// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/resend/resend.h"
#include "tests/unit/common/vendor/vendor_case.h"

#define SAYS(name, message) "{\"statusCode\":0,\"name\":\"" name "\",\"message\":\"" message "\"}"

// clang-format off
static const CaseRow rows[] = {
    {"no key", 401, NULL, NULL, SAYS("missing_api_key", "x"), SEND_ANSWERED, REPLY_CONFIG, 0, "missing_api_key x"},
    {"restricted", 401, NULL, NULL, SAYS("restricted_api_key", "x"), SEND_ANSWERED, REPLY_CONFIG, 0, "restricted_api_key x"},
    {"bad key", 403, NULL, NULL, SAYS("invalid_api_key", "x"), SEND_ANSWERED, REPLY_CONFIG, 0, "invalid_api_key x"},
    {"bad key as 400", 400, NULL, NULL, SAYS("validation_error", "API key is invalid"), SEND_ANSWERED, REPLY_CONFIG, 0, "validation_error API key is invalid"},
    {"domain not verified", 403, NULL, NULL, SAYS("validation_error", "The example.com domain is not verified"), SEND_ANSWERED, REPLY_CONFIG, 0, "validation_error The example.com domain is not verified"},
    {"other body", 409, NULL, NULL, SAYS("invalid_idempotent_request", "x"), SEND_ANSWERED, REPLY_TERMINAL, 0, "invalid_idempotent_request x"},
    {"in progress", 409, NULL, NULL, SAYS("concurrent_idempotent_requests", "x"), SEND_ANSWERED, REPLY_RETRY, 1000, "concurrent_idempotent_requests x"},
    {"no key of ours", 400, NULL, NULL, SAYS("invalid_idempotency_key", "x"), SEND_ANSWERED, REPLY_TERMINAL, 0, "invalid_idempotency_key x"},
    {"422", 422, NULL, NULL, SAYS("missing_required_field", "Missing `subject` field."), SEND_ANSWERED, REPLY_TERMINAL, 0, "missing_required_field Missing `subject` field."},
    {"to", 422, NULL, NULL, SAYS("validation_error", "Invalid `to` field. The email address needs to follow the `email@example.com` format."), SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "validation_error Invalid `to` field. The email address needs to follow the `em***@example.com` format."},
    {"from", 422, NULL, NULL, SAYS("invalid_from_address", "Invalid `from` field."), SEND_ANSWERED, REPLY_TERMINAL, 0, "invalid_from_address Invalid `from` field."},
    {"451", 451, NULL, NULL, SAYS("security_error", "x"), SEND_ANSWERED, REPLY_TERMINAL, 0, "security_error x"},
    {"429, retry-after", 429, "retry-after", "1", SAYS("rate_limit_exceeded", "x"), SEND_ANSWERED, REPLY_THROTTLED, 1000, "rate_limit_exceeded x"},
    {"429, reset", 429, "ratelimit-reset", "3", SAYS("rate_limit_exceeded", "x"), SEND_ANSWERED, REPLY_THROTTLED, 3000, "rate_limit_exceeded x"},
    {"day", 429, "ratelimit-reset", "1", SAYS("daily_quota_exceeded", "x"), SEND_ANSWERED, REPLY_THROTTLED, 3600000, "daily_quota_exceeded x"},
    {"month", 429, NULL, NULL, SAYS("monthly_quota_exceeded", "x"), SEND_ANSWERED, REPLY_THROTTLED, 3600000, "monthly_quota_exceeded x"},
    {"429 alone", 429, NULL, NULL, "", SEND_ANSWERED, REPLY_THROTTLED, 0, ""},
    {"500", 500, NULL, NULL, SAYS("application_error", "x"), SEND_UNKNOWN, REPLY_RETRY, 0, "application_error x"},
    {"500 named otherwise", 500, NULL, NULL, SAYS("invalid_api_key", "x"), SEND_UNKNOWN, REPLY_RETRY, 0, "invalid_api_key x"},
    {"502", 502, NULL, NULL, "", SEND_UNKNOWN, REPLY_RETRY, 0, ""},
    {"503", 503, NULL, NULL, "", SEND_UNKNOWN, REPLY_RETRY, 0, ""},
    {"504", 504, NULL, NULL, "", SEND_UNKNOWN, REPLY_RETRY, 0, ""},
    {"408", 408, NULL, NULL, "", SEND_UNKNOWN, REPLY_RETRY, 0, ""},
};
// clang-format on

static void every_row_of_the_class_table_holds(void **state)
{
    (void)state;
    case_rows(&resend_api, rows, sizeof rows / sizeof *rows);
}

static void an_accepted_mail_has_its_id(void **state)
{
    (void)state;
    case_accepted(
        &resend_api, 200, NULL, NULL, "{\"id\":\"49a3999c-0ce1-4ea6-ab68-afcd6dc2e794\"}",
        "49a3999c-0ce1-4ea6-ab68-afcd6dc2e794");
    case_accepted(&resend_api, 200, NULL, NULL, "{\"id\":", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_class_table_holds),
        cmocka_unit_test(an_accepted_mail_has_its_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
