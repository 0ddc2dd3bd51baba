// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "services/gateway/templates/template_diff.h"

static json_t *diff_of(const char *from, const char *to)
{
    json_t *a = json_loads(from, 0, NULL);
    json_t *b = json_loads(to, 0, NULL);
    assert_non_null(a);
    assert_non_null(b);
    json_t *list = template_diff(a, b);
    json_decref(a);
    json_decref(b);
    return list;
}

static const char *text_at(const json_t *list, size_t at, const char *name)
{
    return json_string_value(json_object_get(json_array_get(list, at), name));
}

static void the_same_content_differs_in_nothing(void **state)
{
    (void)state;
    json_t *list = diff_of(
        "{\"version\":\"1.0.0\",\"status\":\"active\",\"published_at\":\"a\",\"category\":\"x\"}",
        "{\"version\":\"1.1.0\",\"status\":\"draft\",\"published_at\":\"b\",\"category\":\"x\"}");
    assert_int_equal(json_array_size(list), 0);
    json_decref(list);
}

static void members_are_named_by_their_path(void **state)
{
    (void)state;
    json_t *list = diff_of(
        "{\"locales\":[{\"locale\":\"en\",\"subject\":\"Hi\"},{\"locale\":\"de\",\"subject\":\"a\"}"
        "],"
        "\"gone\":1}",
        "{\"locales\":[{\"locale\":\"de\",\"subject\":\"a\"},{\"locale\":\"en\",\"subject\":"
        "\"Hello\"},"
        "{\"locale\":\"fa\",\"subject\":\"b\"}],\"new\":true}");
    assert_int_equal(json_array_size(list), 4);
    assert_string_equal(text_at(list, 0, "at"), "locales[en].subject");
    assert_string_equal(text_at(list, 0, "to"), "Hello");
    assert_string_equal(text_at(list, 1, "at"), "locales[fa]");
    assert_true(json_is_null(json_object_get(json_array_get(list, 1), "from")));
    assert_string_equal(text_at(list, 2, "at"), "gone");
    assert_string_equal(text_at(list, 3, "at"), "new");
    json_decref(list);
}

static void a_long_text_is_compared_line_by_line(void **state)
{
    (void)state;
    json_t *list = diff_of("{\"html\":\"a\\nb\\nc\\n\"}", "{\"html\":\"a\\nx\\nc\\nd\\n\"}");
    assert_int_equal(json_array_size(list), 1);
    const json_t *lines = json_object_get(json_array_get(list, 0), "lines");
    char seen[64] = "";
    size_t used = 0;
    for (size_t i = 0; i < json_array_size(lines); i++) {
        used += (size_t)snprintf(
            seen + used, sizeof seen - used, "%s%s|", text_at(lines, i, "op"),
            text_at(lines, i, "text"));
    }
    assert_string_equal(seen, " a|-b|+x| c|+d| |");
    json_decref(list);
}

static char *many(const char *line, size_t count)
{
    size_t len = strlen(line);
    char *text = malloc(count * len + 1);
    assert_non_null(text);
    for (size_t i = 0; i < count; i++) {
        memcpy(text + i * len, line, len);
    }
    text[count * len] = '\0';
    return text;
}

static void what_has_too_many_lines_is_shown_whole(void **state)
{
    (void)state;
    char *a = many("a\n", 2000);
    char *b = many("b\n", 2000);
    json_t *from = json_pack("{s:s}", "html", a);
    json_t *to = json_pack("{s:s}", "html", b);
    json_t *list = template_diff(from, to);
    assert_int_equal(json_array_size(list), 1);
    assert_null(json_object_get(json_array_get(list, 0), "lines"));
    assert_int_equal(strlen(text_at(list, 0, "to")), 4000);
    json_decref(list);
    json_decref(from);
    json_decref(to);
    free(a);
    free(b);
}

static void deep_and_many_changes_have_an_end(void **state)
{
    (void)state;
    json_t *from = json_object();
    json_t *to = json_object();
    for (int i = 0; i < 2 * DIFF_CHANGES_MAX; i++) {
        char name[16];
        snprintf(name, sizeof name, "m%d", i);
        json_object_set_new(from, name, json_integer(i));
        json_object_set_new(to, name, json_integer(i + 1));
    }
    json_t *list = template_diff(from, to);
    assert_int_equal(json_array_size(list), DIFF_CHANGES_MAX);
    json_decref(list);
    json_decref(from);
    json_decref(to);
    char *open = many("{\"a\":", 60);
    char *close = many("}", 60);
    char deep[512], other[512];
    snprintf(deep, sizeof deep, "%s1%s", open, close);
    snprintf(other, sizeof other, "%s2%s", open, close);
    list = diff_of(deep, other);
    assert_int_equal(json_array_size(list), 1);
    json_decref(list);
    free(open);
    free(close);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_content_differs_in_nothing),
        cmocka_unit_test(members_are_named_by_their_path),
        cmocka_unit_test(a_long_text_is_compared_line_by_line),
        cmocka_unit_test(what_has_too_many_lines_is_shown_whole),
        cmocka_unit_test(deep_and_many_changes_have_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
