// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/vonage/vonage.h"

#include "tests/unit/common/vendor/phone_case.h"

static const VendorPair SETTINGS[] = {{{"from", 4}, {"+447700900001", 13}}};
static const VendorAccount ACCOUNT = {
    .name = {"main", 4},
    .id = {"a1b2c3d", 7},
    .secret = {"secret", 6},
    .settings = SETTINGS,
    .setting_count = 1};

static void a_message_is_a_form(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorMail mail = case_text("Привет & 1");
    mail.expires_at_us = CASE_READ_US + INT64_C(60) * 1000000;
    VendorRequest request;
    case_build(&vonage_api, &mail, &ACCOUNT, arena, &request);
    case_request_is(
        &request, arena, "POST", "https://rest.nexmo.com/sms/json",
        "Content-Type: application/x-www-form-urlencoded; charset=utf-8\n",
        "api_key=a1b2c3d&api_secret=secret&from=447700900001&to=4915112345678&type=unicode&text="
        "%D0%9F%D1%80%D0%B8%D0%B2%D0%B5%D1%82%20%26%201&client-ref=" CASE_NID
        "-2&callback=https%3A%2F%2Fhooks.example.com%2Fv1%2Finbound%2Facme%2Fx%2Fcap&ttl=60000");
    mail = case_text("Hello");
    mail.expires_at_us = CASE_READ_US;
    case_build(&vonage_api, &mail, &ACCOUNT, arena, &request);
    assert_true(str_ends(request.body, STR("&ttl=20000")));
    arena_free(arena);
}

static void a_credential_is_tested_by_the_balance(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorRequest request;
    Error err = {0};
    assert_true(vonage_api.test(&ACCOUNT, 0, arena, &request, &err));
    case_request_is(
        &request, arena, "GET", "https://rest.nexmo.com/account/get-balance",
        "Authorization: Basic YTFiMmMzZDpzZWNyZXQ=\n", "");
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_a_form),
        cmocka_unit_test(a_credential_is_tested_by_the_balance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
