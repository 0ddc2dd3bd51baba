// SPDX-License-Identifier: Apache-2.0
// The vectors are those of the reference implementations (standard-webhooks, svix).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/webhooks/webhook_signature.h"

static void assert_signs(
    const char *secret, const char *id, int64_t at_s, const char *body, const char *signature)
{
    WebhookKey key;
    Error err = {0};
    Buf out;
    buf_init(&out, 256);
    assert_true(webhook_key_parse(str_from(secret), &key, &err));
    webhook_sign(&key, str_from(id), at_s, str_from(body), &out);
    assert_string_equal(buf_c(&out), signature);
    buf_done(&out);
}

static void it_signs_as_the_reference_does(void **state)
{
    (void)state;
    assert_signs(
        "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", 1649367553,
        "{\"email\":\"test@example.com\",\"username\":\"test_user\"}",
        "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=");
    assert_signs(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330,
        "{\"test\": 2432232314}", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

static void a_second_secret_signs_behind_the_first(void **state)
{
    (void)state;
    WebhookKey first, second;
    Buf both, alone;
    assert_true(webhook_key_parse(STR("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"), &first, NULL));
    assert_true(webhook_key_parse(STR("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), &second, NULL));
    buf_init(&both, 256);
    buf_init(&alone, 256);
    webhook_sign(&first, STR("id"), 1, STR("{}"), &both);
    webhook_sign(&second, STR("id"), 1, STR("{}"), &both);
    webhook_sign(&second, STR("id"), 1, STR("{}"), &alone);
    assert_int_equal(both.len, 2 * alone.len + 1);
    assert_true(str_ends(buf_view(&both), buf_view(&alone)));
    assert_int_equal(both.ptr[alone.len], ' ');
    buf_done(&both);
    buf_done(&alone);
}

static void a_secret_of_another_form_is_refused_and_not_quoted(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "whsec_",
        "whsec_wronglength",
        "whsec_%",
        "C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
        "whsec_C2FVsBQIhrscChlQIMV+b5s=",
        "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfV"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        WebhookKey key;
        Error err = {0};
        assert_false(webhook_key_parse(str_from(wrong[i]), &key, &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
        assert_non_null(strstr(err.text, "24 to 64 bytes"));
        assert_null(strstr(err.text, "C2FV"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_signs_as_the_reference_does),
        cmocka_unit_test(a_second_secret_signs_behind_the_first),
        cmocka_unit_test(a_secret_of_another_form_is_refused_and_not_quoted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
