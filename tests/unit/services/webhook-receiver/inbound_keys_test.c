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

typedef struct World {
    uv_loop_t loop;
    Secrets *secrets;
    InboundKeys *keys;
} World;

static void on_text(void *ctx, const SecretName *name, Str text)
{
    const World *world = ctx;
    inbound_keys_read(world->keys, name, text);
}

static void warning_is(const World *world, const char *expected)
{
    Buf warning;
    buf_init(&warning, 1000);
    inbound_keys_warn(world->keys, &warning);
    assert_true(str_eq(buf_view(&warning), str_from(expected)));
    buf_done(&warning);
}

static void world_open(World *world)
{
    assert_int_equal(uv_loop_init(&world->loop), 0);
    world->secrets = secrets_new(
        &(SecretsOptions){
            .loop = &world->loop,
            .service = "test",
            .folders = "/tmp",
            .poll_ms = 10,
            .on_text = on_text,
            .ctx = world},
        NULL);
    assert_non_null(world->secrets);
    world->keys = inbound_keys_new(world->secrets);
}

static void on_closed(void *ctx)
{
    *(bool *)ctx = true;
}

static void world_close(World *world)
{
    bool closed = false;
    secrets_close(world->secrets, on_closed, &closed);
    while (!closed) {
        (void)uv_run(&world->loop, UV_RUN_ONCE);
    }
    inbound_keys_free(world->keys);
    secrets_free(world->secrets);
    (void)uv_run(&world->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&world->loop), 0);
}

// The loop runs until that many keys are in force, the last of them with this text. The test's
// time-out bounds it.
static InboundForce wait_for(World *world, int64_t now_us, size_t count, const char *last)
{
    InboundForce force = {.count = 0};
    const InboundEntry *entry = inbound_keys_find(world->keys, STR("acme"), STR("mailgun"));
    assert_non_null(entry);
    for (;;) {
        inbound_keys_in_force(world->keys, entry, now_us, &force);
        if (force.count == count &&
            (count == 0 || str_eq(force.keys[count - 1].secret, str_from(last)))) {
            return force;
        }
        (void)uv_run(&world->loop, UV_RUN_ONCE);
    }
}

static void keys_are_read_and_read_again_and_end_in_time(void **state)
{
    (void)state;
    World world;
    world_open(&world);
    assert_null(inbound_keys_find(world.keys, STR("acme"), STR("mailgun")));
    assert_int_equal(setenv("INBOUND_KEYS_TEST", "the-old-signing-key", 1), 0);
    write_secret("the-new-signing-key\n");
    put(world.keys, false);
    assert_null(inbound_keys_find(world.keys, STR("globex"), STR("mailgun")));
    assert_null(inbound_keys_find(world.keys, STR("acme"), STR("resend")));

    InboundForce force = wait_for(&world, 50 * SECOND_US, 2, "the-new-signing-key");
    assert_int_equal(force.missing, 0);
    assert_true(str_eq(force.keys[0].name, STR("old")));
    assert_true(str_eq(force.keys[0].secret, STR("the-old-signing-key")));
    assert_true(str_eq(force.keys[1].name, STR("new")));

    put(world.keys, false); // the same again: nothing is read again, so no gap
    const InboundEntry *entry = inbound_keys_find(world.keys, STR("acme"), STR("mailgun"));
    inbound_keys_in_force(world.keys, entry, 50 * SECOND_US, &force);
    assert_int_equal(force.count, 2);

    write_secret("a-signing-key-that-is-newer\n");
    force = wait_for(&world, 100 * SECOND_US, 1, "a-signing-key-that-is-newer");
    assert_int_equal(force.missing, 0); // the other one has ended

    put(world.keys, true);
    assert_null(inbound_keys_find(world.keys, STR("acme"), STR("mailgun")));
    world_close(&world);
}

static void what_is_no_key_is_missing(void **state)
{
    (void)state;
    World world;
    world_open(&world);
    assert_int_equal(unsetenv("INBOUND_KEYS_TEST"), 0);
    write_secret("short");
    put(world.keys, false);
    InboundForce force = wait_for(&world, SECOND_US, 0, "");
    assert_int_equal(force.missing, 2);
    const SecretName new = {STR("acme"), STR("mailgun"), STR("new")};
    Str text;
    while (!secrets_use(world.secrets, &new, &text, NULL)) {
        (void)uv_run(&world.loop, UV_RUN_ONCE);
    }
    warning_is(
        &world, "key of callbacks acme/mailgun/new: a key is the HTTP webhook signing key of the "
                "account, 16 characters at least");
    write_secret("a-signing-key-that-is-long");
    (void)wait_for(&world, SECOND_US, 1, "a-signing-key-that-is-long");
    warning_is(&world, "");
    write_secret("brief");
    (void)wait_for(&world, SECOND_US, 0, "");
    put(world.keys, true); // with its entry
    warning_is(&world, "");
    world_close(&world);
    (void)unlink(path);
}

static void each_vendor_has_a_key_that_fits_nothing(void **state)
{
    (void)state;
    InboundKeys *keys = inbound_keys_new(NULL);
    for (size_t i = 0; vendor_callback_at(i) != NULL; i++) {
        CallbackKey none = inbound_keys_none(keys, vendor_callback_at(i));
        assert_true(none.secret.len > 0 && str_eq(none.name, STR("none")));
    }
    inbound_keys_free(keys);
}

int main(void)
{
    int fd = mkstemp(path);
    assert(fd >= 0);
    (void)close(fd);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_read_and_read_again_and_end_in_time),
        cmocka_unit_test(what_is_no_key_is_missing),
        cmocka_unit_test(each_vendor_has_a_key_that_fits_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
