// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "common/base/crash.h"

#ifdef STENTOR_CRASH_POINTS
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/str.h"

enum { WENT_ON = 7, WRONG = 2 };

// A process of its own passes three points under STENTOR_CRASH_AT=`at` (NULL: not set); its wait
// status and in *ret_passed how many it passed.
static int pass_three(const char *at, int *ret_passed)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (at != NULL) {
            setenv("STENTOR_CRASH_AT", at, 1);
        } else {
            unsetenv("STENTOR_CRASH_AT");
        }
        for (int i = 0; i < 3; i++) {
            CRASH_POINT_IF("bus.stored", false); // not passed, whatever is asked for
            crash_pass(i == 1 ? "bus.publishing" : "ingest.committed");
            (void)!write(ends[1], "", 1);
        }
        _exit(WENT_ON);
    }
    close(ends[1]);
    char byte;
    *ret_passed = 0;
    while (read(ends[0], &byte, 1) == 1) {
        (*ret_passed)++;
    }
    close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void a_named_point_kills_at_the_passing_that_is_asked_for(void **state)
{
    (void)state;
    static const struct {
        const char *at;
        int passed;
    } rows[] = {
        {"ingest.committed", 0},
        {"ingest.committed:1", 0},
        {"ingest.committed:2", 2},
        {"bus.publishing", 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int passed = -1;
        int status = pass_three(rows[i].at, &passed);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_int_equal(passed, rows[i].passed);
    }
}

static void what_is_not_named_is_passed(void **state)
{
    (void)state;
    static const char *const rows[] = {NULL, "", "bus.stored", "ingest.committed:3"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int passed = -1;
        int status = pass_three(rows[i], &passed);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == WENT_ON);
        assert_int_equal(passed, 3);
    }
}

static void an_unknown_point_is_reported(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "ingest", "ingest.committed:", "ingest.committed:0", "ingest.committed:x", ":1"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int passed = -1;
        int status = pass_three(rows[i], &passed);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == WRONG);
        assert_int_equal(passed, 0);
    }
}

static void a_service_prints_its_own_points(void **state)
{
    (void)state;
    Buf out;
    buf_init(&out, 64 * 1024);
    assert_true(crash_points_print("archiver", &out));
    Str rest = buf_view(&out);
    Str line;
    size_t own = 0;
    while (str_split(&rest, '\n', &line) && line.len > 0) {
        assert_true(
            str_starts(line, STR("archiver.")) || str_starts(line, STR("projector.")) ||
            str_starts(line, STR("storage.")));
        own += str_starts(line, STR("archiver.folded\t")) ? 1 : 0;
    }
    assert_int_equal(own, 1);
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_named_point_kills_at_the_passing_that_is_asked_for),
        cmocka_unit_test(what_is_not_named_is_passed),
        cmocka_unit_test(an_unknown_point_is_reported),
        cmocka_unit_test(a_service_prints_its_own_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
#define TEXT(...) #__VA_ARGS__
#define EXPANSION(macro) TEXT(macro)

static void a_point_is_nothing_in_a_release_build(void **state)
{
    (void)state;
    assert_string_equal(EXPANSION(CRASH_POINT("a.point")), "((void)0)");
    assert_string_equal(EXPANSION(CRASH_POINT_IF("a.point", far < near)), "((void)0)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_point_is_nothing_in_a_release_build),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
