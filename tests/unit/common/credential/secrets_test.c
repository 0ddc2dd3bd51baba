// SPDX-License-Identifier: Apache-2.0
#define _XOPEN_SOURCE 700 // nftw
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/credential/secrets.h"

typedef struct Stage {
    char folder[96];
    char log_path[128];
    uv_loop_t loop;
    Metrics *metrics;
    Secrets *secrets;
    int changes;
    bool closed;
} Stage;

static const SecretName MAIN = {{"acme", 4}, {"sendgrid", 8}, {"main", 4}};

static void on_changed(void *ctx, const SecretName *name)
{
    Stage *s = ctx;
    assert_true(str_eq(name->vendor, MAIN.vendor));
    s->changes++;
}

static int set_up(void **state)
{
    Stage *s = calloc(1, sizeof *s);
    Error err = {0};
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(s->folder, sizeof s->folder, "%.60s/secrets.XXXXXX", tmp == NULL ? "/tmp" : tmp);
    assert_non_null(mkdtemp(s->folder));
    (void)snprintf(s->log_path, sizeof s->log_path, "%s.log", s->folder);
    FILE *log = fopen(s->log_path, "w");
    assert_non_null(log);
    log_setup("test", LOG_INFO, true);
    log_output_set(dup(fileno(log)));
    (void)fclose(log);
    assert_int_equal(uv_loop_init(&s->loop), 0);
    s->metrics = metrics_new();
    SecretsOptions options = {
        .loop = &s->loop,
        .metrics = s->metrics,
        .service = "dispatcher",
        .folders = s->folder,
        .poll_ms = 20,
        .exec_ms = 300,
        .on_changed = on_changed,
        .ctx = s};
    s->secrets = secrets_new(&options, &err);
    assert_non_null(s->secrets);
    *state = s;
    return 0;
}

static int remove_one(const char *path, const struct stat *file, int kind, struct FTW *walk)
{
    (void)file, (void)kind, (void)walk;
    return remove(path);
}

static void on_closed(void *ctx)
{
    Stage *s = ctx;
    s->closed = true;
}

static int tear_down(void **state)
{
    Stage *s = *state;
    secrets_close(s->secrets, on_closed, s);
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_true(s->closed);
    secrets_free(s->secrets);
    metrics_free(s->metrics);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    assert_int_equal(nftw(s->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    assert_int_equal(unlink(s->log_path), 0);
    free(s);
    return 0;
}

static void put(Stage *s, const char *name, const char *text, mode_t mode)
{
    char path[160], new_path[160];
    (void)snprintf(path, sizeof path, "%s/%s", s->folder, name);
    (void)snprintf(new_path, sizeof new_path, "%s/.%s", s->folder, name);
    FILE *file = fopen(new_path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(new_path, mode), 0);
    assert_int_equal(rename(new_path, path), 0);
}

static void want(Stage *s, const char *scheme, const char *tail)
{
    char reference[256];
    Error err = {0};
    (void)snprintf(reference, sizeof reference, "%s:%s%s", scheme, s->folder, tail);
    if (!secrets_want(s->secrets, &MAIN, str_from(reference), &err)) {
        fail_msg("%s", err.text);
    }
}

// Waits until a use gives this text, or (text NULL) fails with an error that says `says`.
static void expect(Stage *s, const char *text, const char *says)
{
    Error err = {0};
    Str secret = STR_EMPTY;
    for (int i = 0; i < 2000; i++) {
        err = (Error){0};
        bool ok = secrets_use(s->secrets, &MAIN, &secret, &err);
        bool done = text != NULL ? ok && str_eq(secret, str_from(text))
                                 : !ok && strstr(err.text, says) != NULL;
        if (done) {
            return;
        }
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    }
    fail_msg("got '" STR_FMT "', %s", STR_ARG(secret), err.text);
}

static bool log_contains(const Stage *s, const char *text)
{
    Error err = {0};
    Str log;
    Arena *arena = arena_new(0);
    assert_true(file_read(s->log_path, 1024 * 1024, arena, &log, &err));
    bool found = strstr(arena_cstr(arena, log), text) != NULL;
    arena_free(arena);
    return found;
}

static void log_lacks(const Stage *s, const char *text)
{
    assert_false(log_contains(s, text));
}

static void log_has(const Stage *s, const char *text)
{
    assert_true(log_contains(s, text));
}

static void a_file_is_read_and_read_again_when_it_changes(void **state)
{
    Stage *s = *state;
    put(s, "key", "SG.first\n", 0600);
    want(s, "file", "/key");
    expect(s, "SG.first", NULL);
    assert_int_equal(s->changes, 1);
    put(s, "key", "SG.other\r\n", 0600);
    expect(s, "SG.other", NULL);
    assert_int_equal(s->changes, 2);
    log_has(s, "a credential was rotated");
    log_has(s, "a credential is used for the first time");
    log_lacks(s, "SG.");
}

static void one_that_is_gone_stays_in_use_as_it_was_and_is_taken_up_again(void **state)
{
    Stage *s = *state;
    char path[160];
    put(s, "key", "SG.first", 0600);
    want(s, "file", "/key");
    expect(s, "SG.first", NULL);
    (void)snprintf(path, sizeof path, "%s/key", s->folder);
    assert_int_equal(unlink(path), 0);
    for (int i = 0; i < 20; i++) {
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    }
    expect(s, "SG.first", NULL);
    log_has(s, "cannot be read again; the one before is used");
    put(s, "key", "SG.second", 0600);
    expect(s, "SG.second", NULL);
}

static void one_that_never_could_be_read_says_why(void **state)
{
    Stage *s = *state;
    want(s, "file", "/absent");
    expect(s, NULL, "being read");
    expect(s, NULL, "No such file");
    expect(s, NULL, "/absent'");
    put(s, "absent", "", 0600);
    expect(s, NULL, "is empty");
    put(s, "absent", "now", 0600);
    expect(s, "now", NULL);
}

static void a_staged_one_that_cannot_be_read_is_a_note_until_it_is_wanted(void **state)
{
    Stage *s = *state;
    char reference[160];
    Error err = {0};
    (void)snprintf(reference, sizeof reference, "file:%s/later", s->folder);
    assert_true(secrets_stage(s->secrets, &MAIN, str_from(reference), &err));
    expect(s, NULL, "No such file");
    log_has(s, "a staged credential cannot be read yet");
    log_lacks(s, "is not used");
    assert_true(secrets_failed(s->secrets, &MAIN, &err));
    want(s, "file", "/later");
    log_has(s, "a credential cannot be read and is not used");
    put(s, "later", "SG.later", 0600);
    expect(s, "SG.later", NULL);
    assert_false(secrets_failed(s->secrets, &MAIN, &err));
}

static void files_outside_of_the_folders_are_not_read_also_through_a_link(void **state)
{
    Stage *s = *state;
    char path[160];
    Error err = {0};
    (void)snprintf(path, sizeof path, "%s/link", s->folder);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    want(s, "file", "/link");
    expect(s, NULL, "below none of the folders of STENTOR_CREDENTIAL_DIRS");
    assert_true(secrets_want(s->secrets, &MAIN, STR("file:/etc/passwd"), &err));
    expect(s, NULL, "below none of the folders");
    assert_true(secrets_want(s->secrets, &MAIN, STR("exec:/bin/sh -c id"), &err));
    expect(s, NULL, "below none of the folders");
}

static void a_file_of_more_than_64_KiB_is_refused(void **state)
{
    Stage *s = *state;
    char *text = calloc(1, 65538);
    memset(text, 'a', 65537);
    put(s, "key", text, 0600);
    want(s, "file", "/key");
    expect(s, NULL, "more than 64 KiB");
    text[65536] = '\0';
    put(s, "key", text, 0600);
    expect(s, text, NULL);
    free(text);
}

static void a_program_gives_what_it_prints_with_its_arguments_and_no_shell(void **state)
{
    Stage *s = *state;
    put(s, "read-key", "#!/bin/sh\nprintf '%s-%s' \"$1\" \"$STENTOR_MASTER_KEY\"\n", 0700);
    assert_int_equal(setenv("STENTOR_MASTER_KEY", "leaked", 1), 0);
    want(s, "exec", "/read-key $(id)");
    expect(s, "$(id)-", NULL);
    log_lacks(s, "$(id)"); // arguments are not shown: they may be half of a secret
}

static void a_program_that_fails_hangs_or_prints_too_much_is_an_error(void **state)
{
    Stage *s = *state;
    put(s, "fails", "#!/bin/sh\nprintf secret\nexit 3\n", 0700);
    want(s, "exec", "/fails now");
    expect(s, NULL, "ended with status 3");
    put(s, "hangs", "#!/bin/sh\nsleep 600\n", 0700);
    want(s, "exec", "/hangs");
    expect(s, NULL, "did not end in time");
    put(s, "leaves", "#!/bin/sh\nsleep 600 &\nprintf secret\n", 0700);
    want(s, "exec", "/leaves");
    expect(s, NULL, "did not end in time");
    put(s, "floods",
        "#!/bin/sh\nwhile :; do printf 0123456789012345678901234567890123456789; done\n", 0700);
    want(s, "exec", "/floods");
    expect(s, NULL, "prints more than 64 KiB");
    put(s, "plain", "no program", 0600);
    want(s, "exec", "/plain");
    expect(s, NULL, "cannot be started");
}

static void a_variable_is_read_and_the_programs_own_are_not(void **state)
{
    Stage *s = *state;
    Error err = {0};
    assert_int_equal(setenv("TEST_SENDGRID_KEY", "SG.env", 1), 0);
    assert_true(secrets_want(s->secrets, &MAIN, STR("env:TEST_SENDGRID_KEY"), &err));
    expect(s, "SG.env", NULL);
    assert_false(secrets_want(s->secrets, &MAIN, STR("env:STENTOR_MASTER_KEY"), &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_true(secrets_want(s->secrets, &MAIN, STR("env:TEST_NOT_SET"), &err));
    expect(s, NULL, "is not set");
}

static void each_use_is_counted(void **state)
{
    Stage *s = *state;
    Buf out;
    Str secret;
    Error err = {0};
    assert_false(secrets_use(s->secrets, &MAIN, &secret, &err));
    assert_int_equal(err.kind, ERROR_CONFIG);
    assert_int_equal(setenv("TEST_SENDGRID_KEY", "SG.env", 1), 0);
    assert_true(secrets_want(s->secrets, &MAIN, STR("env:TEST_SENDGRID_KEY"), &err));
    for (int i = 0; i < 3; i++) {
        assert_true(secrets_use(s->secrets, &MAIN, &secret, &err));
    }
    secrets_forget(s->secrets, &MAIN);
    assert_false(secrets_use(s->secrets, &MAIN, &secret, &err));
    buf_init(&out, 65536);
    assert_true(metrics_print(s->metrics, &out));
    const char *line =
        "stentor_dispatcher_credential_uses_total{tenant=\"acme\",vendor=\"sendgrid\","
        "credential=\"main\"} 3";
    if (strstr(buf_c(&out), line) == NULL) {
        fail_msg("%s", buf_c(&out));
    }
    buf_done(&out);
}

static void folders_must_be_absolute(void **state)
{
    Stage *s = *state;
    Error err = {0};
    SecretsOptions options = {.loop = &s->loop, .folders = "/etc:relative"};
    assert_null(secrets_new(&options, &err));
    assert_int_equal(err.kind, ERROR_CONFIG);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_file_is_read_and_read_again_when_it_changes),
        TEST(one_that_is_gone_stays_in_use_as_it_was_and_is_taken_up_again),
        TEST(one_that_never_could_be_read_says_why),
        TEST(a_staged_one_that_cannot_be_read_is_a_note_until_it_is_wanted),
        TEST(files_outside_of_the_folders_are_not_read_also_through_a_link),
        TEST(a_file_of_more_than_64_KiB_is_refused),
        TEST(a_program_gives_what_it_prints_with_its_arguments_and_no_shell),
        TEST(a_program_that_fails_hangs_or_prints_too_much_is_an_error),
        TEST(a_variable_is_read_and_the_programs_own_are_not),
        TEST(each_use_is_counted),
        TEST(folders_must_be_absolute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
