// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/vendor_text.h"

#include "common/vendor/twilio/twilio.h"
#include "tests/unit/common/vendor/phone_case.h"

static const VendorPair SETTINGS[] = {
    {{"from", 4}, {"+15005550006, +15005550007,SHOP", 31}}, {{"from_urgent", 11}, {"SHOP-1", 6}}};
static const VendorAccount ACCOUNT = {
    .name = {"main", 4},
    .id = {"AC01", 4},
    .secret = {"secret", 6},
    .settings = SETTINGS,
    .setting_count = 2};

static void a_recipient_always_gets_the_same_of_several_senders(void **state)
{
    (void)state;
    VendorMail mail = case_text("Hello");
    char numbers[300][20];
    size_t used[3] = {0};
    for (size_t i = 0; i < 300; i++) {
        (void)snprintf(numbers[i], sizeof numbers[i], "+49151%08zu", i);
        mail.to.address = str_from(numbers[i]);
        Str sender = vendor_sender(&mail, &ACCOUNT);
        assert_true(str_eq(sender, vendor_sender(&mail, &ACCOUNT)));
        used[0] += str_eq(sender, STR("+15005550006"));
        used[1] += str_eq(sender, STR("+15005550007"));
        used[2] += str_eq(sender, STR("SHOP"));
    }
    assert_int_equal(used[0] + used[1] + used[2], 300);
    for (size_t i = 0; i < 3; i++) {
        assert_in_range(used[i], 60, 140);
    }
    mail.urgent = true;
    assert_true(str_eq(vendor_sender(&mail, &ACCOUNT), STR("SHOP-1")));
    const VendorAccount none = {.name = STR("main")};
    assert_int_equal(vendor_sender(&mail, &none).len, 0);
}

static void refuse(const VendorMail *mail, const VendorAccount *account, const char *text)
{
    Error err = {0};
    assert_false(vendor_check_text(&twilio_api, mail, account, TWILIO_TEXT_MAX, &err));
    assert_string_equal(err.text, text);
}

static void what_cannot_be_carried_is_named(void **state)
{
    (void)state;
    VendorMail mail = case_text("Hello");
    Error err = {0};
    assert_true(vendor_check_text(&twilio_api, &mail, &ACCOUNT, TWILIO_TEXT_MAX, &err));
    static const char *const wrong[] = {"",     "4915112345678",     "+0151123456", "+49 151",
                                        "+491", "+4915112345678901", "a@b.example"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mail.to.address = str_from(wrong[i]);
        refuse(&mail, &ACCOUNT, "the message's 'to' is not a phone number such as +4915112345678");
    }
    mail = case_text("");
    refuse(&mail, &ACCOUNT, "the message's 'text' is empty");
    mail = case_text("\xff");
    refuse(&mail, &ACCOUNT, "the message's 'text' is not UTF-8");
}

static void an_emoji_counts_two_characters(void **state)
{
    (void)state;
    char text[500 * 4 + 1] = "";
    for (size_t i = 0; i < 500; i++) {
        memcpy(text + 4 * i, "\xf0\x9f\x98\x80", 4);
    }
    VendorMail mail = case_text(text);
    Error err = {0};
    assert_true(vendor_check_text(&twilio_api, &mail, &ACCOUNT, 1000, &err));
    assert_false(vendor_check_text(&twilio_api, &mail, &ACCOUNT, 999, &err));
    assert_string_equal(
        err.text, "the message's 'text' has 1000 characters (an emoji counts two), and twilio "
                  "takes at most 999");
}

static void money_is_millionths(void **state)
{
    (void)state;
    assert_int_equal(vendor_money(STR("-0.00750")), 7500);
    assert_int_equal(vendor_money(STR("0.0333")), 33300);
    assert_int_equal(vendor_money(STR("12")), 12000000);
    assert_int_equal(vendor_money(STR("1.23456789")), 1234567);
    static const char *const none[] = {"", "-", "1,5", "1.2.3", "x", "1e5", "9999999999", "--1"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(vendor_money(str_from(none[i])), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recipient_always_gets_the_same_of_several_senders),
        cmocka_unit_test(what_cannot_be_carried_is_named),
        cmocka_unit_test(an_emoji_counts_two_characters),
        cmocka_unit_test(money_is_millionths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
