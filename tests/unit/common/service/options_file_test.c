// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/service/options_file.h"

static void expect_assignment(OptionsFile *file, int line, const char *name, const char *value)
{
    Str got_name, got_value;
    Error err = {0};
    assert_true(options_file_next(file, &got_name, &got_value, &err));
    assert_true(str_eq(got_name, str_from(name)));
    assert_true(str_eq(got_value, str_from(value)));
    assert_int_equal(file->line, line);
}

static void expect_error(const char *text, const char *part)
{
    OptionsFile file;
    options_file_init(&file, str_from(text));
    Str name, value;
    Error err = {0};
    assert_false(options_file_next(&file, &name, &value, &err));
    assert_int_equal(err.kind, ERROR_CONFIG);
    if (strstr(err.text, part) == NULL) {
        fail_msg("'%s' is not in '%s'", part, err.text);
    }
    options_file_done(&file);
}

static void lines_comments_and_quotes_are_read(void **state)
{
    (void)state;
    OptionsFile file;
    options_file_init(
        &file, STR("# a comment\n"
                   "\n"
                   "STENTOR_A=1\r\n"
                   "  STENTOR_B = two words  \n"
                   "STENTOR_C=\" kept \\\"so\\\" \\\\ \"\n"
                   "STENTOR_D=http://x/#fragment=1\n"
                   "STENTOR_E=\n"
                   "STENTOR_F=last"));
    expect_assignment(&file, 3, "STENTOR_A", "1");
    expect_assignment(&file, 4, "STENTOR_B", "two words");
    expect_assignment(&file, 5, "STENTOR_C", " kept \"so\" \\ ");
    expect_assignment(&file, 6, "STENTOR_D", "http://x/#fragment=1");
    expect_assignment(&file, 7, "STENTOR_E", "");
    expect_assignment(&file, 8, "STENTOR_F", "last");
    Str name, value;
    Error err = {0};
    assert_false(options_file_next(&file, &name, &value, &err));
    assert_int_equal(err.kind, ERROR_NONE);
    options_file_done(&file);
}

static void a_line_that_is_none_is_named(void **state)
{
    (void)state;
    expect_error("\n\nnonsense", "line 3: expected NAME=value");
    expect_error("=1", "line 1: expected NAME=value");
    expect_error("stentor_a=1", "line 1: expected NAME=value");
    expect_error("9A=1", "line 1: expected NAME=value");
    expect_error("export A=1", "line 1: expected NAME=value");
}

static void broken_quotes_are_named(void **state)
{
    (void)state;
    expect_error("A=\"open", "line 1: the closing quote is missing");
    expect_error("A=\"open\\\"", "line 1: the closing quote is missing");
    expect_error("A=\"open\\", "line 1: the closing quote is missing");
    expect_error("A=\"a\"b", "line 1: text after the closing quote");
    expect_error("A=\"\\n\"", "line 1: in quotes a backslash");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_comments_and_quotes_are_read),
        cmocka_unit_test(a_line_that_is_none_is_named),
        cmocka_unit_test(broken_quotes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
