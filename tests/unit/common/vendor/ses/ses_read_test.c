// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/ses/ses.h"
#include "tests/unit/common/vendor/vendor_case.h"

#define TYPE "x-amzn-ErrorType"
#define SAYS(message) "{\"message\":\"" message "\"}"

// clang-format off
static const CaseRow rows[] = {
    {"unavailable", 503, TYPE, "ServiceUnavailable", "", SEND_ANSWERED, REPLY_RETRY, 0, "ServiceUnavailable"},
    {"503 without a type", 503, NULL, NULL, "", SEND_ANSWERED, REPLY_RETRY, 0, ""},
    {"failure", 500, TYPE, "InternalFailure", "", SEND_UNKNOWN, REPLY_RETRY, 0, "InternalFailure"},
    {"failure as 400", 400, TYPE, "InternalFailure", "", SEND_UNKNOWN, REPLY_RETRY, 0, "InternalFailure"},
    {"500 without a type", 500, NULL, NULL, "<html>", SEND_UNKNOWN, REPLY_RETRY, 0, ""},
    {"502", 502, NULL, NULL, "", SEND_UNKNOWN, REPLY_RETRY, 0, ""},
    {"504", 504, NULL, NULL, "", SEND_UNKNOWN, REPLY_RETRY, 0, ""},
    {"408", 408, NULL, NULL, "", SEND_UNKNOWN, REPLY_RETRY, 0, ""},
    {"throttled as 400", 400, TYPE, "ThrottlingException:http://internal.amazon.com/x/", SAYS("Maximum sending rate exceeded."), SEND_ANSWERED, REPLY_THROTTLED, 1000, "ThrottlingException Maximum sending rate exceeded."},
    {"the day's quota", 400, TYPE, "ThrottlingException", SAYS("Daily message quota exceeded."), SEND_ANSWERED, REPLY_THROTTLED, 3600000, "ThrottlingException Daily message quota exceeded."},
    {"the day's quota as 429", 429, TYPE, "TooManyRequestsException", SAYS("Daily message quota exceeded"), SEND_ANSWERED, REPLY_THROTTLED, 3600000, "TooManyRequestsException Daily message quota exceeded"},
    {"too many", 429, NULL, NULL, "{\"__type\":\"com.amazonaws.ses.v2#TooManyRequestsException\",\"Message\":\"slow\"}", SEND_ANSWERED, REPLY_THROTTLED, 1000, "TooManyRequestsException slow"},
    {"limit", 400, TYPE, "LimitExceededException", "", SEND_ANSWERED, REPLY_THROTTLED, 1000, "LimitExceededException"},
    {"429 without a type", 429, "Retry-After", "9", "", SEND_ANSWERED, REPLY_THROTTLED, 9000, ""},
    {"address", 400, TYPE, "BadRequestException", SAYS("Illegal address"), SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "BadRequestException Illegal address"},
    {"address without a domain", 400, TYPE, "BadRequestException", SAYS("Missing final '@domain'"), SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "BadRequestException Missing final '***@domain'"},
    {"address with a blank", 400, TYPE, "BadRequestException", SAYS("Local address contains control or whitespace"), SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "BadRequestException Local address contains control or whitespace"},
    {"other input", 400, TYPE, "BadRequestException", SAYS("Invalid tag name"), SEND_ANSWERED, REPLY_TERMINAL, 0, "BadRequestException Invalid tag name"},
    {"content", 400, TYPE, "MessageRejected", SAYS("Email content is rejected"), SEND_ANSWERED, REPLY_ELSEWHERE, 0, "MessageRejected Email content is rejected"},
    {"identity", 400, TYPE, "MessageRejected", SAYS("Email address is not verified. The following identities failed the check in region EU-CENTRAL-1: shopping@example.com"), SEND_ANSWERED, REPLY_CONFIG, 0, "MessageRejected Email address is not verified. The following identities failed the check in region EU-CENTRAL-1: sho***@example.com"},
    {"suspended", 400, TYPE, "AccountSuspendedException", "", SEND_ANSWERED, REPLY_CONFIG, 0, "AccountSuspendedException"},
    {"paused", 400, TYPE, "SendingPausedException", "", SEND_ANSWERED, REPLY_CONFIG, 0, "SendingPausedException"},
    {"domain", 400, TYPE, "MailFromDomainNotVerifiedException", "", SEND_ANSWERED, REPLY_CONFIG, 0, "MailFromDomainNotVerifiedException"},
    {"configuration set", 404, TYPE, "NotFoundException", SAYS("x"), SEND_ANSWERED, REPLY_CONFIG, 0, "NotFoundException x"},
    {"clock", 403, TYPE, "InvalidSignatureException", SAYS("Signature expired"), SEND_ANSWERED, REPLY_CONFIG, 0, "InvalidSignatureException Signature expired"},
    {"clock as 400", 400, TYPE, "RequestExpired", "", SEND_ANSWERED, REPLY_CONFIG, 0, "RequestExpired"},
    {"401", 401, NULL, NULL, "", SEND_ANSWERED, REPLY_CONFIG, 0, ""},
    {"403 of a type of its own", 403, TYPE, "SomethingElse", "", SEND_ANSWERED, REPLY_CONFIG, 0, "SomethingElse"},
    {"validation", 400, TYPE, "ValidationError", SAYS("x"), SEND_ANSWERED, REPLY_TERMINAL, 0, "ValidationError x"},
    {"validation, 2", 400, TYPE, "ValidationException", "", SEND_ANSWERED, REPLY_TERMINAL, 0, "ValidationException"},
    {"413", 413, NULL, NULL, "", SEND_ANSWERED, REPLY_TERMINAL, 0, ""},
    {"400 without a type", 400, NULL, NULL, "{\"__type\":7}", SEND_ANSWERED, REPLY_TERMINAL, 0, ""},
};
// clang-format on

static void every_row_of_the_class_table_holds(void **state)
{
    (void)state;
    case_rows(&ses_api, rows, sizeof rows / sizeof *rows);
}

static void an_accepted_mail_has_its_id(void **state)
{
    (void)state;
    case_accepted(
        &ses_api, 200, NULL, NULL,
        "{\"MessageId\":\"010001794e3d1e5c-0f4b8a1c-1a4b-4a8d-8c3a-7d3c1ba3dc00-000000\"}",
        "010001794e3d1e5c-0f4b8a1c-1a4b-4a8d-8c3a-7d3c1ba3dc00-000000");
    case_accepted(&ses_api, 200, NULL, NULL, "", "");
}

static bool quota(int status, const char *body, VendorQuota *ret)
{
    Arena *arena = arena_new(0);
    VendorAnswer answer = {.status = status, .body = str_from(body)};
    bool found = ses_api.quota(&answer, arena, ret);
    arena_free(arena);
    return found;
}

static void get_account_says_the_quota(void **state)
{
    (void)state;
    VendorQuota found = {0};
    assert_true(quota(
        200,
        "{\"SendQuota\":{\"Max24HourSend\":50000.0,\"MaxSendRate\":14.0,"
        "\"SentLast24Hours\":127.0},\"SendingEnabled\":true}",
        &found));
    assert_true(found.per_s == 14 && found.per_day == 50000 && found.used_of_day == 127);
    assert_true(quota(200, "{\"SendQuota\":{\"Max24HourSend\":-1,\"MaxSendRate\":1000}}", &found));
    assert_true(found.per_s == 1000 && found.per_day == 0 && found.used_of_day == 0);
}

static void an_answer_without_a_quota_says_nothing(void **state)
{
    (void)state;
    VendorQuota found = {.per_s = 7};
    assert_false(quota(200, "{}", &found));
    assert_false(quota(200, "{\"SendQuota\":{\"MaxSendRate\":\"14\"}}", &found));
    assert_false(quota(200, "{\"SendQuota\":[14]}", &found));
    assert_false(quota(200, "nonsense", &found));
    assert_false(quota(403, "{\"SendQuota\":{\"MaxSendRate\":14}}", &found));
    assert_true(found.per_s == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_class_table_holds),
        cmocka_unit_test(get_account_says_the_quota),
        cmocka_unit_test(an_answer_without_a_quota_says_nothing),
        cmocka_unit_test(an_accepted_mail_has_its_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
