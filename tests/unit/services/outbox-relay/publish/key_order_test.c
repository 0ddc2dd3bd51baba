// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "services/outbox-relay/publish/key_order.h"

static int set_up(void **state)
{
    *state = arena_new(0);
    return 0;
}

static int tear_down(void **state)
{
    arena_free(*state);
    return 0;
}

static void rows_of_one_key_follow_each_other(void **state)
{
    const Str keys[] = {STR("a"), STR("b"), STR("a"), STR("a"), STR("b")};
    KeyOrder order;
    key_order_init(&order, *state, keys, 5);
    const bool first[] = {true, true, false, false, false};
    const size_t next[] = {2, 4, 3, KEY_ORDER_NONE, KEY_ORDER_NONE};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(order.first[i], first[i]);
        assert_true(order.next[i] == next[i]);
    }
}

static void rows_without_a_key_go_together(void **state)
{
    const Str none = {NULL, 0};
    const Str keys[] = {none, STR("a"), none, none};
    KeyOrder order;
    key_order_init(&order, *state, keys, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_true(order.first[i]);
        assert_true(order.next[i] == KEY_ORDER_NONE);
    }
}

static void the_empty_text_is_a_key(void **state)
{
    const Str keys[] = {STR_EMPTY, STR("a"), STR_EMPTY};
    KeyOrder order;
    key_order_init(&order, *state, keys, 3);
    assert_true(order.next[0] == 2);
    assert_false(order.first[2]);
}

static void an_empty_batch_has_no_rows(void **state)
{
    KeyOrder order;
    key_order_init(&order, *state, NULL, 0);
    assert_non_null(order.next);
}

// Every row is in just one chain, whatever the keys: followed from the first ones, all are met
// once, in order.
static void every_row_is_in_one_chain(void **state)
{
    enum { ROWS = 5000 };
    static char names[ROWS][16];
    static Str keys[ROWS];
    static int met[ROWS];
    for (size_t i = 0; i < ROWS; i++) {
        snprintf(names[i], sizeof names[i], "key-%zu", i * i % 977);
        keys[i] = str_from(names[i]);
    }
    KeyOrder order;
    key_order_init(&order, *state, keys, ROWS);
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t at = order.first[i] ? i : KEY_ORDER_NONE; at != KEY_ORDER_NONE;
             at = order.next[at]) {
            met[at]++;
            assert_true(order.next[at] == KEY_ORDER_NONE || order.next[at] > at);
            assert_true(order.next[at] == KEY_ORDER_NONE || str_eq(keys[order.next[at]], keys[at]));
        }
    }
    for (size_t i = 0; i < ROWS; i++) {
        assert_int_equal(met[i], 1);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rows_of_one_key_follow_each_other), TEST(rows_without_a_key_go_together),
        TEST(the_empty_text_is_a_key),           TEST(an_empty_batch_has_no_rows),
        TEST(every_row_is_in_one_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
