// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/service/options.h"

typedef struct Values {
    const char *url;
    const char *secret;
    int64_t port;
    bool fast;
} Values;

// clang-format off
static const Option table[] = {
    {"STENTOR_URL", OPTION_TEXT, offsetof(Values, url), NULL, 0, 0, false, "where it is"},
    {"STENTOR_T_SECRET", OPTION_TEXT, offsetof(Values, secret), "", 0, 0, true, "the secret"},
    {"STENTOR_PORT", OPTION_INT, offsetof(Values, port), "80", 0, 65535, false, "the port"},
    {"STENTOR_FAST", OPTION_BOOL, offsetof(Values, fast), "true", 0, 0, false, "be fast"},
};
// clang-format on
enum { URL, SECRET, PORT, FAST, ROWS };

static void expect_printed(size_t row, const Values *values, const char *expected)
{
    Buf out;
    buf_init(&out, 1024);
    assert_true(options_print(&table[row], values, &out));
    assert_string_equal(buf_c(&out), expected);
    buf_done(&out);
}

static void values_are_printed(void **state)
{
    (void)state;
    Values values = {.url = "nats://a:1", .secret = "", .port = -7, .fast = true};
    expect_printed(URL, &values, "nats://a:1");
    expect_printed(SECRET, &values, "");
    expect_printed(PORT, &values, "-7");
    expect_printed(FAST, &values, "true");
}

static void a_secret_is_three_stars(void **state)
{
    (void)state;
    expect_printed(SECRET, &(Values){.secret = "geheim"}, "***");
}

static void a_password_in_a_url_is_hidden(void **state)
{
    (void)state;
    expect_printed(
        URL, &(Values){.url = "nats://me:pa/ss@w@a:1,nats://b,tls://x:y@c"},
        "nats://***@a:1,nats://b,tls://***@c");
    expect_printed(URL, &(Values){.url = "a@b"}, "a@b");
    expect_printed(URL, &(Values){.url = ""}, "");
}

static void the_table_becomes_markdown(void **state)
{
    (void)state;
    Buf out;
    buf_init(&out, 4096);
    assert_true(options_markdown(table, ROWS, &out));
    assert_string_equal(
        buf_c(&out), "| name | default | meaning |\n|---|---|---|\n"
                     "| `STENTOR_URL` | required | where it is |\n"
                     "| `STENTOR_T_SECRET` | none | the secret (secret; or a file in NAME_FILE) |\n"
                     "| `STENTOR_PORT` | `80` | the port |\n"
                     "| `STENTOR_FAST` | `true` | be fast |\n");
    buf_done(&out);
}

static void help_names_every_row_in_both_spellings(void **state)
{
    (void)state;
    Buf out;
    buf_init(&out, 4096);
    assert_true(options_help(table, ROWS, "stentor-x", "does x", &out));
    assert_non_null(strstr(buf_c(&out), "Usage: stentor-x "));
    assert_non_null(strstr(buf_c(&out), "\ndoes x\n"));
    assert_non_null(strstr(buf_c(&out), "  --url  (STENTOR_URL, required)\n      where it is\n"));
    assert_non_null(strstr(buf_c(&out), "  --t-secret  (STENTOR_T_SECRET, default none)\n"));
    assert_non_null(strstr(buf_c(&out), "  --port  (STENTOR_PORT, default 80)\n"));
    assert_non_null(strstr(buf_c(&out), "  --fast  (STENTOR_FAST, default true)\n"));
    buf_done(&out);
}

static void a_full_buffer_is_reported(void **state)
{
    (void)state;
    Buf out;
    buf_init(&out, 20);
    assert_false(options_markdown(table, ROWS, &out));
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_printed),
        cmocka_unit_test(a_secret_is_three_stars),
        cmocka_unit_test(a_password_in_a_url_is_hidden),
        cmocka_unit_test(the_table_becomes_markdown),
        cmocka_unit_test(help_names_every_row_in_both_spellings),
        cmocka_unit_test(a_full_buffer_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
