// SPDX-License-Identifier: Apache-2.0
#include "common/service/health/notify.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/str.h"

enum { TEXT_MAX = 1024 };

bool notify_send(const char *text)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    size_t len = path != NULL ? strlen(path) : 0;
    if (len < 2 || (path[0] != '/' && path[0] != '@') || len >= sizeof to.sun_path) {
        return false;
    }
    memcpy(to.sun_path, path, len);
    if (path[0] == '@') {
        to.sun_path[0] = '\0'; // an abstract one, which ends where the address does
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    bool sent = fd >= 0 &&
                sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&to, size) ==
                    (ssize_t)strlen(text);
    if (fd >= 0) {
        close(fd);
    }
    return sent;
}

// The unit's watchdog, unless it is another process's. Halved, as sd_watchdog_enabled(3) advises.
static int64_t read_watchdog(void)
{
    const char *span = getenv("WATCHDOG_USEC"), *whose = getenv("WATCHDOG_PID");
    int64_t span_us = 0, pid = 0;
    bool ours = whose == NULL || (str_to_i64(str_from(whose), &pid) && pid == getpid());
    bool wanted = span != NULL && ours && str_to_i64(str_from(span), &span_us) && span_us > 0;
    return wanted ? span_us / 2000 : 0;
}

void notify_init(Notify *notify, int64_t now_ms)
{
    *notify = (Notify){.watchdog_ms = read_watchdog(), .began_ms = now_ms, .fed_ms = now_ms};
}

void notify_tick(Notify *notify, bool ready, const char *why, int64_t now_ms)
{
    char text[TEXT_MAX];
    bool starts =
        !notify->started_sent && (ready || now_ms - notify->began_ms >= NOTIFY_PATIENCE_MS);
    bool changed = !notify->started_sent ? starts : ready != notify->ready_sent;
    if (changed) {
        snprintf(
            text, sizeof text, "%sSTATUS=%s%.900s", starts ? "READY=1\n" : "",
            ready ? "ready" : "not ready: ", ready ? "" : why);
        (void)notify_send(text);
        notify->ready_sent = ready;
        notify->started_sent = notify->started_sent || starts;
    }
    if (notify->watchdog_ms > 0 && now_ms - notify->fed_ms >= notify->watchdog_ms) {
        notify->fed_ms = now_ms;
        (void)notify_send("WATCHDOG=1");
    }
}

void notify_stopping(void)
{
    (void)notify_send("STOPPING=1\nSTATUS=stopping");
}
