// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/log.h"
#include "tests/unit/common/base/states/states_walk.h"

enum { IDLE, BUSY, CLOSED, COUNT };

static const char *const NAMES[] = {"idle", "busy", "closed"};
static const uint32_t ALLOWED[] = {
    [IDLE] = STATE_BIT(BUSY) | STATE_BIT(CLOSED),
    [BUSY] = STATE_BIT(IDLE) | STATE_BIT(BUSY),
    [CLOSED] = 0,
};
static const States STATES = {"lamp", NAMES, ALLOWED, COUNT};

static bool move(unsigned *state, unsigned next)
{
    if (!states_step(&STATES, *state, next, STR("hall"))) {
        return false;
    }
    *state = next;
    return true;
}

static void every_pair_is_as_the_table_says(void **state)
{
    (void)state;
    static const StateRow rows[] = {
        {"idle", "busy, closed"}, {"busy", "idle, busy"}, {"closed", ""}};
    states_walk(&(StateWalk){rows, COUNT, move});
}

// What a child that does `from` -> `to` writes to its log; its end in *ret_status.
static size_t child_says(
    unsigned from, unsigned to, LogLevel level, char *ret, size_t size, int *ret_status)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        (void)signal(SIGABRT, SIG_DFL);
        log_setup("stentor-test", level, true);
        _exit(move(&from, to) ? 0 : 1);
    }
    (void)close(ends[1]);
    size_t len = 0;
    ssize_t count;
    while (len + 1 < size && (count = read(ends[0], ret + len, size - 1 - len)) > 0) {
        len += (size_t)count;
    }
    ret[len] = '\0';
    (void)close(ends[0]);
    assert_int_equal(waitpid(child, ret_status, 0), child);
    return len;
}

static void a_refused_move_is_an_error_and_ends_a_debug_build(void **state)
{
    (void)state;
    char said[4096];
    int status = 0;
    (void)child_says(CLOSED, BUSY, LOG_INFO, said, sizeof said, &status);
    assert_non_null(strstr(said, "\"level\":\"error\""));
    assert_non_null(
        strstr(said, "\"machine\":\"lamp\",\"of\":\"hall\",\"from\":\"closed\",\"to\":\"busy\""));
#ifdef STENTOR_STRICT_STATES
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
#else
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
#endif
}

static void a_move_is_logged_at_debug_level_alone(void **state)
{
    (void)state;
    char said[4096];
    int status = 0;
    assert_int_equal(child_says(IDLE, BUSY, LOG_INFO, said, sizeof said, &status), 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    (void)child_says(IDLE, BUSY, LOG_DEBUG, said, sizeof said, &status);
    assert_non_null(strstr(said, "\"level\":\"debug\""));
    assert_non_null(
        strstr(said, "\"machine\":\"lamp\",\"of\":\"hall\",\"from\":\"idle\",\"to\":\"busy\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_is_as_the_table_says),
        cmocka_unit_test(a_refused_move_is_an_error_and_ends_a_debug_build),
        cmocka_unit_test(a_move_is_logged_at_debug_level_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
