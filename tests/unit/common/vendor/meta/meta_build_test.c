// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/meta/meta.h"

#include "tests/unit/common/vendor/phone_case.h"

static const VendorPair SETTINGS[] = {{{"phone_number_id", 15}, {"106540352242922", 15}}};
static const VendorAccount ACCOUNT = {
    .name = {"main", 4}, .secret = {"EAAJB", 5}, .settings = SETTINGS, .setting_count = 1};

#define HEADERS "Authorization: Bearer EAAJB\nContent-Type: application/json\n"
#define URL "https://graph.facebook.com/v23.0/106540352242922/messages"
#define HEAD                                                                                       \
    "{\"messaging_product\":\"whatsapp\",\"recipient_type\":\"individual\",\"to\":"                \
    "\"4915112345678\","
#define TAIL ",\"biz_opaque_callback_data\":\"" CASE_NID "-2\"}"

static VendorMail templated(const char *reference, const Str *parameters, size_t count)
{
    VendorMail mail = case_text("");
    mail.locale = STR("de-AT");
    mail.reference = str_from(reference);
    mail.parameters = parameters;
    mail.parameter_count = count;
    return mail;
}

static void a_template_has_its_language_and_parameters(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    const Str parameters[] = {STR("42"), STR("\"Zoë\"")};
    VendorMail mail = templated("order_shipped", parameters, 2);
    VendorRequest request;
    case_build(&meta_api, &mail, &ACCOUNT, arena, &request);
    case_request_is(
        &request, arena, "POST", URL, HEADERS,
        HEAD "\"type\":\"template\",\"template\":{\"name\":\"order_shipped\",\"language\":{"
             "\"code\":\"de_AT\"},\"components\":[{\"type\":\"body\",\"parameters\":[{\"type\":"
             "\"text\",\"text\":\"42\"},{\"type\":\"text\",\"text\":\"\\\"Zoë\\\"\"}]}]}" TAIL);
    mail = templated("hello_world", NULL, 0);
    case_build(&meta_api, &mail, &ACCOUNT, arena, &request);
    case_request_is(
        &request, arena, "POST", URL, HEADERS,
        HEAD "\"type\":\"template\",\"template\":{\"name\":\"hello_world\",\"language\":{"
             "\"code\":\"de_AT\"}}" TAIL);
    arena_free(arena);
}

static void a_header_and_buttons_have_their_own(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    const Str parameters[] = {STR("h"), STR("b"), STR("x"), STR("y")};
    VendorMail mail = templated("login;header;button;button", parameters, 4);
    VendorRequest request;
    case_build(&meta_api, &mail, &ACCOUNT, arena, &request);
    case_request_is(
        &request, arena, "POST", URL, HEADERS,
        HEAD "\"type\":\"template\",\"template\":{\"name\":\"login\",\"language\":{\"code\":"
             "\"de_AT\"},\"components\":[{\"type\":\"header\",\"parameters\":[{\"type\":\"text\","
             "\"text\":\"h\"}]},{\"type\":\"body\",\"parameters\":[{\"type\":\"text\",\"text\":"
             "\"b\"}]},{\"type\":\"button\",\"parameters\":[{\"type\":\"text\",\"text\":\"x\"}],"
             "\"sub_type\":\"url\",\"index\":\"0\"},{\"type\":\"button\",\"parameters\":[{"
             "\"type\":\"text\",\"text\":\"y\"}],\"sub_type\":\"url\",\"index\":\"1\"}]}" TAIL);
    mail.parameter_count = 2;
    case_refused(
        &meta_api, &mail, &ACCOUNT, ERROR_PERMANENT,
        "the template 'login' has 2 'parameters', and its header and buttons need 3");
    arena_free(arena);
}

static void without_a_template_it_is_free_text(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorMail mail = case_text("Hello");
    VendorRequest request;
    case_build(&meta_api, &mail, &ACCOUNT, arena, &request);
    case_request_is(
        &request, arena, "POST", URL, HEADERS,
        HEAD "\"type\":\"text\",\"text\":{\"preview_url\":false,\"body\":\"Hello\"}" TAIL);
    arena_free(arena);
}

static void what_it_cannot_carry_is_named(void **state)
{
    (void)state;
    static const char *const references[] = {
        "Order", "order;footer", "order;button;header", ";", "order;header;header"};
    for (size_t i = 0; i < sizeof references / sizeof *references; i++) {
        Arena *arena = arena_new(0);
        VendorMail mail = templated(references[i], NULL, 0);
        case_refused(
            &meta_api, &mail, &ACCOUNT, ERROR_PERMANENT,
            arena_printf(
                arena,
                "the template's 'reference' is not the name of a template of Meta's (a-z 0-9 '_'), "
                "with ';header' or ';button' behind it where a parameter is theirs: '%s'",
                references[i]));
        arena_free(arena);
    }
    const Str parameters[] = {STR("a"), STR_EMPTY};
    VendorMail mail = templated("order", parameters, 2);
    case_refused(
        &meta_api, &mail, &ACCOUNT, ERROR_PERMANENT,
        "'parameters[1]' of the template 'order' is empty");
    mail = case_text("Hello");
    mail.to.address = STR("bob@example.com");
    case_refused(
        &meta_api, &mail, &ACCOUNT, ERROR_PERMANENT,
        "the message's 'to' is not a phone number such as +4915112345678");
    const VendorPair wrong[] = {
        {STR("phone_number_id"), STR("1/2")}, {STR("phone_number_id"), STR("1")}};
    VendorAccount account = ACCOUNT;
    account.settings = wrong;
    mail = case_text("Hello");
    case_refused(
        &meta_api, &mail, &account, ERROR_CONFIG,
        "the setting 'phone_number_id' of the credential 'main' of meta is not the number's id "
        "(digits)");
    const VendorPair versions[] = {{STR("phone_number_id"), STR("1")}, {STR("version"), STR("23")}};
    account.settings = versions;
    account.setting_count = 2;
    case_refused(
        &meta_api, &mail, &account, ERROR_CONFIG,
        "the setting 'version' of the credential 'main' of meta is not one such as v23.0");
}

static void a_credential_is_tested_by_the_number(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorRequest request;
    Error err = {0};
    assert_true(meta_api.test(&ACCOUNT, 0, arena, &request, &err));
    case_request_is(
        &request, arena, "GET", "https://graph.facebook.com/v23.0/106540352242922?fields=id",
        "Authorization: Bearer EAAJB\n", "");
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_template_has_its_language_and_parameters),
        cmocka_unit_test(a_header_and_buttons_have_their_own),
        cmocka_unit_test(without_a_template_it_is_free_text),
        cmocka_unit_test(what_it_cannot_carry_is_named),
        cmocka_unit_test(a_credential_is_tested_by_the_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
