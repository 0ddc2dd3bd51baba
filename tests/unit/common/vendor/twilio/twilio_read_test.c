// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/twilio/twilio.h"

#include "tests/unit/common/vendor/phone_case.h"

#define SAYS(code) "{\"code\":" code ",\"message\":\"why\",\"status\":400}"

// clang-format off
static const CaseRow ROWS[] = {
    {"no phone number", 400, NULL, NULL, SAYS("21211"), SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "21211 why"},
    {"no mobile one",   400, NULL, NULL, SAYS("21614"), SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "21614 why"},
    {"another region",  400, NULL, NULL, SAYS("21408"), SEND_ANSWERED, REPLY_ELSEWHERE,   0, "21408 why"},
    {"out of reach",    400, NULL, NULL, SAYS("21612"), SEND_ANSWERED, REPLY_ELSEWHERE,   0, "21612 why"},
    {"opted out",       400, NULL, NULL, SAYS("21610"), SEND_ANSWERED, REPLY_TERMINAL,    0, "21610 why"},
    {"too long",        400, NULL, NULL, SAYS("21617"), SEND_ANSWERED, REPLY_TERMINAL,    0, "21617 why"},
    {"sender",          400, NULL, NULL, SAYS("21606"), SEND_ANSWERED, REPLY_CONFIG,      0, "21606 why"},
    {"not the account's", 400, NULL, NULL, SAYS("21659"), SEND_ANSWERED, REPLY_CONFIG,    0, "21659 why"},
    {"credential",      401, NULL, NULL, SAYS("20003"), SEND_ANSWERED, REPLY_CONFIG,      0, "20003 why"},
    {"concurrency",     429, NULL, NULL, SAYS("20429"), SEND_ANSWERED, REPLY_THROTTLED,   0, "20429 why"},
    {"with a time",     429, "Retry-After", "3", SAYS("20429"), SEND_ANSWERED, REPLY_THROTTLED, 3000, "20429 why"},
    {"unlisted",        400, NULL, NULL, SAYS("29999"), SEND_ANSWERED, REPLY_TERMINAL,    0, "29999 why"},
    {"no JSON",         400, NULL, NULL, "x",           SEND_ANSWERED, REPLY_TERMINAL,    0, ""},
    {"busy",            503, NULL, NULL, SAYS("20503"), SEND_ANSWERED, REPLY_RETRY,       0, "20503 why"},
    {"uncertain",       500, NULL, NULL, SAYS("20500"), SEND_UNKNOWN,  REPLY_RETRY,       0, "20500 why"},
    {"uncertain still", 500, NULL, NULL, SAYS("21211"), SEND_UNKNOWN,  REPLY_RETRY,       0, "21211 why"},
};
// clang-format on

static void each_code_has_its_class(void **state)
{
    (void)state;
    case_rows(&twilio_api, ROWS, sizeof ROWS / sizeof *ROWS);
}

static void what_was_taken_has_its_segments_and_cost(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorPair none = {STR_EMPTY, STR_EMPTY};
    SendResult result;
    VendorAnswer answer = case_answer(
        201, &none,
        "{\"sid\":\"SM0123\",\"status\":\"queued\",\"num_segments\":\"2\",\"price\":\"-0.00750\","
        "\"price_unit\":\"USD\",\"error_code\":null}");
    twilio_api.read(&answer, arena, &result);
    assert_int_equal(result.reply, REPLY_ACCEPTED);
    assert_true(str_eq(result.vendor_message_id, STR("SM0123")));
    assert_int_equal(result.segments, 2);
    assert_int_equal(result.cost_micros, 7500);
    assert_true(str_eq(result.currency, STR("USD")));
    answer = case_answer(
        201, &none,
        "{\"sid\":\"SM0123\",\"num_segments\":\"-1\",\"price\":null,\"price_unit\":\"USD\"}");
    twilio_api.read(&answer, arena, &result);
    assert_int_equal(result.segments, 0);
    assert_int_equal(result.cost_micros, 0);
    assert_int_equal(result.currency.len, 0);
    arena_free(arena);
}

// "none", "one", "unclear"
static const char *asked(const char *messages, int64_t since_us)
{
    Arena *arena = arena_new(0);
    VendorPair none = {STR_EMPTY, STR_EMPTY};
    SendResult result = {0};
    VendorMail mail = case_text("Hello");
    mail.since_us = since_us;
    VendorAnswer answer =
        case_answer(200, &none, arena_printf(arena, "{\"messages\":[%s]}", messages));
    int found = twilio_api.asked(&answer, &mail, arena, &result);
    assert_true(found != 1 || str_eq(result.vendor_message_id, STR("SM1")));
    arena_free(arena);
    return found == 1 ? "one" : found == 0 ? "none" : "unclear";
}

#define MESSAGE(sid, text, time)                                                                   \
    "{\"sid\":\"" sid "\",\"body\":\"" text "\",\"date_created\":\"Thu, 26 Nov 2026 " time         \
    " +0000\"}"

static void a_message_is_found_by_its_text_since_it_was_sent(void **state)
{
    (void)state;
    int64_t since_us = CASE_READ_US; // 20:00:00
    assert_string_equal(asked("", since_us), "none");
    assert_string_equal(asked(MESSAGE("SM1", "Hello", "20:00:01"), since_us), "one");
    assert_string_equal(asked(MESSAGE("SM1", "Hallo", "20:00:01"), since_us), "none");
    assert_string_equal(asked(MESSAGE("SM1", "Hello", "19:58:00"), since_us), "none");
    assert_string_equal(
        asked(
            MESSAGE("SM2", "Hello", "20:00:05") "," MESSAGE("SM1", "Hello", "20:00:01"), since_us),
        "unclear");
    assert_string_equal(
        asked(
            MESSAGE("SM1", "Hello", "20:00:05") "," MESSAGE("SM0", "Hello", "19:00:01"), since_us),
        "one");
    assert_string_equal(asked("{\"sid\":\"SM1\",\"body\":\"Hello\"}", since_us), "unclear");
    assert_string_equal(asked(MESSAGE("SM1", "Hello", "20:00:01"), 0), "unclear");
}

static void a_full_page_of_later_messages_says_nothing(void **state)
{
    (void)state;
    char page[TWILIO_ASK_MAX * 128] = "";
    size_t used = 0;
    for (size_t i = 0; i < TWILIO_ASK_MAX; i++) {
        used += (size_t)snprintf(
            page + used, sizeof page - used, "%s%s", i > 0 ? "," : "",
            MESSAGE("SM9", "other", "20:01:00"));
    }
    assert_string_equal(asked(page, CASE_READ_US), "unclear");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_code_has_its_class),
        cmocka_unit_test(what_was_taken_has_its_segments_and_cost),
        cmocka_unit_test(a_message_is_found_by_its_text_since_it_was_sent),
        cmocka_unit_test(a_full_page_of_later_messages_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
