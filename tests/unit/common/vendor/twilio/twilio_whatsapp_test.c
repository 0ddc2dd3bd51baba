// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/twilio/twilio.h"

#include "tests/unit/common/vendor/phone_case.h"

static const VendorPair SETTINGS[] = {{{"from", 4}, {"+14155238886", 12}}};
static const VendorAccount ACCOUNT = {
    .name = {"main", 4},
    .id = {"AC0123", 6},
    .secret = {"token", 5},
    .settings = SETTINGS,
    .setting_count = 1};

#define HEADERS                                                                                    \
    "Authorization: Basic QUMwMTIzOnRva2Vu\n"                                                      \
    "Content-Type: application/x-www-form-urlencoded; charset=utf-8\n"
#define URL "https://api.twilio.com/2010-04-01/Accounts/AC0123/Messages.json"
#define HEAD "To=whatsapp%3A%2B4915112345678&From=whatsapp%3A%2B14155238886"
#define TAIL                                                                                       \
    "&StatusCallback=https%3A%2F%2Fhooks.example.com%2Fv1%2Finbound%2Facme%2Fx%2Fcap%3Fattempt"    \
    "%3Dtok"
#define SID "HX0123456789abcdef0123456789abcdef"

static void a_template_has_its_variables_by_number(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    const Str parameters[] = {STR("42"), STR("\"Zoë\"")};
    VendorMail mail = case_text("");
    mail.reference = STR(SID);
    mail.parameters = parameters;
    mail.parameter_count = 2;
    VendorRequest request;
    case_build(&twilio_whatsapp_api, &mail, &ACCOUNT, arena, &request);
    case_request_is(
        &request, arena, "POST", URL, HEADERS,
        HEAD "&ContentSid=" SID "&ContentVariables=%7B%221%22%3A%2242%22%2C%222%22%3A%22%5C%22Zo"
             "%C3%AB%5C%22%22%7D" TAIL);
    arena_free(arena);
}

static void without_a_template_it_is_free_text(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorMail mail = case_text("Hello");
    mail.expires_at_us = CASE_READ_US + INT64_C(60) * 1000000;
    VendorRequest request;
    case_build(&twilio_whatsapp_api, &mail, &ACCOUNT, arena, &request);
    case_request_is(
        &request, arena, "POST", URL, HEADERS, HEAD "&Body=Hello" TAIL "&ValidityPeriod=60");
    arena_free(arena);
}

static void what_it_cannot_carry_is_named(void **state)
{
    (void)state;
    VendorMail mail = case_text("");
    mail.reference = STR("order_shipped");
    case_refused(
        &twilio_whatsapp_api, &mail, &ACCOUNT, ERROR_PERMANENT,
        "the template's 'reference' is not the SID of a template of Twilio's (HX and 32 digits): "
        "'order_shipped'");
    VendorAccount account = ACCOUNT;
    account.setting_count = 0;
    mail.reference = STR(SID);
    case_refused(
        &twilio_whatsapp_api, &mail, &account, ERROR_CONFIG,
        "the credential 'main' of twilio_whatsapp needs the setting 'from'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_template_has_its_variables_by_number),
        cmocka_unit_test(without_a_template_it_is_free_text),
        cmocka_unit_test(what_it_cannot_carry_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
