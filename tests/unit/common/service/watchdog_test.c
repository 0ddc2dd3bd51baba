// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/service/watchdog.h"

enum { LIMIT_MS = 100 };

static int64_t processor_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void burn(int ms)
{
    for (int64_t end = processor_ms() + ms; processor_ms() < end;) {
        continue;
    }
}

// The way `work` ends in a process of its own, and what it says.
static int end_of(void (*work)(void), char *said, size_t size)
{
    int pipes[2], status;
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        Error err;
        dup2(pipes[1], STDERR_FILENO);
        if (!watchdog_start("stentor-test", LIMIT_MS, &err)) {
            _exit(9);
        }
        work();
        _exit(0);
    }
    close(pipes[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    ssize_t len = read(pipes[0], said, size - 1);
    close(pipes[0]);
    said[len > 0 ? len : 0] = '\0';
    return status;
}

static void loop_for_ever(void)
{
    burn(20 * LIMIT_MS);
}

static void finding_13_a_loop_that_stands_ends_its_process(void **state)
{
    (void)state;
    char said[512];
    int status = end_of(loop_for_ever, said, sizeof said);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU);
    assert_non_null(
        strstr(said, "stentor-test: the event loop was blocked for 100 ms of processor time"));
    assert_non_null(strstr(said, "STENTOR_LOOP_LIMIT_MS"));
}

static void work_and_turn(void)
{
    for (int i = 0; i < 5; i++) {
        burn(LIMIT_MS / 2);
        watchdog_feed();
    }
}

static void sleep_long(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 3 * LIMIT_MS * 1000000L}, NULL);
}

static void stop_and_work(void)
{
    watchdog_stop();
    burn(2 * LIMIT_MS);
}

static void a_loop_that_turns_or_waits_lives(void **state)
{
    (void)state;
    void (*const lives[])(void) = {work_and_turn, sleep_long, stop_and_work};
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++) {
        char said[512];
        int status = end_of(lives[i], said, sizeof said);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        assert_string_equal(said, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finding_13_a_loop_that_stands_ends_its_process),
        cmocka_unit_test(a_loop_that_turns_or_waits_lives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
