// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "services/dispatcher/unknown.h"

static void one_word_is_for_every_channel(void **state)
{
    (void)state;
    UnknownPolicies policies;
    assert_true(unknown_policies_parse(STR("park"), &policies, NULL));
    for (int channel = 0; channel < CHANNEL_COUNT; channel++) {
        assert_int_equal(policies.of[channel], UNKNOWN_PARK);
    }
    assert_true(unknown_policies_parse(STR("resend"), &policies, NULL));
    assert_int_equal(policies.of[CHANNEL_EMAIL], UNKNOWN_RESEND);
}

static void each_channel_has_its_own_and_the_others_resend(void **state)
{
    (void)state;
    UnknownPolicies policies;
    assert_true(unknown_policies_parse(STR("email=park, sms=resend,voice=park"), &policies, NULL));
    assert_int_equal(policies.of[CHANNEL_EMAIL], UNKNOWN_PARK);
    assert_int_equal(policies.of[CHANNEL_SMS], UNKNOWN_RESEND);
    assert_int_equal(policies.of[CHANNEL_VOICE], UNKNOWN_PARK);
    assert_int_equal(policies.of[CHANNEL_PUSH], UNKNOWN_RESEND);
}

static void anything_else_is_refused_by_name(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"", "a part does not have the form <channel>=<policy>"},
        {"Park", "a part does not have the form <channel>=<policy>"},
        {"email", "a part does not have the form <channel>=<policy>"},
        {"email=park,", "a part does not have the form <channel>=<policy>"},
        {"fax=park", "a part does not have the form <channel>=<policy>"},
        {"email=drop", "a policy is neither resend nor park"},
        {"email=", "a policy is neither resend nor park"},
        {"email=park,email=resend", "a channel is named twice"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        UnknownPolicies policies = {{[CHANNEL_VOICE] = UNKNOWN_PARK}};
        Error err = {0};
        assert_false(unknown_policies_parse(str_from(bad[i][0]), &policies, &err));
        assert_int_equal(err.kind, ERROR_CONFIG);
        assert_non_null(strstr(err.text, "STENTOR_DISPATCHER_UNKNOWN is '"));
        assert_non_null(strstr(err.text, "email=park,sms=resend"));
        if (strstr(err.text, bad[i][1]) == NULL) {
            fail_msg("'%s': %s", bad[i][0], err.text);
        }
        assert_int_equal(policies.of[CHANNEL_VOICE], UNKNOWN_PARK); // untouched
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_word_is_for_every_channel),
        cmocka_unit_test(each_channel_has_its_own_and_the_others_resend),
        cmocka_unit_test(anything_else_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
