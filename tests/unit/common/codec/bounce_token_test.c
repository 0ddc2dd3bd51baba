// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/codec/bounce_token.h"

static const char KEY_TEXT[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
                               "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff\n";
static const char ID[] = "ntf_01M2V3W4X5Y6Z7A8B9CADBECFD";

static BounceKey key;
static char token[BOUNCE_TOKEN_LEN + 1];

static int begin(void **state)
{
    (void)state;
    Error err = {0};
    MasterKey *master = master_key_parse(str_from(KEY_TEXT), &err);
    assert_non_null(master);
    bounce_key(master, &key);
    master_key_free(master);
    assert_true(bounce_token_make(&key, STR("acme"), str_from(ID), 3, token, &err));
    return 0;
}

static void what_is_made_comes_back(void **state)
{
    (void)state;
    BounceToken got;
    assert_true(bounce_token_read(str_from(token), &got));
    assert_string_equal(got.notification_id, ID);
    assert_int_equal(got.attempt, 3);
    uint8_t mark[BOUNCE_MARK_LEN];
    bounce_tenant_mark(STR("acme"), mark);
    assert_memory_equal(got.tenant_mark, mark, sizeof mark);
    assert_true(bounce_token_check(&key, &got, STR("acme")));
    assert_false(bounce_token_check(&key, &got, STR("zorg")));
    assert_false(bounce_token_check(&key, &got, STR("no tenant")));
}

// Mails on their way hold it for days.
static void its_characters_are_frozen(void **state)
{
    (void)state;
    assert_string_equal(token, "01m2v3w4x5y6z7a8b9cadbecfd03g8nk7bc738k9qvw6cez172x0");
}

static void servers_may_change_its_case(void **state)
{
    (void)state;
    BounceToken got;
    for (size_t i = 0; i < BOUNCE_TOKEN_LEN; i++) {
        token[i] = token[i] >= 'a' ? (char)(token[i] - 'a' + 'A') : token[i];
    }
    assert_true(bounce_token_read(str_from(token), &got));
    assert_true(bounce_token_check(&key, &got, STR("acme")));
}

static void every_single_change_is_refused(void **state)
{
    (void)state;
    BounceToken got;
    for (size_t i = 0; i < BOUNCE_TOKEN_LEN; i++) {
        char kept = token[i];
        token[i] = kept == '0' ? '1' : '0';
        assert_false(
            bounce_token_read(str_from(token), &got) &&
            bounce_token_check(&key, &got, STR("acme")));
        token[i] = 'u'; // not in the alphabet
        assert_false(bounce_token_read(str_from(token), &got));
        token[i] = kept;
    }
    for (size_t cut = 0; cut < BOUNCE_TOKEN_LEN; cut++) {
        assert_false(bounce_token_read(str_of(token, cut), &got));
    }
    assert_true(bounce_token_read(str_from(token), &got));
}

static void an_older_master_key_still_verifies(void **state)
{
    (void)state;
    BounceToken got;
    assert_true(bounce_token_read(str_from(token), &got));
    memcpy(key.bytes[1], key.bytes[0], SHA256_LEN);
    key.bytes[0][0] ^= 1;
    assert_false(bounce_token_check(&key, &got, STR("acme")));
    key.count = 2;
    assert_true(bounce_token_check(&key, &got, STR("acme")));
}

static void an_address_holds_it(void **state)
{
    (void)state;
    Error err = {0};
    char address[BOUNCE_ADDRESS_SIZE];
    BounceToken got;
    Str domain;
    assert_true(bounce_address_make(
        &key, STR("a-tenant-of-thirty-two-character"), str_from(ID), BOUNCE_ATTEMPT_MAX,
        STR("bounce.acme.example"), address, &err));
    assert_int_equal(strchr(address, '@') - address, 54); // of at most 64
    assert_true(bounce_address_read(str_from(address), &got, &domain));
    assert_int_equal(got.attempt, BOUNCE_ATTEMPT_MAX);
    assert_true(str_eq(domain, STR("bounce.acme.example")));
    assert_true(bounce_token_check(&key, &got, STR("a-tenant-of-thirty-two-character")));
    char bracketed[BOUNCE_ADDRESS_SIZE + 2] = "<";
    strncat(bracketed, address, BOUNCE_ADDRESS_SIZE);
    strncat(bracketed, ">", 2);
    assert_true(bounce_address_read(str_from(bracketed), &got, NULL));
}

static void it_may_say_whose_the_address_was(void **state)
{
    (void)state;
    Error err = {0};
    char address[BOUNCE_ADDRESS_SIZE];
    BounceToken got;
    uint8_t hash[ADDRESS_HASH_LEN];
    uint8_t other[ADDRESS_HASH_LEN];
    address_hash(STR("hash key"), STR("acme"), CHANNEL_EMAIL, STR("ada@acme.test"), hash);
    address_hash(STR("hash key"), STR("acme"), CHANNEL_EMAIL, STR("bob@acme.test"), other);
    assert_true(bounce_address_make_for(
        &key, STR("acme"), str_from(ID), 3, hash, STR("bounce.acme.test"), address, &err));
    assert_int_equal(strchr(address, '@') - address, 62); // of at most 64
    Str domain;
    assert_true(bounce_address_read(str_from(address), &got, &domain));
    assert_true(str_eq(domain, STR("bounce.acme.test")));
    assert_true(bounce_token_check(&key, &got, STR("acme")));
    assert_true(bounce_token_is_owner(&got, hash));
    assert_false(bounce_token_is_owner(&got, other));
    assert_true(bounce_address_make(
        &key, STR("acme"), str_from(ID), 3, STR("bounce.acme.test"), address, &err));
    assert_true(bounce_address_read(str_from(address), &got, NULL));
    assert_false(bounce_token_is_owner(&got, hash));
    memcpy(strchr(address, '@'), "uuuuuuuu@x", 11); // not in the alphabet
    assert_false(bounce_address_read(str_from(address), &got, NULL));
}

static void another_address_holds_none(void **state)
{
    (void)state;
    BounceToken got;
    const char *others[] = {"", "<>", "b+@x", "b+short@x.example", "ada@acme.example", "b+"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(bounce_address_read(str_from(others[i]), &got, NULL));
    }
}

static void a_wrong_field_is_named(void **state)
{
    (void)state;
    Error err = {0};
    char address[BOUNCE_ADDRESS_SIZE];
    assert_false(bounce_token_make(&key, STR("A B"), str_from(ID), 1, token, &err));
    assert_non_null(strstr(err.text, "tenant"));
    assert_false(bounce_token_make(&key, STR("acme"), STR("ntf_1"), 1, token, &err));
    assert_non_null(strstr(err.text, "notification_id"));
    assert_false(bounce_token_make(&key, STR("acme"), str_from(ID), 1024, token, &err));
    assert_non_null(strstr(err.text, "attempt"));
    assert_false(bounce_token_make(&key, STR("acme"), str_from(ID), 0, token, &err));
    assert_false(bounce_address_make(&key, STR("acme"), str_from(ID), 1, STR_EMPTY, address, &err));
    assert_non_null(strstr(err.text, "bounce_domain"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_made_comes_back, begin),
        cmocka_unit_test_setup(its_characters_are_frozen, begin),
        cmocka_unit_test_setup(servers_may_change_its_case, begin),
        cmocka_unit_test_setup(every_single_change_is_refused, begin),
        cmocka_unit_test_setup(an_older_master_key_still_verifies, begin),
        cmocka_unit_test_setup(an_address_holds_it, begin),
        cmocka_unit_test_setup(it_may_say_whose_the_address_was, begin),
        cmocka_unit_test_setup(another_address_holds_none, begin),
        cmocka_unit_test_setup(a_wrong_field_is_named, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
