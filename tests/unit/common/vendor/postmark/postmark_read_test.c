// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/postmark/postmark.h"
#include "tests/unit/common/vendor/vendor_case.h"

#define CODE(number, message) "{\"ErrorCode\":" number ",\"Message\":\"" message "\"}"
#define ASKED(total, nid, attempt)                                                                 \
    "{\"TotalCount\":" total                                                                       \
    ",\"Messages\":[{\"MessageID\":\"0a129aee\",\"Metadata\":{\"nid\":\"" nid                      \
    "\",\"attempt\":\"" attempt "\"}}]}"

// clang-format off
static const CaseRow rows[] = {
    {"maintenance", 422, NULL, NULL, CODE("100", "Maintenance"), SEND_ANSWERED, REPLY_RETRY, 0, "100 Maintenance"},
    {"503", 503, "Retry-After", "7", "", SEND_ANSWERED, REPLY_RETRY, 7000, ""},
    {"500", 500, NULL, NULL, CODE("0", "lost"), SEND_UNKNOWN, REPLY_RETRY, 0, "lost"},
    {"500 with a code", 500, NULL, NULL, CODE("406", "x"), SEND_UNKNOWN, REPLY_RETRY, 0, "406 x"},
    {"502", 502, NULL, NULL, "<html>", SEND_UNKNOWN, REPLY_RETRY, 0, ""},
    {"504", 504, NULL, NULL, "", SEND_UNKNOWN, REPLY_RETRY, 0, ""},
    {"408", 408, NULL, NULL, "", SEND_UNKNOWN, REPLY_RETRY, 0, ""},
    {"429", 429, NULL, NULL, "", SEND_ANSWERED, REPLY_THROTTLED, 1000, ""},
    {"429 as a code", 422, NULL, NULL, CODE("429", "slow"), SEND_ANSWERED, REPLY_THROTTLED, 1000, "429 slow"},
    {"To", 422, NULL, NULL, CODE("300", "Invalid 'To' address: 'bob@@example.org'."), SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "300 Invalid 'To' address: 'bo***@example.org'."},
    {"To parsed", 422, NULL, NULL, CODE("300", "Error parsing 'To': Illegal email domain 'x' in address 'bob@x'."), SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "300 Error parsing 'To': Illegal email domain 'x' in address 'bo***@x'."},
    {"Cc", 422, NULL, NULL, CODE("300", "Error parsing 'Cc': Illegal email"), SEND_ANSWERED, REPLY_TERMINAL, 0, "300 Error parsing 'Cc': Illegal email"},
    {"From", 422, NULL, NULL, CODE("300", "Invalid 'From' address"), SEND_ANSWERED, REPLY_TERMINAL, 0, "300 Invalid 'From' address"},
    {"inactive", 422, NULL, NULL, CODE("406", "Found inactive addresses: robert@example.org.\\n Inactive"), SEND_ANSWERED, REPLY_ELSEWHERE, 0, "406 Found inactive addresses: rob***@example.org.  Inactive"},
    {"attachment", 422, NULL, NULL, CODE("411", "type"), SEND_ANSWERED, REPLY_ELSEWHERE, 0, "411 type"},
    {"token", 401, NULL, NULL, CODE("10", "No Account"), SEND_ANSWERED, REPLY_CONFIG, 0, "10 No Account"},
    {"token on 422", 422, NULL, NULL, CODE("10", "x"), SEND_ANSWERED, REPLY_CONFIG, 0, "10 x"},
    {"signature", 422, NULL, NULL, CODE("400", "x"), SEND_ANSWERED, REPLY_CONFIG, 0, "400 x"},
    {"unconfirmed", 422, NULL, NULL, CODE("401", "x"), SEND_ANSWERED, REPLY_CONFIG, 0, "401 x"},
    {"not allowed", 422, NULL, NULL, CODE("405", "x"), SEND_ANSWERED, REPLY_CONFIG, 0, "405 x"},
    {"pending", 422, NULL, NULL, CODE("412", "x"), SEND_ANSWERED, REPLY_CONFIG, 0, "412 x"},
    {"may not send", 422, NULL, NULL, CODE("413", "x"), SEND_ANSWERED, REPLY_CONFIG, 0, "413 x"},
    {"no JSON of ours", 422, NULL, NULL, CODE("402", "x"), SEND_ANSWERED, REPLY_TERMINAL, 0, "402 x"},
    {"other JSON", 422, NULL, NULL, CODE("403", "x"), SEND_ANSWERED, REPLY_TERMINAL, 0, "403 x"},
    {"JSON required", 422, NULL, NULL, CODE("409", "x"), SEND_ANSWERED, REPLY_TERMINAL, 0, "409 x"},
    {"batch", 422, NULL, NULL, CODE("410", "x"), SEND_ANSWERED, REPLY_TERMINAL, 0, "410 x"},
    {"not listed", 422, NULL, NULL, CODE("1234", "x"), SEND_ANSWERED, REPLY_TERMINAL, 0, "1234 x"},
    {"a rejection with 200", 200, NULL, NULL, CODE("406", "x"), SEND_ANSWERED, REPLY_ELSEWHERE, 0, "406 x"},
    {"firewall", 403, NULL, NULL, "<html>blocked</html>", SEND_ANSWERED, REPLY_RETRY, 0, ""},
    {"413", 413, NULL, NULL, "", SEND_ANSWERED, REPLY_TERMINAL, 0, ""},
    {"redirect", 301, NULL, NULL, "", SEND_ANSWERED, REPLY_CONFIG, 0, ""},
};
// clang-format on

static void every_row_of_the_class_table_holds(void **state)
{
    (void)state;
    case_rows(&postmark_api, rows, sizeof rows / sizeof *rows);
}

static void an_accepted_mail_has_its_id(void **state)
{
    (void)state;
    case_accepted(
        &postmark_api, 200, NULL, NULL,
        "{\"To\":\"receiver@example.com\",\"SubmittedAt\":\"2014-02-17T07:25:01.4178645-05:00\","
        "\"MessageID\":\"0a129aee-e1cd-480d-b08d-4f48548ff48d\",\"ErrorCode\":0,\"Message\":"
        "\"OK\"}",
        "0a129aee-e1cd-480d-b08d-4f48548ff48d");
    case_accepted(&postmark_api, 200, NULL, NULL, "<html>", "");
    case_accepted(&postmark_api, 200, NULL, NULL, "{\"MessageID\":17}", "");
    case_accepted(&postmark_api, 200, NULL, NULL, "{\"MessageID\":\"a\\nb\"}", "");
    case_accepted(&postmark_api, 200, NULL, NULL, "{\"MessageID\":\"a\",\"MessageID\":\"b\"}", "b");
}

static void a_cut_answer_is_judged_by_its_status(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorAnswer answer = {.status = 200, .body = STR("{\"MessageID\":\"a\"}"), .cut = true};
    SendResult result;
    postmark_api.read(&answer, arena, &result);
    assert_int_equal(result.state, SEND_ANSWERED);
    assert_int_equal(result.reply, REPLY_ACCEPTED);
    assert_int_equal(result.vendor_message_id.len, 0);
    arena_free(arena);
}

static int asked(int status, const char *body, SendResult *ret, Arena *arena)
{
    VendorPair none = {STR_EMPTY, STR_EMPTY};
    VendorMail mail = case_mail();
    VendorAnswer answer = case_answer(status, &none, body);
    return postmark_api.asked(&answer, &mail, arena, ret);
}

static void an_answer_to_ask_says_found_or_not_or_neither(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    SendResult result = {0};
    assert_int_equal(asked(200, ASKED("1", CASE_NID, "2"), &result, arena), 1);
    assert_int_equal(result.reply, REPLY_ACCEPTED);
    assert_string_equal(arena_cstr(arena, result.vendor_message_id), "0a129aee");
    assert_int_equal(asked(200, "{\"TotalCount\":0,\"Messages\":[]}", &result, arena), 0);
    assert_int_equal(asked(200, ASKED("1", CASE_NID, "1"), &result, arena), 0);
    // Another page may have it, or it does not say which attempt it is.
    assert_int_equal(asked(200, ASKED("70", CASE_NID, "1"), &result, arena), -1);
    assert_int_equal(asked(200, ASKED("1", CASE_NID, ""), &result, arena), -1);
    assert_int_equal(asked(200, "{\"TotalCount\":1,\"Messages\":[7]}", &result, arena), -1);
    assert_int_equal(asked(200, "{\"TotalCount\":0,\"Messages\":{}}", &result, arena), -1);
    assert_int_equal(asked(500, ASKED("1", CASE_NID, "2"), &result, arena), -1);
    assert_int_equal(asked(200, "<html>", &result, arena), -1);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_class_table_holds),
        cmocka_unit_test(an_accepted_mail_has_its_id),
        cmocka_unit_test(a_cut_answer_is_judged_by_its_status),
        cmocka_unit_test(an_answer_to_ask_says_found_or_not_or_neither),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
