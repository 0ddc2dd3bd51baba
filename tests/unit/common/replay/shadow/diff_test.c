// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/replay/shadow/diff.h"

static Arena *arena;
static Buf out;

static int open_all(void **state)
{
    (void)state;
    arena = arena_new(0);
    buf_init(&out, 1 << 20);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    arena_free(arena);
    buf_done(&out);
    return 0;
}

static bool differ(Str before, Str after, uint64_t *signature)
{
    buf_clear(&out);
    return diff_unified("old", before, "new", after, arena, &out, signature);
}

static void assert_diff(const char *before, const char *after, const char *expected)
{
    uint64_t signature = 1;
    assert_true(differ(str_from(before), str_from(after), &signature));
    assert_string_equal(buf_c(&out), expected);
}

static void equal_texts_have_no_difference(void **state)
{
    (void)state;
    uint64_t signature = 1;
    assert_false(differ(STR("a\nb\n"), STR("a\nb\n"), &signature));
    assert_false(differ(STR_EMPTY, STR_EMPTY, &signature));
    assert_int_equal(out.len, 0);
}

static void a_change_has_three_lines_around_it(void **state)
{
    (void)state;
    assert_diff(
        "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n",
        "--- old\n+++ new\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

static void lines_that_come_or_go(void **state)
{
    (void)state;
    assert_diff("", "a\n", "--- old\n+++ new\n@@ -0,0 +1,1 @@\n+a\n");
    assert_diff("a\nb\n", "b\n", "--- old\n+++ new\n@@ -1,2 +1,1 @@\n-a\n b\n");
    assert_diff("a\nb\n", "a\nx\nb\n", "--- old\n+++ new\n@@ -1,2 +1,3 @@\n a\n+x\n b\n");
}

static void changes_far_apart_are_two_hunks_and_near_ones_are_one(void **state)
{
    (void)state;
    assert_diff(
        "a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n",
        "--- old\n+++ new\n@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n "
        "7\n-b\n+B\n");
    assert_diff(
        "a\n1\n2\nb\n", "A\n1\n2\nB\n",
        "--- old\n+++ new\n@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n-b\n+B\n");
}

static void a_missing_line_break_at_the_end_is_reported(void **state)
{
    (void)state;
    assert_diff(
        "a", "a\n", "--- old\n+++ new\n@@ -1,1 +1,1 @@\n-a\n\\ no line break at the end\n+a\n");
}

static void the_way_is_the_shortest(void **state)
{
    (void)state;
    uint64_t signature = 1;
    assert_true(differ(STR("a\nb\nc\na\nb\nb\na\n"), STR("c\nb\na\nb\na\nc\n"), &signature));
    size_t changes = 0;
    Str rest = buf_view(&out);
    Str line;
    while (str_split(&rest, '\n', &line)) {
        bool head = str_starts(line, STR("---")) || str_starts(line, STR("+++"));
        changes += !head && (str_starts(line, STR("-")) || str_starts(line, STR("+")));
    }
    assert_int_equal(changes, 5); // Myers's own example
}

static void the_signature_is_of_the_places_not_of_the_words(void **state)
{
    (void)state;
    uint64_t ann = 1, bob = 1, elsewhere = 1;
    differ(STR("Dear Ann\nx\n"), STR("Hi Ann\nx\n"), &ann);
    differ(STR("Dear Bob\nx\n"), STR("Hi Bob\nx\n"), &bob);
    differ(STR("x\nDear Bob\n"), STR("x\nHi Bob\n"), &elsewhere);
    assert_int_equal(ann, bob);
    assert_int_not_equal(ann, elsewhere);
}

static void long_texts_are_only_distinguished(void **state)
{
    (void)state;
    uint64_t signature = 1;
    Buf before, after;
    buf_init(&before, 1 << 20);
    buf_init(&after, 1 << 20);
    buf_cstr(&before, "same\n");
    buf_cstr(&after, "same\n");
    for (int i = 0; i <= DIFF_LINES_MAX; i++) {
        buf_printf(&before, "old %d\n", i);
        buf_printf(&after, "new %d\n", i);
    }
    assert_true(differ(buf_view(&before), buf_view(&after), &signature));
    assert_string_equal(
        buf_c(&out), "--- old\n+++ new\ntoo long to compare, differs from line 2\n");
    buf_done(&before);
    buf_done(&after);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(equal_texts_have_no_difference),
        TEST(a_change_has_three_lines_around_it),
        TEST(lines_that_come_or_go),
        TEST(changes_far_apart_are_two_hunks_and_near_ones_are_one),
        TEST(a_missing_line_break_at_the_end_is_reported),
        TEST(the_way_is_the_shortest),
        TEST(the_signature_is_of_the_places_not_of_the_words),
        TEST(long_texts_are_only_distinguished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
