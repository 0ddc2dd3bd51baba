// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/common/vendor/vendor_case.h"

enum { MAIL_VENDORS = 6 };

static void each_vendor_is_found_by_its_name(void **state)
{
    (void)state;
    // clang-format off
    static const char *const names[] = {
        "ses", "sendgrid", "mailgun", "postmark", "resend", "sparkpost",
        "twilio",
        "vonage",
        "fcm",
        "apns",
        "webpush",
        "telnyx",
        "meta",
        "slack",
        "discord",
        "teams",
        "twilio_voice",
        "vonage_voice",
        "twilio_whatsapp",
    };
    // clang-format on
    size_t count = 0;
    for (; vendor_at(count) != NULL; count++) {
        const VendorApi *api = vendor_at(count);
        assert_ptr_equal(vendor_find(str_from(api->name)), api);
        assert_true(strlen(api->name) <= VENDOR_NAME_MAX);
        bool mail = count < MAIL_VENDORS;
        assert_int_equal(api->channel == CHANNEL_EMAIL, mail);
        assert_true(api->build != NULL && api->read != NULL);
        // What proves the credential of those without a call is that its key signs; an endpoint's
        // has no secret.
        assert_true(api->test != NULL || api->sign != NULL || api->endpoint);
        assert_true((api->grant == NULL) == (api->granted == NULL));
        bool chooses = api->channel == CHANNEL_PUSH || api->channel == CHANNEL_WEBHOOK;
        assert_true((api->takes != NULL) == chooses && (api->addresses != NULL) == chooses);
        assert_true((api->ask == NULL) == (api->asked == NULL));
        assert_true(api->message_max > 0 && api->recipients_max >= (mail ? 50U : 1U));
    }
    assert_int_equal(count, sizeof names / sizeof *names);
    for (size_t i = 0; i < count; i++) {
        assert_non_null(vendor_find(str_from(names[i])));
    }
    assert_null(vendor_find(STR("smtp")));
    assert_null(vendor_find(STR_EMPTY));
}

static void an_address_of_a_push_is_one_vendors(void **state)
{
    (void)state;
    static const char device[] = "00ffaa11223344556677889900112233445566778899aabbccddeeff00112233";
    static const struct {
        const char *address, *vendor;
    } cases[] = {
        {device, "apns"},
        {"cAFEBABE:APA91bHun4MxP5egoKMwt2KZFBaFUH-1RYqx", "fcm"},
        {"{\"endpoint\":\"https://updates.push.services.mozilla.com/x\"}", "webpush"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t n = 0; vendor_at(n) != NULL; n++) {
            const VendorApi *api = vendor_at(n);
            bool own = strcmp(api->name, cases[i].vendor) == 0;
            assert_true(api->takes == NULL || api->takes(str_from(cases[i].address)) == own);
        }
    }
}

static uint32_t retry_after(const char *value)
{
    const VendorPair header = {STR("retry-after"), str_from(value)};
    VendorAnswer answer = case_answer(429, &header, "");
    return vendor_retry_after_ms(&answer);
}

static void retry_after_is_seconds_or_a_date_and_at_most_a_day(void **state)
{
    (void)state;
    assert_int_equal(retry_after("0"), 0);
    assert_int_equal(retry_after("120"), 120000);
    assert_int_equal(retry_after("999999999999"), 86400000);
    assert_int_equal(retry_after("-1"), 0);
    assert_int_equal(retry_after("soon"), 0);
    assert_int_equal(retry_after("Thu, 26 Nov 2026 20:00:30 GMT"), 30000);
    assert_int_equal(retry_after("Thu, 26 Nov 2026 19:00:00 GMT"), 0);
    assert_int_equal(retry_after("Thu, 26 Nov 406026 20:00:30 GMT"), 0);
    assert_int_equal(retry_after("Fri, 26 Nov 2027 20:00:00 GMT"), 86400000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_vendor_is_found_by_its_name),
        cmocka_unit_test(an_address_of_a_push_is_one_vendors),
        cmocka_unit_test(retry_after_is_seconds_or_a_date_and_at_most_a_day),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
