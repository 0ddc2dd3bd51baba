// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/api/api_key.h"
#include "common/codec/hash.h"

typedef Stentor__V1__ApiKey ApiKey;

static void an_end_that_is_not_ahead_is_one_at_once(void **state)
{
    (void)state;
    ApiKey key;
    stentor__v1__api_key__init(&key);
    assert_true(api_key_end(&key, 2000, 1000));
    assert_false(key.revoked);
    assert_string_equal(api_key_state(&key, 1000), "ending");
    assert_true(api_key_end(&key, 1500, 1500));
    assert_true(key.revoked);
    assert_int_equal(key.revoked_at_us, 1500);
    assert_false(api_key_end(&key, 1400, 1400)); // ended already, by a clock that is ahead
    assert_false(api_key_end(&key, 3000, 1400));
    assert_string_equal(api_key_state(&key, 1400), "revoked");
    assert_true(api_key_is_over(&key, 1400));
}

static void an_end_that_this_clock_has_passed_keeps_its_time(void **state)
{
    (void)state;
    ApiKey key;
    stentor__v1__api_key__init(&key);
    key.revoked_at_us = 1000; // of an entry from before `revoked`, or of a grace that is over
    assert_false(api_key_end(&key, 3000, 2000));
    assert_true(api_key_end(&key, 2000, 2000));
    assert_true(key.revoked);
    assert_int_equal(key.revoked_at_us, 1000);
    assert_false(api_key_end(&key, 2001, 2001));
}

static void a_keys_text_gives_the_entry_that_it_was_made_with(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Stentor__V1__ApiKey made, taken;
    stentor__v1__api_key__init(&made);
    stentor__v1__api_key__init(&taken);
    const char *whole = api_key_make(&made, arena);
    assert_true(api_key_take(&taken, str_from(whole), arena));
    assert_string_equal(taken.key_id, made.key_id);
    assert_int_equal(taken.secret_hash.len, SHA256_LEN);
    assert_memory_equal(taken.secret_hash.data, made.secret_hash.data, SHA256_LEN);
    arena_free(arena);
}

static void what_is_no_key_is_not_taken(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "", "stn_", "stn_abc", "stn_abc.", "abc.def", "stn_a b.def", "stn_.def", "stn_abc.d\nf",
    };
    Arena *arena = arena_new(0);
    Stentor__V1__ApiKey key;
    stentor__v1__api_key__init(&key);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_false(api_key_take(&key, str_from(rows[i]), arena));
    }
    arena_free(arena);
}

static void every_wrong_field_of_a_body_is_named(void **state)
{
    (void)state;
    ApiKey key;
    ApiBody body = {0};
    Arena *arena = arena_new(0);
    stentor__v1__api_key__init(&key);
    Str text = STR("{\"name\": \"a\\nb\", \"scopes\": [\"send\", \"fly\", 5], "
                   "\"allowed_cidrs\": [\"10.0.0.0/8\", \"10.0.0.0/33\", \"\", \"::1,::2\"], "
                   "\"expires_at\": \"soon\", \"colour\": 1}");
    assert_true(api_body_parse(&body, text, arena));
    assert_false(api_key_take_body(&body, &key));
    assert_false(api_body_end(&body));
    assert_string_equal(body.problem.field, "name");
    static const char *const others[] = {
        "scopes[1]",  "scopes[2]", "allowed_cidrs[1]", "allowed_cidrs[2]", "allowed_cidrs[3]",
        "expires_at", "colour"};
    assert_int_equal(body.problem.more_count, 7);
    for (size_t i = 0; i < 7; i++) {
        assert_string_equal(body.problem.more[i].field, others[i]);
    }
    api_body_free(&body);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_end_that_is_not_ahead_is_one_at_once),
        cmocka_unit_test(every_wrong_field_of_a_body_is_named),
        cmocka_unit_test(an_end_that_this_clock_has_passed_keeps_its_time),
        cmocka_unit_test(a_keys_text_gives_the_entry_that_it_was_made_with),
        cmocka_unit_test(what_is_no_key_is_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
