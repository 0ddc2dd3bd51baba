// SPDX-License-Identifier: Apache-2.0
// When an entry of CONFIG is believed. nats-server stores whatever reaches the subject
// cfg.>, also its own answers when a request names such a subject for them; so every reader asks
// here first: the whole subject, that the message parses as its kind says, that it names the
// tenant and key of its subject, that a removal was published and is not an empty answer, and that
// it is no copy with the server's own headers.
// A new kind of configuration is a new row in config_entry.c.
#pragma once

#include "common/bus/jetstream/bus.h"

typedef struct ConfigName {
    Str kind, tenant, key; // of cfg.<kind>.<tenant>.<key>; the key may hold dots
} ConfigName;

// PERMANENT for another subject. Slices point into `subject`.
bool config_entry_name(Str subject, ConfigName *ret, Error *err);
// PERMANENT with the reason for what is no entry. An empty payload with an event id is a removal.
bool config_entry_check(const BusMessage *message, ConfigName *ret, Arena *arena, Error *err);
