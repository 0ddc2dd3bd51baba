// SPDX-License-Identifier: Apache-2.0
// Presence: are the streams and durable consumers that a service reads there? Asked of what its row
// of the topology names, every 15 s, and within 2 s where a pull request was refused or one is
// missing: so that readiness names a deleted one, and recovers when `stentor migrate` has recreated
// it.
#pragma once

#include "common/bus/jetstream/bus.h"

typedef struct Presence Presence;

Presence *presence_new(Bus *bus, const char *service);
void presence_free(Presence *presence);  // NULL-safe; after the bus has cancelled its requests
void presence_doubt(Presence *presence); // NULL-safe; a pull request was refused
void presence_tick(Presence *presence, int64_t now_ms);
const char *presence_missing(const Presence *presence); // why; NULL: all are there
