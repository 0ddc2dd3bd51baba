// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/db/key_cache.h"

enum { LIVE_MS = 60000, MAX = 3 };

// Entries without a key stand for destroyed ones; the order and the counting are the same.
static void add(KeyCache *cache, const char *name, uint64_t now_ms)
{
    key_cache_release(cache, key_cache_add(cache, str_from(name), NULL, now_ms), now_ms);
}

static bool has(KeyCache *cache, const char *name)
{
    return key_cache_get(cache, str_from(name)) != NULL;
}

static int set_up(void **state)
{
    *state = key_cache_new(MAX, LIVE_MS);
    return 0;
}

static int tear_down(void **state)
{
    key_cache_free(*state);
    return 0;
}

static void an_entry_lives_for_its_time(void **state)
{
    add(*state, "a", 1000);
    key_cache_sweep(*state, 1000 + LIVE_MS - 1);
    assert_true(has(*state, "a"));
    key_cache_sweep(*state, 1000 + LIVE_MS);
    assert_false(has(*state, "a"));
}

static void the_oldest_makes_room(void **state)
{
    add(*state, "a", 1);
    add(*state, "b", 2);
    add(*state, "c", 3);
    add(*state, "d", 4);
    assert_true(has(*state, "a")); // until the next sweep
    key_cache_sweep(*state, 5);
    assert_false(has(*state, "a"));
    assert_true(has(*state, "b"));
    assert_true(has(*state, "d"));
}

static void a_replaced_entry_does_not_take_the_new_one_with_it(void **state)
{
    add(*state, "a", 1000);
    add(*state, "a", 2000);
    key_cache_sweep(*state, 1000 + LIVE_MS); // the first one's end
    assert_true(has(*state, "a"));
    key_cache_sweep(*state, 2000 + LIVE_MS);
    assert_false(has(*state, "a"));
}

// Under the address sanitizer a key freed too early ends the test.
static void a_key_in_use_outlives_its_place_in_the_cache(void **state)
{
    char text[132];
    master_key_generate(text);
    MasterKey *master = master_key_parse(str_from(text), NULL);
    uint8_t wrapped[WRAPPED_KEY_LEN];
    DataKey *key = data_key_new(master, (const uint8_t *)"0123456789abcdef", 7, wrapped);
    KeyEntry *entry = key_cache_add(*state, STR("a"), key, 0);
    key_cache_sweep(*state, LIVE_MS);
    assert_false(has(*state, "a"));
    key_cache_sweep(*state, 10 * LIVE_MS);
    assert_int_equal(data_key_generation(entry->key), 7);
    key_cache_release(*state, entry, 10 * LIVE_MS);
    key_cache_sweep(*state, 10 * LIVE_MS); // the same turn of the loop
    assert_int_equal(data_key_generation(entry->key), 7);
    key_cache_sweep(*state, 10 * LIVE_MS + KEY_GRACE_MS + 1);
    master_key_free(master);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_entry_lives_for_its_time),
        TEST(the_oldest_makes_room),
        TEST(a_replaced_entry_does_not_take_the_new_one_with_it),
        TEST(a_key_in_use_outlives_its_place_in_the_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
