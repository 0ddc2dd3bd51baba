// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "common/base/log.h"

static void an_address_shows_three_characters_and_its_domain(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"alice@example.com", "ali***@example.com"},
        {"al@example.com", "al***@example.com"},
        {"@example.com", "***@example.com"},
        {"\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f@example.com", "\xc3\xa4\xc3\xb6\xc3\xbc***@example.com"},
        {"\"a@b\"@example.com", "\"a@***@example.com"},
        {"+4915112345678", "+49***"},
        {"", "***"},
        {"https://hooks.slack.com/services/T0/B0/x@y", "htt***"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[64];
        mask_address(str_from(rows[i][0]), out, sizeof out);
        assert_string_equal(out, rows[i][1]);
    }
}

static void what_does_not_fit_is_left_out(void **state)
{
    (void)state;
    char out[8];
    mask_address(STR("alice@example.com"), out, sizeof out);
    assert_string_equal(out, "ali***@");
    mask_addresses(STR("to alice@example.com"), out, sizeof out);
    assert_string_equal(out, "to ali*");
}

static void addresses_in_a_text_are_masked(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"550 5.1.1 <alice.example@example.com>: user unknown",
         "550 5.1.1 <ali***@example.com>: user unknown"},
        {"alice@a.org bob.b@b.org", "ali***@a.org bob***@b.org"},
        {"no address @ here", "no address @ here"},
        {"Invalid 'To' address: 'alice@@a.org', bob@@",
         "Invalid 'To' address: 'al***@a.org', bob@@"},
        {"bounce+alice=example.com@mx.org", "bou***@mx.org"},
        {"\"alice smith\"@example.com gone", "\"al***@example.com gone"},
        {"(alice@[192.0.2.1])", "(ali***@[192.0.2.1])"},
        {"@@", "@@"},
        {"a@b@c", "a***@b@c"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[128];
        mask_addresses(str_from(rows[i][0]), out, sizeof out);
        assert_string_equal(out, rows[i][1]);
    }
}

static void phone_numbers_in_a_text_are_masked(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"The 'To' number +4915177777777 is not a valid phone number",
         "The 'To' number +49*** is not a valid phone number"},
        {"to 4915177777777.", "to 491***."},
        {"(+49 151 7777 7777)", "(+49***)"},
        {"+49 (0)151-77.77 77 77", "+49***"},
        {"+(49) 151 777777", "+(4***"},
        {"0151 77 77 77 77 is off", "015*** is off"},
        {"(555) 123-4567", "(555***"},
        {"555.123.4567, 555-123-4567", "555***, 555***"},
        {"tel:+4915177777777;to=4915177777777", "tel:+49***;to=491***"},
        {"21211:4915177777777", "21211:491***"},
        {"\xe5\x8f\xb7"
         "4915177777777"
         "\xe6\x97\xa0",
         "\xe5\x8f\xb7"
         "491***"
         "\xe6\x97\xa0"},
        {"-4915177777777", "-491***"},
        {"+1234567", "+12***"},
        {"4915177777777@c.us, +4915177777777", "491***@c.us, +49***"},
        {"550 5.1.1 4915177777777 unknown", "550 5.1.1 491*** unknown"},
        {"at 2026-11-27 12:30:15 4915177777777", "at 2026-11-27 12:30:15 491***"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[128];
        mask_addresses(str_from(rows[i][0]), out, sizeof out);
        assert_string_equal(out, rows[i][1]);
        mask_addresses(str_from(rows[i][1]), out, sizeof out);
        assert_string_equal(out, rows[i][1]); // again changes nothing
    }
}

static void what_is_no_phone_number_stays(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "SM0f3a4915177777777 and 4FXYZ12345",
        "2.0.0 Ok: queued as 4FXYZ12345",
        "2.0.0 Ok: queued as 4Fxyz12345678",
        "id 12345678-1234-4a34-9234-123456789012",
        "ntf_01jd4915177777777",
        "21211 400, code 131026, +123456",
        "2026-11-27 12:30:15.123456 GMT, 27.11.2026 12:30, 2026-11-27T12:30:15.123Z",
        "2026/11/27 12:30:15 +0000 (UTC)",
        "from 192.168.100.200 [203.0.113.255]:4222 2001:db8:1234:5678::9",
        "550-5.7.26 unauthenticated 5.7.515 550 5.1.1 <@x>",
        "1234567890123456 is a snowflake",
        "see https://www.twilio.com/docs/errors/21211",
        "+",
        "+(",
        "1.2.3.4.5.6",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[128];
        mask_addresses(str_from(rows[i]), out, sizeof out);
        assert_string_equal(out, rows[i]);
    }
}

static void urls_lose_their_user_and_password(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"nats://me:pa/ss@w@a:1,nats://b,tls://x:y@c", "nats://***@a:1,nats://b,tls://***@c"},
        {"nats://token@a, nats://me:pw@b", "nats://***@a, nats://***@b"},
        {"me:pw@a:4222,b", "***@a:4222,b"},
        {"nats://@a", "nats://@a"},
        {"Stentor <no-reply@localhost>", "Stentor <no-reply@localhost>"},
        {"a@b://c", "a@b://c"},
        {"127.0.0.1:4222", "127.0.0.1:4222"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Buf out;
        buf_init(&out, 128);
        mask_urls(str_from(rows[i][0]), &out);
        assert_string_equal(buf_c(&out), rows[i][1]);
        buf_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_shows_three_characters_and_its_domain),
        cmocka_unit_test(what_does_not_fit_is_left_out),
        cmocka_unit_test(addresses_in_a_text_are_masked),
        cmocka_unit_test(phone_numbers_in_a_text_are_masked),
        cmocka_unit_test(what_is_no_phone_number_stays),
        cmocka_unit_test(urls_lose_their_user_and_password),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
