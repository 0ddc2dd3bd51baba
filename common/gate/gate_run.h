// SPDX-License-Identifier: Apache-2.0
// The gate for a whole group of notifications: one look-up of the recipients and of whose the given
// addresses are (one more for the owners, one more for guardians), one statement for the limits,
// the decision itself in common/model/rules/gate.h. Where no recipient is named, no tenant has
// limits and the category is none that a recipient may refuse, nothing is asked and the answer
// comes at once.
//
// An address that one recipient has is that recipient, as if the caller had named the id. One that
// several have stays without a recipient, and what one of them refuses is refused.
#pragma once

#include "common/gate/gate_counters.h"
#include "common/gate/notice.h"
#include "common/model/suppressions.h"
#include "common/request/catalog.h"

typedef struct Gate {
    DbPool *pool;
    const Catalog *catalog;
    const Suppressions *suppressions; // NULL: none
    Str hash_key;                     // the current one
    HashKeys hash_keys;               // all of them; none: the current one alone
} Gate;

typedef void (*GateDone)(void *ctx, const Error *err); // NULL: all notices are decided

typedef struct GateRun {
    const Gate *gate;
    Arena *arena;
    Notice *notices; // the copies for guardians are added at the end
    size_t count;
    size_t cap; // twice the count
    int64_t now_us;
    bool dry; // only asked: no place in a limit is taken
    GateDone done;
    void *ctx;
    // its own:
    Records records;
    Counters counters;
    size_t asked; // notices that came in
    bool owners_asked;
    bool owners_read;
    bool records_asked;
    Error err;
} GateRun;

// `done` once: before gate_run returns when nothing had to be asked, else from the loop. After an
// error the notices are spent; a new try makes them again. Places taken from limits by a group that
// is not committed are lost, never taken twice.
void gate_run(GateRun *run);
