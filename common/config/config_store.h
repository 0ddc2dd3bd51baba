// SPDX-License-Identifier: Apache-2.0
// Stores an entry of CONFIG in the place of exactly the one that its writer knows. Law: every
// entry says which message it replaces (bus_replaces). So of two writers at once the second one is
// refused and decides again, and an earlier message, which the server stores again when a request
// names such a reply, is refused for ever. Costs nothing while what is known is right; a writer
// that did not know tries again with the sequence that the server names.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/model/suppressions.h"
#include "stentor/v1/config.pb-c.h"

typedef enum ConfigVerdict {
    CONFIG_PUT,   // in its place
    CONFIG_WAIT,  // what it is is not known here yet: ask again in a moment
    CONFIG_LEAVE, // it stays
} ConfigVerdict;

// Another message than was known stands there: `there` is its sequence, 0: none.
typedef ConfigVerdict (*ConfigDecide)(void *ctx, uint64_t there);

// The event itself (its headers are made here) and all it points to live in `arena`, with what is
// made here, until `done`. replaces: the sequence that is known, 0: none. decide NULL: in the place
// of whatever is there. done comes once, from the loop: stored, or left as it is (duplicate, the
// sequence of what is there); TRANSIENT when it was not decided within 5 s, or changed 64 times.
typedef struct ConfigStore {
    BusOut out;
    uint64_t replaces;
    ConfigDecide decide;
    BusAcked done;
    void *ctx; // of both
} ConfigStore;

void config_store(Bus *bus, const ConfigStore *store, Arena *arena);

// A suppression that follows from something that happened, stored if the list wants it
// (suppressions_wants). known is a mirror's; the entry lives in `arena` too.
void suppression_store(
    Bus *bus, const Suppressions *known, const Stentor__V1__Suppression *entry, Str traceparent,
    Arena *arena, BusAcked done, void *ctx);
// What a new one would replace; 0: none is known.
uint64_t suppression_known_sequence(
    const Suppressions *known, const Stentor__V1__Suppression *entry);
// For a ConfigDecide: has the mirror come as far as that message?
bool suppression_is_known(
    const Suppressions *known, const Stentor__V1__Suppression *entry, uint64_t there);
