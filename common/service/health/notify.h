// SPDX-License-Identifier: Apache-2.0
// Notify: the state of a service for a systemd unit of Type=notify (sd_notify(3)), by a datagram to
// $NOTIFY_SOCKET. Without that variable nothing is sent. No libsystemd.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// A unit whose dependencies are away counts as started after this long: STATUS says why it cannot
// work yet, and nothing that waits for the unit hangs.
enum { NOTIFY_PATIENCE_MS = 10 * 1000 };

typedef struct Notify {
    bool started_sent;
    bool ready_sent;     // as STATUS said last
    int64_t watchdog_ms; // 0: no watchdog; else half of what the unit allows
    int64_t fed_ms;
    int64_t began_ms;
} Notify;

// Reads the environment.
void notify_init(Notify *notify, int64_t now_ms);
// From time to time while the service runs; `why` when it is not ready.
void notify_tick(Notify *notify, bool ready, const char *why, int64_t now_ms);
void notify_stopping(void);
// One datagram; false: there is no socket, or it takes nothing.
bool notify_send(const char *text);
