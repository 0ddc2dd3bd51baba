// SPDX-License-Identifier: Apache-2.0
#include "common/model/addresses/push_address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define POINT                                                                                      \
    "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
#define AUTH "BTBZMqHH6r4Tts7J_aSIgg"
#define DEVICE "00ffaa11223344556677889900112233445566778899aabbccddeeff00112233"

static void the_form_says_whose_it_is(void **state)
{
    (void)state;
    assert_int_equal(push_address_kind(STR(DEVICE)), PUSH_DEVICE);
    assert_int_equal(
        push_address_kind(STR("cAFEBABE:APA91bHun4MxP5egoKMwt2KZFBaFUH-1RYqx")), PUSH_REGISTRATION);
    assert_int_equal(push_address_kind(STR("00ff")), PUSH_REGISTRATION);
    assert_int_equal(
        push_address_kind(STR("{\"endpoint\":\"https://a.example\"}")), PUSH_SUBSCRIPTION);
    assert_int_equal(push_address_kind(STR_EMPTY), PUSH_REGISTRATION);
}

static void what_is_wrong_of_an_address_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "1 to 4096 bytes"},
        {"two words", "printable"},
        {"t\xc3\xb6ken", "printable"},
        {DEVICE "0", "an even number"},
        {DEVICE DEVICE DEVICE DEVICE, "64 to 200 hexadecimal digits"},
        {"{", "not a subscription"},
        {"{\"endpoint\":\"https://a.example\",\"endpoint\":\"https://b.example\"}",
         "not a subscription"},
        {"{}", "'endpoint'"},
        {"{\"endpoint\":\"http://a.example/\"}", "'endpoint'"},
        {"{\"endpoint\":\"https://a.example/a b\"}", "'endpoint'"},
        {"{\"endpoint\":\"https://a.example/\"}", "'keys.auth'"},
        {"{\"endpoint\":\"https://a.example/\",\"keys\":{\"auth\":\"AAAA\"}}", "'keys.auth'"},
        {"{\"endpoint\":\"https://a.example/\",\"keys\":[]}", "'keys.auth'"},
        {"{\"endpoint\":\"https://a.example/\",\"keys\":{\"auth\":\"" AUTH "\"}}", "'keys.p256dh'"},
        {"{\"endpoint\":\"https://a.example/\",\"keys\":{\"auth\":\"" AUTH "\",\"p256dh\":17}}",
         "'keys.p256dh'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_new(0);
        Str normal = STR_EMPTY;
        char reason[ADDRESS_REASON_SIZE] = "";
        assert_false(push_address_check(str_from(cases[i].text), arena, &normal, reason));
        if (strstr(reason, cases[i].part) == NULL) {
            fail_msg("%s: %s", cases[i].text, reason);
        }
        arena_free(arena);
    }
}

static void one_browser_has_one_address_however_it_is_written(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"endpoint\":\"https://a.example/x\",\"keys\":{\"auth\":\"" AUTH "\",\"p256dh\":\"" POINT
        "\"}}",
        " {\"keys\": {\"p256dh\": \"" POINT "=\", \"auth\": \"" AUTH
        "==\"}, \"expirationTime\": null,\n"
        " \"endpoint\": \"https:\\/\\/a.example/x\"}\n"};
    Arena *arena = arena_new(0);
    char reason[ADDRESS_REASON_SIZE] = "";
    Str normal[2];
    for (size_t i = 0; i < 2; i++) {
        assert_true(push_address_check(str_from(texts[i]), arena, &normal[i], reason));
    }
    assert_true(str_eq(normal[0], normal[1]) && str_eq(normal[0], str_from(texts[0])));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_form_says_whose_it_is),
        cmocka_unit_test(what_is_wrong_of_an_address_is_named),
        cmocka_unit_test(one_browser_has_one_address_however_it_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
