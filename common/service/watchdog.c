// SPDX-License-Identifier: Apache-2.0
#include "common/service/watchdog.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Of the process, since a signal's handler has no context.
static timer_t timer;
static bool started;
static struct itimerspec limit;
static char last_line[256];

static void on_xcpu(int number)
{
    ssize_t written = write(STDERR_FILENO, last_line, strlen(last_line));
    (void)written; // there is nothing else to do
    signal(number, SIG_DFL);
    raise(number); // when the handler returns
}

bool watchdog_start(const char *service, int64_t limit_ms, Error *err)
{
    struct sigaction action = {.sa_handler = on_xcpu};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGXCPU};
    snprintf(
        last_line, sizeof last_line,
        "%s: the event loop was blocked for %" PRId64 " ms of processor time, the process ends "
        "itself and its messages are redelivered (HINT: STENTOR_LOOP_LIMIT_MS, stentor dlq list)\n",
        service, limit_ms);
    limit = (struct itimerspec){
        .it_value = {(time_t)(limit_ms / 1000), (long)(limit_ms % 1000) * 1000000}};
    if (sigaction(SIGXCPU, &action, NULL) != 0 ||
        timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0) {
        return error_set(err, ERROR_CONFIG, "watchdog: %s", strerror(errno));
    }
    started = true;
    watchdog_feed();
    return true;
}

void watchdog_feed(void)
{
    if (started) {
        timer_settime(timer, 0, &limit, NULL);
    }
}

void watchdog_stop(void)
{
    if (started) {
        started = false;
        timer_delete(timer);
        signal(SIGXCPU, SIG_DFL);
    }
}
