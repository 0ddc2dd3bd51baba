// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/log.h"

// What one log call wrote to standard error, which is a pipe meanwhile. One read: a line is written
// whole.
typedef struct Capture {
    int saved;
    int ends[2];
} Capture;

static Capture begin(void)
{
    Capture capture;
    assert_int_equal(pipe(capture.ends), 0);
    capture.saved = dup(STDERR_FILENO);
    assert_true(capture.saved >= 0);
    assert_true(dup2(capture.ends[1], STDERR_FILENO) >= 0);
    return capture;
}

static size_t end(const Capture *capture, char *out, size_t size)
{
    assert_true(dup2(capture->saved, STDERR_FILENO) >= 0);
    close(capture->saved);
    close(capture->ends[1]);
    ssize_t length = read(capture->ends[0], out, size - 1);
    assert_true(length >= 0);
    close(capture->ends[0]);
    out[length] = '\0';
    return (size_t)length;
}

static void a_json_line_has_fixed_keys_then_fields(void **state)
{
    (void)state;
    char line[8192];
    Error err = {.kind = ERROR_TRANSIENT, .text = "reset by \"peer\""};
    log_setup("dispatcher", LOG_INFO, true);
    Capture capture = begin();
    LOG(LOG_WARN, "smtp connection lost", log_text("host", "mx1\n"), log_int("count", -3),
        log_error(&err));
    end(&capture, line, sizeof line);
    assert_memory_equal(line, "{\"time\":\"20", 11);
    assert_string_equal(
        line + strlen("{\"time\":\"2026-11-20T18:25:36.123456Z\""),
        ",\"level\":\"warn\",\"service\":\"dispatcher\",\"event\":\"smtp connection lost\","
        "\"host\":\"mx1\\n\",\"count\":-3,"
        "\"error\":\"transient: reset by \\\"peer\\\"\"}\n");
}

static void a_debug_build_logs_where_an_error_was_set(void **state)
{
    (void)state;
    char line[8192], expected[128];
    Error err = {0};
    int number = __LINE__ + 1;
    error_set(&err, ERROR_CONFIG, "no such file");
    log_setup("dispatcher", LOG_INFO, true);
    Capture capture = begin();
    LOG(LOG_WARN, "refused", log_error(&err), log_int("count", 1));
    end(&capture, line, sizeof line);
#ifdef STENTOR_ERROR_PLACES
    (void)snprintf(
        expected, sizeof expected,
        "\"error\":\"config: no such file\",\"at\":\"log_test.c:%d\",\"count\":1}\n", number);
#else
    (void)snprintf(expected, sizeof expected, "\"error\":\"config: no such file\",\"count\":1}\n");
    (void)number;
#endif
    assert_non_null(strstr(line, expected));
}

static void a_terminal_gets_logfmt(void **state)
{
    (void)state;
    char line[8192];
    log_setup("ingest", LOG_INFO, false);
    Capture capture = begin();
    LOG(LOG_INFO, "ready", log_text("tenant", "acme"), log_text("note", "two words"),
        log_text("none", ""));
    end(&capture, line, sizeof line);
    assert_string_equal(
        line + strlen("time=2026-11-20T18:25:36.123456Z"),
        " level=info service=ingest event=ready tenant=acme note=\"two words\" none=\"\"\n");
}

static void what_is_below_the_level_is_not_written(void **state)
{
    (void)state;
    char line[64 * 1024];
    log_setup("ingest", LOG_WARN, true);
    Capture capture = begin();
    LOG_PLAIN(LOG_INFO, "quiet");
    assert_int_equal(end(&capture, line, sizeof line), 0);
    log_level_set(LOG_DEBUG);
    capture = begin();
    LOG_PLAIN(LOG_DEBUG, "loud");
    assert_true(end(&capture, line, sizeof line) > 0);
}

static void a_long_line_stays_whole_and_says_that_it_was_cut(void **state)
{
    (void)state;
    static char text[5000];
    memset(text, '\x01', sizeof text - 1);
    char line[64 * 1024];
    log_setup("ingest", LOG_INFO, true);
    Capture capture = begin();
    LOG(LOG_INFO, "large", log_text("before", "kept"), log_text("text", text),
        log_text("after", "lost"));
    size_t length = end(&capture, line, sizeof line);
    assert_true(length < 4096);
    assert_non_null(strstr(line, "\"event\":\"large\",\"before\":\"kept\",\"cut\":true}\n"));
    assert_null(strstr(line, "lost"));
}

static void a_long_value_is_cut_between_characters(void **state)
{
    (void)state;
    static char text[3001];
    for (size_t i = 0; i + 3 < sizeof text; i += 3) {
        memcpy(text + i, "\xe2\x82\xac", 3);
    }
    char line[8192];
    log_setup("ingest", LOG_INFO, true);
    Capture capture = begin();
    LOG(LOG_INFO, "large", log_text("text", text));
    end(&capture, line, sizeof line);
    assert_true(str_is_utf8(str_from(line)));
    assert_null(strstr(line, "\xef\xbf\xbd"));
    assert_non_null(strstr(line, "\xe2\x82\xac\"}\n"));
}

static void note_one(LogLevel level, const char *event, LogField field)
{
    if (log_takes_notification(level)) {
        LOG(level, event, field);
    }
}

static void lines_about_notifications_are_limited_by_level_and_counted(void **state)
{
    (void)state;
    char lines[8192];
    log_setup("dispatcher", LOG_INFO, true);
    log_notifications_limit(2);
    Capture capture = begin();
    log_notifications_tick();
    for (int i = 0; i < 5; i++) {
        note_one(LOG_INFO, "a mail was sent", log_int("count", i));
    }
    note_one(LOG_WARN, "an attempt failed", log_int("count", 9)); // has a limit of its own
    note_one(LOG_DEBUG, "detail", log_int("count", 10));
    sleep(1); // into the next second of the clock
    log_notifications_tick();
    log_notifications_tick();
    log_notifications_limit(0);
    note_one(LOG_WARN, "an attempt failed", log_int("count", 11));
    end(&capture, lines, sizeof lines);
    size_t sent = 0;
    for (const char *at = lines; (at = strstr(at, "a mail was sent")) != NULL; at++) {
        sent++;
    }
    // The loop may lie on both sides of a second's end.
    assert_true(sent == 2 || sent == 3 || sent == 4);
    char left_out[64];
    (void)snprintf(left_out, sizeof left_out, "\"count\":%zu,\"limit_per_s\":2}", 5 - sent);
    assert_non_null(strstr(lines, left_out));
    assert_non_null(strstr(lines, "\"count\":9}"));
    assert_null(strstr(lines, "\"count\":10}"));
    assert_null(strstr(lines, "\"count\":11}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_json_line_has_fixed_keys_then_fields),
        cmocka_unit_test(a_debug_build_logs_where_an_error_was_set),
        cmocka_unit_test(a_terminal_gets_logfmt),
        cmocka_unit_test(what_is_below_the_level_is_not_written),
        cmocka_unit_test(lines_about_notifications_are_limited_by_level_and_counted),
        cmocka_unit_test(a_long_line_stays_whole_and_says_that_it_was_cut),
        cmocka_unit_test(a_long_value_is_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
