// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/codec/event.h"
#include "services/webhook-receiver/inbound_keys.h"
#include "services/webhook-receiver/secret_reference.h"
#include "stentor/v1/config.pb-c.h"

#define SECOND_US INT64_C(1000000)

static char path[] = "/tmp/inbound-keys-XXXXXX";

static void write_secret(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
}

// One entry of mailgun's for acme: two secrets, the first one good until 100 s.
static void put(InboundKeys *keys, bool revoked)
{
    Arena *arena = arena_new(0);
    Stentor__V1__InboundKey event;
    Stentor__V1__InboundSecret old, new;
    stentor__v1__inbound_key__init(&event);
    stentor__v1__inbound_secret__init(&old);
    stentor__v1__inbound_secret__init(&new);
    old.name = arena_cstr(arena, STR("old"));
    old.reference = arena_cstr(arena, STR("env:INBOUND_KEYS_TEST"));
    old.not_after_us = 100 * SECOND_US;
    new.name = arena_cstr(arena, STR("new"));
    new.reference = arena_printf(arena, "file:%s", path);
    Stentor__V1__InboundSecret *secrets[] = {&old, &new};
    event.tenant = arena_cstr(arena, STR("acme"));
    event.vendor = arena_cstr(arena, STR("mailgun"));
    event.secrets = secrets;
    event.n_secrets = 2;
    event.revoked = revoked;
    Str payload;
    assert_true(event_pack(&event.base, arena, &payload, NULL));
    assert_true(inbound_keys_changed(keys, STR("acme"), STR("mailgun"), payload, NULL));
    Error err = {0};
    assert_false(inbound_keys_changed(keys, STR("globex"), STR("mailgun"), payload, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    arena_free(arena);
}

static void keys_are_read_when_asked_for_and_again_and_end_in_time(void **state)
{
    (void)state;
    InboundKeys *keys = inbound_keys_new();
    const VendorCallback *mailgun = vendor_callback_find(STR("mailgun"));
    CallbackKey found[INBOUND_KEYS_MAX];
    assert_null(inbound_keys_find(keys, STR("acme"), mailgun));
    assert_int_equal(setenv("INBOUND_KEYS_TEST", "the-old-signing-key", 1), 0);
    write_secret("the-new-signing-key\n");
    put(keys, false);
    InboundEntry *entry = inbound_keys_find(keys, STR("acme"), mailgun);
    assert_non_null(entry);
    assert_null(inbound_keys_find(keys, STR("globex"), mailgun));
    assert_null(inbound_keys_find(keys, STR("acme"), vendor_callback_find(STR("resend"))));

    assert_int_equal(inbound_keys_in_force(entry, 50 * SECOND_US, found), 2);
    assert_true(str_eq(found[0].name, STR("old")));
    assert_true(str_eq(found[0].secret, STR("the-old-signing-key")));
    assert_true(str_eq(found[1].secret, STR("the-new-signing-key")));

    write_secret("a-newer-signing-key\n"); // read again after 30 s; the old key has ended then
    assert_int_equal(inbound_keys_in_force(entry, 60 * SECOND_US, found), 2);
    assert_true(str_eq(found[1].secret, STR("the-new-signing-key")));
    assert_int_equal(inbound_keys_in_force(entry, 100 * SECOND_US, found), 1);
    assert_true(str_eq(found[0].secret, STR("a-newer-signing-key")));

    assert_int_equal(unlink(path), 0); // what was read stays in force
    assert_int_equal(inbound_keys_in_force(entry, 200 * SECOND_US, found), 1);
    assert_true(str_eq(found[0].secret, STR("a-newer-signing-key")));

    put(keys, true);
    assert_null(inbound_keys_find(keys, STR("acme"), mailgun));
    inbound_keys_free(keys);
}

static void what_is_no_key_is_not_in_force(void **state)
{
    (void)state;
    InboundKeys *keys = inbound_keys_new();
    CallbackKey found[INBOUND_KEYS_MAX];
    assert_int_equal(unsetenv("INBOUND_KEYS_TEST"), 0);
    write_secret("short");
    put(keys, false);
    InboundEntry *entry =
        inbound_keys_find(keys, STR("acme"), vendor_callback_find(STR("mailgun")));
    assert_int_equal(inbound_keys_in_force(entry, SECOND_US, found), 0);
    inbound_keys_free(keys);
    (void)unlink(path);
}

static void each_vendor_has_a_key_that_fits_nothing(void **state)
{
    (void)state;
    InboundKeys *keys = inbound_keys_new();
    for (size_t i = 0; vendor_callback_at(i) != NULL; i++) {
        CallbackKey none = inbound_keys_none(keys, vendor_callback_at(i));
        assert_true(none.secret.len > 0 && str_eq(none.name, STR("none")));
    }
    inbound_keys_free(keys);
}

static void a_reference_has_its_form(void **state)
{
    (void)state;
    static const struct {
        const char *reference;
        ErrorKind kind;
    } CASES[] = {
        {"", ERROR_PERMANENT},
        {"the-secret-itself", ERROR_PERMANENT},
        {"env:", ERROR_PERMANENT},
        {"file:relative", ERROR_PERMANENT},
        {"env:INBOUND_KEYS_TEST_NOT_THERE", ERROR_CONFIG},
        {"file:/nowhere/at/all", ERROR_CONFIG},
        {"file:/dev/null", ERROR_CONFIG},
    };
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Error err = {0};
        Str secret;
        assert_false(secret_reference_read(str_from(CASES[i].reference), arena, &secret, &err));
        assert_int_equal(err.kind, CASES[i].kind);
    }
    arena_free(arena);
}

int main(void)
{
    int fd = mkstemp(path);
    assert(fd >= 0);
    (void)close(fd);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_read_when_asked_for_and_again_and_end_in_time),
        cmocka_unit_test(what_is_no_key_is_not_in_force),
        cmocka_unit_test(each_vendor_has_a_key_that_fits_nothing),
        cmocka_unit_test(a_reference_has_its_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
