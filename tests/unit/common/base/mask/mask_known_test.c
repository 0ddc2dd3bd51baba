// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "common/base/log.h"

static void a_known_address_is_masked_wherever_it_stands(void **state)
{
    (void)state;
    static const char PHONE[] = "+4915177777777";
    static const char URL[] = "https://hooks.slack.com/services/T0/B0/AbCdEfGhIjKlMnOpQrStUvWx";
    static const char TOKEN[] = "dQw4w9WgXcQ:APA91bHun4MxP5egoKMwt2KZFBaFUH-1RYqx";
    static const char *const rows[][3] = {
        {PHONE, "x4915177777777y", "x***y"},
        {PHONE, "%2B4915177777777", "%2B***"},
        {PHONE, "49/151/777 77,777", "***"},
        {PHONE,
         "49\xc2\xa0"
         "151 77777777 off",
         "*** off"},
        {PHONE, "4915177777778 49151 +4", "4915177777778 49151 +4"},
        {PHONE, "cut +49151777", "cut +***"},
        {URL, "no https://hooks.slack.com/services/T0/B0/AbCdEfGhIjKlMnOpQrStUvWx, at all",
         "no ***, at all"},
        {URL, "hooks.slack.com: no T0/B0/abcdefghijklmnopqrstuvwx",
         "hooks.slack.com: no T0/B0/***"},
        {URL, "cut AbCdEfGhI", "cut ***"},
        {URL, "cut AbCdEfG", "cut AbCdEfG"},
        {TOKEN, "token=dQw4w9WgXcQ:APA91bHun4MxP5egoKMwt2KZFBaFUH-1RYqx.", "token=***."},
        {TOKEN, "dQw4w9WgXcQ%3AAPA91bHun4MxP5egoKMwt2KZFBaFUH-1RYqx", "dQw4w9WgXcQ%3A***"},
        {"bob", "user Bob (bob_1, bobby) is gone", "user *** (bob_1, bobby) is gone"},
        {"bob", "bob", "***"},
        {"", "text", "text"},
        {"a", "a a", "a a"},
        {PHONE, "", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[128];
        mask_known(str_from(rows[i][1]), str_from(rows[i][0]), out, sizeof out);
        assert_string_equal(out, rows[i][2]);
    }
    char small[6];
    mask_known(STR("no +4915177777777"), str_from(PHONE), small, sizeof small);
    assert_string_equal(small, "no +*");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_known_address_is_masked_wherever_it_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
