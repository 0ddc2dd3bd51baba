// SPDX-License-Identifier: Apache-2.0
// Real processes, of a shell in the place of the parser.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "services/webhook-receiver/mail/mail_parse.h"
#include "services/webhook-receiver/mail/mail_reader.h"

typedef struct Seen {
    int calls;
    ErrorKind kind;
    char text[240];
    char report[256];
    size_t report_len;
} Seen;

static void on_read(void *ctx, Str report, const Error *err)
{
    Seen *seen = ctx;
    seen->calls++;
    seen->kind = err != NULL ? err->kind : ERROR_NONE;
    (void)snprintf(seen->text, sizeof seen->text, "%s", err != NULL ? err->text : "");
    seen->report_len = report.len;
    (void)str_to_c(
        str_slice(report, 0, sizeof seen->report - 1), seen->report, sizeof seen->report);
}

static void on_freed(void *ctx)
{
    *(bool *)ctx = true;
}

static Seen run(const char *script, Str mail, int time_ms)
{
    uv_loop_t loop;
    uv_loop_init(&loop);
    const char *command[] = {"/bin/sh", "-c", script, NULL};
    MailReader *reader = mail_reader_new(
        &(MailReaderOptions){.loop = &loop, .command = command, .time_ms = time_ms});
    Seen seen = {0};
    mail_reader_read(reader, mail, on_read, &seen);
    while (seen.calls == 0) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    bool freed = false;
    mail_reader_free(reader, on_freed, &freed);
    while (!freed) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(seen.calls, 1);
    return seen;
}

static Str large_mail(void)
{
    static char text[MAIL_BYTES_MAX];
    memset(text, 'x', sizeof text);
    return (Str){text, sizeof text};
}

static void what_the_process_writes_is_the_report(void **state)
{
    (void)state;
    Seen seen = run("exec /usr/bin/wc -c", large_mail(), 0);
    assert_int_equal(seen.kind, ERROR_NONE);
    int64_t bytes = 0;
    assert_true(str_to_i64(str_trim(str_from(seen.report)), &bytes));
    assert_int_equal(bytes, MAIL_BYTES_MAX);
}

static void it_has_no_environment(void **state)
{
    (void)state;
    Seen seen = run("exec /usr/bin/env", STR("mail"), 0);
    assert_int_equal(seen.kind, ERROR_NONE);
    assert_null(strstr(seen.report, "PATH=/usr/local")); // a shell may set its own PWD
    assert_null(strstr(seen.report, "HOME"));
}

static void one_that_is_late_is_killed(void **state)
{
    (void)state;
    Seen seen = run("exec /bin/sleep 600", STR("mail"), 200);
    assert_int_equal(seen.kind, ERROR_PERMANENT);
    assert_non_null(strstr(seen.text, "longer than 200 ms"));
}

static void one_that_fails_or_says_too_much_is_the_mails_fault(void **state)
{
    (void)state;
    Seen seen = run("exit 3", large_mail(), 0);
    assert_int_equal(seen.kind, ERROR_PERMANENT);
    assert_non_null(strstr(seen.text, "status 3"));
    seen = run("exec /usr/bin/yes", STR("mail"), 0);
    assert_int_equal(seen.kind, ERROR_PERMANENT);
    seen = run("kill -XCPU $$", STR("mail"), 0);
    assert_non_null(strstr(seen.text, "processor time"));
}

static void one_that_was_killed_is_started_once_more(void **state)
{
    (void)state;
    char folder[] = "/tmp/mail-reader-XXXXXX";
    char script[200];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(
        script, sizeof script,
        "if /bin/mkdir %s/first 2>/dev/null; then kill -KILL $$; fi; echo good", folder);
    Seen seen = run(script, STR("mail"), 0);
    assert_int_equal(seen.kind, ERROR_NONE);
    assert_string_equal(seen.report, "good\n");
    (void)snprintf(script, sizeof script, "%s/first", folder);
    (void)rmdir(script);
    (void)rmdir(folder);
    seen = run("kill -SEGV $$", STR("mail"), 0);
    assert_int_equal(seen.kind, ERROR_PERMANENT);
    assert_non_null(strstr(seen.text, "signal 11"));
}

static void one_that_cannot_be_started_is_tried_later(void **state)
{
    (void)state;
    uv_loop_t loop;
    uv_loop_init(&loop);
    const char *command[] = {"/nonexistent/program", NULL};
    MailReader *reader = mail_reader_new(&(MailReaderOptions){.loop = &loop, .command = command});
    Seen seen = {0};
    mail_reader_read(reader, STR("mail"), on_read, &seen);
    while (seen.calls == 0) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    assert_int_equal(seen.kind, ERROR_TRANSIENT);
    bool freed = false;
    mail_reader_free(reader, on_freed, &freed);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(freed);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void a_stop_gives_mails_back(void **state)
{
    (void)state;
    uv_loop_t loop;
    uv_loop_init(&loop);
    const char *command[] = {"/bin/sleep", "600", NULL};
    MailReader *reader = mail_reader_new(&(MailReaderOptions){.loop = &loop, .command = command});
    Seen seen[3] = {{0}};
    for (int i = 0; i < 3; i++) {
        mail_reader_read(reader, STR("mail"), on_read, &seen[i]);
    }
    bool freed = false;
    mail_reader_free(reader, on_freed, &freed);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(freed);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(seen[i].calls, 1);
        assert_int_equal(seen[i].kind, ERROR_CANCELLED);
    }
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN); // as service_main does
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_process_writes_is_the_report),
        cmocka_unit_test(it_has_no_environment),
        cmocka_unit_test(one_that_is_late_is_killed),
        cmocka_unit_test(one_that_fails_or_says_too_much_is_the_mails_fault),
        cmocka_unit_test(one_that_was_killed_is_started_once_more),
        cmocka_unit_test(one_that_cannot_be_started_is_tried_later),
        cmocka_unit_test(a_stop_gives_mails_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
