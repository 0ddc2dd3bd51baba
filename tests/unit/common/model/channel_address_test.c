// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/model/channel_address.h"

#define POINT                                                                                      \
    "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
#define AUTH "BTBZMqHH6r4Tts7J_aSIgg"

typedef struct Case {
    Channel channel;
    const char *text;
    const char *normal; // NULL: refused
    const char *masked;
} Case;

// clang-format off
static const Case CASES[] = {
    {CHANNEL_EMAIL, "Alice@Example.COM", "Alice@example.com", "Ali***@example.com"},
    {CHANNEL_EMAIL, "al@example.com", "al@example.com", "a***@example.com"},
    {CHANNEL_EMAIL, "\xc3\xa4\xc3\xb6\xc3\xbcx@example.com", "\xc3\xa4\xc3\xb6\xc3\xbcx@example.com", "\xc3\xa4\xc3\xb6\xc3\xbc***@example.com"},
    {CHANNEL_EMAIL, "alice", NULL, NULL},
    {CHANNEL_EMAIL, "Ali***@example.com", NULL, NULL},
    {CHANNEL_SMS, "+49 (151) 234-567.8", "+491512345678", "+49***78"},
    {CHANNEL_WHATSAPP, "+1234567", "+1234567", "+12***67"},
    {CHANNEL_VOICE, "+123456789012345", "+123456789012345", "+12***45"},
    {CHANNEL_SMS, "+1234567890123456", NULL, NULL},
    {CHANNEL_SMS, "+123456", NULL, NULL},
    {CHANNEL_SMS, "+0123456789", NULL, NULL},
    {CHANNEL_SMS, "0151234567", NULL, NULL},
    {CHANNEL_SMS, "+49151x2345", NULL, NULL},
    {CHANNEL_SMS, "", NULL, NULL},
    {CHANNEL_PUSH, "dGhlIHRva2Vu:abc_-", "dGhlIHRva2Vu:abc_-", "dGh***"},
    {CHANNEL_PUSH, "two words", NULL, NULL},
    {CHANNEL_PUSH, "00FFaa11223344556677889900112233445566778899aabbccddeeff00112233", "00ffaa11223344556677889900112233445566778899aabbccddeeff00112233", "00f***"},
    {CHANNEL_PUSH, " {\"endpoint\": \"https://updates.push.services.mozilla.com/wpush/v2/x\", \"expirationTime\": null, \"keys\": {\"p256dh\": \"" POINT "=\", \"auth\": \"" AUTH "\"}}",
     "{\"endpoint\":\"https://updates.push.services.mozilla.com/wpush/v2/x\",\"keys\":{\"auth\":\"" AUTH "\",\"p256dh\":\"" POINT "\"}}", "{\"e***"},
    {CHANNEL_INAPP, "u-7", "u-7", "u***"},
    {CHANNEL_WEBHOOK, "https://hooks.example/a", "https://hooks.example/a", "htt***"},
    {CHANNEL_WEBHOOK, "https://", NULL, NULL},
    {CHANNEL_WEBHOOK, "ftp://hooks.example/a", NULL, NULL},
    {CHANNEL_NONE, "a@example.com", NULL, NULL},
};
// clang-format on

static void an_address_is_normalised_or_refused_with_a_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const Case *c = &CASES[i];
        Arena *arena = arena_new(0);
        Str normal = STR_EMPTY;
        char reason[ADDRESS_REASON_SIZE] = "";
        bool ok = people_address_check(c->channel, str_from(c->text), arena, &normal, reason);
        if (ok != (c->normal != NULL)) {
            fail_msg("%s: %s", c->text, reason);
        }
        if (ok) {
            assert_true(str_eq(normal, str_from(c->normal)));
        } else {
            assert_true(reason[0] != '\0');
        }
        arena_free(arena);
    }
}

static void a_masked_address_shows_three_characters_and_can_not_be_written_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const Case *c = &CASES[i];
        if (c->normal == NULL) {
            continue;
        }
        Buf out;
        Str back = STR_EMPTY;
        char reason[ADDRESS_REASON_SIZE] = "";
        Arena *arena = arena_new(0);
        buf_init(&out, 512);
        people_address_mask(c->channel, str_from(c->normal), &out);
        assert_string_equal(buf_c(&out), c->masked);
        assert_false(people_address_check(c->channel, buf_view(&out), arena, &back, reason));
        buf_done(&out);
        arena_free(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_normalised_or_refused_with_a_reason),
        cmocka_unit_test(a_masked_address_shows_three_characters_and_can_not_be_written_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
