// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/map.h"

static int freed;

static void count_free(void *value)
{
    free(value);
    freed++;
}

static void *boxed(int number)
{
    int *box = malloc(sizeof *box);
    assert_non_null(box);
    *box = number;
    return box;
}

static Str name(char text[16], int number)
{
    snprintf(text, 16, "key-%d", number);
    return str_from(text);
}

static void what_was_put_is_found_and_owned(void **state)
{
    (void)state;
    freed = 0;
    Map *map = map_new(count_free);
    map_put(map, STR("a"), boxed(1));
    map_put(map, STR_EMPTY, boxed(2));
    assert_int_equal(*(int *)map_get(map, STR("a")), 1);
    assert_int_equal(*(int *)map_get(map, STR_EMPTY), 2);
    assert_null(map_get(map, STR("b")));
    map_put(map, STR("a"), boxed(3));
    assert_int_equal(freed, 1);
    assert_int_equal(*(int *)map_get(map, STR("a")), 3);
    assert_int_equal(map_count(map), 2);
    assert_true(map_remove(map, STR("a")));
    assert_int_equal(freed, 2);
    assert_false(map_remove(map, STR("a")));
    map_free(map);
    assert_int_equal(freed, 3);
    map_free(NULL);
}

static void keys_are_copies_of_any_bytes(void **state)
{
    (void)state;
    Map *map = map_new(NULL);
    char key[] = "x\0y";
    int one = 1;
    map_put(map, str_of(key, 3), &one);
    key[0] = 'z';
    assert_ptr_equal(map_get(map, str_of("x\0y", 3)), &one);
    assert_null(map_get(map, str_of("z\0y", 3)));
    assert_null(map_get(map, STR("x")));
    map_free(map);
}

static void it_agrees_with_an_array_through_many_changes(void **state)
{
    (void)state;
    enum { KEYS = 300 };
    Map *map = map_new(NULL);
    static int values[KEYS];
    bool there[KEYS] = {false};
    uint32_t seed = 12345;
    for (int step = 0; step < 20000; step++) {
        seed = seed * 1664525u + 1013904223u;
        int number = (int)(seed >> 8) % KEYS;
        char text[16];
        if (seed >> 31 != 0) {
            map_put(map, name(text, number), &values[number]);
            there[number] = true;
        } else {
            assert_int_equal(map_remove(map, name(text, number)), there[number]);
            there[number] = false;
        }
    }
    size_t count = 0;
    for (int i = 0; i < KEYS; i++) {
        char text[16];
        assert_ptr_equal(map_get(map, name(text, i)), there[i] ? &values[i] : NULL);
        count += there[i];
    }
    assert_int_equal(map_count(map), count);
    map_free(map);
}

static void a_walk_meets_each_once(void **state)
{
    (void)state;
    enum { KEYS = 100 };
    Map *map = map_new(NULL);
    int met[KEYS] = {0};
    for (int i = 0; i < KEYS; i++) {
        char text[16];
        map_put(map, name(text, i), &met[i]);
    }
    Str key;
    void *value;
    for (size_t i = 0; map_next(map, &i, &key, &value);) {
        assert_true(str_starts(key, STR("key-")));
        (*(int *)value)++;
    }
    for (int i = 0; i < KEYS; i++) {
        assert_int_equal(met[i], 1);
    }
    map_free(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_put_is_found_and_owned),
        cmocka_unit_test(keys_are_copies_of_any_bytes),
        cmocka_unit_test(it_agrees_with_an_array_through_many_changes),
        cmocka_unit_test(a_walk_meets_each_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
