// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/service/options.h"

typedef struct Values {
    const char *url;
    const char *secret;
    const char *key_file;
    int64_t port;
    bool fast;
} Values;

// clang-format off
static const Option table[] = {
    {"STENTOR_T_URL", OPTION_TEXT, offsetof(Values, url), "nats://127.0.0.1", 0, 0, false, "where it is"},
    {"STENTOR_T_SECRET", OPTION_TEXT, offsetof(Values, secret), "", 0, 0, true, "the secret"},
    {"STENTOR_T_KEY_FILE", OPTION_TEXT, offsetof(Values, key_file), NULL, 0, 0, false, "path of the key"},
    {"STENTOR_T_PORT", OPTION_INT, offsetof(Values, port), "80", 0, 65535, false, "the port"},
    {"STENTOR_T_FAST", OPTION_BOOL, offsetof(Values, fast), "false", 0, 0, false, "be fast"},
};
// clang-format on
enum { ROWS = sizeof table / sizeof *table, ARGS_MAX = 16 };

static char path[64];

static int set_up(void **state)
{
    (void)state;
    static const char *const names[] = {"STENTOR_T_URL",         "STENTOR_T_SECRET",
                                        "STENTOR_T_SECRET_FILE", "STENTOR_T_PORT",
                                        "STENTOR_T_FAST",        "STENTOR_T_URL_FILE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        unsetenv(names[i]);
    }
    setenv("STENTOR_T_KEY_FILE", "/key", 1);
    snprintf(path, sizeof path, "options_test_%ld", (long)getpid());
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

// Loads with the NULL-terminated arguments.
static bool load(Values *values, Error *err, const char *const *arguments)
{
    char *argv[ARGS_MAX] = {(char[]){"program"}};
    static char copies[ARGS_MAX][128];
    int argc = 1;
    for (; arguments[argc - 1] != NULL; argc++) {
        snprintf(copies[argc], sizeof copies[argc], "%s", arguments[argc - 1]);
        argv[argc] = copies[argc];
    }
    return options_load(table, ROWS, values, argc, argv, err);
}

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NO_ARGS ((const char *const[]){NULL})

static void expect_loaded(Values *values, const char *const *arguments)
{
    Error err = {0};
    if (!load(values, &err, arguments)) {
        fail_msg("%s", err.text);
    }
}

static void expect_refused(const char *const *arguments, const char *part)
{
    Values values;
    Error err = {0};
    assert_false(load(&values, &err, arguments));
    assert_int_equal(err.kind, ERROR_CONFIG);
    if (strstr(err.text, part) == NULL) {
        fail_msg("'%s' is not in '%s'", part, err.text);
    }
}

static void defaults_apply_where_nothing_is_said(void **state)
{
    (void)state;
    Values values;
    expect_loaded(&values, NO_ARGS);
    assert_string_equal(values.url, "nats://127.0.0.1");
    assert_string_equal(values.secret, "");
    assert_int_equal(values.port, 80);
    assert_false(values.fast);
    options_free(table, ROWS, &values);
}

static void a_later_source_wins(void **state)
{
    (void)state;
    write_file("STENTOR_T_URL=file\nSTENTOR_T_PORT=1\nSTENTOR_T_SECRET=file\n");
    setenv("STENTOR_T_PORT", "2", 1);
    setenv("STENTOR_T_SECRET", "environment", 1);
    Values values;
    expect_loaded(&values, ARGS("--config", path, "--t-secret", "argument"));
    assert_string_equal(values.url, "file");
    assert_int_equal(values.port, 2);
    assert_string_equal(values.secret, "argument");
    options_free(table, ROWS, &values);
}

static void arguments_come_in_two_spellings(void **state)
{
    (void)state;
    Values values;
    expect_loaded(&values, ARGS("--t-port=99", "--t-url", "a=b"));
    assert_int_equal(values.port, 99);
    assert_string_equal(values.url, "a=b");
    options_free(table, ROWS, &values);
}

static void a_switch_may_stand_alone(void **state)
{
    (void)state;
    Values values;
    expect_loaded(&values, ARGS("--t-fast"));
    assert_true(values.fast);
    options_free(table, ROWS, &values);
    expect_loaded(&values, ARGS("--t-fast", "--t-port", "1"));
    assert_true(values.fast);
    assert_int_equal(values.port, 1);
    options_free(table, ROWS, &values);
    setenv("STENTOR_T_FAST", "YES", 1);
    expect_loaded(&values, NO_ARGS);
    assert_true(values.fast);
    options_free(table, ROWS, &values);
    expect_loaded(&values, ARGS("--t-fast", "off"));
    assert_false(values.fast);
    options_free(table, ROWS, &values);
}

static void a_bad_number_says_what_is_expected(void **state)
{
    (void)state;
    setenv("STENTOR_T_PORT", "abc", 1);
    expect_refused(NO_ARGS, "STENTOR_T_PORT is 'abc': expected a whole number from 0 to 65535");
    setenv("STENTOR_T_PORT", "65536", 1);
    expect_refused(NO_ARGS, "STENTOR_T_PORT is '65536'");
    setenv("STENTOR_T_PORT", "", 1);
    expect_refused(NO_ARGS, "STENTOR_T_PORT is ''");
    expect_refused(ARGS("--t-port", "-1"), "STENTOR_T_PORT is '-1'");
    expect_refused(ARGS("--t-port", "1.5"), "STENTOR_T_PORT is '1.5'");
}

static void a_bad_switch_says_what_is_expected(void **state)
{
    (void)state;
    expect_refused(ARGS("--t-fast=maybe"), "STENTOR_T_FAST is 'maybe': expected true or false");
}

static void a_required_option_must_be_there(void **state)
{
    (void)state;
    setenv("STENTOR_T_KEY_FILE", "", 1);
    expect_refused(NO_ARGS, "STENTOR_T_KEY_FILE is not set: path of the key");
    unsetenv("STENTOR_T_KEY_FILE");
    expect_refused(NO_ARGS, "STENTOR_T_KEY_FILE is not set");
}

static void an_unknown_option_is_refused_on_the_command_line(void **state)
{
    (void)state;
    expect_refused(ARGS("--t-prot", "1"), "unknown option '--t-prot' (HINT: --help lists them)");
    expect_refused(ARGS("-p"), "unknown option '-p'");
    expect_refused(
        ARGS("--"
             "T_PORT=1"),
        "unknown option '--T_PORT'");
    expect_refused(ARGS("stray"), "unexpected argument 'stray'");
    expect_refused(ARGS("--", "stray"), "unexpected argument 'stray'");
    expect_refused(ARGS("--t-port"), "--t-port needs a value");
    expect_refused(ARGS("--config"), "--config needs a value");
    expect_refused(ARGS("--t-port", "1", "--t-port", "2"), "STENTOR_T_PORT is given twice");
}

static void a_file_serves_all_programs(void **state)
{
    (void)state;
    write_file("STENTOR_SMTP_HELO=other.example\nSTENTOR_T_PORT=7\n");
    Values values;
    expect_loaded(&values, ARGS("--config", path));
    assert_int_equal(values.port, 7);
    options_free(table, ROWS, &values);
}

static void finding_16_a_name_that_no_program_knows_is_refused(void **state)
{
    (void)state;
    write_file("STENTOR_SMTP_HEL0=other.example\n");
    expect_refused(
        ARGS("--config", path),
        "line 1: no program of Stentor knows 'STENTOR_SMTP_HEL0' (HINT: is STENTOR_SMTP_HELO "
        "meant?)");
    setenv("STENTOR_NATS_ULR", "nats://127.0.0.1", 1);
    expect_refused(
        NO_ARGS, "environment: no program of Stentor knows 'STENTOR_NATS_ULR' (HINT: is "
                 "STENTOR_NATS_URL meant?)");
    unsetenv("STENTOR_NATS_ULR");
    setenv("STENTOR_T_URL_FILE", "/a", 1); // not a secret, so not read from a file
    expect_refused(NO_ARGS, "no program of Stentor knows 'STENTOR_T_URL_FILE'");
}

static void finding_16_the_environment_serves_all_programs(void **state)
{
    (void)state;
    setenv("STENTOR_SMTP_HELO", "other.example", 1);
    setenv("STENTOR_DATABASE_URL_FILE", "/another/programs", 1);
    Values values;
    expect_loaded(&values, NO_ARGS);
    options_free(table, ROWS, &values);
    unsetenv("STENTOR_SMTP_HELO");
    unsetenv("STENTOR_DATABASE_URL_FILE");
}

static void finding_16_the_words_of_kubernetes_are_passed_over(void **state)
{
    (void)state;
    static const char *const words[][2] = {
        {"STENTOR_INGEST_API_SERVICE_HOST", "10.0.0.1"},
        {"STENTOR_INGEST_API_SERVICE_PORT", "8080"},
        {"STENTOR_INGEST_API_SERVICE_PORT_HTTP", "8080"},
        {"STENTOR_INGEST_API_PORT", "tcp://10.0.0.1:8080"},
        {"STENTOR_INGEST_API_PORT_8080_TCP", "tcp://10.0.0.1:8080"},
        {"STENTOR_INGEST_API_PORT_8080_TCP_ADDR", "10.0.0.1"},
        {"STENTOR_INGEST_API_PORT_8080_TCP_PORT", "8080"},
        {"STENTOR_INGEST_API_PORT_8080_TCP_PROTO", "tcp"},
        // a service whose name is the beginning of an option
        {"STENTOR_T_SERVICE_HOST", "10.0.0.2"},
        {"STENTOR_T_PORT", "tcp://10.0.0.2:80"},
    };
    enum { WORDS = sizeof words / sizeof *words };
    for (size_t i = 0; i < WORDS; i++) {
        setenv(words[i][0], words[i][1], 1);
    }
    Values values;
    expect_loaded(&values, NO_ARGS);
    assert_int_equal(values.port, 80); // the default
    options_free(table, ROWS, &values);
    setenv("STENTOR_T_PORT", "81", 1);
    expect_loaded(&values, NO_ARGS);
    assert_int_equal(values.port, 81);
    options_free(table, ROWS, &values);
    unsetenv("STENTOR_INGEST_API_SERVICE_HOST"); // and now they are no longer about a service
    expect_refused(NO_ARGS, "no program of Stentor knows 'STENTOR_INGEST_API_");
    for (size_t i = 0; i < WORDS; i++) {
        unsetenv(words[i][0]);
    }
}

static void a_bad_line_is_named_with_its_file(void **state)
{
    (void)state;
    char expected[128];
    write_file("\nSTENTR_T_PORT=7\n");
    snprintf(expected, sizeof expected, "%s: line 2: 'STENTR_T_PORT' is not an option", path);
    expect_refused(ARGS("--config", path), expected);
    write_file("STENTOR_T_PORT=x\n");
    snprintf(expected, sizeof expected, "%s: line 1: STENTOR_T_PORT is 'x'", path);
    expect_refused(ARGS("--config", path), expected);
    write_file("STENTOR_T_PORT=1\nSTENTOR_T_PORT=2\n");
    snprintf(expected, sizeof expected, "%s: line 2: STENTOR_T_PORT is given twice", path);
    expect_refused(ARGS("--config", path), expected);
    write_file("what is this\n");
    snprintf(expected, sizeof expected, "%s: line 1: expected NAME=value", path);
    expect_refused(ARGS("--config", path), expected);
}

static void a_file_that_is_not_there_is_named(void **state)
{
    (void)state;
    expect_refused(ARGS("--config", "no/such/file"), "cannot open 'no/such/file': No such file");
    expect_refused(ARGS("--config", "."), "cannot read '.'");
}

static void a_secret_may_stand_in_a_file(void **state)
{
    (void)state;
    write_file("geheim\r\n");
    setenv("STENTOR_T_SECRET_FILE", path, 1);
    Values values;
    expect_loaded(&values, NO_ARGS);
    assert_string_equal(values.secret, "geheim");
    options_free(table, ROWS, &values);
    unsetenv("STENTOR_T_SECRET_FILE");
    expect_loaded(&values, ARGS("--t-secret-file", path));
    assert_string_equal(values.secret, "geheim");
    options_free(table, ROWS, &values);
}

// systemd's services: the settings name a file that they may not read, the environment their copy.
static void a_file_that_the_environment_goes_over_is_not_opened(void **state)
{
    (void)state;
    Values values;
    write_file("STENTOR_T_SECRET_FILE=/nonexistent/secret\n");
    expect_refused(ARGS("--config", path), "cannot open '/nonexistent/secret'");
    setenv("STENTOR_T_SECRET", "nearer", 1);
    expect_loaded(&values, ARGS("--config", path));
    assert_string_equal(values.secret, "nearer");
    options_free(table, ROWS, &values);
}

static void a_secret_is_given_once(void **state)
{
    (void)state;
    write_file("geheim");
    setenv("STENTOR_T_SECRET_FILE", path, 1);
    setenv("STENTOR_T_SECRET", "direct", 1);
    expect_refused(NO_ARGS, "STENTOR_T_SECRET is given twice");
}

static void a_secret_is_never_in_an_error(void **state)
{
    (void)state;
    setenv("STENTOR_T_SECRET", "geheim\nx", 1);
    Values values;
    Error err = {0};
    assert_false(load(&values, &err, NO_ARGS));
    assert_non_null(strstr(err.text, "STENTOR_T_SECRET: expected UTF-8 text without control"));
    assert_null(strstr(err.text, "geheim"));
}

static void only_secrets_are_read_from_files(void **state)
{
    (void)state;
    expect_refused(ARGS("--t-url-file", path), "unknown option '--t-url-file'");
}

static void a_text_has_a_limit(void **state)
{
    (void)state;
    static char text[OPTION_TEXT_MAX + 2];
    memset(text, 'x', sizeof text - 1);
    setenv("STENTOR_T_URL", text, 1);
    expect_refused(NO_ARGS, "STENTOR_T_URL has 4097 bytes: expected at most 4096");
}

static void a_command_keeps_its_own_arguments(void **state)
{
    (void)state;
    Values values;
    Error err = {0};
    int rest = 0;
    char *argv[] = {
        (char[]){"send"}, (char[]){"--t-port"}, (char[]){"9"}, (char[]){"--"}, (char[]){"--mine"}};
    assert_true(options_load_args(table, ROWS, &values, 5, argv, &rest, NULL, &err));
    assert_int_equal(values.port, 9);
    assert_int_equal(rest, 4);
    options_free(table, ROWS, &values);
    char *other[] = {(char[]){"status"}, (char[]){"ntf_1"}, (char[]){"--t-port"}};
    assert_true(options_load_args(table, ROWS, &values, 3, other, &rest, NULL, &err));
    assert_int_equal(rest, 1);
    options_free(table, ROWS, &values);
    assert_true(options_load_args(table, ROWS, &values, 1, other, &rest, NULL, &err));
    assert_int_equal(rest, 1);
    options_free(table, ROWS, &values);
}

static void where_a_value_comes_from_is_known(void **state)
{
    (void)state;
    Values values;
    Error err = {0};
    int rest = 0;
    OptionSource sources[ROWS];
    setenv("STENTOR_T_URL", "from-environment", 1);
    char *argv[] = {(char[]){"x"}, (char[]){"--t-port"}, (char[]){"9"}, (char[]){"command"}};
    assert_true(options_load_args(table, ROWS, &values, 4, argv, &rest, sources, &err));
    for (size_t i = 0; i < ROWS; i++) {
        bool url = strcmp(table[i].name, "STENTOR_T_URL") == 0;
        bool port = strcmp(table[i].name, "STENTOR_T_PORT") == 0;
        url = url || strcmp(table[i].name, "STENTOR_T_KEY_FILE") == 0; // by set_up
        assert_int_equal(
            sources[i], url    ? OPTION_FROM_ENVIRONMENT
                        : port ? OPTION_FROM_ARGUMENT
                               : OPTION_FROM_DEFAULT);
    }
    options_free(table, ROWS, &values);
}

static void the_rest_is_found_without_reading_a_value(void **state)
{
    (void)state;
    static const struct {
        const char *words[6];
        int rest;
    } rows[] = {
        {{"x", "send"}, 1},
        {{"x", "--t-port", "no-number", "send"}, 3},
        {{"x", "--t-port=no-number", "send", "--t-port"}, 2},
        {{"x", "--config", "FILE", "send"}, 3},
        {{"x", "--unknown", "send"}, 1},
        {{"x", "--unknown=1", "send"}, 2},
        {{"x", "--t-port"}, 2},
        {{"x"}, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char words[6][32];
        char *argv[6];
        int argc = 0;
        for (; argc < 6 && rows[i].words[argc] != NULL; argc++) {
            snprintf(words[argc], sizeof words[argc], "%s", rows[i].words[argc]);
            argv[argc] = words[argc];
        }
        assert_int_equal(options_rest(table, ROWS, argc, argv), rows[i].rest);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(defaults_apply_where_nothing_is_said),
        TEST(a_later_source_wins),
        TEST(arguments_come_in_two_spellings),
        TEST(a_switch_may_stand_alone),
        TEST(a_bad_number_says_what_is_expected),
        TEST(a_bad_switch_says_what_is_expected),
        TEST(a_required_option_must_be_there),
        TEST(an_unknown_option_is_refused_on_the_command_line),
        TEST(a_file_serves_all_programs),
        TEST(finding_16_a_name_that_no_program_knows_is_refused),
        TEST(finding_16_the_environment_serves_all_programs),
        TEST(finding_16_the_words_of_kubernetes_are_passed_over),
        TEST(a_bad_line_is_named_with_its_file),
        TEST(a_file_that_is_not_there_is_named),
        TEST(a_secret_may_stand_in_a_file),
        TEST(a_file_that_the_environment_goes_over_is_not_opened),
        TEST(a_secret_is_given_once),
        TEST(a_secret_is_never_in_an_error),
        TEST(only_secrets_are_read_from_files),
        TEST(a_text_has_a_limit),
        TEST(a_command_keeps_its_own_arguments),
        TEST(where_a_value_comes_from_is_known),
        TEST(the_rest_is_found_without_reading_a_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
