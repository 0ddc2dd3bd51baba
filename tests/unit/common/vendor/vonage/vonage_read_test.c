// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/vonage/vonage.h"

#include "tests/unit/common/vendor/phone_case.h"

#define SAYS(status)                                                                               \
    "{\"message-count\":\"1\",\"messages\":[{\"status\":\"" status "\",\"error-text\":\"why\"}]}"

// clang-format off
static const CaseRow ROWS[] = {
    {"throttled",   200, NULL, NULL, SAYS("1"),  SEND_ANSWERED, REPLY_THROTTLED,   0, "1 why"},
    {"missing",     200, NULL, NULL, SAYS("2"),  SEND_ANSWERED, REPLY_TERMINAL,    0, "2 why"},
    {"invalid",     200, NULL, NULL, SAYS("3"),  SEND_ANSWERED, REPLY_TERMINAL,    0, "3 why"},
    {"credential",  200, NULL, NULL, SAYS("4"),  SEND_ANSWERED, REPLY_CONFIG,      0, "4 why"},
    {"internal",    200, NULL, NULL, SAYS("5"),  SEND_UNKNOWN,  REPLY_RETRY,       0, "5 why"},
    {"barred",      200, NULL, NULL, SAYS("7"),  SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "7 why"},
    {"credit",      200, NULL, NULL, SAYS("9"),  SEND_ANSWERED, REPLY_CONFIG,      0, "9 why"},
    {"sender",      200, NULL, NULL, SAYS("15"), SEND_ANSWERED, REPLY_ELSEWHERE,   0, "15 why"},
    {"deactivated", 200, NULL, NULL, SAYS("33"), SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "33 why"},
    {"no JSON",     200, NULL, NULL, "x", SEND_UNKNOWN, REPLY_RETRY, 0, "the answer does not say whether the message was taken"},
    {"in part",     200, NULL, NULL, "{\"messages\":[{\"status\":\"1\"},{\"status\":\"0\"}]}", SEND_UNKNOWN, REPLY_RETRY, 0, "some parts of the message were taken, others refused"},
    {"no status",   200, NULL, NULL, "{\"messages\":[]}", SEND_UNKNOWN, REPLY_RETRY, 0, "the answer does not say whether the message was taken"},
    {"credential",  401, NULL, NULL, "x", SEND_ANSWERED, REPLY_CONFIG, 0, ""},
    {"busy",        429, NULL, NULL, "x", SEND_ANSWERED, REPLY_THROTTLED, 0, ""},
    {"uncertain",   500, NULL, NULL, SAYS("0"), SEND_UNKNOWN, REPLY_RETRY, 0, ""},
};
// clang-format on

static void each_status_has_its_class(void **state)
{
    (void)state;
    case_rows(&vonage_api, ROWS, sizeof ROWS / sizeof *ROWS);
}

static void what_was_taken_has_its_parts_and_cost(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorPair none = {STR_EMPTY, STR_EMPTY};
    SendResult result;
    VendorAnswer answer = case_answer(
        200, &none,
        "{\"message-count\":\"2\",\"messages\":[{\"status\":\"0\",\"message-id\":\"0A01\","
        "\"message-price\":\"0.03330000\"},{\"status\":\"0\",\"message-id\":\"0A02\","
        "\"message-price\":\"0.03330000\"}]}");
    vonage_api.read(&answer, arena, &result);
    assert_int_equal(result.reply, REPLY_ACCEPTED);
    assert_true(str_eq(result.vendor_message_id, STR("0A01")));
    assert_int_equal(result.segments, 2);
    assert_int_equal(result.cost_micros, 66600);
    assert_true(str_eq(result.currency, STR("EUR")));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_status_has_its_class),
        cmocka_unit_test(what_was_taken_has_its_parts_and_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
