// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/base/arena.h"

static void pieces_are_aligned_and_do_not_overlap(void **state)
{
    (void)state;
    Arena *arena = arena_new(64);
    unsigned char *pieces[200];
    for (size_t i = 0; i < 200; i++) {
        pieces[i] = arena_alloc(arena, i + 1);
        assert_int_equal((uintptr_t)pieces[i] % _Alignof(max_align_t), 0);
        memset(pieces[i], (int)i, i + 1);
    }
    for (size_t i = 0; i < 200; i++) {
        for (size_t k = 0; k <= i; k++) {
            assert_int_equal(pieces[i][k], i);
        }
    }
    arena_free(arena);
}

static void a_large_piece_leaves_the_current_block_in_use(void **state)
{
    (void)state;
    Arena *arena = arena_new(1024);
    char *before = arena_alloc(arena, 16);
    char *large = arena_alloc(arena, 5 * 1024 * 1024);
    memset(large, 1, 5 * 1024 * 1024);
    char *after = arena_alloc(arena, 16);
    assert_ptr_equal(after, before + 16);
    arena_free(arena);
}

static void nothing_is_a_valid_piece(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    assert_non_null(arena_alloc(arena, 0));
    assert_string_equal(arena_cstr(arena, STR_EMPTY), "");
    assert_string_equal(arena_str(arena, (Str){NULL, 0}).ptr, "");
    arena_free(arena);
    arena_free(NULL);
}

static void a_reset_arena_gives_its_first_block_again(void **state)
{
    (void)state;
    Arena *arena = arena_new(128);
    void *first = arena_alloc(arena, 100);
    for (int i = 0; i < 100; i++) {
        arena_alloc(arena, 100);
    }
    assert_true(arena_used(arena) >= 101 * 100);
    arena_reset(arena);
    assert_int_equal(arena_used(arena), 0);
    assert_ptr_equal(arena_alloc(arena, 100), first);
    arena_free(arena);
}

static void copies_are_whole_and_end_in_nul(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Str copy = arena_str(arena, (Str){"welcome back", 7});
    assert_int_equal(copy.len, 7);
    assert_string_equal(copy.ptr, "welcome");
    assert_memory_equal(arena_copy(arena, "a\0b", 3), "a\0b", 3);
    assert_string_equal(arena_printf(arena, "%s/%d", "sent", 3), "sent/3");
    char *zero = arena_array(arena, 10, 3);
    for (size_t i = 0; i < 30; i++) {
        assert_int_equal(zero[i], 0);
    }
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_and_do_not_overlap),
        cmocka_unit_test(a_large_piece_leaves_the_current_block_in_use),
        cmocka_unit_test(nothing_is_a_valid_piece),
        cmocka_unit_test(a_reset_arena_gives_its_first_block_again),
        cmocka_unit_test(copies_are_whole_and_end_in_nul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
