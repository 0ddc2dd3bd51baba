// SPDX-License-Identifier: Apache-2.0
// Listen: what is published on a subject on which nothing waits for an answer (what a stream
// republishes, heartbeats of processes), to every process that listens. At most once: what is lost
// on the way, or comes faster than the loop takes it, is gone. It needs the right to subscribe
// (nats_rights.h).
#pragma once

#include "common/bus/jetstream/bus.h"

// subject, payload and headers (bus_message_header) are set; all lives during the call.
typedef void (*BusHeard)(void *ctx, const BusMessage *message);

// Whenever there is a connection, until bus_unlisten; at most 4 subjects at once, none of which
// covers another one's. `subject` is a static string.
void bus_listen(Bus *bus, const char *subject, BusHeard on_heard, void *ctx);
void bus_unlisten(Bus *bus, const char *subject);

// bus.c's: a message.
void listen_take(Bus *bus, void *native);
