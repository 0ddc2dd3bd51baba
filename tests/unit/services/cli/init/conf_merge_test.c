// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "services/cli/init/conf_merge.h"

#define URL "STENTOR_SMTP_URL=\"smtp://127.0.0.1:2525\"\n"
#define TLS "STENTOR_SMTP_TLS=\"off\"\n"
#define PORT "STENTOR_ADMIN_PORT=\"9401\"\n"

static int begin(void **state)
{
    *state = arena_new(0);
    return 0;
}

static int end(void **state)
{
    arena_free(*state);
    return 0;
}

// As init writes it: the head, then the lines.
static Str written(Arena *arena, const char *lines)
{
    Buf out;
    buf_init(&out, 8192);
    conf_head(&out, str_from(lines));
    buf_cstr(&out, lines);
    Str text = arena_str(arena, buf_view(&out));
    buf_done(&out);
    return text;
}

static Str replaced(Arena *arena, Str text, const char *what, const char *with)
{
    const char *whole = arena_cstr(arena, text);
    const char *at = strstr(whole, what);
    assert_non_null(at);
    return str_from(
        arena_printf(arena, "%.*s%s%s", (int)(at - whole), whole, with, at + strlen(what)));
}

static void assert_text(Str text, Str wanted, Arena *arena)
{
    assert_string_equal(arena_cstr(arena, text), arena_cstr(arena, wanted));
}

static void what_nobody_changed_is_written_again(void **state)
{
    Arena *arena = *state;
    Str fresh = written(arena, "STENTOR_SMTP_URL=\"smtp://127.0.0.1:2526\"\nSTENTOR_NEW=\"1\"\n");
    ConfMerge merged = conf_merge(written(arena, URL TLS), fresh, arena);
    assert_text(merged.text, fresh, arena); // its value, without TLS, with what is new
    assert_int_equal(merged.n_kept, 0);
}

static void what_the_operator_changed_stays_through_every_release(void **state)
{
    Arena *arena = *state;
    Str file = written(arena, URL TLS PORT);
    file = replaced(arena, file, URL, "# ours\nSTENTOR_SMTP_URL = smtp://relay.test\n");
    file = replaced(arena, file, TLS, "");
    file = replaced(arena, file, PORT, PORT "STENTOR_MAIL_DOMAIN=acme.test\n");
    for (int port = 9402; port <= 9404; port++) {
        const char *lines = arena_printf(arena, URL TLS "STENTOR_ADMIN_PORT=\"%d\"\n", port);
        Str fresh = written(arena, lines);
        ConfMerge merged = conf_merge(file, fresh, arena);
        Str wanted = replaced(
            arena, fresh, lines,
            arena_printf(
                arena,
                "# ours\nSTENTOR_SMTP_URL = smtp://relay.test\nSTENTOR_ADMIN_PORT=\"%d\"\n"
                "STENTOR_MAIL_DOMAIN=acme.test\n",
                port));
        assert_text(merged.text, wanted, arena);
        assert_int_equal(merged.n_kept, 3);
        assert_string_equal(merged.kept[0], "STENTOR_SMTP_URL");
        assert_string_equal(merged.kept[1], "STENTOR_MAIL_DOMAIN");
        assert_string_equal(merged.kept[2], "STENTOR_SMTP_TLS");
        file = merged.text;
    }
}

static void a_change_that_is_taken_back_is_ours_again(void **state)
{
    Arena *arena = *state;
    Str file = written(arena, URL);
    Str changed = replaced(arena, file, "2525", "2600");
    Str kept = conf_merge(changed, file, arena).text;
    Str back = replaced(arena, kept, "2600", "2525");
    Str fresh = written(arena, "STENTOR_SMTP_URL=\"smtp://127.0.0.1:2700\"\n");
    assert_text(conf_merge(back, fresh, arena).text, fresh, arena);
}

static void a_file_without_sums_loses_nothing_that_differs(void **state)
{
    Arena *arena = *state;
    Str before = STR("# written by stentor init, which keeps this file from now on (unless "
                     "--renew is given)\nSTENTOR_SMTP_URL=\"smtp://mine\"\n" TLS);
    ConfMerge merged = conf_merge(before, written(arena, URL TLS PORT), arena);
    Str wanted =
        replaced(arena, written(arena, URL TLS PORT), "smtp://127.0.0.1:2525", "smtp://mine");
    assert_text(merged.text, wanted, arena);
    assert_int_equal(merged.n_kept, 1);
}

static void lines_that_no_program_takes_stay(void **state)
{
    Arena *arena = *state;
    Str file = replaced(arena, written(arena, URL), URL, URL "nonsense\n\nSTENTOR_X=\"open\n");
    assert_text(conf_merge(file, written(arena, URL), arena).text, file, arena);
}

static void a_file_of_another_grammar_is_ours_as_a_whole_or_not(void **state)
{
    Arena *arena = *state;
    Buf out;
    buf_init(&out, 8192);
    conf_whole_head(&out, STR("listen: \"127.0.0.1:4222\"\n"));
    buf_cstr(&out, "listen: \"127.0.0.1:4222\"\n");
    Str file = arena_str(arena, buf_view(&out));
    Str before = STR("# written by stentor init, which\nlisten: \"127.0.0.1:4222\"\n");
    Str before_changed = STR("# written by stentor init, which\nlisten: \"127.0.0.1:5222\"\n");
    assert_true(conf_whole_is_ours(file, STR("anything else\n")));
    assert_false(conf_whole_is_ours(replaced(arena, file, "4222", "5222"), file));
    assert_true(conf_whole_is_ours(before, file));
    assert_false(conf_whole_is_ours(before_changed, file));
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_nobody_changed_is_written_again, begin, end),
        cmocka_unit_test_setup_teardown(
            what_the_operator_changed_stays_through_every_release, begin, end),
        cmocka_unit_test_setup_teardown(a_change_that_is_taken_back_is_ours_again, begin, end),
        cmocka_unit_test_setup_teardown(a_file_without_sums_loses_nothing_that_differs, begin, end),
        cmocka_unit_test_setup_teardown(lines_that_no_program_takes_stay, begin, end),
        cmocka_unit_test_setup_teardown(
            a_file_of_another_grammar_is_ours_as_a_whole_or_not, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
