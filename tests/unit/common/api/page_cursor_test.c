// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/api/page_cursor.h"

static const PageKeys OLD = {.bytes = {"the key of before"}, .count = 1};
static const PageKeys BOTH = {.bytes = {"the key of today", "the key of before"}, .count = 2};
static const PageKeys NEW = {.bytes = {"the key of today"}, .count = 1};
static const PageKeys NONE = {.count = 0};

static bool reads(const PageKeys *keys, const char *binding, const char *cursor)
{
    uint8_t position[PAGE_POSITION_MAX];
    size_t len = 0;
    bool good = page_cursor_read(keys, str_from(binding), str_from(cursor), position, &len);
    assert_true(!good || str_eq(str_of(position, len), STR("welcome")));
    return good;
}

static void a_cursor_leads_to_the_page_behind_and_to_no_other_list(void **state)
{
    (void)state;
    char cursor[PAGE_CURSOR_SIZE];
    page_cursor_write(&NEW, STR("acme|templates"), STR("welcome"), cursor);
    assert_true(reads(&NEW, "acme|templates", cursor));
    assert_false(reads(&NEW, "other|templates", cursor));
    assert_false(reads(&NEW, "acme|template", cursor));
    assert_false(reads(&NEW, "acme|templates|", cursor));
    assert_false(reads(&NEW, "", cursor));
}

static void what_was_cut_edited_or_made_up_is_no_cursor(void **state)
{
    (void)state;
    char cursor[PAGE_CURSOR_SIZE];
    page_cursor_write(&NEW, STR("list"), STR("welcome"), cursor);
    size_t len = strlen(cursor);
    for (size_t i = 0; i < len; i++) {
        char edited[PAGE_CURSOR_SIZE];
        memcpy(edited, cursor, len + 1);
        edited[i] = edited[i] == 'A' ? 'B' : 'A';
        assert_false(reads(&NEW, "list", edited));
        edited[i] = '\0';
        assert_false(reads(&NEW, "list", edited));
    }
    static const char *const made_up[] = {"x", "welcome", "AAAAAAAAAAAAAAAAAAAAAA", "%", "=", "1"};
    for (size_t i = 0; i < sizeof made_up / sizeof made_up[0]; i++) {
        assert_false(reads(&NEW, "list", made_up[i]));
    }
}

static void a_cursor_outlives_the_rotation_of_the_master_key(void **state)
{
    (void)state;
    char before[PAGE_CURSOR_SIZE];
    char after[PAGE_CURSOR_SIZE];
    page_cursor_write(&OLD, STR("list"), STR("welcome"), before);
    page_cursor_write(&BOTH, STR("list"), STR("welcome"), after);
    assert_true(reads(&BOTH, "list", before));
    assert_true(reads(&BOTH, "list", after));
    assert_true(reads(&NEW, "list", after));
    assert_false(reads(&NEW, "list", before));
}

static void without_a_key_a_cursor_is_bound_all_the_same(void **state)
{
    (void)state;
    char cursor[PAGE_CURSOR_SIZE];
    page_cursor_write(&NONE, STR("list"), STR("welcome"), cursor);
    assert_true(reads(&NONE, "list", cursor));
    assert_false(reads(&NONE, "another", cursor));
    assert_false(reads(&NEW, "list", cursor));
}

static void the_longest_position_fits(void **state)
{
    (void)state;
    char text[PAGE_POSITION_MAX];
    uint8_t position[PAGE_POSITION_MAX];
    char cursor[PAGE_CURSOR_SIZE];
    size_t len = 0;
    memset(text, 'p', sizeof text);
    page_cursor_write(&NEW, STR("list"), str_of(text, sizeof text), cursor);
    assert_int_equal(strlen(cursor), PAGE_CURSOR_SIZE - 1);
    assert_true(page_cursor_read(&NEW, STR("list"), str_from(cursor), position, &len));
    assert_int_equal(len, sizeof text);
    assert_memory_equal(position, text, len);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cursor_leads_to_the_page_behind_and_to_no_other_list),
        cmocka_unit_test(what_was_cut_edited_or_made_up_is_no_cursor),
        cmocka_unit_test(a_cursor_outlives_the_rotation_of_the_master_key),
        cmocka_unit_test(without_a_key_a_cursor_is_bound_all_the_same),
        cmocka_unit_test(the_longest_position_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
