// SPDX-License-Identifier: Apache-2.0
// One entry of CONFIG, stored for a call of the API in the place of just what was read. Law: of two
// who change an entry at the same moment the second one is refused.
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "common/bus/jetstream/bus.h"

typedef struct ConfigWrite {
    Bus *bus;
    Arena *arena;        // lives until `done`
    const char *subject; // NULL: that of kind, tenant and key
    const char *kind;
    Str tenant;
    Str key;
    const ProtobufCMessage *message; // NULL: the entry is removed
    uint64_t replaces;               // the sequence that was read; 0: there must be none
} ConfigWrite;

// Once, from the loop. err: CONFLICT when another stands there, TRANSIENT when NATS is away. The
// payload is what was stored.
typedef void (*ConfigWritten)(void *ctx, const Error *err, Str payload, uint64_t sequence);

// Is the message what stands, byte for byte? Who put it and when are to be set alike before.
bool config_is_same(const ProtobufCMessage *message, Str stands, Arena *arena);
// An entry that cannot be packed fails through `done` too, at once.
void config_write(const ConfigWrite *write, ConfigWritten done, void *ctx);
