// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/telnyx/telnyx.h"

#include "tests/unit/common/vendor/phone_case.h"

static const VendorPair SETTINGS[] = {
    {{"from", 4}, {"+15005550006", 12}}, {{"messaging_profile", 17}, {"4000eba1", 8}}};
static const VendorAccount ACCOUNT = {
    .name = {"main", 4}, .secret = {"KEY017", 6}, .settings = SETTINGS, .setting_count = 2};

static void a_message_is_json(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorMail mail = case_text("Grüße \"17\"");
    VendorRequest request;
    case_build(&telnyx_api, &mail, &ACCOUNT, arena, &request);
    case_request_is(
        &request, arena, "POST", "https://api.telnyx.com/v2/messages",
        "Authorization: Bearer KEY017\nContent-Type: application/json\n",
        "{\"from\":\"+15005550006\",\"messaging_profile_id\":\"4000eba1\","
        "\"to\":\"+4915112345678\",\"text\":\"Grüße \\\"17\\\"\",\"type\":\"SMS\","
        "\"webhook_url\":\"https://hooks.example.com/v1/inbound/acme/x/cap?attempt=tok\"}");
    arena_free(arena);
}

static void it_needs_a_sender_or_a_profile(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorAccount account = ACCOUNT;
    account.settings = &SETTINGS[1];
    account.setting_count = 1;
    VendorMail mail = case_text("Hello");
    mail.callback_url = STR_EMPTY;
    VendorRequest request;
    case_build(&telnyx_api, &mail, &account, arena, &request);
    assert_string_equal(
        arena_cstr(arena, request.body),
        "{\"messaging_profile_id\":\"4000eba1\",\"to\":\"+4915112345678\",\"text\":\"Hello\","
        "\"type\":\"SMS\"}");
    account.setting_count = 0;
    case_refused(
        &telnyx_api, &mail, &account, ERROR_CONFIG,
        "the credential 'main' of telnyx needs the setting 'from' or 'messaging_profile'");
    arena_free(arena);
}

static void no_key_is_sent_because_messages_declare_none(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorMail mail = case_text("Hello");
    VendorRequest request;
    case_build(&telnyx_api, &mail, &ACCOUNT, arena, &request);
    for (size_t i = 0; i < request.header_count; i++) {
        assert_false(str_eq_nocase(request.headers[i].name, STR("Idempotency-Key")));
    }
    assert_int_equal(telnyx_api.key_known_s, 0);
    arena_free(arena);
}

static void a_text_of_more_than_ten_parts_is_refused(void **state)
{
    (void)state;
    char text[TELNYX_TEXT_MAX + 2];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    VendorMail mail = case_text(text);
    case_refused(
        &telnyx_api, &mail, &ACCOUNT, ERROR_PERMANENT,
        "the message's 'text' has 1531 characters (an emoji counts two), and telnyx takes at most "
        "1530");
    mail = case_text("Hello");
    mail.to.address = STR("4915112345678");
    case_refused(
        &telnyx_api, &mail, &ACCOUNT, ERROR_PERMANENT,
        "the message's 'to' is not a phone number such as +4915112345678");
}

static void a_credential_is_tested_without_sending(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorRequest request;
    Error err = {0};
    assert_true(telnyx_api.test(&ACCOUNT, 0, arena, &request, &err));
    case_request_is(
        &request, arena, "GET", "https://api.telnyx.com/v2/balance",
        "Authorization: Bearer KEY017\n", "");
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_json),
        cmocka_unit_test(it_needs_a_sender_or_a_profile),
        cmocka_unit_test(no_key_is_sent_because_messages_declare_none),
        cmocka_unit_test(a_text_of_more_than_ten_parts_is_refused),
        cmocka_unit_test(a_credential_is_tested_without_sending),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
