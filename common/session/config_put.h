// SPDX-License-Identifier: Apache-2.0
// Publishing one entry of CONFIG: the way in which tenants, keys and templates reach
// every service.
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "common/session/session.h"

typedef struct ConfigEntry {
    const char *kind; // "tenant"
    Str tenant;
    Str key;
    const ProtobufCMessage *message;
    uint64_t replaces; // sequence of the entry it must replace; 0: whatever is there
} ConfigEntry;

// Publishes in the place of just that message of the subject (0: of whatever is there) and waits
// until it is stored. ERROR_CONFLICT when another changed it meanwhile (0: again and again).
bool config_replace(
    Session *session, Arena *arena, const BusOut *out, uint64_t replaces, Error *err);
// Publishes the entry on cfg.<kind>.<tenant>.<key> and waits until it is stored. ERROR_CONFLICT
// when another changed it meanwhile; other errors wrap the publisher's.
bool config_put(Session *session, Arena *arena, const ConfigEntry *entry, Error *err);
// Opens a session for one config_put.
bool config_put_once(
    const SessionOptions *options, Arena *arena, const ConfigEntry *entry, Error *err);
