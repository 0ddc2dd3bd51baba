// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/mailgun/mailgun.h"
#include "tests/unit/common/vendor/vendor_case.h"

#define SAYS(message) "{\"message\":\"" message "\"}"
#define EVENT(nid, attempt)                                                                        \
    "{\"event\":\"accepted\",\"user-variables\":{\"nid\":\"" nid "\",\"attempt\":\"" attempt       \
    "\"},\"message\":{\"headers\":{\"message-id\":\"20170807.1@mg.example.com\"}}}"
#define EVENTS(items) "{\"items\":[" items "],\"paging\":{\"next\":\"https://api\"}}"

// clang-format off
static const CaseRow rows[] = {
    {"404 of no API", 404, NULL, NULL, "<html>", SEND_ANSWERED, REPLY_RETRY, 0, ""},
    {"404 of the API", 404, NULL, NULL, SAYS("Domain not found"), SEND_ANSWERED, REPLY_CONFIG, 0, "Domain not found"},
    {"500", 500, NULL, NULL, "", SEND_UNKNOWN, REPLY_RETRY, 0, ""},
    {"502", 502, NULL, NULL, "", SEND_UNKNOWN, REPLY_RETRY, 0, ""},
    {"503", 503, "Retry-After", "3", "", SEND_UNKNOWN, REPLY_RETRY, 3000, ""},
    {"504", 504, NULL, NULL, "", SEND_UNKNOWN, REPLY_RETRY, 0, ""},
    {"408", 408, NULL, NULL, "", SEND_UNKNOWN, REPLY_RETRY, 0, ""},
    {"429", 429, NULL, NULL, SAYS("too many"), SEND_ANSWERED, REPLY_THROTTLED, 0, "too many"},
    {"to", 400, NULL, NULL, SAYS("'to' parameter is not a valid address. please check documentation"), SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "'to' parameter is not a valid address. please check documentation"},
    {"from", 400, NULL, NULL, SAYS("'from' parameter is not a valid address"), SEND_ANSWERED, REPLY_TERMINAL, 0, "'from' parameter is not a valid address"},
    {"its own list", 400, NULL, NULL, SAYS("suppress-bounce: not delivering to robert@example.org"), SEND_ANSWERED, REPLY_ELSEWHERE, 0, "suppress-bounce: not delivering to rob***@example.org"},
    {"400", 400, NULL, NULL, SAYS("x"), SEND_ANSWERED, REPLY_TERMINAL, 0, "x"},
    {"413", 413, NULL, NULL, "", SEND_ANSWERED, REPLY_TERMINAL, 0, ""},
    {"401", 401, NULL, NULL, "Forbidden", SEND_ANSWERED, REPLY_CONFIG, 0, ""},
    {"402", 402, NULL, NULL, "", SEND_ANSWERED, REPLY_CONFIG, 0, ""},
    {"403", 403, NULL, NULL, SAYS("disabled"), SEND_ANSWERED, REPLY_CONFIG, 0, "disabled"},
    {"accepted", 200, NULL, NULL, SAYS("Queued. Thank you."), SEND_ANSWERED, REPLY_ACCEPTED, 0, "Queued. Thank you."},
    {"message of another type", 400, NULL, NULL, "{\"message\":[]}", SEND_ANSWERED, REPLY_TERMINAL, 0, ""},
};
// clang-format on

static void every_row_of_the_class_table_holds(void **state)
{
    (void)state;
    case_rows(&mailgun_api, rows, sizeof rows / sizeof *rows);
}

static void an_accepted_mail_has_its_id_as_callbacks_name_it(void **state)
{
    (void)state;
    case_accepted(
        &mailgun_api, 200, NULL, NULL,
        "{\"id\":\"<20111114174239.25659.5817@samples.mailgun.org>\",\"message\":\"Queued\"}",
        "20111114174239.25659.5817@samples.mailgun.org");
    case_accepted(&mailgun_api, 200, NULL, NULL, "Queued", "");
}

static int asked(int status, const char *body, SendResult *ret, Arena *arena)
{
    VendorPair none = {STR_EMPTY, STR_EMPTY};
    VendorMail mail = case_mail();
    VendorAnswer answer = case_answer(status, &none, body);
    return mailgun_api.asked(&answer, &mail, arena, ret);
}

static void an_answer_to_ask_says_found_or_not_or_neither(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    SendResult result = {0};
    assert_int_equal(
        asked(200, EVENTS(EVENT(CASE_NID, "1") "," EVENT(CASE_NID, "2")), &result, arena), 1);
    assert_int_equal(result.reply, REPLY_ACCEPTED);
    assert_string_equal(arena_cstr(arena, result.vendor_message_id), "20170807.1@mg.example.com");
    assert_int_equal(asked(200, EVENTS(""), &result, arena), 0);
    assert_int_equal(asked(200, EVENTS(EVENT(CASE_NID, "1")), &result, arena), 0);
    assert_int_equal(asked(200, EVENTS("{\"event\":\"accepted\"}"), &result, arena), -1);
    assert_int_equal(asked(404, EVENTS(""), &result, arena), -1);
    assert_int_equal(asked(200, "{\"items\":null}", &result, arena), -1);
    const char *page = EVENT(CASE_NID, "1");
    for (int i = 1; i < MAILGUN_ASK_MAX; i++) {
        page = arena_printf(arena, "%s,%s", page, EVENT(CASE_NID, "1"));
    }
    assert_int_equal(asked(200, arena_printf(arena, EVENTS("%s"), page), &result, arena), -1);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_class_table_holds),
        cmocka_unit_test(an_accepted_mail_has_its_id_as_callbacks_name_it),
        cmocka_unit_test(an_answer_to_ask_says_found_or_not_or_neither),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
