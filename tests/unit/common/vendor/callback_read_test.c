// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/callback_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void an_address_is_one_of_its_channel(void **state)
{
    (void)state;
    static const struct {
        Channel channel;
        const char *text, *expected;
    } rows[] = {
        {CHANNEL_SMS, "+4915112345678", "+4915112345678"},
        {CHANNEL_SMS, "4915112345678", "+4915112345678"},
        {CHANNEL_WHATSAPP, "4915112345678", "+4915112345678"},
        {CHANNEL_VOICE, "4915112345678", "+4915112345678"},
        {CHANNEL_VOICE, "sip:alice@example.com", ""},
        {CHANNEL_SMS, "+491", ""},
        {CHANNEL_SMS, "+49 151 12345678", ""},
        {CHANNEL_SMS, "+4915112345678901", ""},
        {CHANNEL_SMS, "", ""},
        {CHANNEL_EMAIL, "alice@example.com", "alice@example.com"},
        {CHANNEL_EMAIL, "4915112345678", ""},
        {CHANNEL_PUSH, "4915112345678", "4915112345678"},
        {CHANNEL_WEBHOOK, "https://chat.example/hooks/a", "https://chat.example/hooks/a"},
        {CHANNEL_INAPP, "a\nb", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *arena = arena_new(0);
        Str found = callback_address(rows[i].channel, str_from(rows[i].text), arena);
        assert_string_equal(arena_cstr(arena, found), rows[i].expected);
        arena_free(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_one_of_its_channel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
