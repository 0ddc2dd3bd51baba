// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/model/template_key.h"

static void the_channel_is_part_of_the_name_and_was_not_always(void **state)
{
    (void)state;
    char out[TEMPLATE_KEY_SIZE];
    TemplateKey found;
    Str whole = template_key_write(out, STR("welcome"), CHANNEL_SMS, STR("1.0.0-rc.1"));
    assert_string_equal(out, "welcome.sms.1_0_0-rc_1");
    assert_true(template_key_parse(whole, &found));
    assert_true(str_eq(found.key, STR("welcome")) && found.channel == CHANNEL_SMS);
    assert_true(str_eq(found.version, STR("1_0_0-rc_1")));
    whole = template_key_write(out, STR("welcome"), CHANNEL_NONE, STR("1.0.0"));
    assert_string_equal(out, "welcome.1_0_0");
    assert_true(template_key_parse(whole, &found));
    assert_true(found.channel == CHANNEL_NONE && str_eq(found.version, STR("1_0_0")));
}

static void what_is_neither_form_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",           "welcome",       "welcome.",        ".1_0_0",
        "welcome..1", "welcome.sms.",  "welcome.fax.1_0", "welcome.sms.1.0.0",
        "a.none.1_0", "a.sms.sms.1_0",
    };
    TemplateKey found;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (template_key_parse(str_from(wrong[i]), &found)) {
            fail_msg("'%s' was taken", wrong[i]);
        }
    }
}

static void a_name_that_is_too_long_is_empty(void **state)
{
    (void)state;
    char out[TEMPLATE_KEY_SIZE];
    char text[TEMPLATE_KEY_SIZE];
    memset(text, 'a', sizeof text);
    Str key = str_of(text, 64);
    assert_int_equal(template_key_write(out, key, CHANNEL_WHATSAPP, key).len, 64 + 10 + 64);
    assert_int_equal(
        template_key_write(out, str_of(text, sizeof text - 2), CHANNEL_NONE, STR("1")).len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_channel_is_part_of_the_name_and_was_not_always),
        cmocka_unit_test(what_is_neither_form_is_refused),
        cmocka_unit_test(a_name_that_is_too_long_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
