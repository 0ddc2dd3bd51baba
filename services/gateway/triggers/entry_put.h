// SPDX-License-Identifier: Apache-2.0
// An entry of CONFIG stored for a call, where of two puts without a precondition the later one
// counts. With a precondition it replaces just what was read, and is refused (412) when another
// came first.
#pragma once

#include "common/api/precondition.h"
#include "common/bus/jetstream/bus.h"

typedef struct EntryPut {
    ApiCall *call;
    Bus *bus;
    const char *kind;
    Str key;
    Str payload;       // empty: deleted
    uint64_t replaces; // the sequence that is known; 0: none
    const Precondition *needs;
    void (*done)(void *ctx, uint64_t sequence); // it is stored; everything else is answered
    void *ctx;
} EntryPut;

// All of it but the struct itself lives in the request's arena, or as long.
void entry_put(const EntryPut *put);
