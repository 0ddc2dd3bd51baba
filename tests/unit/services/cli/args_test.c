// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "services/cli/cli.h"

static const Command put = {
    .name = "thing put",
    .usage = "KEY",
    .min_words = 1,
    .max_words = 2,
    .flags = "name= var= json",
    .help = "",
};
static const Command bare = {.name = "bare", .usage = "", .flags = "", .help = ""};

static const Command fit = {
    .name = "fit",
    .usage = "",
    .flags = "mapping=! role=",
    .help = "check\n  --mapping FILE   the mapping"};

// Parses words that end with NULL, as main() would hand them over.
static bool parse(const Command *command, const char *const *words, Args *ret, Error *err)
{
    static char copies[ARGS_MAX * 3][48];
    char *argv[ARGS_MAX * 3];
    int argc = 0;
    for (; words[argc] != NULL; argc++) {
        assert_true((size_t)snprintf(copies[argc], sizeof copies[argc], "%s", words[argc]) < 48);
        argv[argc] = copies[argc];
    }
    return args_parse(command, argc, argv, ret, err);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void words_and_flags_may_stand_in_any_order(void **state)
{
    (void)state;
    Args args;
    Error err = {0};
    assert_true(parse(&put, WORDS("--json", "key", "--name", "Alice", "second"), &args, &err));
    assert_string_equal(args_word(&args, 0), "key");
    assert_string_equal(args_word(&args, 1), "second");
    assert_null(args_word(&args, 2));
    assert_string_equal(args_flag(&args, "name"), "Alice");
    assert_true(args_has(&args, "json"));
    assert_null(args_flag(&args, "var"));
    assert_false(args_has(&args, "var"));
}

static void a_value_follows_or_stands_behind_the_equals_sign(void **state)
{
    (void)state;
    Args args;
    Error err = {0};
    assert_true(parse(&put, WORDS("key", "--name=a=b", "--var", "--json"), &args, &err));
    assert_string_equal(args_flag(&args, "name"), "a=b");
    assert_string_equal(args_flag(&args, "var"), "--json"); // a value may look like a flag
    assert_false(args_has(&args, "json"));
    assert_true(parse(&put, WORDS("key", "--name="), &args, &err));
    assert_string_equal(args_flag(&args, "name"), "");
    assert_true(args_has(&args, "name"));
}

static void repeated_flags_are_walked_in_order_and_the_last_one_counts(void **state)
{
    (void)state;
    Args args;
    Error err = {0};
    assert_true(parse(&put, WORDS("key", "--var", "a", "--name", "n", "--var=b"), &args, &err));
    int cursor = 0;
    assert_string_equal(args_each(&args, "var", &cursor), "a");
    assert_string_equal(args_each(&args, "var", &cursor), "b");
    assert_null(args_each(&args, "var", &cursor));
    assert_string_equal(args_flag(&args, "var"), "b");
}

static void a_flag_whose_name_begins_another_is_not_that_one(void **state)
{
    (void)state;
    const Command send = {.name = "send", .usage = "", .flags = "var= var-json="};
    Args args;
    Error err = {0};
    assert_true(parse(&send, WORDS("--var-json", "n=1"), &args, &err));
    assert_null(args_flag(&args, "var"));
    assert_string_equal(args_flag(&args, "var-json"), "n=1");
    assert_false(parse(&send, WORDS("--va", "n=1"), &args, &err));
}

static void after_two_dashes_everything_is_a_word(void **state)
{
    (void)state;
    Args args;
    Error err = {0};
    assert_true(parse(&put, WORDS("--", "--json", "--"), &args, &err));
    assert_false(args_has(&args, "json"));
    assert_string_equal(args_word(&args, 0), "--json");
    assert_string_equal(args_word(&args, 1), "--");
    assert_true(parse(&put, WORDS("-"), &args, &err)); // one dash is a word: standard input
    assert_string_equal(args_word(&args, 0), "-");
}

typedef struct Refusal {
    const Command *command;
    const char *words[6];
    const char *says;
} Refusal;

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static const Refusal refusals[] = {
        {&put,
         {"key", "--nmae", "x"},
         "unknown option '--nmae'; did you mean '--name'? (stentor help thing put)"},
        {&put,
         {"key", "--nmae=x"},
         "unknown option '--nmae'; did you mean '--name'? (stentor help thing put)"},
        {&put, {"key", "--=x"}, "unknown option '--' (stentor help thing put)"},
        {&bare, {"--=x"}, "unknown option '--' (stentor help bare)"},
        {&bare, {"--json"}, "unknown option '--json' (stentor help bare)"},
        {&put, {"key", "--name"}, "option '--name' needs a value"},
        {&put, {"key", "--json=yes"}, "option '--json' takes no value"},
        {&put, {"key", "--colour", "x"}, "unknown option '--colour' (stentor help thing put)"},
        {&put,
         {"--json"},
         "an argument is missing (usage: stentor thing put KEY [OPTION...] [--json])"},
        {&put,
         {"a", "b", "c"},
         "unexpected argument 'c' (usage: stentor thing put KEY [OPTION...] [--json])"},
        {&bare, {"a"}, "unexpected argument 'a' (usage: stentor bare)"},
        {&fit,
         {"--role", "r"},
         "--mapping FILE is required (usage: stentor fit --mapping FILE [OPTION...])"},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        Args args;
        Error err = {0};
        assert_false(parse(refusals[i].command, refusals[i].words, &args, &err));
        assert_int_equal(err.kind, ERROR_USAGE);
        assert_string_equal(err.text, refusals[i].says);
    }
}

static void help_may_be_asked_for_anywhere_but_as_a_value(void **state)
{
    (void)state;
    Args args;
    Error err = {0};
    assert_true(parse(&put, WORDS("--help"), &args, &err) && args.help);
    assert_true(parse(&put, WORDS("a", "b", "c", "-h"), &args, &err) && args.help);
    assert_true(parse(&put, WORDS("key", "--name", "--help"), &args, &err) && !args.help);
    assert_true(parse(&put, WORDS("--", "--help"), &args, &err) && !args.help);
    assert_string_equal(args_word(&args, 0), "--help");
}

static void more_than_fit_are_refused(void **state)
{
    (void)state;
    const char *words[ARGS_MAX + 2] = {NULL};
    const char *flags[ARGS_MAX + 3] = {"key"};
    for (int i = 0; i <= ARGS_MAX; i++) {
        words[i] = "w";
        flags[i + 1] = "--json";
    }
    Args args;
    Error err = {0};
    assert_false(parse(&put, words, &args, &err));
    assert_string_equal(err.text, "more than 64 arguments");
    assert_false(parse(&put, flags, &args, &err));
    assert_string_equal(err.text, "more than 64 options");
    flags[ARGS_MAX + 1] = NULL;
    assert_true(parse(&put, flags, &args, &err));
    assert_int_equal(args.flag_count, ARGS_MAX);
}

static void numbers_have_a_default_and_bounds(void **state)
{
    (void)state;
    Args args;
    Error err = {0};
    int64_t value = -1;
    assert_true(parse(&put, WORDS("key"), &args, &err));
    assert_true(args_int(&args, "name", 7, 1, 9, &value, &err));
    assert_int_equal(value, 7);
    assert_true(parse(&put, WORDS("key", "--name=9"), &args, &err));
    assert_true(args_int(&args, "name", 7, 1, 9, &value, &err));
    assert_int_equal(value, 9);
    const char *const bad[] = {"--name=0", "--name=10", "--name=nine", "--name=", "--name=3 "};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        value = -1;
        assert_true(parse(&put, WORDS("key", bad[i]), &args, &err));
        assert_false(args_int(&args, "name", 7, 1, 9, &value, &err));
        assert_int_equal(err.kind, ERROR_USAGE);
        assert_non_null(strstr(err.text, "--name is '"));
        assert_non_null(strstr(err.text, "expected a whole number from 1 to 9"));
        assert_int_equal(value, -1);
    }
}

#define NOW_US INT64_C(1763648968320000)

static void a_time_is_a_span_or_a_moment(void **state)
{
    (void)state;
    static const Command list = {.name = "list", .usage = "", .flags = "since=", .help = ""};
    static const struct {
        const char *text;
        int64_t span_s; // -1: refused
    } rows[] = {
        {"90s", 90},
        {"30m", 1800},
        {"2h", 7200},
        {"7d", 604800},
        {"0s", 0},
        {"d", -1},
        {"", -1},
        {"7", -1},
        {"7w", -1},
        {"-1h", -1},
        {"1.5h", -1},
        {"99999999d", -1},
        {"9223372036854775807s", -1},
        {"yesterday", -1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Args args;
        Error err = {0};
        int64_t before = -1, ahead = -1;
        assert_true(parse(&list, WORDS("--since", rows[i].text), &args, &err));
        bool ok = args_time(&args, "since", TIME_BEFORE_NOW, NOW_US, &before, &err);
        assert_int_equal(ok, rows[i].span_s >= 0);
        if (ok) {
            assert_true(args_time(&args, "since", TIME_FROM_NOW, NOW_US, &ahead, &err));
            assert_int_equal(before, NOW_US - rows[i].span_s * 1000000);
            assert_int_equal(ahead, NOW_US + rows[i].span_s * 1000000);
        } else {
            assert_int_equal(err.kind, ERROR_USAGE);
            assert_non_null(strstr(err.text, "--since is '"));
        }
    }
    Args args;
    Error err = {0};
    int64_t at = 0;
    assert_true(parse(&list, WORDS("--since=2025-11-20T14:29:28.320Z"), &args, &err));
    assert_true(args_time(&args, "since", TIME_BEFORE_NOW, 0, &at, &err));
    assert_int_equal(at, NOW_US);
    assert_true(args_time(&args, "until", TIME_BEFORE_NOW, 0, &at, &err)); // not given: it stays
    assert_int_equal(at, NOW_US);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_flags_may_stand_in_any_order),
        cmocka_unit_test(a_value_follows_or_stands_behind_the_equals_sign),
        cmocka_unit_test(repeated_flags_are_walked_in_order_and_the_last_one_counts),
        cmocka_unit_test(a_flag_whose_name_begins_another_is_not_that_one),
        cmocka_unit_test(after_two_dashes_everything_is_a_word),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(a_time_is_a_span_or_a_moment),
        cmocka_unit_test(help_may_be_asked_for_anywhere_but_as_a_value),
        cmocka_unit_test(more_than_fit_are_refused),
        cmocka_unit_test(numbers_have_a_default_and_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
