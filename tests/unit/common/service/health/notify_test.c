// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/service/health/notify.h"

// A unit's socket: a path, or an abstract name.
typedef struct Unit {
    char folder[64];
    char name[96];
    int fd;
} Unit;

static Unit open_unit(bool abstract)
{
    Unit unit = {.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0)};
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(unit.folder, sizeof unit.folder, "/tmp/stentor-notify-XXXXXX");
    assert_non_null(mkdtemp(unit.folder));
    snprintf(unit.name, sizeof unit.name, "%s%s/socket", abstract ? "@" : "", unit.folder);
    size_t len = strlen(unit.name);
    memcpy(at.sun_path, unit.name, len);
    at.sun_path[0] = abstract ? '\0' : unit.name[0];
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    assert_int_equal(bind(unit.fd, (const struct sockaddr *)&at, size), 0);
    setenv("NOTIFY_SOCKET", unit.name, 1);
    return unit;
}

static void close_unit(Unit *unit)
{
    close(unit->fd);
    unlink(unit->name);
    rmdir(unit->folder);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

static void hears(const Unit *unit, const char *wanted)
{
    char text[2048];
    ssize_t n = recv(unit->fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    assert_string_equal(text, wanted);
}

static void a_start_a_change_and_a_stop_are_heard_once_each(void **state)
{
    (void)state;
    for (int abstract = 0; abstract <= 1; abstract++) {
        Unit unit = open_unit(abstract != 0);
        Notify notify;
        notify_init(&notify, 0);
        notify_tick(&notify, false, "no nats", 500);
        hears(&unit, "");
        notify_tick(&notify, true, "", 1000);
        notify_tick(&notify, true, "", 1500);
        hears(&unit, "READY=1\nSTATUS=ready");
        hears(&unit, "");
        notify_tick(&notify, false, "no nats", 2000);
        hears(&unit, "STATUS=not ready: no nats");
        notify_tick(&notify, true, "", 2500);
        hears(&unit, "STATUS=ready");
        notify_stopping();
        hears(&unit, "STOPPING=1\nSTATUS=stopping");
        close_unit(&unit);
    }
}

static void a_unit_whose_servers_are_away_counts_as_started_after_a_while(void **state)
{
    (void)state;
    Unit unit = open_unit(true);
    Notify notify;
    notify_init(&notify, 0);
    notify_tick(&notify, false, "no nats", NOTIFY_PATIENCE_MS - 1);
    hears(&unit, "");
    notify_tick(&notify, false, "no nats", NOTIFY_PATIENCE_MS);
    hears(&unit, "READY=1\nSTATUS=not ready: no nats");
    notify_tick(&notify, true, "", NOTIFY_PATIENCE_MS + 500);
    hears(&unit, "STATUS=ready");
    close_unit(&unit);
}

static void the_watchdog_is_fed_twice_within_its_time(void **state)
{
    (void)state;
    Unit unit = open_unit(true);
    Notify notify;
    setenv("WATCHDOG_USEC", "4000000", 1);
    notify_init(&notify, 0);
    notify_tick(&notify, true, "", 1);
    hears(&unit, "READY=1\nSTATUS=ready");
    notify_tick(&notify, true, "", 1999);
    hears(&unit, "");
    notify_tick(&notify, true, "", 2000);
    hears(&unit, "WATCHDOG=1");
    setenv("WATCHDOG_PID", "1", 1); // another process's
    notify_init(&notify, 0);
    assert_int_equal(notify.watchdog_ms, 0);
    close_unit(&unit);
}

static void without_a_socket_nothing_is_sent(void **state)
{
    (void)state;
    static const char *const names[] = {"", "@", "relative", "/nonexistent/socket"};
    unsetenv("NOTIFY_SOCKET");
    assert_false(notify_send("READY=1"));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        setenv("NOTIFY_SOCKET", names[i], 1);
        assert_false(notify_send("READY=1"));
    }
    char longer[256] = "/";
    memset(longer + 1, 'a', sizeof longer - 2);
    setenv("NOTIFY_SOCKET", longer, 1);
    assert_false(notify_send("READY=1"));
    unsetenv("NOTIFY_SOCKET");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_start_a_change_and_a_stop_are_heard_once_each),
        cmocka_unit_test(a_unit_whose_servers_are_away_counts_as_started_after_a_while),
        cmocka_unit_test(the_watchdog_is_fed_twice_within_its_time),
        cmocka_unit_test(without_a_socket_nothing_is_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
