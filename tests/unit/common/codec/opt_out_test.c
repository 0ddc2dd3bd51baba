// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/codec/opt_out.h"

static const char KEY_TEXT[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
                               "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff\n";
#define NOW_US INT64_C(1790000000000000)
#define DAY_US INT64_C(86400000000)

typedef struct World {
    Arena *arena;
    OptOutKey key;
    OptOut what;
    char token[OPT_OUT_TOKEN_SIZE];
} World;

static World world;

static int begin(void **state)
{
    (void)state;
    Error err = {0};
    MasterKey *master = master_key_parse(str_from(KEY_TEXT), &err);
    assert_non_null(master);
    world = (World){
        .arena = arena_new(0),
        .what =
            {
                .tenant = STR("acme"),
                .notification_id = STR("ntf_01M2V3W4X5Y6Z7A8B9CADBECFD"),
                .recipient_id = STR("rcp_01M2V3W4X5Y6Z7A8B9CADBECFE"),
                .address_hash = {1, 2, 3, 255},
                .channel = CHANNEL_EMAIL,
                .category = CATEGORY_MARKETING,
                .issued_at_us = NOW_US,
            },
    };
    opt_out_key(master, &world.key);
    master_key_free(master);
    assert_true(opt_out_sign(&world.key, &world.what, world.token, &err));
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_free(world.arena);
    return 0;
}

static bool verify(Str token, int64_t now_us, OptOut *ret)
{
    Error err = {0};
    bool ok = opt_out_verify(&world.key, token, now_us, world.arena, ret, &err);
    assert_int_equal(err.kind, ok ? ERROR_NONE : ERROR_PERMANENT);
    return ok;
}

static void what_is_signed_comes_back(void **state)
{
    (void)state;
    OptOut got;
    assert_true(verify(str_from(world.token), NOW_US, &got));
    assert_true(str_eq(got.tenant, world.what.tenant));
    assert_true(str_eq(got.notification_id, world.what.notification_id));
    assert_true(str_eq(got.recipient_id, world.what.recipient_id));
    assert_memory_equal(got.address_hash, world.what.address_hash, ADDRESS_HASH_LEN);
    assert_int_equal(got.channel, CHANNEL_EMAIL);
    assert_int_equal(got.category, CATEGORY_MARKETING);
    assert_true(got.issued_at_us == NOW_US);
}

// Links in mailboxes hold this for a year.
static void its_bytes_are_frozen(void **state)
{
    (void)state;
    assert_string_equal(
        world.token, "oot_AQEFAGqxO4AEYWNtZTAxTTJWM1c0WDVZNlo3QThCOUNBREJFQ0ZEGjAxTTJWM1c0WD"
                     "VZNlo3QThCOUNBREJFQ0ZFAQID_wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACwLJX0"
                     "9tAI8WU-eX_Aqc2-yxTOjQ7G9hJIm0RYqgpPTg");
}

static void an_inline_address_has_no_recipient(void **state)
{
    (void)state;
    OptOut got;
    Error err = {0};
    world.what.recipient_id = STR_EMPTY;
    assert_true(opt_out_sign(&world.key, &world.what, world.token, &err));
    assert_true(verify(str_from(world.token), NOW_US, &got));
    assert_int_equal(got.recipient_id.len, 0);
}

static void the_longest_is_fit_for_a_url_and_short(void **state)
{
    (void)state;
    OptOut got;
    Error err = {0};
    world.what.tenant = STR("a-tenant-of-thirty-two-characters");
    assert_false(opt_out_sign(&world.key, &world.what, world.token, &err));
    world.what.tenant = STR("a-tenant-of-thirty-two-character");
    assert_true(opt_out_sign(&world.key, &world.what, world.token, &err));
    assert_true(strlen(world.token) <= 215);
    assert_int_equal(
        strspn(
            world.token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                         "0123456789-_"),
        strlen(world.token));
    assert_true(verify(str_from(world.token), NOW_US, &got));
}

static void every_single_change_is_refused(void **state)
{
    (void)state;
    OptOut got;
    size_t len = strlen(world.token);
    for (size_t i = 0; i < len; i++) {
        char kept = world.token[i];
        world.token[i] = kept == 'A' ? 'B' : 'A';
        assert_false(verify(str_from(world.token), NOW_US, &got));
        world.token[i] = kept;
    }
    for (size_t cut = 0; cut < len; cut++) {
        assert_false(verify(str_of(world.token, cut), NOW_US, &got));
    }
    assert_true(verify(str_from(world.token), NOW_US, &got));
}

static void another_key_is_refused(void **state)
{
    (void)state;
    OptOut got;
    world.key.bytes[0][0] ^= 1;
    assert_false(verify(str_from(world.token), NOW_US, &got));
}

static void it_holds_for_400_days(void **state)
{
    (void)state;
    OptOut got;
    assert_true(verify(str_from(world.token), NOW_US + OPT_OUT_DAYS * DAY_US, &got));
    assert_false(verify(str_from(world.token), NOW_US + OPT_OUT_DAYS * DAY_US + 1000000, &got));
    assert_false(verify(str_from(world.token), NOW_US - 2 * DAY_US, &got));
}

static void what_is_no_token_is_refused(void **state)
{
    (void)state;
    OptOut got;
    char longer[4 * OPT_OUT_TOKEN_SIZE];
    memset(longer, 'A', sizeof longer);
    memcpy(longer, "oot_", 4);
    assert_false(verify(str_of(longer, sizeof longer), NOW_US, &got));
    assert_false(verify(str_of(longer, OPT_OUT_TOKEN_SIZE - 1), NOW_US, &got));
    assert_false(verify(STR_EMPTY, NOW_US, &got));
    assert_false(verify(STR("oot_"), NOW_US, &got));
    assert_false(verify(STR("oot_%%%"), NOW_US, &got));
}

static void a_wrong_field_is_named(void **state)
{
    (void)state;
    Error err = {0};
    world.what.notification_id = STR("ntf_1");
    assert_false(opt_out_sign(&world.key, &world.what, world.token, &err));
    assert_non_null(strstr(err.text, "notification_id"));
    world.what.notification_id = STR("ntf_01M2V3W4X5Y6Z7A8B9CADBECFD");
    world.what.category = CATEGORY_NONE;
    assert_false(opt_out_sign(&world.key, &world.what, world.token, &err));
    assert_non_null(strstr(err.text, "category"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_signed_comes_back, begin, end),
        cmocka_unit_test_setup_teardown(its_bytes_are_frozen, begin, end),
        cmocka_unit_test_setup_teardown(an_inline_address_has_no_recipient, begin, end),
        cmocka_unit_test_setup_teardown(the_longest_is_fit_for_a_url_and_short, begin, end),
        cmocka_unit_test_setup_teardown(every_single_change_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(another_key_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(it_holds_for_400_days, begin, end),
        cmocka_unit_test_setup_teardown(what_is_no_token_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(a_wrong_field_is_named, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
