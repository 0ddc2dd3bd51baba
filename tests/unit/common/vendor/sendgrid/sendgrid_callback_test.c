// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "common/vendor/callback_list.h"

// Published by the vendor: sendgrid/sendgrid-nodejs@498e232,
// packages/eventwebhook/src/eventwebhook.spec.js.
#define KEY_A                                                                                      \
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+" \
    "2fNNRaINXvVpiglSI8eNEc6wEA3F+g=="
#define SIGNATURE_A                                                                                \
    "MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOVmxG0u6ZUAiEAyBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtE" \
    "ZtM="
#define TIME_A "1600112502"
#define KEY_B                                                                                      \
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEQ4LIFtWztlsF7skFqOncjD1lun4H5w8XOhyOArHW9RcIx/FfEzx6cikC" \
    "/yPfUvwaX/JScE7Fc9CJD2afQ9Ok3Q=="
#define SIGNATURE_B                                                                                \
    "MEYCIQC/I4o6vCgqRYrTljjoVWB/GRWNtxeePlLMHr3x9ETeRQIhAIpV+03nREPTTHWSW0wIOA0EoMPdcNgXa70yCaqD" \
    "Jlu5"
#define TIME_B "1619651159"
#define WRONG_KEY                                                                                  \
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEqTxd43gyp8IOEto2LdIfjRQrIbsd4SXZkLW6jDutdhXSJCWHw8REntlo" \
    "7aNDthvj+y7GjUuFDb/R1NGe1OPzpA=="
#define WRONG_SIGNATURE                                                                            \
    "MEUCIQCtIHJeH93Y+qpYeWrySphQgpNGNr/U+UyUlBkU6n7RAwIgJTz2C+8a8xonZGi6BpSzoQsbVRamr2nlxFDWYNH2" \
    "j/0="

static Str read_vector(const char *name)
{
    static char bytes[2][4096];
    static int turn;
    char path[512];
    (void)snprintf(
        path, sizeof path, "%s/tests/unit/common/vendor/vectors/%s", STENTOR_SOURCE_DIR, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *place = bytes[turn ^= 1];
    size_t len = fread(place, 1, sizeof bytes[0], file);
    (void)fclose(file);
    assert_in_range(len, 100, sizeof bytes[0] - 1);
    return str_of(place, len);
}

static CallbackVerdict judge(
    const CallbackKey *keys, size_t count, const char *timestamp, const char *signature, Str body,
    int64_t now_us, int64_t max_age_s, size_t *ret_key)
{
    VendorPair headers[] = {
        {STR("x-twilio-email-event-webhook-timestamp"), str_from(timestamp)},
        {STR("x-twilio-email-event-webhook-signature"), str_from(signature)},
    };
    CallbackRequest request = {
        .headers = headers,
        .header_count = 2,
        .body = body,
        .received_at_us = now_us,
        .max_age_s = max_age_s,
    };
    CallbackVerdict verdict = CALLBACK_GOOD;
    bool good = sendgrid_callback.verify(&request, keys, count, &verdict, ret_key);
    assert_true(good == (verdict == CALLBACK_GOOD));
    return verdict;
}

static bool verify(const char *key_text, const char *timestamp, const char *signature, Str body)
{
    CallbackKey key = {STR("one"), str_from(key_text)};
    size_t which = 0;
    return judge(&key, 1, timestamp, signature, body, 0, 0, &which) == CALLBACK_GOOD;
}

static void both_published_vectors_verify(void **state)
{
    (void)state;
    assert_true(verify(KEY_A, TIME_A, SIGNATURE_A, read_vector("sendgrid_single.body")));
    assert_true(verify(KEY_B, TIME_B, SIGNATURE_B, read_vector("sendgrid_multiple.body")));
}

static void whatever_differs_is_refused(void **state)
{
    (void)state;
    Str body = read_vector("sendgrid_single.body");
    assert_false(verify(WRONG_KEY, TIME_A, SIGNATURE_A, body));
    assert_false(verify(KEY_B, TIME_A, SIGNATURE_A, body));
    assert_false(verify(KEY_A, TIME_A, WRONG_SIGNATURE, body));
    assert_false(verify(KEY_A, TIME_B, SIGNATURE_A, body));
    assert_false(verify(KEY_A, "timestamp", SIGNATURE_A, body));
    assert_false(verify(KEY_A, "", SIGNATURE_A, body));
    assert_false(verify(KEY_A, TIME_A, SIGNATURE_A, STR("payload")));
    assert_false(verify(KEY_A, TIME_A, SIGNATURE_A, STR_EMPTY));
    assert_false(
        verify(KEY_A, TIME_A, SIGNATURE_A, str_slice(body, 0, body.len - 2))); // without CR LF
    assert_false(verify(KEY_A, TIME_A, SIGNATURE_A, read_vector("sendgrid_multiple.body")));
}

static void a_signature_that_is_none_is_refused(void **state)
{
    (void)state;
    static const char *const NONE[] = {
        "", "%%%", "MEUC", "AAAA", SIGNATURE_A SIGNATURE_A "AAAA", SIGNATURE_A "="};
    Str body = read_vector("sendgrid_single.body");
    for (size_t i = 0; i < sizeof NONE / sizeof NONE[0]; i++) {
        assert_false(verify(KEY_A, TIME_A, NONE[i], body));
    }
}

static void only_a_p256_key_is_a_key(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "",
        "not base64!",
        "AAAA",
        KEY_A "AAAA",
        // Ed25519, and P-384: good keys of other kinds.
        "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=",
        "MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAE",
    };
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        Error err = {0};
        assert_false(sendgrid_callback.key_check(str_from(BAD[i]), &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
    }
}

static void the_age_of_a_timestamp_is_asked_only_when_wanted(void **state)
{
    (void)state;
    Str body = read_vector("sendgrid_single.body");
    CallbackKey key = {STR("one"), STR(KEY_A)};
    static const struct {
        int64_t after_s, max_age_s;
        CallbackVerdict verdict;
    } CASES[] = {
        {0, 300, CALLBACK_GOOD},     {300, 300, CALLBACK_GOOD},   {301, 300, CALLBACK_STALE},
        {-300, 300, CALLBACK_GOOD},  {-301, 300, CALLBACK_STALE}, {99999999, 0, CALLBACK_GOOD},
        {3600, 3600, CALLBACK_GOOD},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        size_t which = 0;
        int64_t now_us = (INT64_C(1600112502) + CASES[i].after_s) * 1000000;
        assert_int_equal(
            judge(&key, 1, TIME_A, SIGNATURE_A, body, now_us, CASES[i].max_age_s, &which),
            CASES[i].verdict);
    }
}

static void any_of_several_keys_may_fit_and_is_named(void **state)
{
    (void)state;
    CallbackKey keys[] = {{STR("old"), STR(WRONG_KEY)}, {STR("new"), STR(KEY_A)}};
    size_t which = 9;
    Str body = read_vector("sendgrid_single.body");
    assert_int_equal(judge(keys, 2, TIME_A, SIGNATURE_A, body, 0, 0, &which), CALLBACK_GOOD);
    assert_int_equal(which, 1);
    assert_int_equal(judge(keys, 1, TIME_A, SIGNATURE_A, body, 0, 0, &which), CALLBACK_BAD);
    assert_int_equal(judge(keys, 0, TIME_A, SIGNATURE_A, body, 0, 0, &which), CALLBACK_BAD);
}

// The vendor signs timestamp || body: with a border that can move, one signature is good for many
// pairs of the two.
static void finding_15_a_timestamp_is_ten_digits(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "",           "1",           "160011250",  "16001125020", "1600112502[",
        "+600112502", " 1600112502", "160011250x", "-600112502",  "16001125.2",
        "timestamp."};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        CallbackKey key = {STR("one"), STR(KEY_A)};
        size_t which = 0;
        assert_int_equal(
            judge(&key, 1, BAD[i], SIGNATURE_A, STR("[]"), 0, 0, &which), CALLBACK_UNSIGNED);
    }
    Str body = read_vector("sendgrid_single.body");
    char moved[4200];
    (void)snprintf(moved, sizeof moved, "2" STR_FMT, STR_ARG(body));
    assert_false(verify(KEY_A, "160011250", SIGNATURE_A, str_from(moved)));
    assert_false(verify(KEY_A, TIME_A "[", SIGNATURE_A, str_slice(body, 1, body.len)));
}

static void finding_15_the_empty_key_fits_nothing(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Str none = sendgrid_callback.key_none(arena);
    assert_true(sendgrid_callback.key_check(none, NULL));
    Str body = read_vector("sendgrid_single.body");
    assert_false(verify(arena_cstr(arena, none), TIME_A, SIGNATURE_A, body));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_published_vectors_verify),
        cmocka_unit_test(whatever_differs_is_refused),
        cmocka_unit_test(a_signature_that_is_none_is_refused),
        cmocka_unit_test(only_a_p256_key_is_a_key),
        cmocka_unit_test(finding_15_a_timestamp_is_ten_digits),
        cmocka_unit_test(finding_15_the_empty_key_fits_nothing),
        cmocka_unit_test(any_of_several_keys_may_fit_and_is_named),
        cmocka_unit_test(the_age_of_a_timestamp_is_asked_only_when_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
