// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/twilio/twilio_voice.h"

#include "tests/unit/common/vendor/phone_case.h"

static const VendorPair SETTINGS[] = {{{"from", 4}, {"+15005550006", 12}}};
static const VendorAccount ACCOUNT = {
    .name = {"main", 4},
    .id = {"AC02", 4},
    .secret = {"secret", 6},
    .settings = SETTINGS,
    .setting_count = 1};

static void a_call_is_a_form_with_its_script(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorMail mail = case_text("<b>4711</b> & more");
    mail.locale = STR("de-AT");
    VendorRequest request;
    case_build(&twilio_voice_api, &mail, &ACCOUNT, arena, &request);
    case_request_is(
        &request, arena, "POST", "https://api.twilio.com/2010-04-01/Accounts/AC02/Calls.json",
        "Authorization: Basic QUMwMjpzZWNyZXQ=\n"
        "Content-Type: application/x-www-form-urlencoded; charset=utf-8\n",
        "To=%2B4915112345678&From=%2B15005550006&Twiml=%3CResponse%3E%3CSay%20language%3D%22de-DE"
        "%22%3E%26lt%3Bb%26gt%3B4711%26lt%3B%2Fb%26gt%3B%20%26amp%3B%20more%3C%2FSay%3E%3C%2F"
        "Response%3E&MachineDetection=Enable&Timeout=30&StatusCallback=https%3A%2F%2Fhooks."
        "example.com%2Fv1%2Finbound%2Facme%2Fx%2Fcap%3Fattempt%3Dtok"
        "&StatusCallbackEvent=completed");
    mail = case_text("Hello");
    mail.callback_url = STR_EMPTY;
    case_build(&twilio_voice_api, &mail, &ACCOUNT, arena, &request);
    assert_string_equal(
        arena_cstr(arena, request.body),
        "To=%2B4915112345678&From=%2B15005550006&Twiml=%3CResponse%3E%3CSay%3EHello%3C%2FSay%3E"
        "%3C%2FResponse%3E&MachineDetection=Enable&Timeout=30");
    arena_free(arena);
}

static void a_script_is_at_most_4000_characters_of_twiml(void **state)
{
    (void)state;
    enum { FRAME = 32, LONGEST = TWILIO_TWIML_MAX - FRAME }; // <Response><Say></Say></Response>
    char text[TWILIO_TWIML_MAX + 8];
    Arena *arena = arena_new(0);
    memset(text, 'x', sizeof text);
    text[LONGEST] = '\0';
    VendorMail mail = case_text(text);
    mail.callback_url = STR_EMPTY;
    VendorRequest request;
    case_build(&twilio_voice_api, &mail, &ACCOUNT, arena, &request);
    text[0] = '&';
    case_refused(
        &twilio_voice_api, &mail, &ACCOUNT, ERROR_PERMANENT,
        "the message's 'text' makes 4004 characters of TwiML ('<', '>' and '&' count 4 and 5), and "
        "twilio_voice takes at most 4000");
    memset(text, 'x', TWILIO_TWIML_MAX + 1);
    text[TWILIO_TWIML_MAX + 1] = '\0';
    mail = case_text(text);
    case_refused(
        &twilio_voice_api, &mail, &ACCOUNT, ERROR_PERMANENT,
        "the message's 'text' has 4001 characters (an emoji counts two), and twilio_voice takes at "
        "most 4000");
    VendorAccount account = ACCOUNT;
    account.setting_count = 0;
    case_refused(
        &twilio_voice_api, &mail, &account, ERROR_CONFIG,
        "the credential 'main' of twilio_voice needs the setting 'from'");
    arena_free(arena);
}

#define SAYS(code) "{\"code\":" code ",\"message\":\"why\",\"status\":400}"

// clang-format off
static const CaseRow ROWS[] = {
    {"no phone number", 400, NULL, NULL, SAYS("21211"), SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "21211 why"},
    {"out of reach",    400, NULL, NULL, SAYS("21214"), SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "21214 why"},
    {"another region",  400, NULL, NULL, SAYS("21215"), SEND_ANSWERED, REPLY_ELSEWHERE,   0, "21215 why"},
    {"sender",          400, NULL, NULL, SAYS("21210"), SEND_ANSWERED, REPLY_CONFIG,      0, "21210 why"},
    {"of messages too", 400, NULL, NULL, SAYS("21212"), SEND_ANSWERED, REPLY_CONFIG,      0, "21212 why"},
    {"credential",      401, NULL, NULL, SAYS("20003"), SEND_ANSWERED, REPLY_CONFIG,      0, "20003 why"},
    {"calls at once",   400, NULL, NULL, SAYS("10004"), SEND_ANSWERED, REPLY_THROTTLED,   0, "10004 why"},
    {"too fast",        429, "Retry-After", "3", SAYS("20429"), SEND_ANSWERED, REPLY_THROTTLED, 3000, "20429 why"},
    {"unlisted",        400, NULL, NULL, SAYS("29999"), SEND_ANSWERED, REPLY_TERMINAL,    0, "29999 why"},
    {"uncertain",       500, NULL, NULL, SAYS("21214"), SEND_UNKNOWN,  REPLY_RETRY,       0, "21214 why"},
};
// clang-format on

static void each_code_has_its_class(void **state)
{
    (void)state;
    case_rows(&twilio_voice_api, ROWS, sizeof ROWS / sizeof *ROWS);
    case_accepted(
        &twilio_voice_api, 201, "", "", "{\"sid\":\"CA0123\",\"status\":\"queued\"}", "CA0123");
}

static void a_credential_is_tested_without_a_call(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorRequest request;
    Error err = {0};
    assert_true(twilio_voice_api.test(&ACCOUNT, 0, arena, &request, &err));
    case_request_is(
        &request, arena, "GET", "https://api.twilio.com/2010-04-01/Accounts/AC02.json",
        "Authorization: Basic QUMwMjpzZWNyZXQ=\n", "");
    assert_null(twilio_voice_api.ask);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_a_form_with_its_script),
        cmocka_unit_test(a_script_is_at_most_4000_characters_of_twiml),
        cmocka_unit_test(each_code_has_its_class),
        cmocka_unit_test(a_credential_is_tested_without_a_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
