// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/twilio/twilio.h"

#include "tests/unit/common/vendor/phone_case.h"

static const VendorPair SETTINGS[] = {
    {{"from", 4}, {"+15005550006", 12}}, {{"account", 7}, {"AC02", 4}}};
static const VendorAccount ACCOUNT = {
    .name = {"main", 4},
    .id = {"SK01", 4},
    .secret = {"secret", 6},
    .settings = SETTINGS,
    .setting_count = 2};

static void a_message_is_a_form(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorMail mail = case_text("Grüße & 1+1=2");
    mail.expires_at_us = CASE_READ_US + INT64_C(90) * 1000000;
    VendorRequest request;
    case_build(&twilio_api, &mail, &ACCOUNT, arena, &request);
    case_request_is(
        &request, arena, "POST", "https://api.twilio.com/2010-04-01/Accounts/AC02/Messages.json",
        "Authorization: Basic U0swMTpzZWNyZXQ=\n"
        "Content-Type: application/x-www-form-urlencoded; charset=utf-8\n",
        "To=%2B4915112345678&From=%2B15005550006&Body=Gr%C3%BC%C3%9Fe%20%26%201%2B1%3D2"
        "&StatusCallback=https%3A%2F%2Fhooks.example.com%2Fv1%2Finbound%2Facme%2Fx%2Fcap%3F"
        "attempt%3Dtok&ValidityPeriod=90");
    arena_free(arena);
}

static void a_messaging_service_takes_the_place_of_a_sender(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    const VendorPair settings[] = {{STR("messaging_service"), STR("MG01")}};
    VendorAccount account = {
        .name = STR("main"),
        .id = STR("AC01"),
        .secret = STR("secret"),
        .settings = settings,
        .setting_count = 1};
    VendorMail mail = case_text("Hello");
    mail.callback_url = STR_EMPTY;
    VendorRequest request;
    case_build(&twilio_api, &mail, &account, arena, &request);
    assert_string_equal(
        arena_cstr(arena, request.body), "To=%2B4915112345678&MessagingServiceSid=MG01&Body=Hello");
    account.setting_count = 0;
    case_refused(
        &twilio_api, &mail, &account, ERROR_CONFIG,
        "the credential 'main' of twilio needs the setting 'from' or 'messaging_service'");
    account.id = STR("AC/01");
    case_refused(
        &twilio_api, &mail, &account, ERROR_CONFIG,
        "the setting 'account' of the credential 'main', or without it its id, is not an account's "
        "SID such as AC0123");
    arena_free(arena);
}

static void validity_is_within_what_twilio_takes(void **state)
{
    (void)state;
    static const int64_t left_s[] = {-5, 1, 36000, 100000};
    static const char *const said[] = {"=1", "=1", "=36000", "=36000"};
    for (size_t i = 0; i < sizeof left_s / sizeof *left_s; i++) {
        Arena *arena = arena_new(0);
        VendorMail mail = case_text("Hello");
        mail.expires_at_us = CASE_READ_US + left_s[i] * 1000000;
        VendorRequest request;
        case_build(&twilio_api, &mail, &ACCOUNT, arena, &request);
        assert_true(str_ends(request.body, str_from(said[i])));
        arena_free(arena);
    }
}

static void a_credential_is_tested_and_a_message_asked_for_without_sending(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorRequest request;
    Error err = {0};
    VendorMail mail = case_text("Hello");
    assert_true(twilio_api.test(&ACCOUNT, 0, arena, &request, &err));
    case_request_is(
        &request, arena, "GET", "https://api.twilio.com/2010-04-01/Accounts/AC02.json",
        "Authorization: Basic U0swMTpzZWNyZXQ=\n", "");
    assert_true(twilio_api.ask(&mail, &ACCOUNT, 0, arena, &request, &err));
    case_request_is(
        &request, arena, "GET",
        "https://api.twilio.com/2010-04-01/Accounts/AC02/Messages.json?PageSize=20&To="
        "%2B4915112345678",
        "Authorization: Basic U0swMTpzZWNyZXQ=\n", "");
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_a_form),
        cmocka_unit_test(a_messaging_service_takes_the_place_of_a_sender),
        cmocka_unit_test(validity_is_within_what_twilio_takes),
        cmocka_unit_test(a_credential_is_tested_and_a_message_asked_for_without_sending),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
