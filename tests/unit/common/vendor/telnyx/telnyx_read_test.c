// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/telnyx/telnyx.h"

#include "tests/unit/common/vendor/phone_case.h"

#define SAYS(code) "{\"errors\":[{\"code\":\"" code "\",\"title\":\"t\",\"detail\":\"why\"}]}"
#define ABOUT(code, field)                                                                         \
    "{\"errors\":[{\"code\":\"" code "\",\"title\":\"why\",\"source\":{\"pointer\":\"" field       \
    "\"}}]}"

// clang-format off
static const CaseRow ROWS[] = {
    {"no number",      400, NULL, NULL, SAYS("40310"), SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "40310 why"},
    {"to is none",     422, NULL, NULL, ABOUT("10002", "/to"), SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "10002 why"},
    {"from is none",   422, NULL, NULL, ABOUT("10016", "/from"), SEND_ANSWERED, REPLY_CONFIG, 0, "10016 why"},
    {"which is none",  422, NULL, NULL, SAYS("10002"), SEND_ANSWERED, REPLY_TERMINAL,    0, "10002 why"},
    {"opted out",      400, NULL, NULL, SAYS("40300"), SEND_ANSWERED, REPLY_TERMINAL,    0, "40300 why"},
    {"another region", 400, NULL, NULL, SAYS("40309"), SEND_ANSWERED, REPLY_ELSEWHERE,   0, "40309 why"},
    {"not registered", 400, NULL, NULL, SAYS("40010"), SEND_ANSWERED, REPLY_ELSEWHERE,   0, "40010 why"},
    {"sender",         400, NULL, NULL, SAYS("40305"), SEND_ANSWERED, REPLY_CONFIG,      0, "40305 why"},
    {"spend limit",    400, NULL, NULL, SAYS("40333"), SEND_ANSWERED, REPLY_CONFIG,      0, "40333 why"},
    {"credential",     401, NULL, NULL, SAYS("10009"), SEND_ANSWERED, REPLY_CONFIG,      0, "10009 why"},
    {"too fast",       429, "Retry-After", "3", SAYS("10011"), SEND_ANSWERED, REPLY_THROTTLED, 3000, "10011 why"},
    {"queue full",     403, NULL, NULL, SAYS("40318"), SEND_ANSWERED, REPLY_THROTTLED,   0, "40318 why"},
    {"too long",       400, NULL, NULL, SAYS("40302"), SEND_ANSWERED, REPLY_TERMINAL,    0, "40302 why"},
    {"unlisted",       422, NULL, NULL, SAYS("99999"), SEND_ANSWERED, REPLY_TERMINAL,    0, "99999 why"},
    {"no JSON",        400, NULL, NULL, "x",           SEND_ANSWERED, REPLY_TERMINAL,    0, ""},
    {"busy",           503, NULL, NULL, "x",           SEND_ANSWERED, REPLY_RETRY,       0, ""},
    {"uncertain",      500, NULL, NULL, SAYS("10007"), SEND_UNKNOWN,  REPLY_RETRY,       0, "10007 why"},
    {"uncertain still", 504, NULL, NULL, SAYS("40310"), SEND_UNKNOWN, REPLY_RETRY,       0, "40310 why"},
};
// clang-format on

static void each_code_has_its_class(void **state)
{
    (void)state;
    case_rows(&telnyx_api, ROWS, sizeof ROWS / sizeof *ROWS);
}

static SendResult taken(const char *body, Arena *arena)
{
    VendorPair none = {STR_EMPTY, STR_EMPTY};
    VendorAnswer answer = case_answer(200, &none, body);
    SendResult result;
    memset(&result, 0xff, sizeof result);
    telnyx_api.read(&answer, arena, &result);
    assert_int_equal(result.state, SEND_ANSWERED);
    assert_int_equal(result.reply, REPLY_ACCEPTED);
    return result;
}

static void what_was_taken_has_its_parts_and_cost(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    SendResult result = taken(
        "{\"data\":{\"record_type\":\"message\",\"id\":\"40385f64\",\"parts\":2,"
        "\"cost\":{\"amount\":\"0.0051\",\"currency\":\"USD\"},\"to\":[{\"status\":\"queued\"}]}}",
        arena);
    assert_true(str_eq(result.vendor_message_id, STR("40385f64")));
    assert_int_equal(result.segments, 2);
    assert_int_equal(result.cost_micros, 5100);
    assert_true(str_eq(result.currency, STR("USD")));
    result = taken("{\"data\":{\"id\":\"1\",\"parts\":-1,\"cost\":null}}", arena);
    assert_int_equal(result.segments, 0);
    assert_int_equal(result.cost_micros, 0);
    assert_int_equal(result.currency.len, 0);
    result = taken("{\"data\":", arena); // cut
    assert_int_equal(result.vendor_message_id.len, 0);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_code_has_its_class),
        cmocka_unit_test(what_was_taken_has_its_parts_and_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
