// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/model/channel_set.h"

static void names_with_commas_are_a_set_and_its_text_names_them_in_order(void **state)
{
    (void)state;
    ChannelSet set = 0;
    char text[CHANNEL_SET_TEXT_SIZE];
    assert_true(channel_set_parse(STR("sms, email"), &set, NULL));
    channel_set_text(set, text);
    assert_string_equal(text, "email, sms");
    assert_true(channel_set_has(set, CHANNEL_EMAIL) && channel_set_has(set, CHANNEL_SMS));
    assert_false(channel_set_has(set, CHANNEL_PUSH) || channel_set_has(set, CHANNEL_NONE));
    channel_set_text(~0U, text); // the longest
    assert_string_equal(text, "email, sms, whatsapp, push, inapp, voice, webhook");
}

static void a_name_that_is_no_channel_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", ",", "email,", "pigeon", "email sms"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ChannelSet set = 0;
        Error err = {0};
        assert_false(channel_set_parse(str_from(wrong[i]), &set, &err));
        assert_int_equal(err.kind, ERROR_CONFIG);
        assert_non_null(strstr(err.text, "email"));
    }
}

static void a_channel_without_a_vendor_is_warned_of_by_its_name_and_the_option(void **state)
{
    (void)state;
    char text[CHANNEL_WARNING_SIZE] = "";
    assert_false(channel_set_warn(1U << CHANNEL_EMAIL, CHANNEL_EMAIL, text));
    assert_string_equal(text, "");
    assert_true(channel_set_warn(~0U & ~(1U << CHANNEL_WHATSAPP), CHANNEL_WHATSAPP, text));
    assert_non_null(
        strstr(text, "no vendor delivers 'whatsapp' (STENTOR_INGEST_CHANNELS: email, sms,"));
    assert_non_null(
        strstr(text, "fails as no_vendor " CHANNEL_HINT)); // also with the longest names
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_with_commas_are_a_set_and_its_text_names_them_in_order),
        cmocka_unit_test(a_name_that_is_no_channel_is_refused),
        cmocka_unit_test(a_channel_without_a_vendor_is_warned_of_by_its_name_and_the_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
